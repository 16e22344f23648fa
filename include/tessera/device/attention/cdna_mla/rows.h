// SPDX-License-Identifier: MIT
// Rows of queries and of keys, whose elements are a part of 128 and a rotated one of 64, on their way from memory to
// LDS, and as operands of the products of scores. In LDS the parts lie apart.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_MLA_ROWS_H
#define TESSERA_DEVICE_ATTENTION_CDNA_MLA_ROWS_H

#include "tessera/device/attention/cdna/operands.h"

enum { NOPE = 128, ROPE = DQ - NOPE, NOPE_CHUNKS = NOPE / CHUNK, ROPE_CHUNKS = ROPE / CHUNK };
enum { NOPE_STEPS = NOPE / STEP }; // of the products' Q_STEPS

struct two_parts {
    SHARED u32x4 *nope, *rope;
};

// A load to LDS writes the lanes' data one after the other, so chunks are permuted by the addresses that lanes load
// from. LDS has 64 banks, which hold 16 chunks: two rows of the first part or four of the other. 16 lanes read the same
// chunk of rows that differ in these quotients (docs/cdna.md).
INLINE int nope_slot(int row, int chunk) { return chunk ^ (row / 2 & (NOPE_CHUNKS - 1)); }
INLINE int rope_slot(int row, int chunk) { return chunk ^ (row / 4 & (ROPE_CHUNKS - 1)); }

// Rows that a load of a wave brings.
enum { NOPE_ROWS = WAVE_LANES / NOPE_CHUNKS, ROPE_ROWS = WAVE_LANES / ROPE_CHUNKS };

// Where the lane reads for a load whose first row is `row`, in bytes from row 0 of the part.
INLINE int nope_place(int row, int stride) {
    row += lane_id() / NOPE_CHUNKS;
    return row * stride + 16 * nope_slot(row, lane_id() % NOPE_CHUNKS);
}
INLINE int rope_place(int row, int stride) {
    row += lane_id() / ROPE_CHUNKS;
    return row * stride + 16 * rope_slot(row, lane_id() % ROPE_CHUNKS);
}

// The offsets of what a lane reads of the first chunks; those of others differ in the bits of the slot.
struct row_reads {
    int nope, rope;
};
INLINE struct row_reads find_row_reads(void) {
    const int row = lane_id() % 32, half = lane_id() / 32;
    return (struct row_reads){16 * (row * NOPE_CHUNKS + nope_slot(row, half)),
                              16 * (row * ROPE_CHUNKS + rope_slot(row, half))};
}

INLINE u32x4 read_16(SHARED const u32x4 *part, int offset, int chunks) {
    return *((SHARED const u32x4 *)((SHARED const char *)part + offset) + chunks);
}

// The operand of 32 rows, of elements STEP * step and on.
INLINE operand row_operand(struct two_parts rows, const struct row_reads *at, int block, int step) {
    operand x;
    UNROLL
    for (int n = 0; n < OPERAND_CHUNKS; n++) {
        if (step < NOPE_STEPS) {
            const int chunk = 2 * (OPERAND_CHUNKS * step + n);
            x.chunk[n] = read_16(rows.nope, at->nope ^ 16 * chunk, 32 * NOPE_CHUNKS * block);
        } else {
            const int chunk = 2 * (OPERAND_CHUNKS * (step - NOPE_STEPS) + n);
            x.chunk[n] = read_16(rows.rope, at->rope ^ 16 * chunk, 32 * ROPE_CHUNKS * block);
        }
    }
    return x;
}

#endif
