// SPDX-License-Identifier: MIT
// What decides the instance of a call and how it cuts keys: sizes, the mask, and where keys lie.
#include "ops/attention_gpu.h"
#include "ops/fmha_fwd_internal.h"
#include "tessera/kernel/fmha_fwd_cuda.h"

_Static_assert(sizeof(struct tessera_fmha_fwd_shape) == 6 * 8 + 16 * 4 + 8, "there is no padding");
_Static_assert(sizeof(struct tessera_fmha_fwd_shape) <= TESSERA_SHAPE_WORDS * 8, "requests have room");

// Whether slots of all key heads lie beside one another, each norm behind its numbers, and tokens one behind the other,
// so that a page is one run of bytes.
static bool are_in_runs(const struct tessera_attention_pages *p, int32_t nhead_k) {
    const struct tessera_attention_page_strides *const k = &p->of_k, *const v = &p->of_v;
    const int32_t numbers = p->hdim_q / 2, slot = numbers + 2, row = nhead_k * slot;
    const uint64_t starts = (uintptr_t)p->k | (uintptr_t)p->v | (uint64_t)(k->page | v->page);
    return starts % 16 == 0 && k->head == slot && v->head == slot && k->row == row && v->row == row &&
           p->k_scale.base == (const char *)p->k + numbers && p->v_scale.base == (const char *)p->v + numbers;
}

// Whether a tensor map has slices of all key heads' rows as one dimension, and none of its boxes lies in two pages.
static bool are_in_boxes(const struct tessera_attention_pages *p) {
    const struct tessera_attention_page_strides *const k = &p->of_k, *const v = &p->of_v;
    const int64_t strides[] = {k->page, k->row, k->head, v->page, v->row, v->head}, hdim = p->hdim_q;
    bool fit = ((uintptr_t)p->k | (uintptr_t)p->v) % 16 == 0 && p->page_size % TESSERA_CUDA_BOX_ROWS == 0;
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
        fit = fit && tessera_attention_fits_map((uint64_t)strides[i]);
    return fit && (hdim == TESSERA_ATTENTION_SLICE_BYTES || (k->head == hdim && v->head == hdim));
}

// Numbers of a row where, in pages of a quantised cache that begin with a sequence's first key, rows of all key heads
// are copied together, as device/attention/cuda_pages/whole.h does; else 0.
static int32_t rows_together(const struct tessera_attention_pages *p, int32_t nhead_k) {
    if (p->dtype == TESSERA_KV_AUTO || p->piece_v || p->offset || p->hdim_v != p->hdim_q) return 0;
    return (p->dtype == TESSERA_KV_TURBO4 ? are_in_runs(p, nhead_k) : are_in_boxes(p)) ? p->hdim_q : 0;
}

// Sequences, or key heads of the only one, whose part of each tensor begins a multiple of a stride further, and whose
// results do not depend on their number, as dropout does.
static int64_t count_apart(const struct tessera_fmha_fwd_call *call) {
    const tessera_fmha_fwd_traits *const t = &call->traits;
    const tessera_fmha_fwd_args *const a = &call->args;
    const bool lengths = t->is_group_mode || a->cu_seqlen_q_ptr || a->cu_seqlen_k_ptr;
    const bool scales = t->qscale_type == TESSERA_QSCALE_BLOCK || t->qscale_type == TESSERA_QSCALE_MX;
    if (call->cache || lengths || scales || t->bias_type != TESSERA_BIAS_NONE || t->has_dropout || t->has_sink)
        return 1;
    return a->batch > 1 ? a->batch : a->nhead_k;
}

uint32_t tessera_fmha_fwd_describe(const void *of, void *shape) {
    const struct tessera_fmha_fwd_call *const call = of;
    const tessera_fmha_fwd_traits *const t = &call->traits;
    const tessera_fmha_fwd_args *const a = &call->args;
    const struct tessera_attention_cache *const cache = call->cache;
    const bool masked = t->mask_type != TESSERA_MASK_NONE, group = t->is_group_mode;
    *(struct tessera_fmha_fwd_shape *)shape = (struct tessera_fmha_fwd_shape){
        .heads = call->heads,
        .rows = call->rows,
        .keys = call->keys,
        .queries = call->queries,
        .apart = count_apart(call),
        .hdims = call->hdims,
        .batch = a->batch,
        .nhead_q = a->nhead_q,
        .nhead_k = a->nhead_k,
        .hdim_v = a->hdim_v,
        .seqlen_q = a->seqlen_q,
        .seqlen_k = a->seqlen_k,
        .window_left = a->window_size_left,
        .window_right = a->window_size_right,
        .splits = call->splits,
        .num_splits = a->num_splits,
        .page_size = cache ? cache->pages.page_size : 0,
        .hdim_rows = cache ? rows_together(&cache->pages, a->nhead_k) : 0,
        .negative_scale = a->scale_s < 0 ? a->scale_s : 0,
        .data_type = t->data_type,
        .mask_type = t->mask_type,
        .kv = cache ? cache->pages.dtype : TESSERA_KV_AUTO,
        .is_group_mode = group,
        .is_cached = cache,
        .in_pages = cache && cache->pages.table,
        .in_pieces = cache && cache->pages.piece_v,
        .is_ragged = group || a->cu_seqlen_k_ptr || (cache && (cache->seqlen_k || cache->starts || cache->pages.begin)),
        .has_lengths = a->cu_seqlen_q_ptr || a->cu_seqlen_k_ptr,
        .has_left = masked && a->window_size_left >= 0,
        .has_right = masked && a->window_size_right >= 0,
    };
    return sizeof(struct tessera_fmha_fwd_shape);
}
