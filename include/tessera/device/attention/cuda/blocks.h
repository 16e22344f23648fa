// SPDX-License-Identifier: MIT
// Descales of blocks of rows, which 8-bit types may have: TESSERA_GPU_BLOCK.
//
// O is kept divided by the current tile's descale of v, its unit, since P times a descale could leave the range of fp8.
//
// Takes args, BN, KEYS.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_BLOCKS_H
#define TESSERA_DEVICE_ATTENTION_CUDA_BLOCKS_H

#include "tessera/device/attention/cuda/sizes.h"
#include "tessera/device/attention/cuda/task.h"

INLINE int has_blocks(const args *a) { return a->call.features & TESSERA_GPU_BLOCK; }

// The descales of one sequence and head. Each covers `size` rows; `last` is the last row.
struct blocks {
    const float *of;
    int size, last;
};

INLINE float block_descale(const struct blocks *b, int row) { return b->of[min_i32(row, b->last) / b->size]; }

INLINE struct blocks key_blocks(const args *a, const struct task *task, int values) {
    const int64_t batch_stride = values ? a->call.batch_stride_v_descale : a->call.batch_stride_k_descale;
    const int64_t head_stride = values ? a->call.nhead_stride_v_descale : a->call.nhead_stride_k_descale;
    const int32_t *const start = a->call.block_scale_seqstart_k;
    const int64_t first = task->batch * batch_stride + task->head_k * head_stride + (start ? start[task->batch] : 0);
    const float *const of = (const float *)(values ? a->call.v_descale : a->call.k_descale) + first;
    return (struct blocks){of, here(a->call.block_scale_size_kv), task->seqlen_k - 1};
}

// Whether each tile of keys has one descale of k, and one of v; and whether scores take nothing else.
INLINE int has_whole_blocks(const args *a) { return a->call.block_scale_size_kv % BN == 0; }
INLINE int has_plain_blocks(const args *a) {
    const int others = TESSERA_GPU_SOFT_CAP | TESSERA_GPU_BIAS | TESSERA_GPU_ALIBI;
    return has_blocks(a) && has_whole_blocks(a) && !(a->call.features & others);
}

// The descale of q of the thread's row r.
INLINE float query_descale(const args *a, const struct task *task, int r) {
    const int32_t *const start = a->call.block_scale_seqstart_q;
    const int64_t first = task->batch * a->call.batch_stride_q_descale +
                          own_head(a, task, r) * a->call.nhead_stride_q_descale + (start ? start[task->batch] : 0);
    const struct blocks q = {(const float *)a->call.q_descale + first, a->call.block_scale_size_q, task->seqlen_q - 1};
    return block_descale(&q, own_query(a, task, r));
}

// The greatest of those of a tile's keys.
INLINE float greatest_descale(const struct blocks *b, int tile) {
    float most = 0.0f;
    for (int i = 0; i < KEYS / 32; i++) most = max_f32(most, abs_f32(block_descale(b, tile + 32 * i + lane_id())));
    UNROLL
    for (int apart = 16; apart > 0; apart /= 2) most = max_f32(most, other_lane(most, apart));
    return most;
}

// Multiplies scores of a tile by a factor for each row.
INLINE void scale_rows(float s[SCORES], const float factor[2]) {
    UNROLL
    for (int i = 0; i < SCORES; i++) s[i] *= factor[i / 2 % 2];
}

INLINE void add_nothing(float s[SCORES]) { // P of a tile, which adds nothing but NaN
    const float nothing[2] = {0.0f, 0.0f};
    scale_rows(s, nothing);
}

// And by their keys' descales, of each 32 of which a lane has one. Lanes meet so that few are in registers at once.
INLINE void scale_columns(float s[SCORES], const struct blocks *b, int tile, float factor) {
    const int lane = here(lane_id()), first = here(thread_key());
    UNROLL
    for (int i = 0; i < KEYS / 32; i++) {
        const float own = block_descale(b, here(tile + 32 * i) + lane) * factor;
        UNROLL
        for (int j = 0; j < 4; j++) {
            UNROLL
            for (int e = 0; e < 2; e++) {
                const int column = COLUMN_IN(i, j);
                const float by = AS_F32(of_lane(AS_U32(own), KEY(column, e) % 32 + first));
                s[ELEMENT(column, 0, e)] *= by;
                s[ELEMENT(column, 1, e)] *= by;
            }
        }
        meet_lanes();
    }
}

// Q K^T becomes that of what q and k stand for.
INLINE void descale_scores(float s[SCORES], const args *a, const struct task *task, int tile) {
    const struct blocks k = key_blocks(a, task, 0);
    const int whole = has_whole_blocks(a);
    const float all = whole ? block_descale(&k, tile) : 1.0f;
    const float factor[2] = {query_descale(a, task, 0) * all, query_descale(a, task, 1) * all};
    scale_rows(s, factor);
    if (!whole) scale_columns(s, &k, tile, 1.0f);
}

// The unit of O now, and the greatest one so far. They lie in shared memory, of each warp for itself, to save
// registers; all lanes write and read the same.
INLINE uint32_t unit_at(uint32_t base) { return base + AT_UNITS + here(thread_id() / 32) * UNIT_BYTES; }
INLINE void start_unit(uint32_t base) {
    shared_store_f32x2(unit_at(base), (f32x2){0.0f, 0.0f});
    meet_lanes();
}
INLINE float unit_now(uint32_t base) { return shared_load_f32x2(unit_at(base)).x; }

// Gives O another unit, for which it is to be multiplied by `factor`. One below 2^-64 of an earlier one is refused: O
// could overflow, and what such a tile adds is lost beside what O holds anyway. Returns whether the unit was taken.
INLINE int change_unit(uint32_t base, float to, float *factor) {
    const f32x2 unit = shared_load_f32x2(unit_at(base));
    const float most = max_f32(unit.y, abs_f32(to));
    const int taken = !any_lane(abs_f32(to) < max_f32(most * 0x1p-64f, 0x1p-126f)); // all lanes have the same
    *factor = taken ? unit.x / to : 1.0f;
    meet_lanes(); // all of them have read the unit
    if (taken) shared_store_f32x2(unit_at(base), (f32x2){to, most});
    meet_lanes(); // and have written it
    return taken;
}

// Multiplies P by v's descales over the tile's unit, which is the one descale that all of the tile's keys share, or
// else the greatest of theirs. Returns what O is to be multiplied by.
INLINE float descale_values(float s[SCORES], const args *a, uint32_t base, const struct task *task, int tile) {
    const struct blocks v = key_blocks(a, task, 1);
    const int whole = has_whole_blocks(a);
    const float to = whole ? block_descale(&v, tile) : greatest_descale(&v, tile);
    float factor;
    if (!change_unit(base, to, &factor)) {
        add_nothing(s);
    } else if (!whole) {
        scale_columns(s, &v, tile, 1.0f / to);
    }
    return factor;
}

// Descales of a task's tiles that have one of k and one of v each, for which no step is to wait for memory: of 32 tiles
// that follow one another lane i has those of number i. `q` is of the thread's rows, with the scale of scores.
struct tiles_descales {
    float k, v, q[2];
};
// Gets those of the 32 tiles that have the one that begins with a key.
INLINE void get_tiles_descales(struct tiles_descales *x, const args *a, uint32_t task_at, int key) {
    struct task task;
    get_task(task_at, &task);
    const struct blocks k = key_blocks(a, &task, 0), v = key_blocks(a, &task, 1);
    const int tile = key / BN, row = BN * (tile - tile % 32 + lane_id());
    x->k = block_descale(&k, row);
    x->v = block_descale(&v, row);
    UNROLL
    for (int r = 0; r < 2; r++) x->q[r] = query_descale(a, &task, r) * a->call.scale_log2;
}

// What a tile's one descale of k, and one of v, make of it: the factors of both rows' scores and of O, which is
// infinite where it adds nothing to O.
struct tile_descales {
    float of_scores[2], of_o;
};
INLINE struct tile_descales find_tile_descales(struct tiles_descales *of, const args *a, uint32_t base,
                                               uint32_t task_at, int key) {
    struct tile_descales x;
    const uint32_t tile = (uint32_t)key / BN;
    if (tile % 32 == 31) get_tiles_descales(of, a, task_at, key); // the last of 32 comes first
    const float k = AS_F32(of_lane(AS_U32(of->k), (int)(tile % 32)));
    const float v = AS_F32(of_lane(AS_U32(of->v), (int)(tile % 32)));
    x.of_scores[0] = of->q[0] * k;
    x.of_scores[1] = of->q[1] * k;
    if (!change_unit(base, v, &x.of_o)) x.of_o = INFINITY_F32;
    return x;
}

#endif
