// SPDX-License-Identifier: MIT
// Scales, or norms, of the rows of a cache. They are applied to scores and to probabilities, which are fewer than the
// numbers of rows; those of a tile's keys are in LDS.
//
// Takes PAGED, KV, P_SHIFT, MMA_ROWS.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_SCALED_ROWS_H
#define TESSERA_DEVICE_ATTENTION_CDNA_SCALED_ROWS_H

#include "tessera/device/attention/cdna/paged.h"
#include "tessera/device/attention/cdna/scores.h"
#include "tessera/device/attention/gpu/powers.h"
#include "tessera/isa/cdna_quantised.h"

// What the lane's key is scaled by.
struct row_scales {
    float k, v;
};

// ---- memory

// Where scales lie, found again: it takes no registers before.
INLINE const struct tessera_fmha_fwd_cdna_args *found_again(void) {
    return (const struct tessera_fmha_fwd_cdna_args *)kernel_argument();
}

INLINE float load_scale(const struct tessera_attention_page_scales *x, const struct task *task, const struct spot *s) {
    const char *const at =
        (const char *)x->base + task->head_k * x->of.head + s->page * x->of.page + s->row * x->of.row;
    if (KV == TESSERA_KV_TURBO4) return unpack_fp16(load_2(at));
    return x->base ? AS_F32(load_4(at)) : 1.0f;
}

INLINE struct row_scales load_row_scales(const struct tessera_fmha_fwd_cdna_args *p, const struct task *task,
                                         const struct spot *spot) {
    const struct row_scales scales = {load_scale(&p->pages.k_scale, task, spot),
                                      load_scale(&p->pages.v_scale, task, spot)};
    return scales;
}

#if BITS == 8
// Whether rows of the call have scales at all: those of 8 bits may.
INLINE int has_scaled_rows(const args *a) { return a->features & TESSERA_GPU_ROWS; }

// That of the lane's query.
INLINE float query_scale(const args *a, const struct task *task, const struct row *r) {
    const int64_t token = (task->token_q + r->query) * a->stride_q_descale;
    return ((GLOBAL const float *)(uint64_t)a->q_descale)[token + r->head * a->nhead_stride_q_descale];
}
#endif

// ---- the unit of O

// P, which is as much as 2^P_SHIFT, has no room for it times the scale of a value: scales are divided by a power of 2
// that is greater than all so far, which o is multiplied by in the end.
INLINE float first_unit(void) { return P_SHIFT > 0 ? 0x1p-100f : 1.0f; }
INLINE void raise_unit(float *unit, mma_sums o[D_BLOCKS], float scale) {
    if (P_SHIFT == 0 || !any_lane(abs_f32(scale) >= *unit)) return;
    const int greatest = (int)greatest_of_lanes(AS_U32(abs_f32(scale))); // bits are in the order of numbers
    const float next = AS_F32((uint32_t)min_i32(greatest & 0x7f000000, 0x7d000000) + 0x01000000);
    const float by = *unit * over_unit(next);
    UNROLL
    for (int b = 0; b < D_BLOCKS; b++) o[b] *= by;
    *unit = next;
}

// ---- LDS

LDS f32x4 k_scales[BN / 4], v_scales[BN / 4]; // in the order of the product's rows

// Those of a tile that has `left` keys, or more than BN.
INLINE void store_row_scales(struct row_scales *s, float unit, int left) {
    if (SELDOM(left < BN)) s->v = key_of_operand_row(thread_id()) < left ? s->v : 0.0f;
    if (thread_id() < BN) {
        ((SHARED float *)k_scales)[thread_id()] = s->k;
        ((SHARED float *)v_scales)[thread_id()] = s->v * over_unit(unit);
    }
}

// Numbers of keys, four after the other, times what these are scaled by, and all times `by`.
INLINE void scale_keys(mma_sums s[KEY_BLOCKS], SHARED const f32x4 *scales, float by) {
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e += 4) {
            const f32x4 x = scales[OPERAND_ROW(b, e) / 4 + lane_id() / MMA_ROWS] * by;
            s[b][e] *= x.x, s[b][e + 1] *= x.y, s[b][e + 2] *= x.z, s[b][e + 3] *= x.w;
        }
    }
}

#endif
