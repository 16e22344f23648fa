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

#endif
