// SPDX-License-Identifier: MIT
// Which columns of O a thread has: those of fragments.h, or where V is transposed those that transpose.h makes of them.
// Either way they are pairs of neighbours, four of each 32 columns.
//
// Takes BITS.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_COLUMNS_H
#define TESSERA_DEVICE_ATTENTION_CUDA_COLUMNS_H

#include "tessera/device/attention/cuda/sizes.h"

#if BITS == 8
// Elements of pair c, and how far its columns are from the thread's first: columns 4 q to 4 q + 3 of each 16, where q
// is lane % 4.
#define PAIR_LEFT(j, r, c) ELEMENT((j) + (c) / 2 * 2, r, (c) % 2)
#define PAIR_RIGHT(j, r, c) ELEMENT((j) + (c) / 2 * 2 + 1, r, (c) % 2)
#define PAIR_OFFSET(c) (16 * ((c) / 2) + 2 * ((c) % 2))
INLINE int first_column(void) { return 4 * (lane_id() % 4); }

// Makes four pairs of a lane those of 8 columns side by side; returns the first one.
INLINE int gather_pairs(uint32_t x[4]) {
    const int lane = lane_id() % 4, odd = lane % 2;
    UNROLL
    for (int c = 0; c < 2; c++) {
        const uint32_t low = x[c], high = x[2 + c], other = other_lane_bits(odd ? low : high, 1);
        x[c] = odd ? other : low;
        x[2 + c] = odd ? high : other;
    }
    return 16 * odd + 8 * (lane / 2);
}
#else
#define PAIR_LEFT(j, r, c) ELEMENT((j) + (c), r, 0)
#define PAIR_RIGHT(j, r, c) ELEMENT((j) + (c), r, 1)
#define PAIR_OFFSET(c) (8 * (c))
INLINE int first_column(void) { return thread_column(); }
INLINE int gather_pairs(uint32_t x[4]) {
    transpose_four(x);
    return 8 * (lane_id() % 4);
}
#endif

#endif
