// SPDX-License-Identifier: MIT
// What selection knows of fmha_fwd beside its table: where rows of its tensors begin, the tile in CK's names, the costs
// (fmha_fwd_cost_cpu.c, fmha_fwd_cost_cdna.c). And the functions that ask it.
#include "guard.h"
#include "op/select.h"
#include "ops/fmha_fwd_internal.h"

typedef tessera_fmha_fwd_instance instance_t;
typedef struct tessera_request request_t;
typedef struct tessera_fmha_fwd_asked asked_t;

// ---- what a call asks of an instance

static int list_starts(const request_t *r, struct tessera_start starts[TESSERA_MAX_STARTS]) {
    const struct tessera_fmha_fwd_call *const call = ((const asked_t *)r->call)->call;
    const tessera_fmha_fwd_args *const a = &call->args;
    const bool batches = !call->traits.is_group_mode && a->batch > 1, batch_mode = !call->traits.is_group_mode;
    const bool rows_q = !batch_mode || a->seqlen_q > 1, rows_k = !batch_mode || a->seqlen_k > 1;
    const bool rows_v = call->traits.is_v_rowmajor ? rows_k : a->hdim_v > 1;
    const int in = tessera_type_bits(tessera_fmha_fwd_storages[call->traits.data_type].qkv);
    const int out = tessera_type_bits(tessera_fmha_fwd_storages[call->traits.data_type].o);
    int n = 0;
#define STRIDE(name, bits, matters) starts[n++] = (struct tessera_start){#name, (uint64_t)a->name, bits, false, matters}
#define ADD(x, bits, rows, heads)                                                                                      \
    starts[n++] = (struct tessera_start){#x "_ptr", (uintptr_t)a->x##_ptr, 8, true, true};                             \
    STRIDE(stride_##x, bits, rows);                                                                                    \
    STRIDE(nhead_stride_##x, bits, heads > 1);                                                                         \
    STRIDE(batch_stride_##x, bits, batches)
    ADD(q, in, rows_q, a->nhead_q);
    ADD(k, in, rows_k, a->nhead_k);
    ADD(v, in, rows_v, a->nhead_k);
    ADD(o, out, rows_q, a->nhead_q);
#undef ADD
#undef STRIDE
    return n;
}

static double cost(const tessera_instance *row, const request_t *r) {
    const instance_t *const instance = (const instance_t *)row;
    return (row->symbol ? tessera_fmha_fwd_cdna_cost : tessera_fmha_fwd_cpu_cost)(instance, r->call, r->units);
}

// ---- CK's names

static void add_ck_tile(struct tessera_text *out, const tessera_instance *row, const uint32_t *hdims) {
    const tessera_fmha_fwd_tile *const tile = &((const instance_t *)row)->tile;
    const unsigned bn1 = tile->bn1 ? tile->bn1 : hdims[1], bk0max = tile->bk0max ? tile->bk0max : hdims[0];
    tessera_text_add(out, "_b%ux%ux%ux%ux%ux%u", tile->bm0, tile->bn0, tile->bk0, bn1, tile->bk1, bk0max);
    tessera_text_add(out, "_r%dx%dx%d_r%dx%dx%d", tile->rm0, tile->rn0, tile->rk0, tile->rm1, tile->rn1, tile->rk1);
    tessera_text_add(out, "_w%dx%dx%d_w%dx%dx%d", tile->wm0, tile->wn0, tile->wk0, tile->wm1, tile->wn1, tile->wk1);
    tessera_text_add(out, "_%s", row->pipeline);
}

// The sides that the tile does not divide: bits of s, sk, d and dv. Sequences of a group, or with lengths of their own,
// end anywhere.
static uint32_t count_pads(const request_t *r, const tessera_instance *row, const uint32_t *hdims) {
    const struct tessera_fmha_fwd_call *const call = ((const asked_t *)r->call)->call;
    const tessera_fmha_fwd_tile *const tile = &((const instance_t *)row)->tile;
    const tessera_fmha_fwd_args *const a = &call->args;
    const bool group = call->traits.is_group_mode;
    const uint32_t s = group || a->cu_seqlen_q_ptr || a->seqlen_q % tile->bm0 != 0;
    const uint32_t sk = group || a->cu_seqlen_k_ptr || a->seqlen_k % tile->bn0 != 0;
    return s | sk << 1 | (uint32_t)(r->sizes[0] != hdims[0]) << 2 | (uint32_t)(r->sizes[1] != hdims[1]) << 3;
}

// ---- asking

static const struct tessera_operation operation = {cost, list_starts, add_ck_tile, count_pads};

static asked_t sizes_of(const struct tessera_fmha_fwd_call *call) {
    const tessera_fmha_fwd_traits *const t = &call->traits;
    const tessera_fmha_fwd_args *const a = &call->args;
    const int64_t longest_k = a->seqlen_k > 0 ? a->seqlen_k : a->max_seqlen_q;
    const int64_t queries = t->is_group_mode ? a->max_seqlen_q : a->seqlen_q;
    return (asked_t){.call = call,
                     .heads = (int64_t)a->batch * a->nhead_k,
                     .rows = queries * (a->nhead_q / a->nhead_k),
                     .keys = t->is_group_mode ? longest_k : a->seqlen_k,
                     .queries = queries,
                     .hdims = (double)t->hdim_q + t->hdim_v};
}

static request_t ask(const tessera_table *table, const tessera_device_facts *facts, const asked_t *asked) {
    const tessera_instance *const wanted = (const tessera_instance *)asked->call->args.instance;
    request_t r = {.op = &operation, .table = table, .traits = &asked->call->traits, .call = asked, .wanted = wanted};
    tessera_ask(&r, facts);
    return r;
}

tessera_status tessera_fmha_fwd_choose(const tessera_table *table, const tessera_device_facts *facts,
                                       const struct tessera_fmha_fwd_call *call, const instance_t **out) {
    const asked_t asked = sizes_of(call);
    const request_t r = ask(table, facts, &asked);
    const tessera_instance *row;
    TRY(tessera_choose(&r, &row));
    *out = (const instance_t *)row;
    return TESSERA_SUCCESS;
}

static tessera_status read_request(const tessera_table *table, const tessera_device_facts *caller,
                                   const tessera_fmha_fwd_traits *traits, const tessera_fmha_fwd_args *args,
                                   tessera_device_facts *facts, struct tessera_fmha_fwd_call *call) {
    TRY(tessera_read_facts(table, caller, facts));
    return tessera_fmha_fwd_read_sizes(traits, args, call);
}

tessera_status tessera_fmha_fwd_table_select(const tessera_table *table, const tessera_device_facts *facts,
                                             const tessera_fmha_fwd_traits *traits, const tessera_fmha_fwd_args *args,
                                             const instance_t **out) {
    tessera_device_facts whole;
    struct tessera_fmha_fwd_call call;
    if (!out) return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "out is NULL");
    TRY(read_request(table, facts, traits, args, &whole, &call));
    return tessera_fmha_fwd_choose(table, &whole, &call, out);
}

tessera_status tessera_fmha_fwd_select(const tessera_device_facts *facts, const tessera_fmha_fwd_traits *traits,
                                       const tessera_fmha_fwd_args *args, const instance_t **out) {
    return tessera_fmha_fwd_table_select(tessera_fmha_fwd_get_table(), facts, traits, args, out);
}

size_t tessera_fmha_fwd_table_explain(const tessera_table *table, const tessera_device_facts *facts,
                                      const tessera_fmha_fwd_traits *traits, const tessera_fmha_fwd_args *args,
                                      tessera_explain how, char *text, size_t size) {
    tessera_device_facts whole;
    struct tessera_fmha_fwd_call call;
    struct tessera_text out = {text, size, 0};
    tessera_text_add(&out, "%s", "");
    if (read_request(table, facts, traits, args, &whole, &call) == TESSERA_SUCCESS) {
        const asked_t asked = sizes_of(&call);
        const request_t r = ask(table, &whole, &asked);
        tessera_add_explanation(&out, &r, how == TESSERA_EXPLAIN_INSTANCES);
    } else {
        tessera_text_add(&out, "%s\n", tessera_last_error());
    }
    return out.used + 1;
}

size_t tessera_fmha_fwd_explain(const tessera_device_facts *facts, const tessera_fmha_fwd_traits *traits,
                                const tessera_fmha_fwd_args *args, tessera_explain how, char *text, size_t size) {
    return tessera_fmha_fwd_table_explain(tessera_fmha_fwd_get_table(), facts, traits, args, how, text, size);
}

void tessera_fmha_fwd_tell_reasons(const tessera_device_facts *facts, const struct tessera_fmha_fwd_call *call) {
    const asked_t asked = sizes_of(call);
    const request_t r = ask(tessera_fmha_fwd_get_table(), facts, &asked);
    tessera_tell_reasons(&r);
}

const char *tessera_fmha_fwd_instance_name(const instance_t *instance) { return instance ? instance->base.name : NULL; }

size_t tessera_fmha_fwd_ck_name(const instance_t *instance, const tessera_fmha_fwd_traits *traits,
                                const tessera_fmha_fwd_args *args, char *text, size_t size) {
    struct tessera_text out = {text, size, 0};
    struct tessera_fmha_fwd_call call;
    tessera_status status = tessera_fmha_fwd_read_sizes(traits, args, &call);
    if (status == TESSERA_SUCCESS && !instance)
        status = tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "instance is NULL: tessera_fmha_fwd_select() gives one");
    if (status == TESSERA_SUCCESS) {
        const asked_t asked = sizes_of(&call);
        const request_t r = ask(tessera_fmha_fwd_get_table(), &(tessera_device_facts){0}, &asked);
        tessera_add_ck_name(&out, &r, &instance->base);
    } else {
        tessera_text_add(&out, "%s", tessera_last_error());
    }
    return out.used + 1;
}
