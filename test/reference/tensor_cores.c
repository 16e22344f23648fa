// SPDX-License-Identifier: MIT
#include "tensor_cores.h"

#include <math.h>
#include <string.h>

#include "wide.h"

enum { KEYS = TENSOR_CORES_KEYS, TERMS = 32 };

// 2^(e - 13) for a magnitude of 2^e to 2^(e + 1): its last bit that stays.
static inline double last_bit(double magnitude) {
    uint64_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    bits &= UINT64_C(0x7ff) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power * 0x1p-13;
}

// Adds what an instruction cuts off: of each product, and of sums before and behind it.
WIDE static void add_instruction(const double *q, const double *k, int32_t terms, double sums[KEYS],
                                 double lost[KEYS]) {
    double greatest[KEYS], bit[KEYS], bits[KEYS];
    for (int j = 0; j < KEYS; j++) greatest[j] = fabs(sums[j]) > 0x1p-200 ? fabs(sums[j]) : 0x1p-200;
    for (int32_t d = 0; d < terms; d++)
        for (int j = 0; j < KEYS; j++) {
            const double product = fabs(q[d] * k[d * KEYS + j]);
            greatest[j] = product > greatest[j] ? product : greatest[j];
        }
    for (int j = 0; j < KEYS; j++) bit[j] = last_bit(greatest[j]), bits[j] = 1 / bit[j];
    for (int j = 0; j < KEYS; j++) lost[j] += sums[j] == 0 ? 0 : bit[j];
    for (int32_t d = 0; d < terms; d++)
        for (int j = 0; j < KEYS; j++) {
            const double product = q[d] * k[d * KEYS + j];
            lost[j] += fabs(product - trunc(product * bits[j]) * bit[j]);
            sums[j] += product;
        }
    for (int j = 0; j < KEYS; j++) lost[j] += last_bit(fabs(sums[j]));
}

void tensor_cores_lost(const double *q, const double *k, int32_t hdim, double lost[KEYS]) {
    double sums[KEYS] = {0};
    memset(lost, 0, sizeof(double) * KEYS);
    for (int32_t d = 0; d < hdim; d += TERMS)
        add_instruction(q + d, k + (int64_t)d * KEYS, hdim - d < TERMS ? hdim - d : TERMS, sums, lost);
}
