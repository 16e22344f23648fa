// SPDX-License-Identifier: MIT
// What products of 8 bits on tensor cores of NVIDIA (sm_90a) cut off.
//
// An instruction adds 32 products, and the sums so far, at the place of the greatest of them: 13 bits behind the point
// stay of each term, the others are cut off (DeepSeek-V3 Technical Report, 3.5.2: "aligning the mantissa products by
// right-shifting based on the maximum exponent", "only uses the highest 14 bits"; SageAttention2, 3.3: sums have 13
// bits behind the point, and what comes in with more loses them). On an H200 a score of 128 such products was what this
// gives (test_tensor_cores.py).
#ifndef TENSOR_CORES_H
#define TENSOR_CORES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TENSOR_CORES_KEYS = 64 };

// lost[j] = how much the sum over d < hdim of q[d] k[d][j] may be off, in that order, q and k being as products get
// them. NaN or infinite where they are.
void tensor_cores_lost(const double *q, const double *k, int32_t hdim, double lost[TENSOR_CORES_KEYS]);

#ifdef __cplusplus
}
#endif
#endif
