// SPDX-License-Identifier: MIT
// Sizes of an instance, and what lanes bring to its products.
//
// BM, BN: queries of a workgroup and keys of a tile. DQ, DV: head dims, of which a call may use a part. WAVES: of a
// workgroup, each with 32 queries. BITS: of an element of q, k and v. PARTS: chunks that a lane brings to a product.
// MX: each 32 elements have a scale; else MMA_OF is the product. TWO_OF_P packs two numbers of softmax, of 16 bits.
//
// Takes BM, BN, DQ, DV, WAVES, BITS, PARTS, MX.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_OPERANDS_H
#define TESSERA_DEVICE_ATTENTION_CDNA_OPERANDS_H

#include "tessera/device/common/cdna/buffers.h"

enum { THREADS = 64 * WAVES };
// CHUNK: elements of 16 bytes, which one access moves. STEP: elements that a product sums over; STEPS: products along
// the reduced dimension. BLOCKS: 32 rows of one.
enum { CHUNK = 128 / BITS, STEP = 2 * PARTS * CHUNK, Q_CHUNKS = DQ / CHUNK };
enum { Q_STEPS = DQ / STEP, KEY_STEPS = BN / STEP, KEY_BLOCKS = BN / 32, D_BLOCKS = DV / 32 };
#define BYTES(elements) ((elements)*BITS / 8)

#if MX
typedef struct {
    u32x4 part[PARTS];
    uint32_t scale; // E8M0: half h of the wave brings that of elements 32 h + 0..31 of the product's
} operand;
// P is fp8 beside both types of V.
enum { P_BITS = 8, P_PARTS = 2 };
typedef struct {
    u32x4 part[P_PARTS];
} p_operand;
enum { E8M0_ONE = 127 };
#if PARTS == 1
#define MMA(a, b, c) mma_mxfp4((a).part[0], (b).part[0], c, (a).scale, (b).scale)
#define MMA_P(v, p, c) mma_mxfp4_mxfp8((v).part[0], (p).part[0], (p).part[1], c, (v).scale, E8M0_ONE)
#else
#define MMA(a, b, c) mma_mxfp8((a).part[0], (a).part[1], (b).part[0], (b).part[1], c, (a).scale, (b).scale)
#define MMA_P(v, p, c) mma_mxfp8((v).part[0], (v).part[1], (p).part[0], (p).part[1], c, (v).scale, E8M0_ONE)
#endif
#else
typedef struct {
    u32x4 part[PARTS];
} operand;
enum { P_BITS = BITS, P_PARTS = PARTS };
typedef operand p_operand;
#define MMA_P MMA
#if PARTS == 1
#define MMA(a, b, c) MMA_OF((a).part[0], (b).part[0], c)
#else
#define MMA(a, b, c) MMA_OF((a).part[0], (a).part[1], (b).part[0], (b).part[1], c)
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

// 16 bytes, `begin` elements from a row's begin: as many words of them as the row has.
INLINE u32x4 load_chunk(buffer from, int place, int begin, int hdim) {
    u32x4 x;
    UNROLL
    for (int w = 0; w < 4; w++)
        x[w] = buffer_load_4(from, BYTES(begin) + 4 * w < BYTES(hdim) ? place + 4 * w : OUTSIDE);
    return x;
}

#endif
