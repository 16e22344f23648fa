// SPDX-License-Identifier: MIT
// How the sums of a product lie in threads. A thread's share of its 64 rows x n columns (PTX ISA, "Register Fragments
// and Shared Memory Matrix Layouts", D of wgmma.m64nNk16; CUTLASS, cute/atom/mma_traits_sm90_gmma.hpp, CLayout_64xN):
// elements 4 j + 2 r + e of its n / 2 are in row 16 (warp % 4) + lane / 4 + 8 r and column 8 j + 2 (lane % 4) + e.
//
// Where products are TURNED their rows are keys and their columns queries: a thread has queries 2 (lane % 4) and the
// next one of a warp's eight, as its rows r, and every eighth key from lane / 4 on. BESIDE says how many columns it has
// of each eight.
//
// Takes TURNED.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_FRAGMENTS_H
#define TESSERA_DEVICE_ATTENTION_CUDA_FRAGMENTS_H

#include "tessera/isa/sm90_async.h"

#if TURNED
#define ELEMENT(j, r, e) (2 * (j) + (r))
#define ROW_OF(i) ((i) % 2)
#define COLUMN_OF(i) (8 * ((i) / 2))
enum { BESIDE = 1 };
INLINE int thread_column(void) { return lane_id() / 4; }
#else
#define ELEMENT(j, r, e) (4 * (j) + 2 * (r) + (e))
#define ROW_OF(i) ((i) / 2 % 2)
#define COLUMN_OF(i) COLUMN((i) / 4, (i) % 2)
enum { BESIDE = 2 };
INLINE int thread_column(void) { return 2 * (lane_id() % 4); }
#endif
#define COLUMN(j, e) (8 * (j) + (e)) // beside thread_column()
INLINE int thread_row(void) { return thread_id() % WARPGROUP / 32 * 16 + lane_id() / 4; }

// Four lanes, `apart` from one another, have four words each: after this word c of lane l is word l of lane c.
INLINE void transpose_words(uint32_t x[4], int apart) {
    const int lane = lane_id();
    UNROLL
    for (int bit = 1; bit <= 2; bit *= 2) {
        const int set = lane & bit * apart;
        UNROLL
        for (int c = 0; c < 4; c++) {
            if (c & bit) continue;
            const uint32_t low = x[c], high = x[c + bit], other = other_lane_bits(set ? low : high, bit * apart);
            x[c] = set ? other : low;
            x[c + bit] = set ? high : other;
        }
    }
}

// Four lanes have four pairs of columns each: pair c of lane l is columns 8 c + 2 l and the next. After this lane l has
// the pairs of columns 8 l to 8 l + 7.
INLINE void transpose_four(uint32_t x[4]) { transpose_words(x, 1); }

#endif
