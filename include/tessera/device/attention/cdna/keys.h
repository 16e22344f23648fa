// SPDX-License-Identifier: MIT
// The keys of a workgroup: K and V of its sequence and head. V_COLUMNS: V is column-major.
//
// Takes args, MX, V_COLUMNS.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_KEYS_H
#define TESSERA_DEVICE_ATTENTION_CDNA_KEYS_H

#include "tessera/device/attention/cdna/task.h"

#if MX
// The scales of K, in rows of keys, and of V, in rows of V^T.
struct key_scales {
    const char *k, *v;
    int stride_k, stride_v;
};

INLINE struct key_scales find_key_scales(const args *a, const struct task *task) {
    const int64_t k = key_element(task, a->batch_stride_k_descale, a->nhead_stride_k_descale, a->stride_k_descale);
    const int64_t v = task->batch * a->batch_stride_v_descale + task->head_k * a->nhead_stride_v_descale +
                      (a->seqstart_v_scale ? read_int(a->seqstart_v_scale, task->batch) : 0);
    const char *base_k = (const char *)a->k_descale + k, *base_v = (const char *)a->v_descale + v;
    const struct key_scales scales = {base_k, base_v, (int)a->stride_k_descale, (int)a->stride_v_descale};
    return scales;
}

#endif
// K and V of the sequence and head.
struct keys {
    const char *k, *v;
    int stride_k, stride_v, hdim_q, hdim_v;
#if MX
    struct key_scales scales;
#endif
};

INLINE struct keys find_keys(const args *a, const struct task *task) {
    const int64_t k = key_element(task, a->batch_stride_k, a->nhead_stride_k, a->stride_k);
    const int64_t v = key_element(task, a->batch_stride_v, a->nhead_stride_v, a->stride_v);
    const char *base_k = (const char *)a->k + BYTES(k), *base_v = (const char *)a->v + BYTES(v);
#if MX
    const struct key_scales scales = find_key_scales(a, task);
    const struct keys keys = {base_k, base_v, (int)a->stride_k, (int)a->stride_v, a->hdim_q, a->hdim_v, scales};
#else
    const struct keys keys = {base_k, base_v, (int)a->stride_k, (int)a->stride_v, a->hdim_q, a->hdim_v};
#endif
    return keys;
}

INLINE int64_t rows_before(int tile, int stride) { // neither is negative: two products instead of three
    return (int64_t)((uint64_t)(uint32_t)tile * (uint32_t)stride);
}
INLINE buffer k_rows(const struct keys *keys, int tile, int end) {
    return rows_of(keys->k, rows_before(tile, keys->stride_k), end - tile, BN, keys->stride_k, keys->hdim_q, BITS);
}
#if V_COLUMNS
// Rows of V^T, up to the last key. What lies behind a row is the next one, or no key of the sequence.
INLINE buffer v_rows(const struct keys *keys, int tile, int end) {
    return rows_of(keys->v, tile, tile < end ? keys->hdim_v : 0, DV, keys->stride_v, end - tile, BITS);
}
#else
INLINE buffer v_rows(const struct keys *keys, int tile, int end) {
    return rows_of(keys->v, rows_before(tile, keys->stride_v), end - tile, BN, keys->stride_v, keys->hdim_v, BITS);
}
#endif

#endif
