// SPDX-License-Identifier: MIT
// The operation fmha_bwd: costs of its sub-kernels, the tile in CK's names, the text of its problem, and its public
// functions. Validation, the workspace and launches have files of their own.
#include <math.h>

#include "guard.h"
#include "op/typed.h"
#include "ops/fmha_bwd_internal.h"

typedef const struct tessera_fmha_bwd_call call_t;

// ---- dq_dk_dv

_Static_assert(sizeof(struct tessera_fmha_bwd_shape) == 4 * 9, "there is no padding");

static uint32_t describe(const void *call, void *shape) {
    const tessera_fmha_bwd_traits *const t = &((call_t *)call)->traits;
    *(struct tessera_fmha_bwd_shape *)shape = (struct tessera_fmha_bwd_shape){
        .batch = t->batch,
        .nhead_q = t->nhead_q,
        .dkv_heads = t->is_dkv_reduced ? t->nhead_k : t->nhead_q,
        .queries = t->is_group_mode ? t->max_seqlen_q : t->seqlen_q,
        .keys = t->is_group_mode ? t->max_seqlen_k : t->seqlen_k,
        .hdim_q = t->hdim_q,
        .hdim_v = t->hdim_v,
        .seqlen_q = ((call_t *)call)->args.seqlen_q,
        .is_masked = t->mask_type != TESSERA_MASK_NONE,
    };
    return sizeof(struct tessera_fmha_bwd_shape);
}

// Cycles that a workgroup with a block of keys takes beside those of its products: it loads operands, stores dk and dv,
// and waits. So the simulator's clock has it on gfx950 with few queries; with many it counts for little.
enum { START = 16000 };

static int common_divisor(int a, int b) { return b ? common_divisor(b, a % b) : a; }

// Tiles of queries of a block of keys. Under a mask as many as without one make twice the work: a causal mask hides
// half of the queries, but none of those that the last tile has too many, nor of those that the first one has before
// the block's first key, which are anything from none to all but the common divisor of both.
static double tiles_of(const tessera_fmha_bwd_tile *tile, const struct tessera_fmha_bwd_shape *s) {
    const double exact = (double)s->queries / tile->bm0, whole = ceil(exact);
    if (!s->is_masked) return whole;
    return 2 * whole - exact + 1 - common_divisor(tile->bm0, tile->bn0) / (double)tile->bm0;
}

// On a GPU tiles are whole, and units may have no work: a workgroup has a block of keys of a head, or all of them.
static double cost_on_gpu(const tessera_instance *row, const struct tessera_request *r) {
    const struct tessera_fmha_bwd_shape *const s = (const void *)r->shape;
    const tessera_fmha_bwd_tile *const tile = &((const tessera_fmha_bwd_instance *)row)->tile;
    const double tiles = tiles_of(tile, s), blocks = ceil((double)s->keys / tile->bn0);
    const double macs = tiles * blocks * tile->bm0 * tile->bn0 * (3.0 * tile->dq + 2.0 * tile->dv);
    const double heads = (double)s->batch * s->nhead_q, own = (double)s->batch * s->dkv_heads;
    const double groups = tile->max_q ? own : own * blocks, start = tile->max_q ? 0 : groups * START;
    return (heads * macs / (double)row->macs_per_cycle + start) / fmax(1, fmin(r->units, groups));
}

// Five products; a mask hides about the same share of keys from every instance, and is left out.
static double cost(const tessera_instance *row, const struct tessera_request *r) {
    const struct tessera_fmha_bwd_shape *const s = (const void *)r->shape;
    if (row->symbol) return cost_on_gpu(row, r);
    const tessera_fmha_bwd_tile *const tile = &((const tessera_fmha_bwd_instance *)row)->tile;
    const double area = (double)s->batch * s->nhead_q * s->queries * s->keys,
                 blocks = area / ((double)tile->bm0 * tile->bn0);
    const double macs = area * (3.0 * s->hdim_q + 2.0 * s->hdim_v);
    return (macs / tessera_rate(row, r->targets) + blocks * (double)row->tile_cycles) / r->units;
}

// runtime's half of ck_middle() in codegen/ops/fmha_bwd/__init__.py.
static void add_ck_tile(struct tessera_text *out, const tessera_instance *row, const uint32_t *hdims) {
    const tessera_fmha_bwd_tile *const tile = &((const tessera_fmha_bwd_instance *)row)->tile;
    const unsigned m = tile->bm0, n = tile->bn0;
    tessera_text_add(out, "_b%ux%ux%ux%ux%ux%ux%ux%ux%u_r1x1x1_r1x1x1_r1x1x1", m, n, hdims[0], m, hdims[1], m, n,
                     hdims[0], hdims[1]);
    for (int i = 0; i < 2; i++) tessera_text_add(out, "_w%dx%dx%d", tile->wm, tile->wn, tile->wk);
    tessera_text_add(out, "_o1_maxq%d", tile->max_q);
}

// What a head dim is a multiple of: 0: it is the name's, 1: eight, 2: any.
static uint32_t divisor_of(uint32_t hdim, uint32_t limit) { return hdim == limit ? 0 : hdim % 8 == 0 ? 1 : 2; }

static uint32_t count_pads(const struct tessera_request *r, const tessera_instance *row, const uint32_t *hdims) {
    (void)row;
    return divisor_of(r->sizes[0], hdims[0]) + 3 * divisor_of(r->sizes[1], hdims[1]);
}

// ---- the text of a problem, for TESSERA_VERBOSE

static void add_problem(struct tessera_text *out, const void *of) {
    static const char letters[TESSERA_MASK_COUNT] = {
        [TESSERA_MASK_TOP_LEFT] = 't', [TESSERA_MASK_BOTTOM_RIGHT] = 'b', [TESSERA_MASK_GENERIC] = 'g'};
    const tessera_fmha_bwd_traits *const t = &((call_t *)of)->traits;
    const tessera_fmha_bwd_args *const a = &((call_t *)of)->args;
    tessera_text_add(out, "-prec=%s -mode=%d -b=%d -h=%d -h_k=%d -s=%d -s_k=%d -d=%d -d_v=%d",
                     tessera_fmha_dtype_string(t->data_type), t->is_group_mode, a->batch, a->nhead_q, a->nhead_k,
                     t->is_group_mode ? a->max_seqlen_q : a->seqlen_q, t->is_group_mode ? a->max_seqlen_k : a->seqlen_k,
                     a->hdim_q, a->hdim_v);
    if (t->mask_type != TESSERA_MASK_NONE)
        tessera_text_add(out, " -mask=%c:%d,%d", letters[t->mask_type], a->window_size_left, a->window_size_right);
    if (t->mask_type != TESSERA_MASK_NONE && a->sink_size > 0) tessera_text_add(out, ",%d", a->sink_size);
    if (t->bias_type != TESSERA_BIAS_NONE)
        tessera_text_add(out, " -bias=%c", t->bias_type == TESSERA_BIAS_ALIBI ? 'a' : 'e');
    if (t->has_dbias) tessera_text_add(out, " -dbias=1");
    if (t->has_logits_soft_cap) tessera_text_add(out, " -logits_soft_cap=%g", (double)a->logits_soft_cap);
    if (t->has_dropout) tessera_text_add(out, " -p_drop=%g", (double)a->p_drop);
    if (t->is_deterministic) tessera_text_add(out, " -deterministic=1");
    if (t->is_dkv_reduced) tessera_text_add(out, " -dkv_heads=k");
    if (a->sink_ptr) tessera_text_add(out, " -init_sink=1");
}

// ---- what a call does

static tessera_status add_regions(void *call, struct tessera_plan *plan) {
    return (plan->row->symbol ? tessera_fmha_bwd_gpu_regions : tessera_fmha_bwd_cpu_regions)(call, plan);
}
static tessera_status add_steps(void *call, struct tessera_plan *plan) {
    return (plan->row->symbol ? tessera_fmha_bwd_gpu_steps : tessera_fmha_bwd_cpu_steps)(call, plan);
}
static tessera_status check_row(const void *call, const tessera_instance *row) {
    return row->symbol ? tessera_fmha_bwd_gpu_check(call, row) : TESSERA_SUCCESS;
}

TESSERA_DEFINE_CALLS(fmha_bwd)

const struct tessera_operation tessera_fmha_bwd_operation = {
    TESSERA_CALL_OF(fmha_bwd),
    .kernels = {.get_table = tessera_fmha_bwd_get_table,
                .describe = describe,
                .cost = cost,
                .list_starts = tessera_fmha_bwd_list_starts,
                .add_ck_tile = add_ck_tile,
                .count_ck = count_pads,
                .keeps_out = tessera_fmha_bwd_keeps_out},
    .check_sizes = tessera_fmha_bwd_check_sizes,
    .check_memory = tessera_fmha_bwd_check_memory,
    .check_row = check_row,
    .add_regions = add_regions,
    .add_steps = add_steps,
    .add_problem = add_problem,
};
