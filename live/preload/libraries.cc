#include "live/preload/libraries.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

#include "live/capture/ddx_trace.h"

namespace ddx::preload {

namespace {

constexpr std::size_t kLibraries = 16;
constexpr std::size_t kSites = 1 << 13;
constexpr std::size_t kProbes = 16;

struct KnownSite {
  std::atomic<std::uintptr_t> address;  // 0: free
  std::atomic<Library*> library;        // nullptr: not looked for yet, or not found
  std::atomic<std::uint32_t> frame;
  std::atomic<bool> is_inner;
};

// All of the process: who calls has no object of ours to hand over.
Library g_libraries[kLibraries] = {};
KnownSite g_sites[kSites] = {};

constexpr const char* kNames[] = {
#define DDX_NAME(name, parameters) "pnccl" #name,
    DDX_NCCL_FUNCTIONS(DDX_NAME)
#undef DDX_NAME
};

bool is_ours(const void* address) {
  Dl_info ours{};
  Dl_info that{};
  return dladdr(&g_libraries, &ours) != 0 && dladdr(address, &that) != 0 && ours.dli_fbase == that.dli_fbase;
}

// A symbol of NCCL by its "pnccl" name, or by the public one where that is not this library's own. RTLD_DEFAULT and the
// program's own handle would give ours.
void* look_up(void* handle, const char* pname) {
  if (void* found = dlsym(handle, pname)) return found;
  void* found = dlsym(handle, pname + 1);
  return found != nullptr && !is_ours(found) ? found : nullptr;
}

Library* library_at(void* base, const char* path) {
  const auto key = reinterpret_cast<std::uintptr_t>(base);
  for (Library& library : g_libraries) {
    std::uintptr_t found = library.base.load(std::memory_order_acquire);
    if (found == 0 && !library.base.compare_exchange_strong(found, key) && found != key) continue;
    if (found != 0 && found != key) continue;
    if (library.handle.load(std::memory_order_acquire) == nullptr) {
      // Never closed: what is called through our table must stay. The program itself has no path that opens it.
      void* handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
      if (handle == nullptr) handle = dlopen(nullptr, RTLD_LAZY);
      library.handle.store(handle, std::memory_order_release);
    }
    return &library;
  }
  return nullptr;
}

Library* library_with(const void* symbol) {
  Dl_info info{};
  if (symbol == nullptr || dladdr(symbol, &info) == 0) return nullptr;
  return library_at(info.dli_fbase, info.dli_fname);
}

// What the object at the address sees as NCCL: itself, or what it was linked with.
Library* library_in_scope(const void* address) {
  Dl_info caller{};
  if (dladdr(address, &caller) == 0) return nullptr;
  void* handle = dlopen(caller.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) handle = dlopen(nullptr, RTLD_LAZY);
  if (handle == nullptr) return nullptr;
  Library* found = library_with(look_up(handle, "pncclGetVersion"));
  dlclose(handle);
  return found;
}

int first_nccl(dl_phdr_info* info, std::size_t /*size*/, void* found) {
  const char* path = info->dlpi_name;
  if (path == nullptr) return 0;
  const char* name = std::strrchr(path, '/');
  name = name == nullptr ? path : name + 1;
  if (std::strncmp(name, "libnccl.so", 10) != 0) return 0;
  std::strncpy(static_cast<char*>(found), path, 4095);
  return 1;
}

Library* any_library() {
  if (Library* asked = library_with(__atomic_load_n(&ddx_nccl_asked, __ATOMIC_ACQUIRE))) return asked;
  char path[4096] = {};
  if (dl_iterate_phdr(first_nccl, path) == 0) return nullptr;
  void* handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  Library* found = library_with(look_up(handle, "pncclGetVersion"));
  dlclose(handle);
  return found;
}

Library* find_library(const void* address) {
  Library* found = library_in_scope(address);
  return found != nullptr ? found : any_library();
}

// A library of others may hold all of NCCL beside code that calls it, so that the object alone does not tell.
bool is_inside(const Library* library, const void* address) {
  Dl_info info{};
  if (library == nullptr || dladdr(address, &info) == 0 || info.dli_sname == nullptr) return false;
  if (reinterpret_cast<std::uintptr_t>(info.dli_fbase) != library->base.load(std::memory_order_relaxed)) return false;
  return std::strncmp(info.dli_sname, "nccl", 4) == 0 || std::strncmp(info.dli_sname, "pnccl", 5) == 0;
}

std::uint32_t frame_of(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0) return 0;
  const std::uint32_t file = info.dli_fname == nullptr ? 0 : ddx_text(info.dli_fname, std::strlen(info.dli_fname));
  const std::uint32_t function = info.dli_sname == nullptr ? 0 : ddx_text(info.dli_sname, std::strlen(info.dli_sname));
  const auto offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  return ddx_frame(0, function, file, 0, offset);
}

// The table's place for an address; nullptr where it is full.
KnownSite* known_site(std::uintptr_t address) {
  const std::size_t start = address * 0x9e3779b97f4a7c15U >> 40;
  for (std::size_t probe = 0; probe < kProbes; ++probe) {
    KnownSite& site = g_sites[(start + probe) % kSites];
    std::uintptr_t found = site.address.load(std::memory_order_acquire);
    if (found == address) return &site;
    if (found == 0 && (site.address.compare_exchange_strong(found, address) || found == address)) return &site;
  }
  return nullptr;
}

}  // namespace

Site site_of(const void* return_address, bool with_frame) {
  KnownSite* known = known_site(reinterpret_cast<std::uintptr_t>(return_address));
  KnownSite unkept{};  // where the table is full
  if (known == nullptr) known = &unkept;
  Library* library = known->library.load(std::memory_order_acquire);
  if (library == nullptr) {
    library = find_library(return_address);
    known->is_inner.store(is_inside(library, return_address), std::memory_order_relaxed);
    known->library.store(library, std::memory_order_release);
  }
  std::uint32_t frame = known->frame.load(std::memory_order_relaxed);
  const bool is_inner = known->is_inner.load(std::memory_order_relaxed);
  if (frame == 0 && with_frame && !is_inner) {
    frame = frame_of(return_address);
    known->frame.store(frame, std::memory_order_relaxed);
  }
  return {library, frame, is_inner};
}

void* real_function(Library* library, Function function) {
  if (library == nullptr) return nullptr;
  const auto index = static_cast<std::size_t>(function);
  void* found = library->functions[index].load(std::memory_order_acquire);
  if (found != nullptr) return found;
  void* handle = library->handle.load(std::memory_order_acquire);
  if (handle == nullptr) return nullptr;
  found = look_up(handle, kNames[index]);
  library->functions[index].store(found, std::memory_order_release);
  return found;
}

void forget_sites() {
  for (KnownSite& site : g_sites) {
    if (site.frame.load(std::memory_order_relaxed) != 0) site.frame.store(0, std::memory_order_relaxed);
  }
}

}  // namespace ddx::preload

void* ddx_nccl_asked = nullptr;
