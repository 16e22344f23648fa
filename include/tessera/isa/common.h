// SPDX-License-Identifier: MIT
// What every vocabulary needs of the compiler.
#ifndef TESSERA_ISA_COMMON_H
#define TESSERA_ISA_COMMON_H

#include <assert.h> // static_assert, a word of C++
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline, unused))
#define APART __attribute__((noinline, unused)) // a function that takes no registers from what calls it
#define RARE APART __attribute__((cold))        // the same, kept out of the way
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

// Asks for the line of memory at p, which need not exist: into the second level of caches, or the first.
INLINE void prefetch(uintptr_t p) { __builtin_prefetch((const void *)p, 0, 2); }
INLINE void prefetch_first(uintptr_t p) { __builtin_prefetch((const void *)p, 0, 3); }

#endif
