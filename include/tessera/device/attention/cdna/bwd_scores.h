// SPDX-License-Identifier: MIT
// Backward: a block of 32 queries and a wave's 32 keys: scores to probabilities and to their gradients. A lane has one
// key; its element e is query 8 (e / 4) + 4 (lane / 32) + e % 4 of the block. UNPACK widens an element of a 16-bit
// bias, TWO_OF_O packs two of dbias.
//
// Takes BITS, BM, BN, WAVES.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_BWD_SCORES_H
#define TESSERA_DEVICE_ATTENTION_CDNA_BWD_SCORES_H

#include "tessera/device/attention/cdna/bwd_queries.h"
#include "tessera/device/attention/cdna/bwd_task.h"
#include "tessera/isa/cdna_exchange.h"

enum { HAS_DBIAS = 1 << 29, IS_DQ_STORED = 1 << 30 };

// What all tiles of a task need.
struct call {
    int features; // TESSERA_GPU_*, HAS_DBIAS, IS_DQ_STORED
    float scale_log2;
    struct sight sight;
    int first; // key of the wave
};

// A block: the lane's key and its first query, counted in the sequence.
struct block {
    int key, query; // of the lane
    int first;      // query of all lanes
    int tile;       // first query of the tile
};

// ---- scores in units of log2

INLINE void exp2_each(f32x16 *x) {
    UNROLL
    for (int e = 0; e < ELEMENTS; e++) (*x)[e] = exp2_fast((*x)[e]);
}

INLINE f32x16 tanh_of(const f32x16 *s, const args *a) {
    f32x16 x = *s * a->cap_scale * a->scale_log2;
    exp2_each(&x);
    x += 1.0f;
    UNROLL
    for (int e = 0; e < ELEMENTS; e++) x[e] = reciprocal(x[e]);
    return 1.0f - 2.0f * x;
}

// Bytes from the beginning of the tile's rows to the lane's first element, or outside; rows past the last are outside
// too.
INLINE int pair_place(const struct block *b, const struct task *task, int row_bytes, int bytes) {
    return b->key < task->sight.seqlen_k ? (b->query - b->tile) * row_bytes + b->key * bytes : OUTSIDE;
}

INLINE buffer pair_rows(const void *base, const struct task *task, const struct block *b, int64_t batch_stride,
                        int64_t nhead_stride, int64_t stride, int bits) {
    const int64_t first = query_element(task, batch_stride, nhead_stride, stride, b->tile);
    return rows_of(base, first, task->of.seqlen_q - b->tile, BM, stride, task->of.seqlen_k, bits);
}

INLINE void add_bias(f32x16 *s, const args *a, const struct task *task, const struct block *b) {
    const buffer from = pair_rows(a->bias, task, b, a->batch_stride_bias, a->nhead_stride_bias, a->stride_bias, BITS);
    const int row = (int)a->stride_bias * (BITS / 8), place = pair_place(b, task, row, BITS / 8);
    f32x16 bias;
    UNROLL
    for (int e = 0; e < ELEMENTS; e++) {
        const int at = place + QUERY(e) * row;
#if BITS == 32
        bias[e] = AS_F32(buffer_load_4(from, at));
#else
        bias[e] = UNPACK(buffer_load_2(from, at));
#endif
    }
    *s += LOG2E * bias;
}

INLINE void add_alibi(f32x16 *s, const args *a, const struct task *task, const struct block *b) {
    const float slope = LOG2E * read_float(a->bias, task->of.batch * a->batch_stride_bias + task->head);
    const int shift = a->features & TESSERA_GPU_ALIBI_SHIFT ? task->of.seqlen_k - task->of.seqlen_q : 0;
    const int vertical = a->features & TESSERA_GPU_ALIBI_VERTICAL;
    f32x16 distance;
    UNROLL
    for (int e = 0; e < ELEMENTS; e++) {
        const int zero = vertical ? 0 : b->query + QUERY(e) + shift;
        distance[e] = abs_f32((float)(zero - b->key));
    }
    *s += (vertical ? slope : -slope) * distance;
}

// Turns products Q K^T into scores.
INLINE void adjust(f32x16 *s, const struct block *b) {
    const args *a = (const args *)kernel_argument();
    if (a->features & TESSERA_GPU_SOFT_CAP) {
        *s = a->cap_log2 * tanh_of(s, a);
        return;
    }
    const struct task task = kept_task();
    *s *= a->scale_log2;
    if (a->features & TESSERA_GPU_BIAS) add_bias(s, a, &task, b);
    if (a->features & TESSERA_GPU_ALIBI) add_alibi(s, a, &task, b);
}

// Gradients of scores to those of the numbers before the soft cap, by products Q K^T.
INLINE void differentiate_cap(f32x16 *ds, const f32x16 *s) {
    const args *a = (const args *)kernel_argument();
    const f32x16 tanh = tanh_of(s, a);
    *ds *= 1.0f - tanh * tanh;
}

// ---- masks

// Whether a query of the block does not see all of the wave's keys.
INLINE int is_cut(const struct sight *s, int first_key, int first_query) {
    const int last_query = min_i32(first_query + 32, s->seqlen_q) - 1;
    return first_key + 32 > min_i32(s->seqlen_k, first_query + s->mask_x) || first_key <= last_query - s->mask_y;
}

INLINE void hide(f32x16 *x, const struct sight *s, const struct block *b, float hidden) {
    const int key = here(b->key);
    const struct span span = queries_of_keys(s, key, key);
    const int begin = span.begin - b->query;
    const uint32_t count = (uint32_t)(key < s->seqlen_k ? max_i32(span.end - span.begin, 0) : 0);
    UNROLL
    for (int e = 0; e < ELEMENTS; e++) {
        (*x)[e] = (uint32_t)(QUERY(e) - begin) < count ? (*x)[e] : hidden;
        one_after_the_other();
    }
}

// ---- probabilities

// Turns products Q K^T into probabilities; lse is in units of log2.
INLINE void find_p(f32x16 *p, const f32x16 *lse, const struct call *call, int features, const struct block *b) {
    float scale = call->scale_log2;
    if (features & (TESSERA_GPU_SOFT_CAP | TESSERA_GPU_BIAS | TESSERA_GPU_ALIBI)) {
        adjust(p, b);
        scale = 1.0f;
    }
    *p = *p * scale - *lse;
    exp2_each(p);
    if (is_cut(&call->sight, call->first, b->first)) hide(p, &call->sight, b, 0.0f);
}

// ---- dropout

LDS uint32_t bytes_of_wave[WAVES][32 * 8]; // of queries and 4 keys each

// Stores the bytes of lane's query and 16 keys, as forward draws them.
INLINE void store_bytes(u32x4 bits, const args *a, const struct task *task, const struct block *b, int first_key) {
    const buffer to =
        pair_rows(a->rand_val, task, b, a->batch_stride_randval, a->nhead_stride_randval, a->stride_randval, 8);
    const int row = (b->first - b->tile + lane_id() % 32) * (int)a->stride_randval;
    UNROLL
    for (int e = 0; e < ELEMENTS; e++) {
        const int key = first_key + QUERY(e) + 4 * (lane_id() / 32);
        buffer_store_1(to, key < task->of.seqlen_k ? row + key : OUTSIDE, bits[e / 4] >> 8 * (e % 4));
        one_after_the_other();
    }
}

// Bit e: element e is kept. Forward's lane has a query and 16 of 32 keys, so that each lane here draws for one query
// and half of the keys, and lanes exchange bytes through LDS.
INLINE uint32_t draw(const struct block *b) {
    const args *a = (const args *)kernel_argument();
    const struct task task = kept_task();
    const uint64_t seed = a->drop_seed_ptr ? read_u64(a->drop_seed_ptr) : a->drop_seed;
    const uint64_t offset = a->drop_offset_ptr ? read_u64(a->drop_offset_ptr) : a->drop_offset;
    const uint32_t head = (uint32_t)(task.of.batch * a->nhead_q + task.head);
    const int lane = lane_id(), first_key = b->key - lane % 32;
    const uint32_t c = (uint32_t)(2 * (first_key / 32) + lane / 32), query = (uint32_t)(b->first + lane % 32);
    const u32x4 counter = {(uint32_t)offset, (uint32_t)(offset >> 32), query + (c << 24), (c >> 8) + (head << 12)};
    const u32x4 bits = philox(counter, seed);
    if (a->features & TESSERA_GPU_RANDVAL) store_bytes(bits, a, &task, b, first_key);
    SHARED uint32_t *bytes = (SHARED uint32_t *)bytes_of_wave[wave_id()];
    meet_lanes();
    UNROLL
    for (int i = 0; i < 4; i++) bytes[lane % 32 * 8 + 2 * i + lane / 32] = bits[i]; // keys 8 i + 4 (lane / 32) + 0..3
    meet_lanes();
    uint32_t kept = 0;
    UNROLL
    for (int e = 0; e < ELEMENTS; e++) {
        const uint32_t byte = ((SHARED const uint8_t *)bytes)[(QUERY(e) + 4 * (lane / 32)) * 32 + lane % 32];
        kept |= (byte <= a->keep_below ? 1u : 0u) << e;
    }
    return kept;
}

// What dropout leaves of numbers, times `scale`.
INLINE f32x16 left_of(const f32x16 *x, uint32_t kept, float scale) {
    f32x16 left = *x * scale;
    UNROLL
    for (int e = 0; e < ELEMENTS; e++) left[e] = kept >> e & 1 ? left[e] : 0.0f;
    return left;
}

// ---- dbias

INLINE void store_dbias(const f32x16 *ds, const struct block *b) {
    const args *a = (const args *)kernel_argument();
    const struct task task = kept_task();
    const buffer to =
        pair_rows(a->dbias, &task, b, a->batch_stride_dbias, a->nhead_stride_dbias, a->stride_dbias, BITS);
    const int row = (int)a->stride_dbias * (BITS / 8), place = pair_place(b, &task, row, BITS / 8);
    UNROLL
    for (int e = 0; e < ELEMENTS; e++) {
        const int at = place + QUERY(e) * row;
#if BITS == 32
        buffer_store_4(to, at, AS_U32((*ds)[e]));
#else
        buffer_store_2(to, at, TWO_OF_O((*ds)[e], 0.0f));
#endif
        one_after_the_other();
    }
}

#endif
