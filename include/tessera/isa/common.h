// SPDX-License-Identifier: MIT
// Attributes and pragmas that every vocabulary uses.
#ifndef TESSERA_ISA_COMMON_H
#define TESSERA_ISA_COMMON_H

#include <assert.h> // static_assert, a word of C++
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline, unused))
#define APART __attribute__((noinline, unused)) // not inlined, so that it takes no registers from its caller
#define RARE APART __attribute__((cold))        // the same, placed apart from code that runs often
#ifdef __cplusplus
#pragma GCC diagnostic ignored "-Wmissing-field-initializers" // they are 0, as in C
#define EXPORTED extern "C"                                   // a function that the table of instances names
#else
#define EXPORTED
#endif
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#define UNROLL_TWICE _Pragma("unroll 2")
#else
#define UNROLL _Pragma("GCC unroll 16")
#define UNROLL_TWICE _Pragma("GCC unroll 2")
#endif

// Prefetch the cache line at p, which need not exist, to the second level of caches, or to the first.
INLINE void prefetch(uintptr_t p) { __builtin_prefetch((const void *)p, 0, 2); }
INLINE void prefetch_first(uintptr_t p) { __builtin_prefetch((const void *)p, 0, 3); }

#endif
