// libddx_audit.so, for LD_AUDIT: the loader asks here about every symbol that it binds, also in scopes that a preloaded
// library does not reach (RTLD_DEEPBIND, dlopen with dlsym). Opt-in: all calls through lazily bound symbols of the
// process become a little slower. libddx_trace.so must be preloaded, too: this library lives in a namespace of its own.
#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstring>

namespace {

link_map* g_trace = nullptr;
void* (*g_choose)(const char*, void*) = nullptr;

bool is_trace(const char* path) {
  const char* name = path == nullptr ? nullptr : std::strrchr(path, '/');
  return name != nullptr && std::strcmp(name, "/libddx_trace.so") == 0;
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
  if (g_choose == nullptr) g_choose = reinterpret_cast<decltype(g_choose)>(dlsym(g_trace, "ddx_nccl_function"));
  if (g_choose == nullptr) return symbol->st_value;
  void* chosen = g_choose(name, reinterpret_cast<void*>(symbol->st_value));
  return chosen == nullptr ? symbol->st_value : reinterpret_cast<std::uintptr_t>(chosen);
}
}
