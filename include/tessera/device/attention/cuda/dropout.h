// SPDX-License-Identifier: MIT
// Dropout: a random byte of Philox decides about each score.
//
// Takes args, KEYS.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_DROPOUT_H
#define TESSERA_DEVICE_ATTENTION_CUDA_DROPOUT_H

#include "tessera/device/attention/cuda/random.h"
#include "tessera/device/attention/cuda/task.h"

// Keys are drawn for in blocks of 32, of which a warp may have a half.
enum { DRAWN_KEYS = KEYS < 32 ? KEYS : 32, DRAWN = DRAWN_KEYS / 8 };

// The bytes of a row's scores in these keys: byte e of word j is that of KEY(COLUMN_IN(block, j), e).
struct random_bytes {
    uint32_t word[4];
};

// Two lanes, PARTNERS apart, need the same 16 bytes of Philox for each of two rows, half of them each: that whose
// number is less draws those of the first row, and the other one those of the second.
#if IN_FOURS
enum { PARTNERS = 2 };
INLINE int half_of_lane(void) { return lane_id() % 2; }
#else
enum { PARTNERS = 1 };
INLINE int half_of_lane(void) { return lane_id() % 4 / 2; }
#endif

INLINE u32x4 draw(const args *a, const struct task *task, int r, int block) {
    const uint32_t head = (uint32_t)(task->batch * (int)a->call.nhead_q + own_head(a, task, r));
    return random_bits(DROP_SEED(a->call), DROP_OFFSET(a->call), head, own_query(a, task, r), block, half_of_lane());
}

// The lane's bytes of what it drew of a row, or of what its partner drew. Of keys in fours it has two words of the
// four, each of which has the bytes of two pairs.
#if IN_FOURS
INLINE struct random_bytes bytes_of(u32x4 x, int second) {
    const uint32_t low = second ? x.y : x.x, high = second ? x.w : x.z;
    return (struct random_bytes){{low, low >> 16, high, high >> 16}};
}
#else
INLINE struct random_bytes bytes_of(u32x4 x, int second) {
    return (struct random_bytes){{x.x >> 16 * second, x.y >> 16 * second, x.z >> 16 * second, x.w >> 16 * second}};
}
#endif
INLINE u32x4 of_partner(u32x4 x) {
    return (u32x4){other_lane_bits(x.x, PARTNERS), other_lane_bits(x.y, PARTNERS), other_lane_bits(x.z, PARTNERS),
                   other_lane_bits(x.w, PARTNERS)};
}

INLINE void store_bytes(const struct random_bytes *x, const args *a, const struct task *task, int r, int tile,
                        int block) {
    const int query = own_query(a, task, r), key = tile + thread_key();
    const int left = query < task->seqlen_q ? task->seqlen_k - key : 0;
    const int64_t first = sequence_element(task, a->call.batch_stride_randval, a->call.stride_randval) +
                          own_head(a, task, r) * a->call.nhead_stride_randval;
    uint8_t *const to = a->call.rand_val + first + query * a->call.stride_randval + key;
    UNROLL
    for (int j = 0; j < DRAWN; j++) {
        UNROLL
        for (int e = 0; e < 2; e++) {
            const int from = KEY(COLUMN_IN(block, j), e);
            if (from < left) store_1(to + from, x->word[j] >> 8 * e);
        }
    }
}

// The bytes of block b of a tile's keys, of the thread's both rows.
INLINE void draw_rows(struct random_bytes of_row[2], const args *a, const struct task *task, int tile, int b) {
    const int second = lane_id() / PARTNERS % 2;
    const u32x4 own = draw(a, task, second, tile / 32 + b), other = of_partner(own);
    of_row[0] = bytes_of(second ? other : own, second);
    of_row[1] = bytes_of(second ? own : other, second);
    if (DRAWN == 4 || tile % 32 == 0) return;
    UNROLL
    for (int r = 0; r < 2; r++) of_row[r].word[0] = of_row[r].word[2], of_row[r].word[1] = of_row[r].word[3];
}

// Those that are stored are drawn once more, so that fewer are in registers at once.
INLINE void store_all_bytes(const args *a, const struct task *task, int tile) {
    struct random_bytes of_row[2];
    UNROLL
    for (int b = 0; b < KEYS / DRAWN_KEYS; b++) {
        draw_rows(of_row, a, task, tile, b);
        UNROLL
        for (int r = 0; r < 2; r++) store_bytes(&of_row[r], a, task, r, tile, b);
    }
}

// `tile`: the first of the keys.
INLINE void drop(float s[SCORES], const args *a, const struct task *task, int tile) {
    struct random_bytes of_row[2];
    if (a->call.features & TESSERA_GPU_RANDVAL) store_all_bytes(a, task, tile);
    UNROLL
    for (int b = 0; b < KEYS / DRAWN_KEYS; b++) {
        draw_rows(of_row, a, task, tile, b);
        UNROLL
        for (int i = 0; i < 4 * DRAWN; i++) {
            const int r = i / (2 * DRAWN), j = i / 2 % DRAWN, e = i % 2;
            if ((of_row[r].word[j] >> 8 * e & 255) > a->call.keep_below) s[ELEMENT(COLUMN_IN(b, j), r, e)] = 0.0f;
        }
    }
}

#endif
