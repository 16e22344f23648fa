// SPDX-License-Identifier: MIT
// What every vocabulary needs of the compiler.
#ifndef TESSERA_ISA_COMMON_H
#define TESSERA_ISA_COMMON_H

#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline, unused))
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#endif
