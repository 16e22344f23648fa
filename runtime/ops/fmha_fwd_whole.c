// SPDX-License-Identifier: MIT
// Instances of fmha_fwd that take whole tiles alone, with `whole_tiles`: self-attention of sequences that end with a
// tile of queries, at least four tiles of keys, with no mask or a causal one, so that the last four tiles of keys that
// a workgroup sees are all that the mask's edge may cross. And instances that are for keys in caches, or for others.
#include "ops/attention_gpu.h"
#include "ops/fmha_fwd_internal.h"

enum { LEAST_TILES = 4 };

static bool is_unmasked_or_causal(const struct tessera_fmha_fwd_shape *s) {
    if (s->mask_type == TESSERA_MASK_NONE) return true;
    return s->window_left < 0 && s->window_right == 0;
}

static enum tessera_keys_in place_of_keys(const struct tessera_fmha_fwd_shape *s) {
    if (s->in_pieces) return TESSERA_KEYS_IN_PIECES;
    return s->in_pages ? TESSERA_KEYS_IN_PAGES : TESSERA_KEYS_IN_ROWS;
}

static const char *words_for(enum tessera_keys_in place) {
    if (place == TESSERA_KEYS_IN_ROWS) return "keys in no cache";
    return place == TESSERA_KEYS_IN_PAGES ? "keys in linear pages" : "keys in pages that are not linear";
}

// Whether pages are as an instance copies them whose tasks have all key heads: by at most 32 runs of rows a tile.
static bool are_heads_together(const tessera_fmha_fwd_instance *instance, const struct tessera_fmha_fwd_shape *s) {
    return s->nhead_k == (int32_t)instance->heads && s->hdim_rows == instance->tile.bk0max &&
           s->page_size >= instance->tile.bn0 / 32;
}

// Whether columns of v have as many keys side by side as lanes load of quantised ones to registers
// (cdna/direct_pieces.h).
static bool are_pieces_whole(const tessera_fmha_fwd_instance *instance, const struct tessera_fmha_fwd_shape *s) {
    const bool loads_pieces = instance->keys_in == TESSERA_KEYS_IN_PIECES && instance->kv != TESSERA_KV_AUTO;
    return !loads_pieces || s->page_size >= TESSERA_PIECE_BYTES;
}

// Whether an instance is not for where the call has its keys. Kernels for CPUs are handed rows, wherever they lie.
static bool keeps_keys_out(const tessera_fmha_fwd_instance *instance, const struct tessera_fmha_fwd_shape *s,
                           struct tessera_text *why) {
    const enum tessera_keys_in place = place_of_keys(s);
    if (instance->run) return false;
    if (!(instance->keys_in & place))
        tessera_text_add(why, "%s",
                         place != TESSERA_KEYS_IN_ROWS && !tessera_fmha_fwd_looks_up(instance) ? "keys in a cache"
                                                                                               : words_for(place));
    else if (instance->kv != s->kv)
        tessera_text_add(why, "keys in %s", tessera_kv_cache_dtype_string(s->kv));
    else if (!are_pieces_whole(instance, s))
        tessera_text_add(why, "pages of %d keys (at least %d)", s->page_size, TESSERA_PIECE_BYTES);
    else if (instance->heads > 1 && !are_heads_together(instance, s))
        tessera_text_add(why, "rows that are not those of %u key heads together", instance->heads);
    else
        return false;
    return true;
}

bool tessera_fmha_fwd_keeps_out(const tessera_instance *row, const struct tessera_request *r,
                                struct tessera_text *why) {
    const tessera_fmha_fwd_instance *const instance = (const tessera_fmha_fwd_instance *)row;
    const struct tessera_fmha_fwd_shape *const s = (const void *)r->shape;
    const int bm0 = instance->tile.bm0, bn0 = instance->tile.bn0, least = LEAST_TILES * bn0;
    if (keeps_keys_out(instance, s, why)) return true;
    if (!instance->whole_tiles) return false;
    if (s->is_cached)
        tessera_text_add(why, "keys in a cache");
    else if (s->has_lengths)
        tessera_text_add(why, "lengths in memory");
    else if (s->seqlen_q != s->seqlen_k)
        tessera_text_add(why, "seqlen_q %d other than seqlen_k %d", s->seqlen_q, s->seqlen_k);
    else if (s->seqlen_q % bm0)
        tessera_text_add(why, "seqlen_q %d (multiples of %d)", s->seqlen_q, bm0);
    else if (s->seqlen_k < least)
        tessera_text_add(why, "seqlen_k %d (at least %d, four tiles)", s->seqlen_k, least);
    else if (!is_unmasked_or_causal(s))
        tessera_text_add(why, "a window (no mask or a causal one)");
    else if (s->negative_scale < 0)
        tessera_text_add(why, "scale_s %g (0 or more)", (double)s->negative_scale);
    else
        return false;
    return true;
}
