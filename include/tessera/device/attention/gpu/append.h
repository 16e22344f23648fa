// SPDX-License-Identifier: MIT
// Copies and rotates a row by ROW_LANES lanes. A lane moves a unit at once: 16 bytes with VECTORS, or one element.
// Every lane reads what it needs before it writes any of it, so that queries may be rotated in place.
//
// Takes VECTORS, ROW_LANES.
#ifndef TESSERA_DEVICE_ATTENTION_GPU_APPEND_H
#define TESSERA_DEVICE_ATTENTION_GPU_APPEND_H

#include "tessera/device/attention/common/append.h"
#include "tessera/device/attention/gpu/units.h"

// What attention finds as the length of a sequence, which keys that have no place do not add to.
INLINE void put_length(const problem *p, int batch) {
    const int before = p->seqlen_k[batch], room = p->max_seqlen_k - p->seqlen_knew;
    *(GLOBAL int32_t *)(uint64_t)(p->seqlen_k_after + batch) =
        before < room ? before + p->seqlen_knew : p->max_seqlen_k;
}

// ---- rotation

// A row that is read and one that is written, in bytes.
struct rows {
    const char *from;
    char *to;
    int columns; // elements
};

// Where the cosine and sine of the first pair of a row's position are.
struct angles {
    const char *cos, *sin;
};
INLINE struct angles angles_of(const problem *p, int position) {
    const int64_t at = (int64_t)position * (p->rotary_dim / 2) * bytes_of_type(p->type);
    return (struct angles){(const char *)p->cos + at, (const char *)p->sin + at};
}

// (x, y) by the angle whose cosine and sine are c and s, which are numbers of `type` in the low bits.
struct pair {
    float x, y;
};
INLINE struct pair turned(int type, uint32_t x, uint32_t y, uint32_t c, uint32_t s) {
    const float a = number_of(type, x), b = number_of(type, y), cos = number_of(type, c), sin = number_of(type, s);
    return (struct pair){a * cos - b * sin, b * cos + a * sin};
}

// Turns element i of unit a and that of unit b together.
INLINE void turn_two_units(int type, unit *a, unit *b, const unit *cos, const unit *sin) {
    UNROLL
    for (int w = 0; w < (VECTORS ? 4 : 1); w++) {
        const uint32_t x = a->word[w], y = b->word[w], c = cos->word[w], s = sin->word[w];
        const struct pair low = turned(type, x, y, c, s);
        if (type == TESSERA_TYPE_FP32) {
            a->word[w] = AS_U32(low.x), b->word[w] = AS_U32(low.y);
            continue;
        }
        const struct pair high = turned(type, x >> 16, y >> 16, c >> 16, s >> 16);
        a->word[w] = bits_of_two(type, low.x, high.x), b->word[w] = bits_of_two(type, low.y, high.y);
    }
}

#if VECTORS
// Turns neighbours of a unit together. Cosines and sines are those of half as many pairs, from byte `at` of theirs on.
INLINE void turn_neighbours(int type, unit *a, const struct angles *by, int64_t at) {
    const u32x2 c = *(GLOBAL const u32x2 *)(uint64_t)(by->cos + at),
                s = *(GLOBAL const u32x2 *)(uint64_t)(by->sin + at);
    if (type == TESSERA_TYPE_FP32) {
        UNROLL
        for (int i = 0; i < 2; i++) {
            const struct pair two = turned(type, a->word[2 * i], a->word[2 * i + 1], c[i], s[i]);
            a->word[2 * i] = AS_U32(two.x), a->word[2 * i + 1] = AS_U32(two.y);
        }
        return;
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        const uint32_t cos = c[i / 2] >> i % 2 * 16, sin = s[i / 2] >> i % 2 * 16;
        const struct pair two = turned(type, a->word[i], a->word[i] >> 16, cos, sin);
        a->word[i] = bits_of_two(type, two.x, two.y);
    }
}
#endif

// Unit `first` and unit `second` of a row are turned together, by those that begin at byte `at` of the angles.
INLINE void turn_apart(const problem *p, const struct rows *row, const struct angles *by, int first, int second,
                       int64_t at) {
    const int bytes = bytes_of_type(p->type), step = VECTORS ? 16 : bytes;
    unit a = load_unit(row->from + first * step, bytes), b = load_unit(row->from + second * step, bytes);
    const unit cos = load_unit(by->cos + at, bytes), sin = load_unit(by->sin + at, bytes);
    turn_two_units(p->type, &a, &b, &cos, &sin);
    store_unit(row->to + first * step, a, bytes);
    store_unit(row->to + second * step, b, bytes);
}

// The first rotary_dim elements of a row. Half of these are a multiple of 8 elements, and so of a unit.
INLINE void turn_row(const problem *p, const struct rows *row, int position, int lane) {
    const int bytes = bytes_of_type(p->type), step = VECTORS ? 16 : bytes, half = p->rotary_dim / 2 * bytes / step;
    const struct angles by = angles_of(p, position);
    for (int u = lane; u < half; u += ROW_LANES) {
        if (p->rope == TESSERA_ROPE_HALF) {
            turn_apart(p, row, &by, u, u + half, u * step);
            continue;
        }
#if VECTORS
        UNROLL
        for (int i = 2 * u; i < 2 * u + 2; i++) {
            unit a = load_unit(row->from + i * 16, bytes);
            turn_neighbours(p->type, &a, &by, i * 8);
            store_unit(row->to + i * 16, a, bytes);
        }
#else
        turn_apart(p, row, &by, 2 * u, 2 * u + 1, u * step);
#endif
    }
}

// The elements of a row from `first` on.
INLINE void copy_row(const problem *p, const struct rows *row, int first, int lane) {
    const int bytes = bytes_of_type(p->type), step = VECTORS ? 16 : bytes, end = row->columns * bytes / step;
    for (int u = first * bytes / step + lane; u < end; u += ROW_LANES)
        store_unit(row->to + u * step, load_unit(row->from + u * step, bytes), bytes);
}

// ---- rows

INLINE struct rows rows_at(const problem *p, const void *from, int64_t first, void *to, int64_t second, int columns) {
    const int bytes = bytes_of_type(p->type);
    return (struct rows){(const char *)from + first * bytes, (char *)to + second * bytes, columns};
}

INLINE void rotate_query(const problem *p, const struct row *row, int lane) {
    const struct rows q = rows_at(p, p->q, element_of(&p->of_q, row->batch, row->head, row->token), p->q_rotated,
                                  element_of(&p->of_q_rotated, row->batch, row->head, row->token), p->hdim_q);
    turn_row(p, &q, row->position, lane);
    if (q.from != q.to) copy_row(p, &q, p->rotary_dim, lane);
}

INLINE void append_key(const problem *p, const struct row *row, int lane) {
    const struct slot slot = slot_of(p, row);
    if (slot.block < 0) return;
    const struct rows k = rows_at(p, p->knew, element_of(&p->of_knew, row->batch, row->head, row->token), p->k,
                                  element_of(&p->of_k, slot.block, row->head, slot.row), p->hdim_q);
    const struct rows v = rows_at(p, p->vnew, element_of(&p->of_vnew, row->batch, row->head, row->token), p->v,
                                  element_of(&p->of_v, slot.block, row->head, slot.row), p->hdim_v);
    if (p->rotary_dim) turn_row(p, &k, row->position, lane);
    copy_row(p, &k, p->rotary_dim, lane);
    copy_row(p, &v, 0, lane);
}

#endif
