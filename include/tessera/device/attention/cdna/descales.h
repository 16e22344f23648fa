// SPDX-License-Identifier: MIT
// Descales of fp8: of whole tensors, or of blocks of their rows.
//
// Takes args.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_DESCALES_H
#define TESSERA_DEVICE_ATTENTION_CDNA_DESCALES_H

#include "tessera/device/attention/cdna/scores.h"
#include "tessera/device/attention/cdna/task.h"

// The factor of K Q^T.
INLINE float score_scale(const args *a) {
    float scale = a->scale_log2;
    if (a->features & TESSERA_GPU_PER_TENSOR) scale *= read_float(a->q_descale, 0) * read_float(a->k_descale, 0);
    return scale;
}

// That of V, but for TESSERA_GPU_BLOCK.
INLINE float value_scale(const args *a) {
    return a->features & TESSERA_GPU_PER_TENSOR ? read_float(a->v_descale, 0) : 1.0f;
}

// TESSERA_GPU_BLOCK: the descales of one sequence and head. Each covers `size` rows; `last` is the last row.
struct descales {
    const float *of;
    int size, last;
};

INLINE float descale_of(const struct descales *d, int row) {
    return read_float(d->of, min_i32(row, d->last) / d->size);
}

INLINE struct descales find_descales(const void *of, int64_t sequence, int64_t head, const int32_t *seqstart, int batch,
                                     int size, int last) {
    const int64_t first = sequence + head + (seqstart ? read_int(seqstart, batch) : 0);
    const struct descales d = {(const float *)of + first, size, last};
    return d;
}

INLINE float query_descale(int query) {
    const args *a = (const args *)kernel_argument();
    const struct task task = find_task(a);
    const struct descales q =
        find_descales(a->q_descale, task.batch * a->batch_stride_q_descale, task.head * a->nhead_stride_q_descale,
                      a->block_scale_seqstart_q, task.batch, a->block_scale_size_q, task.seqlen_q - 1);
    return descale_of(&q, query);
}

INLINE void descale_scores(f32x16 s[KEY_BLOCKS], const args *a, const struct task *task, float of_query, int tile) {
    const struct descales k =
        find_descales(a->k_descale, task->batch * a->batch_stride_k_descale, task->head_k * a->nhead_stride_k_descale,
                      a->block_scale_seqstart_k, task->batch, a->block_scale_size_kv, task->seqlen_k - 1);
    if (k.size % BN == 0) {
        UNROLL
        for (int b = 0; b < KEY_BLOCKS; b++) s[b] *= of_query * descale_of(&k, tile);
        return;
    }
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e++) {
            s[b][e] *= of_query * descale_of(&k, first_key(tile) + KEY(b, e));
            one_after_the_other();
        }
    }
}

// TESSERA_GPU_BLOCK: O is kept divided by the current tile's descale of v, its unit: P times a descale could leave
// the range of fp8.
struct unit {
    float now, most; // most: the greatest of all tiles so far
};

// Brings O to another unit. A unit below 2^-64 of an earlier one is refused: O could overflow, and what such a tile
// adds is lost beside what O holds anyway. Returns whether the unit was taken.
INLINE int change_unit(f32x16 o[D_BLOCKS], struct unit *unit, float to) {
    unit->most = max_f32(unit->most, abs_f32(to));
    if (abs_f32(to) < max_f32(unit->most * 0x1p-64f, 0x1p-126f)) return 0;
    if (any_lane(to != unit->now)) {
        const float factor = unit->now / to;
        UNROLL
        for (int b = 0; b < D_BLOCKS; b++) o[b] *= factor;
    }
    unit->now = to;
    return 1;
}

// Multiplies P by v's descales over the tile's unit, which is the one descale that all of the tile's keys share, or
// else the greatest of theirs. Returns whether the tile adds anything to O.
INLINE int descale_values(f32x16 s[KEY_BLOCKS], f32x16 o[D_BLOCKS], struct unit *unit, int tile) {
    const args *a = (const args *)kernel_argument();
    const struct task task = find_task(a);
    const struct descales v =
        find_descales(a->v_descale, task.batch * a->batch_stride_v_descale, task.head_k * a->nhead_stride_v_descale,
                      a->block_scale_seqstart_k, task.batch, a->block_scale_size_kv, task.seqlen_k - 1);
    const int whole = v.size % BN == 0;
    float to = descale_of(&v, tile);
    for (int key = tile + 1; !whole && key < min_i32(tile + BN, task.seqlen_k); key++)
        to = max_f32(abs_f32(to), abs_f32(descale_of(&v, key)));
    if (!change_unit(o, unit, to)) return 0;
    const int first = here(first_key(tile));
    UNROLL
    for (int b = 0; b < KEY_BLOCKS && !whole; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e++) {
            s[b][e] *= descale_of(&v, first + KEY(b, e)) / unit->now;
            one_after_the_other();
        }
    }
    return 1;
}

// The factor of O at the end.
INLINE float value_descale(const struct unit *unit) {
    const args *a = (const args *)kernel_argument();
    if (a->features & TESSERA_GPU_BLOCK) return unit->now;
    return value_scale(a);
}

#endif
