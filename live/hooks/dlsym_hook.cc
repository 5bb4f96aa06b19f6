// libddx_dlsym.so: for programs that look NCCL's functions up by name (ctypes, XLA), which a preloaded library does not
// see. Preloaded beside libddx_trace.so it stands before dlsym and gives the interposer's function for a name of
// NCCL's. Opt-in: only one library of a process can do so.
#include <dlfcn.h>

#include <cstring>
#include <initializer_list>

extern "C" {

// The rest of dlsym below: where the real one is, and the address that this call is answered with, or nullptr.
__attribute__((visibility("hidden"))) void* (*ddx_real_dlsym)(void*, const char*) = nullptr;
__attribute__((visibility("hidden"))) void* ddx_pick_symbol(void* handle, const char* name);
}

namespace {

using Dlsym = void* (*)(void*, const char*);

Dlsym real_dlsym() {
  Dlsym real = __atomic_load_n(&ddx_real_dlsym, __ATOMIC_ACQUIRE);
  if (real != nullptr) return real;
  // dlvsym is not hooked, so that it leads to libc's; its version depends on the machine and libc's age.
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
    real = reinterpret_cast<Dlsym>(dlvsym(RTLD_NEXT, "dlsym", version));
    if (real != nullptr) break;
  }
  __atomic_store_n(&ddx_real_dlsym, real, __ATOMIC_RELEASE);
  return real;
}

}  // namespace

void* ddx_pick_symbol(void* handle, const char* name) {
  const Dlsym real = real_dlsym();
  if (real == nullptr || name == nullptr || std::strncmp(name, "nccl", 4) != 0) return nullptr;
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT) return nullptr;  // what comes of these depends on who asks
  void* wanted = real(handle, name);
  if (wanted == nullptr) return nullptr;  // a release without it stays one
  using Choose = void* (*)(const char*, void*);
  const auto choose = reinterpret_cast<Choose>(real(RTLD_DEFAULT, "ddx_nccl_function"));
  return choose == nullptr ? nullptr : choose(name, wanted);
}

#if defined(__x86_64__)
// All other calls go on with a jump: RTLD_NEXT means what stands behind the library that the return address is in.
asm(R"(
  .text
  .globl dlsym
  .type dlsym, @function
dlsym:
  .cfi_startproc
  endbr64
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call ddx_pick_symbol
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  testq %rax, %rax
  jne 1f
  jmp *ddx_real_dlsym(%rip)
1:
  ret
  .cfi_endproc
  .size dlsym, .-dlsym
)");
#else
// A sibling call: the compiler leaves the caller's return address where it is.
extern "C" __attribute__((visibility("default"), optimize("O2"))) void* dlsym(void* handle, const char* name) noexcept {
  if (void* picked = ddx_pick_symbol(handle, name)) return picked;
  return ddx_real_dlsym(handle, name);
}
#endif
