// SPDX-License-Identifier: MIT
// Rows of values in LDS, and V^T as the operand of the products with P.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_MLA_VALUES_H
#define TESSERA_DEVICE_ATTENTION_CDNA_MLA_VALUES_H

#include "tessera/device/attention/cdna/operands.h"

enum { V_CHUNKS = DV / CHUNK, V_ROWS = WAVE_LANES / V_CHUNKS }; // of a row; rows that a load of a wave brings

// 32 lanes read two chunks of 8 keys at once, 4 and 4 that are 8 apart: in LDS, whose banks hold two rows, these lie in
// different ones.
INLINE int v_slot(int key, int chunk) { return chunk ^ (key & 2) ^ (key / 2 & 4); }

// Where the lane reads for a load whose first key is `key`, in bytes from key 0.
INLINE int v_place(int key, int stride) {
    key += lane_id() / V_CHUNKS;
    return key * stride + 16 * v_slot(key, lane_id() % V_CHUNKS);
}

// The offset of what a lane reads of columns 0 to 31 and the first 16 keys; half h of the wave has keys 8 i + 4 h + 0
// to 3, in the order that pack() leaves P in.
INLINE int find_v_read(void) {
    const int lane = lane_id(), row = lane % 16 / 2, key = 4 * (lane / 32) + row / 4 * 8 + row % 4;
    return 16 * (key * V_CHUNKS + v_slot(key, lane / 16 % 2)) + 8 * (lane % 2);
}

// The operand of 32 columns, of keys STEP * step and on.
INLINE operand v_operand(SHARED const u32x4 *v, int at, int block, int step) {
    SHARED const char *const from = (SHARED const char *)v + (at ^ 32 * block) + 16 * V_CHUNKS * STEP * step;
    operand x;
    UNROLL
    for (int n = 0; n < OPERAND_CHUNKS; n++) {
        const u32x2 low = read_transposed_8(from + 16 * V_CHUNKS * 32 * n);
        const u32x2 high = read_transposed_8(from + 16 * V_CHUNKS * (32 * n + 16));
        x.chunk[n] = (u32x4){low.x, low.y, high.x, high.y};
    }
    return x;
}

#endif
