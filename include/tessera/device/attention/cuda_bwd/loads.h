// SPDX-License-Identifier: MIT
// What the producing warps do: one brings tiles of q, k, v and do into shared memory, with zeros for rows past the end
// of a sequence and for columns past the head dim, the other one lse and d. A copy by tensor map is started by one
// lane, and hardware does the rest. All lanes copy what has no map, and a sequence's last tile where the map does not
// end with the sequence.
//
// Takes launch.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_BWD_LOADS_H
#define TESSERA_DEVICE_ATTENTION_CUDA_BWD_LOADS_H

#include "tessera/device/attention/cuda_bwd/task.h"

enum { PIECE = 8 }; // elements that a lane copies at once

// Rows of a tensor.
struct rows {
    const void *first;
    int64_t stride;     // elements
    int count, columns; // that exist
};

// Copies `most` rows in slices. A slice's pieces are swizzled as operand() says.
INLINE void fill_by_lanes(struct place place, const struct rows *from, int most, int slices) {
    const int pieces = slices * COLUMNS / PIECE; // of a row
    _Pragma("unroll 1") for (int i = lane_id(); i < most * pieces; i += 32) {
        const int row = i / pieces, piece = i - row * pieces, slice = piece / 8;
        const int inside = row < from->count && piece * PIECE < from->columns;
        const char *const source = (const char *)from->first + (inside ? row * from->stride * 2 + piece * 16 : 0);
        copy_16(place.at + (slice * most + row) * SLICE + ((piece % 8) ^ (row % 8)) * 16, source, inside ? 16 : 0);
    }
    finish_copies();
    meet_lanes();
    if (lane_id() == 0) arrive(place.full);
}

INLINE void load_queries(struct place place, const launch *a, uint32_t task_at, int head, int tile, int grad) {
    const int query = query_of(task_at, tile), left = TASK_FIELD(task_at, seqlen_q) - query;
    const int slices = grad ? DV_SLICES : DQ_SLICES;
    const int batch = TASK_FIELD(task_at, batch), row = TASK_FIELD(task_at, token_q) + query;
    if (a->maps & (grad ? TESSERA_CUDA_BWD_MAP_DO : TESSERA_CUDA_BWD_MAP_Q) &&
        (left >= BM || ends_with(a->call.seqstart_q, a->call.cu_seqlen_q))) {
        fill_by_map(place, grad ? &a->map_do : &a->map_q, BM, slices, row, head, a->call.seqstart_q ? 0 : batch);
        return;
    }
    const int64_t stride = grad ? a->call.stride_do : a->call.stride_q;
    const int64_t first = element_of(batch, grad ? a->call.batch_stride_do : a->call.batch_stride_q, head,
                                     grad ? a->call.nhead_stride_do : a->call.nhead_stride_q, row, stride);
    const struct rows rows = {(const char *)(grad ? a->call.d_o : a->call.q) + first * 2, stride, left,
                              grad ? a->call.hdim_v : a->call.hdim_q};
    fill_by_lanes(place, &rows, BM, slices);
}

INLINE void load_keys(struct place place, const launch *a, uint32_t task_at, int values) {
    const int key = TASK_FIELD(task_at, first), left = TASK_FIELD(task_at, seqlen_k) - key;
    const int head = TASK_FIELD(task_at, head_k), batch = TASK_FIELD(task_at, batch);
    const int row = TASK_FIELD(task_at, token_k) + key, slices = values ? DV_SLICES : DQ_SLICES;
    if (a->maps & (values ? TESSERA_CUDA_BWD_MAP_V : TESSERA_CUDA_BWD_MAP_K) &&
        (left >= BN || ends_with(a->call.seqstart_k, a->call.cu_seqlen_k))) {
        fill_by_map(place, values ? &a->map_v : &a->map_k, BN, slices, row, head, a->call.seqstart_k ? 0 : batch);
        return;
    }
    const int64_t stride = values ? a->call.stride_v : a->call.stride_k;
    const int64_t first = element_of(batch, values ? a->call.batch_stride_v : a->call.batch_stride_k, head,
                                     values ? a->call.nhead_stride_v : a->call.nhead_stride_k, row, stride);
    const struct rows rows = {(const char *)(values ? a->call.v : a->call.k) + first * 2, stride, left,
                              values ? a->call.hdim_v : a->call.hdim_q};
    fill_by_lanes(place, &rows, BN, slices);
}

// What is added to scores in units of log2 is -lse. Queries past the end, and those that see no key, have an infinite
// lse, so that their probabilities are 0.
INLINE void load_sums(struct place place, const launch *a, uint32_t task_at, int head, int tile) {
    const int query = query_of(task_at, tile);
    const int left = TASK_FIELD(task_at, seqlen_q) - query - lane_id();
    const int64_t first = TASK_FIELD(task_at, batch) * a->call.batch_stride_lsed + head * a->call.nhead_stride_lsed +
                          TASK_FIELD(task_at, token_q) + query + lane_id();
    enum { ROUNDS_OF_LANES = (BM + 31) / 32 };
    float lse[ROUNDS_OF_LANES], d[ROUNDS_OF_LANES];
    UNROLL
    for (int r = 0; r < ROUNDS_OF_LANES; r++) {
        lse[r] = AS_F32(load_4(a->call.lse + first + 32 * r, 32 * r < left));
        d[r] = AS_F32(load_4(a->call.d + first + 32 * r, 32 * r < left));
        if (32 * r >= left || lse[r] == -INFINITY_F32) lse[r] = INFINITY_F32;
    }
    wait_until_empty(place);
    UNROLL
    for (int r = 0; r < ROUNDS_OF_LANES; r++) {
        if (32 * r + 31 >= BM && 32 * r + lane_id() >= BM) break;
        shared_store_f32(place.at + 4 * (lane_id() + 32 * r), lse[r] * -LOG2E);
        shared_store_f32(place.at + 4 * (BM + lane_id() + 32 * r), d[r]);
    }
    meet_lanes();
    if (lane_id() == 0) arrive(place.full);
}

#endif
