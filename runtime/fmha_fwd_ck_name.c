// SPDX-License-Identifier: MIT
// Names of an instance: the short one, and CK's of the combination of traits and tile that a call takes. The latter is
// spelled by codegen/ops/fmha_fwd/ for whole sets of combinations; a test compares the two.
#include "fmha_fwd_internal.h"

const char *tessera_fmha_fwd_instance_name(const tessera_fmha_fwd_instance *instance) {
    return instance ? instance->name : NULL;
}

// CK's pairs of head dims: a call takes the first one that holds it.
static const struct hdims {
    uint16_t q, v;
} buckets[] = {{32, 32},   {48, 48},   {64, 64},   {80, 96},   {96, 128},
               {128, 128}, {192, 128}, {192, 192}, {256, 256}, {512, 512}};

static struct hdims bucket_of(const tessera_fmha_fwd_traits *t) {
    int i = 0;
    while (t->hdim_q > buckets[i].q || t->hdim_v > buckets[i].v) i++;
    return buckets[i];
}

// The sides that the tile does not divide. Sequences of a group, or with lengths of their own, end anywhere.
static void add_pads(struct tessera_text *out, const struct tessera_fmha_fwd_call *call,
                     const tessera_fmha_fwd_tile *tile, struct hdims bucket) {
    const tessera_fmha_fwd_traits *const t = &call->traits;
    const tessera_fmha_fwd_args *const a = &call->args;
    const bool s = t->is_group_mode || a->cu_seqlen_q_ptr || a->seqlen_q % tile->bm0 != 0;
    const bool sk = t->is_group_mode || a->cu_seqlen_k_ptr || a->seqlen_k % tile->bn0 != 0;
    const bool d = t->hdim_q != bucket.q, dv = t->hdim_v != bucket.v;
    if (s || sk || d || dv)
        tessera_text_add(out, "_p%s%s%s%s", s ? "s" : "", sk ? "sk" : "", d ? "d" : "", dv ? "dv" : "");
    else
        tessera_text_add(out, "_npad");
}

static void add_flag(struct tessera_text *out, const char *token, bool on) {
    tessera_text_add(out, "_%s%s", on ? "" : "n", token);
}

size_t tessera_fmha_fwd_ck_name(const tessera_fmha_fwd_instance *instance, const tessera_fmha_fwd_traits *traits,
                                const tessera_fmha_fwd_args *args, char *text, size_t size) {
    static const char *const biases[TESSERA_BIAS_COUNT] = {"nbias", "bias", "alibi"};
    static const char *const qscales[TESSERA_QSCALE_COUNT] = {"nqscale", "pertensor", "blockscale", "kv_blockscale",
                                                              "mx"};
    struct tessera_text out = {text, size, 0};
    struct tessera_fmha_fwd_call call;
    tessera_status status = tessera_fmha_fwd_read_sizes(traits, args, &call);
    if (status == TESSERA_SUCCESS && !instance)
        status = tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "instance is NULL: tessera_fmha_fwd_select() gives one");
    if (status != TESSERA_SUCCESS) {
        tessera_text_add(&out, "%s", tessera_last_error());
        return out.used + 1;
    }
    const tessera_fmha_fwd_traits *const t = &call.traits;
    const tessera_fmha_fwd_tile *const tile = &instance->tile;
    const struct hdims bucket = bucket_of(t);
    const int bn1 = tile->bn1 ? tile->bn1 : bucket.v, bk0max = tile->bk0max ? tile->bk0max : bucket.q;
    tessera_text_add(&out, "fmha_fwd_d%d_%s_%s", bucket.q, tessera_dtype_string(t->data_type),
                     t->is_group_mode ? "group" : "batch");
    tessera_text_add(&out, "_b%dx%dx%dx%dx%dx%d", tile->bm0, tile->bn0, tile->bk0, bn1, tile->bk1, bk0max);
    tessera_text_add(&out, "_r%dx%dx%d_r%dx%dx%d", tile->rm0, tile->rn0, tile->rk0, tile->rm1, tile->rn1, tile->rk1);
    tessera_text_add(&out, "_w%dx%dx%d_w%dx%dx%d", tile->wm0, tile->wn0, tile->wk0, tile->wm1, tile->wn1, tile->wk1);
    tessera_text_add(&out, "_%s_v%s", instance->pipeline, t->is_v_rowmajor ? "r" : "c");
    add_pads(&out, &call, tile, bucket);
    add_flag(&out, "logits", t->has_logits_soft_cap);
    tessera_text_add(&out, "_%s", biases[t->bias_type]);
    add_flag(&out, "mask", t->mask_type != TESSERA_MASK_NONE);
    add_flag(&out, "lse", t->has_lse);
    add_flag(&out, "dropout", t->has_dropout);
    add_flag(&out, "skip", t->skip_min_seqlen_q);
    tessera_text_add(&out, "_%s", qscales[t->qscale_type]);
    add_flag(&out, "trload", false);
    add_flag(&out, "sink", t->has_sink);
    return out.used + 1;
}
