// DDX_CHECK: an invariant of ddx's own code, on in release builds too. Never used on input: bad input is an Error or a
// counted Diagnostic.
#pragma once

#include <cstdio>
#include <cstdlib>

#define DDX_CHECK(condition)                                                                             \
  do {                                                                                                   \
    if (!(condition)) {                                                                                  \
      std::fprintf(stderr, "ddx: internal check failed at %s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                                      \
    }                                                                                                    \
  } while (false)
