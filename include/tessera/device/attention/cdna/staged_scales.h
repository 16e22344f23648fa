// SPDX-License-Identifier: MIT
// Scales of K and V take the same way as their tiles: from memory through registers to LDS.
//
// Takes item.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_STAGED_SCALES_H
#define TESSERA_DEVICE_ATTENTION_CDNA_STAGED_SCALES_H

#include "tessera/device/attention/cdna/keys.h"

// Each E8M0 scale covers 32 elements. A product takes the scales of its first 32 elements from half 0 of the wave, the
// others from half 1: in LDS the bytes of one product lie in the order of its lanes, and each group of 32 rows has
// `steps` products along the reduced dimension.
enum { K_GROUPS = 2 * Q_STEPS, V_GROUPS = 2 * KEY_STEPS }; // scales of a row
enum { K_SCALE_COPIES = (BN * K_GROUPS + THREADS - 1) / THREADS };
enum { V_SCALE_COPIES = (DV * V_GROUPS + THREADS - 1) / THREADS };
LDS uint8_t k_scales[BN * K_GROUPS], v_scales[DV * V_GROUPS];

INLINE int scale_place(int item, int groups) {
    const int row = item / groups, group = item % groups;
    return 64 * (row / 32 * (groups / 2) + group / 2) + 32 * (group % 2) + row % 32;
}

struct scales {
    uint32_t k[K_SCALE_COPIES], v[V_SCALE_COPIES];
};
struct scale_places {
    int k[K_SCALE_COPIES], v[V_SCALE_COPIES];
};

INLINE void find_scale_places(struct scale_places *p, const struct keys *keys) {
    const int k_groups = (keys->hdim_q + 31) / 32;
    UNROLL
    for (int c = 0; c < K_SCALE_COPIES; c++) {
        const int key = (int)(item(c) / K_GROUPS), group = (int)(item(c) % K_GROUPS);
        p->k[c] = group < k_groups ? key * keys->scales.stride_k + group : OUTSIDE;
    }
    UNROLL
    for (int c = 0; c < V_SCALE_COPIES; c++) {
        const int d = (int)(item(c) / V_GROUPS), group = (int)(item(c) % V_GROUPS);
        p->v[c] = d < keys->hdim_v ? d * keys->scales.stride_v + group : OUTSIDE;
    }
}

// Scales that are OUTSIDE become the byte 0, a finite scale that leaves zeros zero.
INLINE void load_scales(struct scales *s, const struct scale_places *p, const struct keys *keys, int tile, int end) {
    const struct key_scales from = keys->scales;
    const int k_groups = (keys->hdim_q + 31) / 32, v_groups = (end - tile + 31) / 32;
    const int v_rows = tile < end ? keys->hdim_v : 0;
    const buffer k = rows_of(from.k, (int64_t)tile * from.stride_k, end - tile, BN, from.stride_k, k_groups, 8);
    const buffer v = rows_of(from.v, tile / 32, v_rows, DV, from.stride_v, v_groups, 8);
    UNROLL
    for (int c = 0; c < K_SCALE_COPIES; c++) s->k[c] = buffer_load_1(k, p->k[c]);
    UNROLL
    for (int c = 0; c < V_SCALE_COPIES; c++)
        s->v[c] = buffer_load_1(v, (int)(item(c) % V_GROUPS) < v_groups ? p->v[c] : OUTSIDE);
}

INLINE void store_scales(const struct scales *s) {
    UNROLL
    for (int c = 0; c < K_SCALE_COPIES; c++)
        if (item(c) < BN * K_GROUPS) k_scales[scale_place((int)item(c), K_GROUPS)] = (uint8_t)s->k[c];
    UNROLL
    for (int c = 0; c < V_SCALE_COPIES; c++)
        if (item(c) < DV * V_GROUPS) v_scales[scale_place((int)item(c), V_GROUPS)] = (uint8_t)s->v[c];
}

#endif
