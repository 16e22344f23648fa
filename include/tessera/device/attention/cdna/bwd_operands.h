// SPDX-License-Identifier: MIT
// Backward: probabilities and gradients of scores as operands. TWO_OF_P packs two probabilities, TWO_OF_S two gradients
// of scores, of 16 bits.
//
// Takes BM, BN, DQ, DV, WAVES, BITS, OPERAND_CHUNKS, MX, P_SHIFT.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_BWD_OPERANDS_H
#define TESSERA_DEVICE_ATTENTION_CDNA_BWD_OPERANDS_H

#include "tessera/device/attention/cdna/bwd_queries.h"
#include "tessera/device/attention/cdna/operands.h"

enum { V_CHUNKS = DV / CHUNK, V_STEPS = DV / STEP, BLOCK_STEPS = 32 / STEP, Q_BLOCKS = BM / 32, DQ_BLOCKS = DQ / 32 };

// Times 2^P_SHIFT, so that small ones are normal numbers of fp16.
INLINE void pack_p(const f32x16 *p, operand to[BLOCK_STEPS]) {
    const f32x16 x = P_SHIFT ? *p * (float)(1 << P_SHIFT) : *p;
    UNROLL
    for (int e = 0; e < ELEMENTS; e += 32 / BITS) to[e / CHUNK].chunk[0][e % CHUNK * BITS / 32] = PACK_P(x, e);
}
INLINE void pack_s(const f32x16 *s, operand to[BLOCK_STEPS]) {
    UNROLL
    for (int e = 0; e < ELEMENTS; e += 32 / BITS)
#if BITS == 32
        to[e / CHUNK].chunk[0][e % CHUNK] = AS_U32((*s)[e]);
#else
        to[e / CHUNK].chunk[0][e % CHUNK / 2] = TWO_OF_S((*s)[e], (*s)[e + 1]);
#endif
}

#endif
