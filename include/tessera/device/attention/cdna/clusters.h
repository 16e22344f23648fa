// SPDX-License-Identifier: MIT
// The pieces of a main loop in clusters: those of bundles.h, whose ring holds a whole tile of K or of V, and what a
// cluster begins and ends with. Waves meet behind each cluster; a cluster has products and vector work, or accesses of
// LDS and memory.
//
// Takes MMA_PART, PARTS, P_SHIFT, RING, RAISE_BY.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_CLUSTERS_H
#define TESSERA_DEVICE_ATTENTION_CDNA_CLUSTERS_H

#include "tessera/device/attention/cdna/raising.h"
#include "tessera/device/common/cdna/cluster_end.h"

// The ring is the register tile: K of a tile from before its scores until these are made, then V.
enum { VALUE_OPERANDS = D_BLOCKS * KEY_STEPS };

// A cluster of accesses has few vector instructions, for which it would wait long beside a wave that is in a cluster of
// products. At its end what it has read is there, so that others may load over it behind the barrier, and of the loads
// so many are under way at most. Up to its first product the wave then goes before the other half, whose scalar
// instructions would keep it from its own while the matrix cores rest.
#define BEGIN_ACCESSES() (PRIORITY(1), one_after_the_other())
#define END_ACCESSES(loads) (one_after_the_other(), PRIORITY(2), WAIT_FOR_LOADS(loads), WAIT_FOR_LDS(0), end_cluster())
#define BEGIN_PRODUCTS() (WAIT_FOR_LDS(0), PRIORITY(0), one_after_the_other())

// ---- accesses; tiles count in keys

// As load_rows(), of whole tiles: what rows of further passes lie behind the first is a scalar.
INLINE void start_rows(buffer from, const int *places, int chunks, int stride, SHARED u32x4 *to) {
    const int rows = PLACES(chunks) * PASS / chunks;
    UNROLL
    for (int pass = 0; PASS * pass < BN * chunks; pass++) {
        const int further = BYTES(rows * stride) * (pass / PLACES(chunks));
        load_further_to_lds_16(from, places[pass % PLACES(chunks)], further, to + PASS * pass);
    }
}
INLINE void start_k(const struct loop *x, int tile, SHARED u32x4 *to) {
    start_rows(k_rows(&x->keys, tile, x->tiles.end), x->places.k, Q_CHUNKS, x->keys.stride_k, to + x->wave_place / 16);
}
INLINE void start_v(const struct loop *x, int tile, SHARED u32x4 *to) {
    start_rows(v_rows(&x->keys, tile, x->tiles.end), x->places.v, V_CHUNKS, x->keys.stride_v, to + x->wave_place / 16);
}
// Offsets of reads of K are those of the first, with other bits of the slot: they are computed here, and take no
// registers in between; each before the first reads that need it, since together they would keep products of the other
// half from the port.
INLINE void take_k(struct loop *x, SHARED const u32x4 *k) {
    x->reads.k[0] = here(x->reads.k[0]);
    UNROLL
    for (int step = 0; step < Q_STEPS; step++) {
        if (step > 0 && step < K_CYCLE / 2) x->reads.k[step] = x->reads.k[0] ^ 16 * 2 * step;
        UNROLL
        for (int block = 0; block < KEY_BLOCKS; block++) read_k(x, k, Q_STEPS * block + step);
        one_after_the_other();
    }
}
INLINE void take_v(struct loop *x, SHARED const u32x4 *v) {
    UNROLL
    for (int n = 0; n < VALUE_OPERANDS; n++) {
        read_v(x, v, n);
        one_after_the_other();
    }
}

// ---- softmax

// Hides keys behind the query's last where the wave has a query that does not see all of the tile.
INLINE void hide_later(const struct loop *x, f32x16 s[KEY_BLOCKS], int tile) {
    if (!SELDOM(tile + BN > x->tiles.wave_first + x->task.mask_x)) return;
    const int end = x->row.query + x->task.mask_x - here(first_key(tile));
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e++) {
            if (KEY(b, e) >= end) s[b][e] = -INFINITY_F32;
            one_after_the_other();
        }
    }
}

// Between strip 0 and the others of a tile's values: where a score of the next tile, s, is far above the reference, O,
// the sums and the probabilities of the strips to come are rescaled. (Left at the old scale these strips would count
// 2^RAISE_BY times too much, and more.)
INLINE void rescale_if_far(struct loop *x, f32x16 s[KEY_BLOCKS]) {
    if (!SELDOM(exceeds_limit(x))) return;
    const float alpha = move_reference(x, s);
    rescale_o(x, alpha);
    UNROLL
    for (int n = 1; n < KEY_STEPS; n++) {
        UNROLL
        for (int w = 0; w < 4; w++) {
            const uint32_t p = x->p[n].chunk[0][w];
            const f32x2 two = {alpha * unpack_bf16(p), alpha * AS_F32(p & 0xffff0000)};
            x->p[n].chunk[0][w] = PACK_P(two, 0);
        }
    }
}

#endif
