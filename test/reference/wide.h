// SPDX-License-Identifier: MIT
// WIDE: a function uses wider vectors where the machine has them. Sanitizers do not work with the resolvers of these
// clones.
#ifndef WIDE_H
#define WIDE_H

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) &&                           \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif

#endif
