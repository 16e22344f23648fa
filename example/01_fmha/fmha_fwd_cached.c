// SPDX-License-Identifier: MIT
// A problem whose keys lie in a cache: in pages, in sequences in any order, or one after the other in splits. Keys and
// values are made up as for fmha_fwd, which the reference reads, and put to their places in the cache, which the
// operation on caches reads.
#include <string.h>

#include "fmha_fwd_problem.h"

#ifdef FMHA_FWD_CACHES // the build has these operations

EXAMPLE_CALLS(fmha_fwd_splitkv)
EXAMPLE_CALLS(fmha_fwd_pagedkv)
EXAMPLE_CALLS(fmha_batch_prefill)

#define ALL(op, name) #name, offsetof(tessera_##op##_args, name##_ptr)
#define TENSORS(op)                                                                                                    \
    [BUFFER_Q] = {ALL(op, q)}, [BUFFER_BIAS] = {ALL(op, bias)}, [BUFFER_SEQSTART_Q] = {ALL(op, seqstart_q)},           \
    [BUFFER_SINK] = {ALL(op, sink)}, [BUFFER_K_CACHE] = {ALL(op, k)}, [BUFFER_V_CACHE] = {ALL(op, v)},                 \
    [BUFFER_KEYS] = {ALL(op, seqlen_k)}, [BUFFER_O] = {ALL(op, o)}, [BUFFER_LSE] = {ALL(op, lse)}
#define DESCALES(op, of)                                                                                               \
    [BUFFER_Q_##of] = {ALL(op, q_descale)}, [BUFFER_K_##of] = {ALL(op, k_descale)},                                    \
    [BUFFER_V_##of] = {ALL(op, v_descale)}
#define CACHE_TENSORS(op)                                                                                              \
    {                                                                                                                  \
        TENSORS(op), DESCALES(op, DESCALE),                                                                            \
            [BUFFER_SEQSTART_K] = {ALL(op, seqstart_k)}, [BUFFER_TABLE] = {ALL(op, block_table)},                      \
            [BUFFER_CACHE_INDEX] = {"cache_batch_idx", offsetof(tessera_##op##_args, cache_batch_idx)},                \
            [BUFFER_KNEW] = {ALL(op, knew)}, [BUFFER_VNEW] = {ALL(op, vnew)}, [BUFFER_COS] = {ALL(op, rotary_cos)},    \
            [BUFFER_SIN] = {ALL(op, rotary_sin)},                                                                      \
    }
static const example_tensor splitkv_tensors[BUFFER_COUNT] = CACHE_TENSORS(fmha_fwd_splitkv);
static const example_tensor pagedkv_tensors[BUFFER_COUNT] = CACHE_TENSORS(fmha_fwd_pagedkv);
#define PREFILL_TENSORS(of)                                                                                            \
    {                                                                                                                  \
        TENSORS(fmha_batch_prefill), DESCALES(fmha_batch_prefill, of),                                                 \
            [BUFFER_TABLE] = {"kv_page_indices", offsetof(tessera_fmha_batch_prefill_args, kv_page_indices)},          \
    }
static const example_tensor prefill_tensors[BUFFER_COUNT] = PREFILL_TENSORS(DESCALE);
static const example_tensor scaled_prefill_tensors[BUFFER_COUNT] = PREFILL_TENSORS(SCALES);

// ---- the api

static const char *const apis[] = {"fwd", "fwd_splitkv", "pagedkv_prefill", "batch_prefill"};

// Whether a device is the CPU; one that cannot be opened is refused later.
static int is_on_cpu(const char *name) {
    tessera_device *device;
    if (tessera_device_open(name, &device) != TESSERA_SUCCESS) return 0;
    const int is_cpu = strncmp(tessera_device_name(device), "cpu", 3) == 0;
    tessera_device_close(device);
    return is_cpu;
}

// CK's order: fwd_splitkv where splits are asked for, else the others where there is a cache, as there is where keys
// are appended. On GPUs fmha_fwd has splits of its own.
static example_outcome choose_api(fmha_fwd_problem *p, example_result *result) {
    const fmha_fwd_options *const o = &p->options;
    const int cache = o->page_block_size > 0 || o->cache_batch_idx || fmha_fwd_appends(p);
    const char *const asked = o->api ? o->api : "";
    const int splits = o->num_splits < 0 || (o->num_splits > 1 && (cache || is_on_cpu(o->common.device)));
    p->api = FMHA_FWD_API_COUNT;
    for (int n = 0; n < FMHA_FWD_API_COUNT; n++)
        if (strcmp(asked, apis[n]) == 0) p->api = n;
    if (!*asked) p->api = splits ? FMHA_FWD_SPLITKV : cache ? FMHA_FWD_PAGEDKV : FMHA_FWD_PLAIN;
    if (!*asked && cache && o->num_splits == 0) p->api = FMHA_FWD_SPLITKV;
    if (p->api == FMHA_FWD_API_COUNT)
        return EXAMPLE_WRONG("-api=%s: fwd, fwd_splitkv, pagedkv_prefill or batch_prefill", asked);
    if (cache && p->api == FMHA_FWD_PLAIN) return EXAMPLE_WRONG("-api=fwd: it has no cache; the others do");
    if (fmha_fwd_scales_rows(p) && p->api != FMHA_BATCH_PREFILL)
        return EXAMPLE_WRONG("-qscale=%s with -api=%s: scales of the rows of K and V belong to batch_prefill",
                             o->qscale, apis[p->api]);
    return EXAMPLE_OK;
}

static example_outcome check_options(const fmha_fwd_problem *p, example_result *result) {
    const fmha_fwd_options *const o = &p->options;
    const char *const api = apis[p->api];
    if ((o->num_splits > 1 || o->num_splits < 0) && p->api != FMHA_FWD_SPLITKV)
        return EXAMPLE_WRONG("-num_splits=%d with -api=%s: fwd_splitkv takes splits", o->num_splits, api);
    if (o->s_qpad_list || o->s_kpad_list || o->s_qpad > 0 || o->s_kpad > 0 || o->q_eff_lens || o->kv_eff_lens)
        return EXAMPLE_WRONG("-api=%s: without pads and effective lengths", api);
    if (o->p_drop > 0 && p->api != FMHA_BATCH_PREFILL)
        return EXAMPLE_WRONG("-p_drop=%g with -api=%s: it has no dropout", (double)o->p_drop, api);
    if (p->qscale != TESSERA_QSCALE_NONE && p->qscale != TESSERA_QSCALE_PER_TENSOR && !fmha_fwd_scales_rows(p))
        return EXAMPLE_WRONG("-qscale=%s with -api=%s: n or pt; batch_prefill also takes kvbs and th", o->qscale, api);
    if (p->traits.is_v_rowmajor == 0) return EXAMPLE_WRONG("-vlayout=c with -api=%s: r", api);
    if (o->cache_batch_idx && (o->mode || o->page_block_size > 0))
        return EXAMPLE_WRONG("-cache_batch_idx=1: in batch mode (-mode=0) and without -page_block_size");
    if (p->api == FMHA_BATCH_PREFILL && (!o->mode || o->page_block_size == 0))
        return EXAMPLE_WRONG("-api=batch_prefill: group mode (-mode=1) with -page_block_size");
    return EXAMPLE_OK;
}

// ---- traits and args

// What the operations' structs have in common with those of fmha_fwd.
#define COPY_TRAITS(to, from)                                                                                          \
    ((to).hdim_q = (from).hdim_q, (to).hdim_v = (from).hdim_v, (to).data_type = (from).data_type,                      \
     (to).is_group_mode = (from).is_group_mode, (to).has_logits_soft_cap = (from).has_logits_soft_cap,                 \
     (to).mask_type = (from).mask_type, (to).bias_type = (from).bias_type, (to).has_lse = (from).has_lse,              \
     (to).qscale_type = (from).qscale_type, (to).has_sink = (from).has_sink)
#define COPY_ARGS(to, from)                                                                                            \
    ((to).batch = (from).batch, (to).max_seqlen_q = (from).max_seqlen_q, (to).hdim_q = (from).hdim_q,                  \
     (to).hdim_v = (from).hdim_v, (to).nhead_q = (from).nhead_q, (to).nhead_k = (from).nhead_k,                        \
     (to).scale_s = (from).scale_s, (to).logits_soft_cap = (from).logits_soft_cap, (to).stride_q = (from).stride_q,    \
     (to).stride_bias = (from).stride_bias, (to).stride_o = (from).stride_o,                                           \
     (to).nhead_stride_q = (from).nhead_stride_q, (to).nhead_stride_bias = (from).nhead_stride_bias,                   \
     (to).nhead_stride_lse = (from).nhead_stride_lse, (to).nhead_stride_o = (from).nhead_stride_o,                     \
     (to).batch_stride_q = (from).batch_stride_q, (to).batch_stride_bias = (from).batch_stride_bias,                   \
     (to).batch_stride_lse = (from).batch_stride_lse, (to).batch_stride_o = (from).batch_stride_o,                     \
     (to).window_size_left = (from).window_size_left, (to).window_size_right = (from).window_size_right,               \
     (to).sink_size = (from).sink_size, (to).mask_type = (from).mask_type)
#define PLACE_ARGS(to, c)                                                                                              \
    ((to).batch_stride_k = (c).of_k.block, (to).nhead_stride_k = (c).of_k.head, (to).stride_k = (c).of_k.row,          \
     (to).batch_stride_v = (c).of_v.block, (to).nhead_stride_v = (c).of_v.head, (to).stride_v = (c).of_v.row,          \
     (to).batch_stride_block_table = (c).columns, (to).page_block_size = p->options.page_block_size)

#define APPEND_ARGS(to, x)                                                                                             \
    ((to).rope_type = (x).rope, (to).seqlen_knew = p->options.s_knew, (to).rotary_dim = p->options.rotary_dim,         \
     (to).rotary_rows = (x).positions, (to).batch_stride_knew = (x).of_knew.block,                                     \
     (to).nhead_stride_knew = (x).of_knew.head, (to).stride_knew = (x).of_knew.row,                                    \
     (to).batch_stride_vnew = (x).of_vnew.block, (to).nhead_stride_vnew = (x).of_vnew.head,                            \
     (to).stride_vnew = (x).of_vnew.row)

static void set_splitkv(fmha_fwd_problem *p) {
    tessera_fmha_fwd_splitkv_traits *const t = &p->cached_traits.splitkv;
    tessera_fmha_fwd_splitkv_args *const a = &p->cached_args.splitkv;
    *t = tessera_fmha_fwd_splitkv_traits_init();
    COPY_TRAITS(*t, p->traits);
    COPY_ARGS(*a, p->args);
    PLACE_ARGS(*a, p->cache);
    a->seqlen_q = p->args.seqlen_q;
    a->seqlen_k = p->max_seqlen_k;
    a->cache_blocks = p->cache.blocks;
    APPEND_ARGS(*a, p->appended);
    a->num_splits = p->options.num_splits;
}

static void set_pagedkv(fmha_fwd_problem *p) {
    tessera_fmha_fwd_pagedkv_traits *const t = &p->cached_traits.pagedkv;
    tessera_fmha_fwd_pagedkv_args *const a = &p->cached_args.pagedkv;
    *t = tessera_fmha_fwd_pagedkv_traits_init();
    COPY_TRAITS(*t, p->traits);
    COPY_ARGS(*a, p->args);
    PLACE_ARGS(*a, p->cache);
    t->skip_min_seqlen_q = p->traits.skip_min_seqlen_q;
    a->min_seqlen_q = p->args.min_seqlen_q;
    a->seqlen_q = p->args.seqlen_q;
    a->seqlen_k = p->max_seqlen_k;
    a->cache_blocks = p->cache.blocks;
    APPEND_ARGS(*a, p->appended);
}

static void set_prefill(fmha_fwd_problem *p) {
    tessera_fmha_batch_prefill_traits *const t = &p->cached_traits.prefill;
    tessera_fmha_batch_prefill_args *const a = &p->cached_args.prefill;
    *t = tessera_fmha_batch_prefill_traits_init();
    COPY_TRAITS(*t, p->traits);
    COPY_ARGS(*a, p->args);
    PLACE_ARGS(*a, p->cache);
    t->kv_memory_layout = a->kv_memory_layout = TESSERA_KV_LINEAR;
    t->kv_lookup_table = a->kv_lookup_table = TESSERA_KV_VLLM_2D;
    t->has_dropout = p->traits.has_dropout;
    t->skip_min_seqlen_q = p->traits.skip_min_seqlen_q;
    a->min_seqlen_q = p->args.min_seqlen_q;
    a->p_drop = p->args.p_drop;
    a->drop_seed = p->args.drop_seed;
    a->drop_offset = p->args.drop_offset;
    a->max_seqlen_k = p->max_seqlen_k;
    a->num_total_pages = p->cache.blocks;
    t->qscale_type = p->qscale;
    a->nblock_stride_kv_block_descale = p->options.h_k;
    a->nhead_stride_kv_block_descale = 1;
}

// Before -instance names one.
static void begin_args(fmha_fwd_problem *p) {
    if (p->api == FMHA_FWD_SPLITKV) p->cached_args.splitkv = tessera_fmha_fwd_splitkv_args_init();
    if (p->api == FMHA_FWD_PAGEDKV) p->cached_args.pagedkv = tessera_fmha_fwd_pagedkv_args_init();
    if (p->api == FMHA_BATCH_PREFILL) p->cached_args.prefill = tessera_fmha_batch_prefill_args_init();
}

static void set_args(fmha_fwd_problem *p) {
    if (p->api == FMHA_FWD_SPLITKV) set_splitkv(p);
    if (p->api == FMHA_FWD_PAGEDKV) set_pagedkv(p);
    if (p->api == FMHA_BATCH_PREFILL) set_prefill(p);
}

// ---- the program's steps

// The second ones are those whose caches are outputs, the third those whose rows have scales.
static example_program programs[3][FMHA_FWD_API_COUNT];

static void make_programs(void) {
    static const struct {
        const example_calls *calls;
        const example_tensor *tensors;
    } of[FMHA_FWD_API_COUNT] = {
        [FMHA_FWD_SPLITKV] = {&fmha_fwd_splitkv_calls, splitkv_tensors},
        [FMHA_FWD_PAGEDKV] = {&fmha_fwd_pagedkv_calls, pagedkv_tensors},
        [FMHA_BATCH_PREFILL] = {&fmha_batch_prefill_calls, prefill_tensors},
    };
    for (int n = FMHA_FWD_SPLITKV; n < FMHA_FWD_API_COUNT; n++) {
        programs[0][n] = fmha_fwd_program;
        programs[0][n].calls = of[n].calls;
        programs[0][n].tensors = of[n].tensors;
        programs[1][n] = programs[0][n];
        programs[1][n].first_output = BUFFER_K_CACHE;
    }
    programs[2][FMHA_BATCH_PREFILL] = programs[0][FMHA_BATCH_PREFILL];
    programs[2][FMHA_BATCH_PREFILL].tensors = scaled_prefill_tensors;
}

example_outcome fmha_fwd_settle_cache(fmha_fwd_problem *p, example_result *result) {
    if (choose_api(p, result)) return result->outcome;
    if (p->api == FMHA_FWD_PLAIN) return EXAMPLE_OK;
    make_programs();
    if (check_options(p, result) || fmha_fwd_settle_appended(p, result)) return result->outcome;
    p->base.program = &programs[fmha_fwd_scales_rows(p) ? 2 : fmha_fwd_appends(p)][p->api];
    p->base.traits = &p->cached_traits;
    p->base.args = &p->cached_args;
    begin_args(p);
    return EXAMPLE_OK;
}

static fmha_fwd_strides strides_of(const fmha_fwd_problem *p, int64_t columns) {
    const int64_t heads = p->options.h_k, rows = p->cache.rows;
    if (p->options.iperm) return (fmha_fwd_strides){heads * rows * columns, rows * columns, columns};
    return (fmha_fwd_strides){heads * rows * columns, columns, heads * columns};
}

static void use_scales(fmha_fwd_problem *p) {
    const fmha_fwd_options *const o = &p->options;
    const int tokens = p->qscale == TESSERA_QSCALE_TOKEN_HEAD;
    const int64_t pages = (int64_t)p->cache.blocks * o->h_k;
    if (!fmha_fwd_scales_rows(p)) return;
    example_use(&p->base, BUFFER_Q_SCALES, tokens ? example_times(p->shape_seqlen_q, o->h) : 1, 32);
    example_use(&p->base, BUFFER_K_SCALES, example_times(pages, tokens ? p->cache.rows : 1), 32);
    example_use(&p->base, BUFFER_V_SCALES, tokens ? o->h_k : pages, 32);
}

example_outcome fmha_fwd_lay_out_cache(fmha_fwd_problem *p, example_result *result) {
    const fmha_fwd_options *const o = &p->options;
    fmha_fwd_cache *const c = &p->cache;
    const int32_t page = o->page_block_size, bits = element_bits(fmha_fwd_input_element(p->dtype, p->fp8));
    if (p->api == FMHA_FWD_PLAIN) return EXAMPLE_OK;
    c->columns = page ? (int32_t)(((int64_t)p->max_seqlen_k + page - 1) / page) : 1;
    if (c->columns == 0) c->columns = 1;
    const int64_t pages = (int64_t)o->b * c->columns;
    if (page && pages > INT32_MAX)
        return EXAMPLE_WRONG("-b=%d -page_block_size=%d: a cache of %lld pages, at most %d", o->b, page,
                             (long long)pages, INT32_MAX);
    c->blocks = page ? (int32_t)pages : o->mode ? 1 : o->b;
    c->rows = page ? page : (int32_t)p->shape_seqlen_k;
    c->of_k = strides_of(p, o->d);
    c->of_v = strides_of(p, o->d_v);
    example_use(&p->base, BUFFER_K_CACHE, example_times(c->blocks, c->of_k.block), bits);
    example_use(&p->base, BUFFER_V_CACHE, example_times(c->blocks, c->of_v.block), bits);
    p->base.buffers[BUFFER_K_CACHE].unwritten = p->base.buffers[BUFFER_V_CACHE].unwritten =
        p->base.buffers[BUFFER_K].unwritten;
    if (page) example_use(&p->base, BUFFER_TABLE, (int64_t)o->b * c->columns, 32);
    if (o->cache_batch_idx) example_use(&p->base, BUFFER_CACHE_INDEX, o->b, 32);
    if (!o->mode || page) example_use(&p->base, BUFFER_KEYS, o->b, 32);
    use_scales(p);
    fmha_fwd_lay_out_appended(p);
    set_args(p);
    return EXAMPLE_OK;
}

// Numbers from 0 on in a random order.
static void shuffle(uint64_t state, int32_t *list, int32_t count) {
    for (int32_t n = 0; n < count; n++) list[n] = n;
    for (int32_t n = count - 1; n > 0; n--) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const int32_t other = (int32_t)((state >> 33) % (uint64_t)(n + 1)), was = list[n];
        list[n] = list[other];
        list[other] = was;
    }
}

void fmha_fwd_put_cache(fmha_fwd_problem *p) {
    int32_t *const table = example_pointer(&p->base, BUFFER_TABLE), *const keys =
                                                                        example_pointer(&p->base, BUFFER_KEYS);
    int32_t *const index = example_pointer(&p->base, BUFFER_CACHE_INDEX);
    if (p->api == FMHA_FWD_PLAIN) return;
    const example_program *const program = p->base.program;
    p->base.program = &fmha_fwd_program; // the reference's pointers
    example_set_pointers(&p->base, example_pointer, &p->args);
    p->base.program = program;
    if (table) shuffle(p->base.seed, table, p->cache.blocks);
    if (index) shuffle(p->base.seed, index, p->options.b);
    for (int32_t b = 0; b < p->options.b && keys; b++) keys[b] = p->seqlen_k[b] - p->options.s_knew;
}

// Copies key j of sequence b to its place.
static void put_row(const fmha_fwd_problem *p, char *to_k, char *to_v, int32_t b, int32_t g, int32_t j, int64_t first) {
    const fmha_fwd_options *const o = &p->options;
    const fmha_fwd_cache *const c = &p->cache;
    const tessera_fmha_fwd_args *const a = &p->args;
    const int64_t bytes = element_bits(fmha_fwd_input_element(p->dtype, p->fp8)) / 8;
    const int32_t *const table = example_pointer(&p->base, BUFFER_TABLE), page = o->page_block_size;
    const int32_t *const index = example_pointer(&p->base, BUFFER_CACHE_INDEX);
    const int64_t block = table ? table[b * c->columns + j / page] : index ? index[b] : o->mode ? 0 : b;
    const int64_t row = table ? j % page : first + j, batch = o->mode ? 0 : b;
    const char *const k = a->k_ptr, *const v = a->v_ptr;
    memcpy(to_k + bytes * (block * c->of_k.block + g * c->of_k.head + row * c->of_k.row),
           k + bytes * (batch * a->batch_stride_k + g * a->nhead_stride_k + (first + j) * a->stride_k),
           (size_t)(bytes * o->d));
    memcpy(to_v + bytes * (block * c->of_v.block + g * c->of_v.head + row * c->of_v.row),
           v + bytes * (batch * a->batch_stride_v + g * a->nhead_stride_v + (first + j) * a->stride_v),
           (size_t)(bytes * o->d_v));
}

void fmha_fwd_put_keys(const fmha_fwd_problem *p, void *k, void *v) {
    int64_t first = 0; // of the sequence's keys in group mode
    for (int32_t b = 0; b < p->options.b; b++) {
        for (int32_t g = 0; g < p->options.h_k; g++)
            for (int32_t j = 0; j < p->seqlen_k[b] - p->options.s_knew; j++) put_row(p, k, v, b, g, j, first);
        if (p->options.mode) first += p->seqlen_k[b];
    }
}

// ---- scales of rows

// Those of tokens come from the reference's, which are of one token each; k's go where its rows do, and v has one.
static void put_token_scales(const fmha_fwd_problem *p, const tessera_fmha_fwd_args *a) {
    const fmha_fwd_options *const o = &p->options;
    const int32_t *const table = example_pointer(&p->base, BUFFER_TABLE), page = o->page_block_size;
    const float *const q = a->q_descale_ptr, *const k = a->k_descale_ptr;
    float *const v = (float *)(uintptr_t)a->v_descale_ptr; // the reference's own
    float *const of_q = example_pointer(&p->base, BUFFER_Q_SCALES), *const of_k =
                                                                        example_pointer(&p->base, BUFFER_K_SCALES);
    float *const of_v = example_pointer(&p->base, BUFFER_V_SCALES);
    const int64_t tokens_q = p->shape_seqlen_q;
    for (int64_t n = 0; n < tokens_q * o->h; n++) of_q[n] = q[n % o->h * a->nhead_stride_q_descale + n / o->h];
    for (int32_t g = 0; g < o->h_k; g++) {
        int64_t token = 0;
        of_v[g] = 1;
        for (int32_t b = 0; b < o->b; b++)
            for (int32_t j = 0; j < p->seqlen_k[b]; j++, token++) {
                const int64_t row = (int64_t)table[b * p->cache.columns + j / page] * page + j % page;
                of_k[row * o->h_k + g] = k[g * a->nhead_stride_k_descale + token];
                if (token == 0) of_v[g] = v[g * a->nhead_stride_v_descale];
                v[g * a->nhead_stride_v_descale + token] = of_v[g];
            }
    }
}

// Those of pages likewise, whose keys are a block of the reference's; q has one.
static void put_page_scales(const fmha_fwd_problem *p, const tessera_fmha_fwd_args *a) {
    const fmha_fwd_options *const o = &p->options;
    const int32_t *const table = example_pointer(&p->base, BUFFER_TABLE), page = o->page_block_size;
    const float *const k = a->k_descale_ptr, *const v = a->v_descale_ptr;
    float *const q = (float *)(uintptr_t)a->q_descale_ptr, *const of_q = example_pointer(&p->base, BUFFER_Q_SCALES);
    float *const of_k = example_pointer(&p->base, BUFFER_K_SCALES), *const of_v =
                                                                        example_pointer(&p->base, BUFFER_V_SCALES);
    const int64_t count = p->base.buffers[BUFFER_Q_DESCALE].bytes / (int64_t)sizeof *q;
    of_q[0] = count ? q[0] : 1;
    for (int64_t n = 0; n < count; n++) q[n] = of_q[0];
    for (int32_t g = 0; g < o->h_k; g++) {
        int64_t block = 0;
        for (int32_t b = 0; b < o->b; b++)
            for (int32_t i = 0; i * page < p->seqlen_k[b]; i++, block++) {
                const int64_t to = (int64_t)table[b * p->cache.columns + i] * o->h_k + g;
                of_k[to] = k[g * a->nhead_stride_k_descale + block];
                of_v[to] = v[g * a->nhead_stride_v_descale + block];
            }
    }
}

void fmha_fwd_fill_cache(fmha_fwd_problem *p) {
    if (p->api == FMHA_FWD_PLAIN) return;
    if (p->qscale == TESSERA_QSCALE_TOKEN_HEAD) put_token_scales(p, &p->args);
    if (p->qscale == TESSERA_QSCALE_KV_BLOCK) put_page_scales(p, &p->args);
    fmha_fwd_fill_appended(p);
    fmha_fwd_put_keys(p, example_pointer(&p->base, BUFFER_K_CACHE), example_pointer(&p->base, BUFFER_V_CACHE));
}

void fmha_fwd_print_cache(const fmha_fwd_problem *p, FILE *file) {
    const fmha_fwd_options *const o = &p->options;
    if (p->api == FMHA_FWD_SPLITKV) fprintf(file, ", num_splits:%d", o->num_splits);
    if (o->page_block_size) fprintf(file, ", page_block_size:%d", o->page_block_size);
    if (o->cache_batch_idx) fputs(", cache_batch_idx:1", file);
    fmha_fwd_print_appended(p, file);
}

#else

example_outcome fmha_fwd_settle_cache(fmha_fwd_problem *p, example_result *result) {
    const fmha_fwd_options *const o = &p->options;
    if (o->page_block_size > 0 || o->cache_batch_idx || fmha_fwd_appends(p) ||
        (o->api && *o->api && strcmp(o->api, "fwd")) || fmha_fwd_scales_rows(p))
        return EXAMPLE_WRONG(
            "-page_block_size, -cache_batch_idx, -s_knew, -rotary_dim, -api, -qscale=kvbs and th: this build lacks "
            "fmha_fwd_splitkv, fmha_fwd_pagedkv or fmha_batch_prefill");
    return EXAMPLE_OK;
}
example_outcome fmha_fwd_lay_out_cache(fmha_fwd_problem *p, example_result *result) {
    (void)p, (void)result;
    return EXAMPLE_OK;
}
void fmha_fwd_put_cache(fmha_fwd_problem *p) { (void)p; }
void fmha_fwd_fill_cache(fmha_fwd_problem *p) { (void)p; }
void fmha_fwd_put_keys(const fmha_fwd_problem *p, void *k, void *v) { (void)p, (void)k, (void)v; }
void fmha_fwd_print_cache(const fmha_fwd_problem *p, FILE *file) { (void)p, (void)file; }

#endif
