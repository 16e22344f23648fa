// SPDX-License-Identifier: MIT
// What is done to scores before softmax beyond scaling them: soft cap, bias and ALiBi. UNPACK widens an element of a
// bias of 16 bits.
//
// Takes args, DESCALED, BIAS_BITS.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_ADJUST_H
#define TESSERA_DEVICE_ATTENTION_CDNA_ADJUST_H

#include "tessera/device/attention/cdna/part.h"
#include "tessera/device/attention/cdna/scores.h"

#if DESCALED
#include "tessera/device/attention/cdna/descales.h"
#else
// What K Q^T is multiplied by.
INLINE float score_scale(const args *a) { return a->scale_log2; }
#endif

INLINE void soft_cap(f32x16 s[KEY_BLOCKS], float cap_log2, float cap_scale) { // cap tanh(s / cap)
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e++)
            s[b][e] = cap_log2 - 2.0f * cap_log2 * reciprocal(1.0f + exp2_fast(s[b][e] * cap_scale));
    }
}

#if BIAS_BITS == 32
INLINE void add_bias(f32x16 s[KEY_BLOCKS], const args *a, const struct part *p, int query, int tile) {
    const int64_t first = query_element(p, a->batch_stride_bias, a->nhead_stride_bias, a->stride_bias);
    const int stride = (int)a->stride_bias, left = p->seqlen_q - p->first;
    const buffer bias = rows_of(a->bias, first, left, BM, stride, p->seqlen_k, 32);
    const int offset = 4 * ((query - p->first) * stride + first_key(tile));
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e++) s[b][e] += LOG2E * AS_F32(buffer_load_4(bias, offset + 4 * KEY(b, e)));
    }
}
#else
// Four elements at a time where all rows and the last one's end lie on whole words: a load that is in part outside of
// its buffer gives zero.
INLINE void add_bias(f32x16 s[KEY_BLOCKS], const args *a, const struct part *p, int query, int tile) {
    const int64_t first = query_element(p, a->batch_stride_bias, a->nhead_stride_bias, a->stride_bias);
    const int stride = (int)a->stride_bias, left = p->seqlen_q - p->first;
    const buffer bias = rows_of(a->bias, first, left, BM, stride, p->seqlen_k, 16);
    const int offset = 2 * ((query - p->first) * stride + first_key(tile));
    const int words = (((uint64_t)a->bias / 2 + (uint64_t)first) | (uint64_t)stride | (uint64_t)p->seqlen_k) % 2 == 0;
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e += 4) {
            const int place = offset + 2 * KEY(b, e);
            u32x2 four;
            if (words) {
                four = buffer_load_8(bias, place);
            } else {
                four.x = low_halves(buffer_load_2(bias, place), buffer_load_2(bias, place + 2));
                four.y = low_halves(buffer_load_2(bias, place + 4), buffer_load_2(bias, place + 6));
            }
            UNROLL
            for (int i = 0; i < 4; i++) s[b][e + i] += LOG2E * UNPACK(four[i / 2] >> 16 * (i % 2));
        }
    }
}
#endif

INLINE void add_alibi(f32x16 s[KEY_BLOCKS], const args *a, const struct part *p, int query, int tile) {
    const float slope = LOG2E * read_float(a->bias, p->batch * a->batch_stride_bias + p->head);
    const int shift = a->features & TESSERA_CDNA_ALIBI_SHIFT ? p->seqlen_k - p->seqlen_q : 0;
    const int vertical = a->features & TESSERA_CDNA_ALIBI_VERTICAL;
    const float zero = (float)(vertical ? 0 : query + shift) - (float)first_key(tile);
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e++) s[b][e] += (vertical ? slope : -slope) * abs_f32(zero - (float)KEY(b, e));
    }
}

// Scores in units of log2, from those of K Q^T.
INLINE void adjust(f32x16 s[KEY_BLOCKS], const struct row *r, int tile) {
    const args *a = (const args *)kernel_argument();
    const struct part p = find_part(a);
    const int query = here(r->query);
#if DESCALED
    if (a->features & TESSERA_CDNA_BLOCK) descale_scores(s, a, &p, r->descale, tile);
#endif
    if (a->features & TESSERA_CDNA_SOFT_CAP) {
        soft_cap(s, a->cap_log2, a->cap_scale * score_scale(a));
    } else {
        UNROLL
        for (int b = 0; b < KEY_BLOCKS; b++) s[b] *= score_scale(a);
    }
    if (a->features & TESSERA_CDNA_BIAS) add_bias(s, a, &p, query, tile);
    if (a->features & TESSERA_CDNA_ALIBI) add_alibi(s, a, &p, query, tile);
}

#endif
