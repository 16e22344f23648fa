// SPDX-License-Identifier: MIT
// Instances of fmha_fwd that take whole tiles alone, with `whole_tiles`: self-attention of sequences that end with a
// tile of queries, at least four tiles of keys, with no mask or a causal one, so that the last four tiles of keys that
// a workgroup sees are all that the mask's edge may cross. And instances that are for keys in caches, or for others.
#include "ops/attention_gpu.h"
#include "ops/fmha_fwd_internal.h"

enum { LEAST_TILES = 4 };

static bool is_unmasked_or_causal(const struct tessera_fmha_fwd_call *call) {
    if (call->traits.mask_type == TESSERA_MASK_NONE) return true;
    return call->args.window_size_left < 0 && call->args.window_size_right == 0;
}

static tessera_kv_cache_dtype kv_type_of(const struct tessera_fmha_fwd_call *call) {
    return call->cache ? call->cache->pages.dtype : TESSERA_KV_AUTO;
}

static enum tessera_keys_in place_of_keys(const struct tessera_fmha_fwd_call *call) {
    if (tessera_fmha_fwd_in_pieces(call)) return TESSERA_KEYS_IN_PIECES;
    return tessera_fmha_fwd_in_pages(call) ? TESSERA_KEYS_IN_PAGES : TESSERA_KEYS_IN_ROWS;
}

static const char *words_for(enum tessera_keys_in place) {
    if (place == TESSERA_KEYS_IN_ROWS) return "keys in no cache";
    return place == TESSERA_KEYS_IN_PAGES ? "keys in linear pages" : "keys in pages that are not linear";
}

// Whether tokens follow one another in pages whose rows of all key heads lie beside one another, each with its norm,
// as device/attention/cuda_pages/whole.h copies them: by at most 32 runs of rows a tile.
static bool are_heads_beside(const tessera_fmha_fwd_instance *instance, const struct tessera_fmha_fwd_call *call) {
    const struct tessera_attention_pages *const p = &call->cache->pages;
    const struct tessera_attention_page_strides *const k = &p->of_k, *const v = &p->of_v;
    const int32_t hdim = instance->tile.bk0max, slot = hdim / 2 + 2, row = (int32_t)instance->heads * slot;
    const uint64_t starts = (uintptr_t)p->k | (uintptr_t)p->v | (uint64_t)(k->page | v->page);
    return call->args.nhead_k == (int32_t)instance->heads && p->hdim_q == hdim && p->hdim_v == hdim &&
           starts % 16 == 0 && k->head == slot && v->head == slot && k->row == row && v->row == row && !p->offset &&
           p->k_scale.base == (const char *)p->k + hdim / 2 && p->v_scale.base == (const char *)p->v + hdim / 2 &&
           p->page_size >= instance->tile.bn0 / 32;
}

// Whether an instance is not for where the call has its keys. Kernels for CPUs are handed rows, wherever they lie.
static bool keeps_keys_out(const tessera_fmha_fwd_instance *instance, const struct tessera_fmha_fwd_call *call,
                           struct tessera_text *why) {
    const enum tessera_keys_in place = place_of_keys(call);
    if (instance->run) return false;
    if (!(instance->keys_in & place))
        tessera_text_add(why, "%s",
                         place != TESSERA_KEYS_IN_ROWS && !tessera_fmha_fwd_looks_up(instance) ? "keys in a cache"
                                                                                               : words_for(place));
    else if (instance->kv != kv_type_of(call))
        tessera_text_add(why, "keys in %s", tessera_kv_cache_dtype_string(kv_type_of(call)));
    else if (instance->heads > 1 && !are_heads_beside(instance, call))
        tessera_text_add(why, "rows that are not those of %u key heads beside one another", instance->heads);
    else
        return false;
    return true;
}

bool tessera_fmha_fwd_keeps_out(const tessera_instance *row, const struct tessera_request *r,
                                struct tessera_text *why) {
    const tessera_fmha_fwd_instance *const instance = (const tessera_fmha_fwd_instance *)row;
    const struct tessera_fmha_fwd_call *const call = r->call;
    const tessera_fmha_fwd_args *const a = &call->args;
    const int bm0 = instance->tile.bm0, bn0 = instance->tile.bn0, least = LEAST_TILES * bn0;
    if (keeps_keys_out(instance, call, why)) return true;
    if (!instance->whole_tiles) return false;
    if (call->cache)
        tessera_text_add(why, "keys in a cache");
    else if (a->cu_seqlen_q_ptr || a->cu_seqlen_k_ptr)
        tessera_text_add(why, "lengths in memory");
    else if (a->seqlen_q != a->seqlen_k)
        tessera_text_add(why, "seqlen_q %d other than seqlen_k %d", a->seqlen_q, a->seqlen_k);
    else if (a->seqlen_q % bm0)
        tessera_text_add(why, "seqlen_q %d (multiples of %d)", a->seqlen_q, bm0);
    else if (a->seqlen_k < least)
        tessera_text_add(why, "seqlen_k %d (at least %d, four tiles)", a->seqlen_k, least);
    else if (!is_unmasked_or_causal(call))
        tessera_text_add(why, "a window (no mask or a causal one)");
    else if (a->scale_s < 0)
        tessera_text_add(why, "scale_s %g (0 or more)", (double)a->scale_s);
    else
        return false;
    return true;
}
