// SPDX-License-Identifier: MIT
// Which instance serves a call best. Why the others do not: fmha_fwd_explain.c.
//
// Cost. An instance cuts the folded rows (seqlen_q * nhead_q / nhead_k of each sequence and key head) into tiles of
// bm0, and walks the keys of each in blocks of bn0. With rows rounded up to register tiles of wm0 and keys to wn0, a
// share of `rows * keys / (bm0 * bn0)` of a full block's cycles is paid for each block:
//
//   block  = bm0 * bn0 * (hdim_q + hdim_v) / macs_per_cycle + tile_cycles
//   total  = batch * nhead_k * rows * keys / (bm0 * bn0) * block
//   tasks  = batch * nhead_k * tiles, times the parts that the launcher cuts the keys of a tile into
//   cost   = total / tasks * ceil(tasks / compute_units)
//
// the last line being the time of the unit with most tasks: fewer and larger tiles lose where they leave units idle.
// A mask hides about the same share of every instance's keys, and is left out. Group mode knows the lengths only as
// the longest one: max_seqlen_q, and seqlen_k where it is given. What a call costs on a GPU: fmha_fwd_cost_cdna.c.
#include <string.h>

#include "fmha_fwd_select.h"

typedef tessera_fmha_fwd_instance instance_t;
typedef tessera_fmha_fwd_served served_t;

// ---- what a call asks of an instance

_Static_assert(offsetof(served_t, mode) == 8 && offsetof(served_t, sink) == TESSERA_FMHA_FWD_SET_BYTES - 1,
               "the sets are two words");

void tessera_fmha_fwd_list_starts(const struct tessera_fmha_fwd_call *call,
                                  struct tessera_fmha_fwd_start starts[TESSERA_FMHA_FWD_STARTS]) {
    const tessera_fmha_fwd_args *const a = &call->args;
    const bool batches = !call->traits.is_group_mode && a->batch > 1, batch_mode = !call->traits.is_group_mode;
    const bool rows_q = !batch_mode || a->seqlen_q > 1, rows_k = !batch_mode || a->seqlen_k > 1;
    const bool rows_v = call->traits.is_v_rowmajor ? rows_k : a->hdim_v > 1;
    const int in = tessera_fmha_fwd_bits(tessera_fmha_fwd_storages[call->traits.data_type].qkv);
    const int out = tessera_fmha_fwd_bits(tessera_fmha_fwd_storages[call->traits.data_type].o);
    int n = 0;
#define ADD(x, bits, rows, heads)                                                                                      \
    starts[n++] = (struct tessera_fmha_fwd_start){#x "_ptr", (uintptr_t)a->x##_ptr, 8, true};                          \
    starts[n++] = (struct tessera_fmha_fwd_start){"stride_" #x, (uint64_t)a->stride_##x, bits, rows};                  \
    starts[n++] = (struct tessera_fmha_fwd_start){"nhead_stride_" #x, (uint64_t)a->nhead_stride_##x, bits, heads > 1}; \
    starts[n++] = (struct tessera_fmha_fwd_start){"batch_stride_" #x, (uint64_t)a->batch_stride_##x, bits, batches}
    ADD(q, in, rows_q, a->nhead_q);
    ADD(k, in, rows_k, a->nhead_k);
    ADD(v, in, rows_v, a->nhead_k);
    ADD(o, out, rows_q, a->nhead_q);
#undef ADD
}

bool tessera_fmha_fwd_is_aligned(const struct tessera_fmha_fwd_call *call, uint32_t alignment) {
    if (!alignment) return true;
    struct tessera_fmha_fwd_start starts[TESSERA_FMHA_FWD_STARTS];
    uint64_t bits = 0; // that any row's place in memory may have
    tessera_fmha_fwd_list_starts(call, starts);
    for (int i = 0; i < TESSERA_FMHA_FWD_STARTS; i++)
        if (starts[i].matters) bits |= starts[i].value * (uint64_t)starts[i].bits / 8;
    return bits % alignment == 0;
}

struct tessera_fmha_fwd_request tessera_fmha_fwd_ask(const tessera_device_facts *facts,
                                                     const struct tessera_fmha_fwd_call *call) {
    const tessera_fmha_fwd_traits *const t = &call->traits;
    const tessera_fmha_fwd_args *const a = &call->args;
    const int64_t longest_k = a->seqlen_k > 0 ? a->seqlen_k : a->max_seqlen_q;
    const int64_t queries = t->is_group_mode ? a->max_seqlen_q : a->seqlen_q;
    struct tessera_fmha_fwd_request r = {
        .one = {.data_type = (uint16_t)(1u << t->data_type),
                .mask = (uint16_t)(1u << t->mask_type),
                .bias = (uint16_t)(1u << t->bias_type),
                .qscale = (uint16_t)(1u << t->qscale_type),
                .mode = (uint8_t)(1u << t->is_group_mode),
                .v_rowmajor = (uint8_t)(1u << t->is_v_rowmajor),
                .soft_cap = (uint8_t)(1u << t->has_logits_soft_cap),
                .lse = (uint8_t)(1u << t->has_lse),
                .dropout = (uint8_t)(1u << t->has_dropout),
                .skip = (uint8_t)(1u << t->skip_min_seqlen_q),
                .sink = (uint8_t)(1u << t->has_sink),
                .hdim_q_max = (uint16_t)t->hdim_q,
                .hdim_v_max = (uint16_t)t->hdim_v},
        .targets = facts->targets,
        .units = facts->compute_units,
        .heads = (int64_t)a->batch * a->nhead_k,
        .rows = queries * (a->nhead_q / a->nhead_k),
        .keys = t->is_group_mode ? longest_k : a->seqlen_k,
        .queries = queries,
        .hdims = (double)t->hdim_q + t->hdim_v,
        .call = call,
    };
    memcpy(r.sets, &r.one, TESSERA_FMHA_FWD_SET_BYTES);
    return r;
}

static bool holds(const served_t *s, const struct tessera_fmha_fwd_request *r) {
    uint64_t sets[2];
    memcpy(sets, s, sizeof sets);
    if ((r->sets[0] & ~sets[0]) | (r->sets[1] & ~sets[1])) return false;
    return tessera_fmha_fwd_hdim_fits(r->one.hdim_q_max, s->hdim_q_min, s->hdim_q_max, s->hdim_q_multiple) &&
           tessera_fmha_fwd_hdim_fits(r->one.hdim_v_max, s->hdim_v_min, s->hdim_v_max, s->hdim_v_multiple);
}

bool tessera_fmha_fwd_serves(const instance_t *row, const struct tessera_fmha_fwd_request *r) {
    for (uint32_t i = 0; i < row->served_count; i++)
        if (holds(&row->served[i], r)) return tessera_fmha_fwd_is_aligned(r->call, row->alignment);
    return false;
}

double tessera_fmha_fwd_cost(const instance_t *row, const struct tessera_fmha_fwd_request *r) {
    if (tessera_fmha_fwd_is_gpu(row)) return tessera_fmha_fwd_cdna_cost(row, r->call, r->queries, r->keys, r->units);
    const tessera_fmha_fwd_tile *const tile = &row->tile;
    const int64_t tiles = tessera_max(tessera_ceil_div(r->rows, tile->bm0), 1) * r->heads;
    const double rows = (double)(tessera_round_up(r->rows, tile->wm0) * r->heads);
    const double keys = (double)tessera_round_up(r->keys, tile->wn0);
    const double area = (double)tile->bm0 * tile->bn0;
    const double total =
        rows * keys / area * (area * r->hdims / (double)row->macs_per_cycle + (double)row->tile_cycles);
    const int64_t tasks = tiles * tessera_fmha_fwd_parts(r->keys, (double)r->keys * (double)tiles, r->units);
    return total / (double)tasks * (double)tessera_ceil_div(tasks, r->units);
}

// ---- choosing

// The order of candidates: by cost; of equals the more capable target, then the first row.
bool tessera_fmha_fwd_precedes(const instance_t *a, double cost_a, const instance_t *b, double cost_b) {
    if (cost_a != cost_b) return cost_a < cost_b;
    if (a->target != b->target) return a->target > b->target;
    return a < b;
}

static const tessera_fmha_fwd_slice *slice_of(const tessera_fmha_fwd_table *table, uint32_t target, uint32_t dtype,
                                              uint32_t bucket) {
    return &table->slices[(target * TESSERA_DTYPE_COUNT + dtype) * table->bucket_count + bucket];
}

tessera_status tessera_fmha_fwd_choose(const tessera_fmha_fwd_table *table, const tessera_device_facts *facts,
                                       const struct tessera_fmha_fwd_call *call, const instance_t **out) {
    const struct tessera_fmha_fwd_request r = tessera_fmha_fwd_ask(facts, call);
    if (call->args.instance) return tessera_fmha_fwd_take(call->args.instance, &r, out);
    const uint16_t hdim = (uint16_t)tessera_max(r.one.hdim_q_max, r.one.hdim_v_max);
    uint32_t bucket = 0;
    while (bucket < table->bucket_count && table->bucket_hdim[bucket] < hdim) bucket++;
    const instance_t *best = NULL;
    double least = 0;
    for (uint32_t target = 0; bucket < table->bucket_count && target < TESSERA_TARGET_COUNT; target++) {
        if (!(r.targets >> target & 1)) continue;
        const tessera_fmha_fwd_slice *const slice = slice_of(table, target, call->traits.data_type, bucket);
        for (uint32_t i = slice->first; i < slice->first + slice->count; i++) {
            const instance_t *const row = &table->rows[table->order[i]];
            if (!tessera_fmha_fwd_serves(row, &r)) continue;
            const double cost = tessera_fmha_fwd_cost(row, &r);
            if (best && !tessera_fmha_fwd_precedes(row, cost, best, least)) continue;
            best = row;
            least = cost;
        }
    }
    if (!best) return tessera_fmha_fwd_no_instance(table, &r);
    *out = best;
    return TESSERA_SUCCESS;
}

tessera_status tessera_fmha_fwd_read_request(const tessera_fmha_fwd_table *table, const tessera_device_facts *caller,
                                             const tessera_fmha_fwd_traits *traits, const tessera_fmha_fwd_args *args,
                                             tessera_device_facts *facts, struct tessera_fmha_fwd_call *call) {
    memset(facts, 0, sizeof *facts);
    if (!table) return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "table is NULL");
    tessera_status status = tessera_read_struct("facts", caller, facts, sizeof *facts);
    if (status == TESSERA_SUCCESS && facts->compute_units < 1)
        status = tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "compute_units is %d: 1 or more", facts->compute_units);
    if (status == TESSERA_SUCCESS) status = tessera_fmha_fwd_read_sizes(traits, args, call);
    return status;
}

tessera_status tessera_fmha_fwd_table_select(const tessera_fmha_fwd_table *table, const tessera_device_facts *facts,
                                             const tessera_fmha_fwd_traits *traits, const tessera_fmha_fwd_args *args,
                                             const instance_t **out) {
    tessera_device_facts whole;
    struct tessera_fmha_fwd_call call;
    if (!out) return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "out is NULL");
    const tessera_status status = tessera_fmha_fwd_read_request(table, facts, traits, args, &whole, &call);
    return status == TESSERA_SUCCESS ? tessera_fmha_fwd_choose(table, &whole, &call, out) : status;
}

tessera_status tessera_fmha_fwd_select(const tessera_device_facts *facts, const tessera_fmha_fwd_traits *traits,
                                       const tessera_fmha_fwd_args *args, const instance_t **out) {
    return tessera_fmha_fwd_table_select(tessera_fmha_fwd_get_table(), facts, traits, args, out);
}
