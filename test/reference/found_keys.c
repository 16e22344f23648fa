// SPDX-License-Identifier: MIT
#include "found_keys.h"

#include <stdlib.h>
#include <string.h>

// Rows that all sequences, or in batch mode each, have room for.
static int64_t room_of(const found_keys *keys, int is_group, int32_t batch) {
    int64_t sum = 0, longest = 0;
    for (int32_t b = 0; b < batch; b++) {
        sum += keys->lengths[b];
        if (keys->lengths[b] > longest) longest = keys->lengths[b];
    }
    return is_group ? sum : longest;
}

static void copy_rows(const found_keys *keys, int is_v, int32_t b, int32_t g, int32_t hdim, char *to) {
    for (int32_t j = 0; j < keys->lengths[b]; j++)
        for (int32_t d = 0; d < hdim; d++, to += keys->bytes)
            memcpy(to, keys->at(keys->user, is_v, b, g, j, d), keys->bytes);
}

void *put_in_order(const found_keys *keys, const tessera_fmha_fwd_traits *t, tessera_fmha_fwd_args *a) {
    const int is_group = t->is_group_mode;
    const int64_t room = room_of(keys, is_group, a->batch);
    const size_t rows = (size_t)(room * a->nhead_k * (is_group ? 1 : a->batch));
    const size_t of_starts = ((size_t)a->batch + 1) * sizeof(int32_t), of_k = rows * (size_t)a->hdim_q * keys->bytes;
    char *const all = malloc(of_starts + of_k + rows * (size_t)a->hdim_v * keys->bytes);
    if (!all) return NULL;
    int32_t *const starts = (int32_t *)(void *)all;
    char *const k = all + of_starts, *const v = k + of_k;
    starts[0] = 0;
    for (int32_t b = 0; b < a->batch; b++) {
        starts[b + 1] = starts[b] + keys->lengths[b];
        for (int32_t g = 0; g < a->nhead_k; g++) {
            const int64_t row = is_group ? g * room + starts[b] : ((int64_t)b * a->nhead_k + g) * room;
            copy_rows(keys, 0, b, g, a->hdim_q, k + (size_t)(row * a->hdim_q) * keys->bytes);
            copy_rows(keys, 1, b, g, a->hdim_v, v + (size_t)(row * a->hdim_v) * keys->bytes);
        }
    }
    a->k_ptr = k, a->v_ptr = v;
    a->stride_k = a->hdim_q, a->nhead_stride_k = room * a->hdim_q;
    a->stride_v = a->hdim_v, a->nhead_stride_v = room * a->hdim_v;
    a->batch_stride_k = a->nhead_k * a->nhead_stride_k, a->batch_stride_v = a->nhead_k * a->nhead_stride_v;
    a->seqlen_k = (int32_t)room;
    a->seqstart_k_ptr = is_group ? starts : NULL, a->cu_seqlen_k_ptr = is_group ? NULL : starts;
    a->seqlen_k_ptr = NULL;
    return all;
}
