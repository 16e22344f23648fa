// SPDX-License-Identifier: MIT
// Backward: what a pass over the queries computes, and the keys of a wave, which stay in registers.
//
// Takes BM, BN, DQ, DV, WAVES, BITS, OPERAND_CHUNKS, MX.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_BWD_KEYS_H
#define TESSERA_DEVICE_ATTENTION_CDNA_BWD_KEYS_H

#include "tessera/device/attention/cdna/bwd_task.h"
#include "tessera/device/attention/cdna/operands.h"

// What a pass over the queries computes. One pass computes everything; where registers have no room for that, the first
// of two computes dV and the other one, from the same scores again, dK and dQ; or each of three computes one of them.
enum { FOR_DV = 1, FOR_DK = 2, FOR_DQ = 4, FOR_DS = FOR_DK | FOR_DQ, FOR_ALL = FOR_DV | FOR_DS };

// The wave's 32 keys of K or V, whose rows begin at `element`.
INLINE void load_keys(operand *to, int steps, const void *base, int64_t element, int left, int stride, int hdim) {
    const buffer from = rows_of(base, element, left, BN, stride, hdim, BITS);
    const int offset = BYTES((32 * wave_id() + lane_id() % 32) * stride);
    UNROLL
    for (int n = 0; n < steps; n++) {
        const int chunk = 2 * n + lane_id() / 32;
        to[n].chunk[0] = buffer_load_16(from, CHUNK * chunk < hdim ? offset + 16 * chunk : OUTSIDE);
    }
}

#endif
