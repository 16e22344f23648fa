// SPDX-License-Identifier: MIT
// What every vocabulary needs of the compiler.
#ifndef TESSERA_ISA_COMMON_H
#define TESSERA_ISA_COMMON_H

#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline, unused))
#define RARE __attribute__((noinline, cold, unused)) // a function kept out of the way of what calls it
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#define UNROLL_TWICE _Pragma("unroll 2")
#else
#define UNROLL _Pragma("GCC unroll 16")
#define UNROLL_TWICE _Pragma("GCC unroll 2")
#endif

#endif
