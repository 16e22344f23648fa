// SPDX-License-Identifier: MIT
// Sizes of an instance, and the operands of its products as lanes hold them.
//
// BM, BN: queries of a workgroup and keys of a tile. DQ, DV: head dims, of which a call may use a part. WAVES: of a
// workgroup, each with 32 queries, or 16. MMA_ROWS: rows of a product's operands, 32, or for 16 queries 16. BITS: of an
// element of q, k and v. OPERAND_CHUNKS: chunks that a lane holds of an operand. MX: each 32 elements have a scale;
// else MMA_OF is the product. TWO_OF_P packs two numbers of softmax, of 16 bits.
//
// Takes BM, BN, DQ, DV, WAVES, MMA_ROWS, BITS, OPERAND_CHUNKS, MX.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_OPERANDS_H
#define TESSERA_DEVICE_ATTENTION_CDNA_OPERANDS_H

#include "tessera/device/common/cdna/buffers.h"

enum { THREADS = 64 * WAVES, WAVE_ROWS = BM < 32 ? BM : 32 };
// SHARES: lanes that have a row of an operand together. CHUNK: elements of 16 bytes, which one access moves. STEP:
// elements that one product sums over; STEPS: products along the reduced dimension. BLOCKS: groups of MMA_ROWS rows.
enum { SHARES = 64 / MMA_ROWS, CHUNK = 128 / BITS, STEP = SHARES * OPERAND_CHUNKS * CHUNK, Q_CHUNKS = DQ / CHUNK };
enum { Q_STEPS = DQ / STEP, KEY_STEPS = BN / STEP, KEY_BLOCKS = BN / MMA_ROWS, D_BLOCKS = DV / MMA_ROWS };
#if MMA_ROWS == 32
typedef f32x16 mma_sums; // what a lane has of a product's result
#else
typedef f32x4 mma_sums;
#endif
#define BYTES(elements) ((elements)*BITS / 8)

#if MX
typedef struct {
    u32x4 chunk[OPERAND_CHUNKS];
    uint32_t scale; // E8M0: half h of the wave holds that of elements 32 h + 0..31 of the product's
} operand;
// P is fp8 whether V is mxfp8 or mxfp4.
enum { P_BITS = 8, P_OPERAND_CHUNKS = 2 };
typedef struct {
    u32x4 chunk[P_OPERAND_CHUNKS];
} p_operand;
enum { E8M0_ONE = 127 };
#if OPERAND_CHUNKS == 1
#define MMA(a, b, c) mma_mxfp4((a).chunk[0], (b).chunk[0], c, (a).scale, (b).scale)
#define MMA_P(v, p, c) mma_mxfp4_mxfp8((v).chunk[0], (p).chunk[0], (p).chunk[1], c, (v).scale, E8M0_ONE)
#else
#define MMA(a, b, c) mma_mxfp8((a).chunk[0], (a).chunk[1], (b).chunk[0], (b).chunk[1], c, (a).scale, (b).scale)
#define MMA_P(v, p, c) mma_mxfp8((v).chunk[0], (v).chunk[1], (p).chunk[0], (p).chunk[1], c, (v).scale, E8M0_ONE)
#endif
#else
typedef struct {
    u32x4 chunk[OPERAND_CHUNKS];
} operand;
enum { P_BITS = BITS, P_OPERAND_CHUNKS = OPERAND_CHUNKS };
typedef operand p_operand;
#define MMA_P MMA
#if OPERAND_CHUNKS == 1
#define MMA(a, b, c) MMA_OF((a).chunk[0], (b).chunk[0], c)
#else
#define MMA(a, b, c) MMA_OF((a).chunk[0], (a).chunk[1], (b).chunk[0], (b).chunk[1], c)
#endif
#endif

// A word of P, from element e of x.
#if BITS == 32
#define PACK_P(x, e) AS_U32((x)[e])
#elif BITS == 16
#define PACK_P(x, e) TWO_OF_P((x)[e], (x)[(e) + 1])
#else
#define PACK_P(x, e) pack_fp8((x)[e], (x)[(e) + 1], (x)[(e) + 2], (x)[(e) + 3])
#endif

// Loads the 16 bytes that begin at element `begin` of a row; words past the row's end are 0.
INLINE u32x4 load_chunk(buffer from, int place, int begin, int hdim) {
    u32x4 x;
    UNROLL
    for (int w = 0; w < 4; w++)
        x[w] = buffer_load_4(from, BYTES(begin) + 4 * w < BYTES(hdim) ? place + 4 * w : OUTSIDE);
    return x;
}

// Chunk `chunk` of a row of `width` elements that lies anywhere; chunks past its end are 0, and are not read.
INLINE u32x4 chunk_of_row(const char *row, int chunk, int width) {
    const int inside = CHUNK * chunk < width;
    const u32x4 x = *(GLOBAL const u32x4 *)(uint64_t)(row + (inside ? 16 * chunk : 0));
    return inside ? x : (u32x4){0, 0, 0, 0};
}

#endif
