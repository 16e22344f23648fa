// SPDX-License-Identifier: MIT
// Numbers and norms of tessera/turbo4.h, by the lanes of a row.
//
// Takes HDIM, VECTORS.
#ifndef TESSERA_DEVICE_ATTENTION_GPU_TURBO4_H
#define TESSERA_DEVICE_ATTENTION_GPU_TURBO4_H

#include "tessera/device/attention/gpu/hadamard.h"
#include "tessera/kernel/kv_cache_quantize_turbo4.h"
#include "tessera/turbo4.h"

typedef struct tessera_kv_cache_quantize_turbo4_problem problem;

enum { MIDPOINTS = TESSERA_TURBO4_CENTROIDS - 1 };

INLINE void find_midpoints(const float *centroids, float midpoints[MIDPOINTS]) {
    GLOBAL const float *from = (GLOBAL const float *)(uint64_t)centroids;
    UNROLL
    for (int i = 0; i < MIDPOINTS; i++) midpoints[i] = 0.5f * (from[i] + from[i + 1]);
}

// Multiplies a row by a power of 2, which is returned, so that no square of its numbers leaves fp32.
INLINE float tame(float x[OWN]) {
    float most = 0.0f;
    UNROLL
    for (int i = 0; i < OWN; i++) most = max_f32(most, abs_f32(x[i]));
    UNROLL
    for (int bit = 1; bit < ROW_LANES; bit *= 2) most = max_f32(most, AS_F32(other_lane_bits(AS_U32(most), bit)));
    const float unit = most > 0x1p50f ? 0x1p-80f : most < 0x1p-50f ? 0x1p80f : 1.0f;
    UNROLL
    for (int i = 0; i < OWN; i++) x[i] *= unit;
    return unit;
}

INLINE float norm_of(const float x[OWN]) {
    float squares = 0.0f;
    UNROLL
    for (int i = 0; i < OWN; i++) squares += x[i] * x[i];
    squares = sum_of_row(squares);
    return squares > 0.0f && squares < INFINITY_F32 ? squares * inverse_sqrt(squares) : squares;
}

// Of each number of the lane how many midpoints are less than x times scale, in 4 bits, the first in the lowest.
INLINE uint32_t numbers_of(const float x[OWN], float scale, const float midpoints[MIDPOINTS]) {
    uint32_t numbers = 0;
    UNROLL
    for (int i = 0; i < OWN; i++) {
        const float value = x[i] * scale;
        uint32_t number = 0;
        UNROLL
        for (int m = 0; m < MIDPOINTS; m++) number += value > midpoints[m];
        numbers |= number << 4 * i;
    }
    return numbers;
}

// `count` bytes of x, the lowest first, to an address that is even with VECTORS.
INLINE void store_bytes(uint8_t *to, uint32_t x, int count) {
    const int step = VECTORS ? 2 : 1;
    UNROLL
    for (int i = 0; i < count; i += step) {
        if (VECTORS)
            *(GLOBAL uint16_t *)(uint64_t)(to + i) = (uint16_t)(x >> 8 * i);
        else
            *(GLOBAL uint8_t *)(uint64_t)(to + i) = (uint8_t)(x >> 8 * i);
    }
}

// Row number `number` of keys or values. Lanes of a row that goes nowhere take part in what lanes exchange.
INLINE void quantize_row(const problem *p, const struct tessera_turbo4_rows *r, int32_t number, int lane) {
    const int32_t there = number < p->rows, token = there ? number / p->nhead : 0, head = there ? number % p->nhead : 0;
    const int64_t slot = ((GLOBAL const int64_t *)(uint64_t)p->slot_mapping)[token];
    const int64_t at = token * r->token + head * r->head + lane * OWN;
    float x[OWN], midpoints[MIDPOINTS];
    load_own(p->type, (const char *)r->from + at * bytes_of_type(p->type), x);
    find_midpoints(p->centroids, midpoints);
    if (p->has_rotation) rotate_own(x, lane);
    const float unit = tame(x), norm = norm_of(x);
    const uint32_t numbers = numbers_of(x, norm > 0.0f ? reciprocal(norm) : 0.0f, midpoints);
    if (!there || slot < 0 || slot >= p->room) return;
    const int32_t page = (int32_t)slot / p->page_size, row = (int32_t)slot % p->page_size;
    uint8_t *const slot_at = r->slots + page * r->page + head * r->head_of_page + row * r->row;
    uint8_t *const norm_at = r->norms + page * r->norm_page + head * r->norm_head + row * r->norm_row;
    store_bytes(slot_at + lane * OWN / 2, numbers, OWN / 2);
    if (lane == 0) store_bytes(norm_at, pack_fp16(norm * reciprocal(unit), 0.0f), 2);
}

#endif
