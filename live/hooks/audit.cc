// libddx_audit.so, for LD_AUDIT: the loader asks here about every symbol that it binds, also in scopes that a preloaded
// library does not reach (RTLD_DEEPBIND, dlopen with dlsym). Opt-in: all calls through lazily bound symbols of the
// process become a little slower. libddx_trace.so must be preloaded, too: this library lives in a namespace of its own.
#include <link.h>

#include <cstdint>
#include <cstring>

namespace {

link_map* g_trace = nullptr;  // libddx_trace.so

bool is_trace(const char* path) {
  const char* name = path == nullptr ? nullptr : std::strrchr(path, '/');
  return name != nullptr && std::strcmp(name, "/libddx_trace.so") == 0;
}

// What the dynamic section says of a table; the loader has made addresses of most of these already.
std::uintptr_t table_at(const link_map* map, std::int64_t tag) {
  for (const Elf64_Dyn* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == tag)
      return entry->d_un.d_ptr < map->l_addr ? map->l_addr + entry->d_un.d_ptr : entry->d_un.d_ptr;
  }
  return 0;
}

// The address of a symbol that libddx_trace.so defines, or nullptr. By hand: in the middle of the loader's work dlsym
// would find it half done.
void* symbol_of_trace(const char* name) {
  const auto* hash = reinterpret_cast<const std::uint32_t*>(table_at(g_trace, DT_GNU_HASH));
  const auto* symbols = reinterpret_cast<const Elf64_Sym*>(table_at(g_trace, DT_SYMTAB));
  const auto* names = reinterpret_cast<const char*>(table_at(g_trace, DT_STRTAB));
  if (hash == nullptr || symbols == nullptr || names == nullptr) return nullptr;
  const std::uint32_t bucket_count = hash[0];
  const std::uint32_t first = hash[1];
  const std::uint32_t* buckets = hash + 4 + std::size_t{hash[2]} * 2;  // behind the filter, of 64-bit words
  const std::uint32_t* chains = buckets + bucket_count;
  for (std::uint32_t bucket = 0; bucket < bucket_count; ++bucket) {
    if (buckets[bucket] < first) continue;
    for (std::uint32_t index = buckets[bucket];; ++index) {
      if (std::strcmp(names + symbols[index].st_name, name) == 0) {
        return reinterpret_cast<void*>(g_trace->l_addr + symbols[index].st_value);
      }
      if ((chains[index - first] & 1) != 0) break;
    }
  }
  return nullptr;
}

}  // namespace

extern "C" {

#define DDX_EXPORT __attribute__((visibility("default")))

DDX_EXPORT unsigned la_version(unsigned version) { return version < LAV_CURRENT ? version : LAV_CURRENT; }

DDX_EXPORT unsigned la_objopen(link_map* map, Lmid_t space, std::uintptr_t* cookie) {
  *cookie = reinterpret_cast<std::uintptr_t>(map);
  if (space == LM_ID_BASE && is_trace(map->l_name)) {
    g_trace = map;
    return 0;  // its own bindings are as they are
  }
  return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

DDX_EXPORT std::uintptr_t la_symbind64(Elf64_Sym* symbol, unsigned /*index*/, std::uintptr_t* /*from*/,
                                       std::uintptr_t* to, unsigned* flags, const char* name) {
  // Nothing of ours needs to see the calls themselves.
  *flags |= LA_SYMB_NOPLTENTER | LA_SYMB_NOPLTEXIT;
  if (std::strncmp(name, "nccl", 4) != 0 || g_trace == nullptr || reinterpret_cast<link_map*>(*to) == g_trace) {
    return symbol->st_value;
  }
  void* chosen = symbol_of_trace(name);
  if (chosen == nullptr) return symbol->st_value;
  if (auto** asked = static_cast<void**>(symbol_of_trace("ddx_nccl_asked"))) {
    __atomic_store_n(asked, reinterpret_cast<void*>(symbol->st_value), __ATOMIC_RELEASE);
  }
  return reinterpret_cast<std::uintptr_t>(chosen);
}
}
