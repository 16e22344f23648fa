// SPDX-License-Identifier: MIT
// A call on the CPU: it is cut into tasks, which threads take one after the other.
//
// A tile is at most bm0 folded rows of one sequence and key head, or of several key heads where the instance takes
// them, and usually one task. Where one tile's keys are a large share of all, they are cut into parts, a task each, and
// the thread that finishes the last part of a tile combines them. Cuts depend only on lengths and the device, and
// partial results are combined in order, so results do not depend on the number of threads. The longest sequences go
// first, and under a mask the last rows, which tend to see the most keys.
//
// Where the call says into how many splits keys are cut, every tile has as many parts, some of which may be empty.
#include <stdatomic.h>

#include "guard.h"
#include "ops/fmha_fwd_internal.h"

typedef struct tessera_fmha_fwd_cpu_task task_t;

// A sequence, and what its tasks share.
struct sequence {
    struct tessera_attention_sequence lengths;
    struct tessera_attention_mask mask;
    int64_t tiles;      // of one head, or of several that share tiles
    int64_t first_tile; // tiles of all heads of the sequences before
};

// A tile whose keys are cut into parts.
struct cut {
    task_t task; // of the whole tile; `partial` is that of the first part
    int32_t parts;
    atomic_int unfinished;
};

struct launch {
    const tessera_fmha_fwd_instance *instance;
    tessera_fmha_fwd_traits traits;
    tessera_fmha_fwd_args args;
    struct tessera_fmha_fwd_cpu_problem problem;
    int32_t units; // of the device
    int32_t heads; // key heads of a tile
    struct sequence *sequences;
    int32_t sequence_count;
    int64_t tiles;         // of all sequences and heads
    double all_keys, macs; // of all tiles

    struct cut cuts[TESSERA_FMHA_FWD_PARTS / 2];
    struct {
        int32_t cut, part;
    } parts[TESSERA_FMHA_FWD_PARTS];
    int32_t cut_count, part_count;
    float *partials;
    int64_t split_stride; // floats from one part's partial result to the next one's

    size_t kernel_scratch;  // bytes of a thread's scratch, behind which are the copies of rows
    int32_t splits;         // of each tile; 0: parts as above
    atomic_int *unfinished; // splits of each tile
};

// ---- sequences

// Sorts in descending order by heap sort, which needs no memory and has no bad case.
static void sift(uint64_t *keys, int32_t root, int32_t count) {
    for (int32_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && keys[child + 1] < keys[child]) child++;
        if (keys[root] <= keys[child]) return;
        const uint64_t moved = keys[root];
        keys[root] = keys[child];
        keys[child] = moved;
    }
}

static void sort(uint64_t *keys, int32_t count) {
    for (int32_t root = count / 2; root-- > 0;) sift(keys, root, count);
    for (int32_t last = count - 1; last > 0; last--) {
        const uint64_t least = keys[0];
        keys[0] = keys[last];
        keys[last] = least;
        sift(keys, 0, last);
    }
}

// ---- tiles

// `head`: the first of the tile's.
static task_t tile_task(const struct launch *l, const struct sequence *sequence, int32_t head, int64_t tile) {
    const int64_t bm0 = l->instance->tile.bm0, group = l->problem.group;
    const struct tessera_attention_sequence *const s = &sequence->lengths;
    task_t task = {
        .batch = s->batch,
        .head_k = head,
        .heads = l->heads,
        .row_begin = tile * bm0,
        .row_end = tessera_min((tile + 1) * bm0, s->seqlen_q * group),
        .seqlen_q = s->seqlen_q,
        .seqlen_k = s->seqlen_k,
        .token_q = s->token_q,
        .token_k = s->token_k,
        .mask_y = sequence->mask.mask_y,
        .mask_x = sequence->mask.mask_x,
        .sink = sequence->mask.sink,
        .alibi_shift = sequence->mask.alibi_shift,
        .alibi_vertical = sequence->mask.alibi_vertical,
    };
    // The keys that any of the task's queries sees; all keys where dropout's random bytes are to be stored.
    const int64_t first = task.row_begin / group, last = (task.row_end - 1) / group;
    int64_t begin = task.sink ? 0 : tessera_max(first - sequence->mask.mask_y + 1, 0);
    int64_t end = tessera_min(last + sequence->mask.mask_x, s->seqlen_k);
    if (l->args.rand_val_ptr) begin = 0, end = s->seqlen_k;
    if (begin < end) {
        task.kv_begin = (int32_t)(begin - begin % l->instance->tile.bn0);
        task.kv_end = (int32_t)end;
    }
    return task;
}

// The keys of one part of the tile; all of its keys where it is not cut.
static int64_t part_keys(const struct launch *l, const task_t *task) {
    const int64_t keys = task->kv_end - task->kv_begin;
    const int64_t parts = tessera_fmha_fwd_parts(keys, l->all_keys / l->heads, l->units);
    return tessera_round_up(tessera_ceil_div(keys, parts), l->instance->tile.bn0);
}

static bool is_cut(const struct launch *l, const task_t *task) {
    return task->kv_begin + part_keys(l, task) < task->kv_end;
}

static void measure(struct launch *l, const struct sequence *sequence) {
    const int32_t heads = l->args.nhead_k;
    for (int64_t tile = 0; tile < sequence->tiles; tile++) {
        const task_t task = tile_task(l, sequence, 0, tile);
        const int64_t keys = task.kv_end - task.kv_begin;
        l->all_keys += (double)keys * heads;
        l->macs += (double)keys * heads * (double)(task.row_end - task.row_begin) * (l->args.hdim_q + l->args.hdim_v);
    }
}

static void cut_tile(struct launch *l, const task_t *task) {
    struct cut *const cut = &l->cuts[l->cut_count];
    cut->task = *task;
    cut->task.partial = l->partials + l->part_count * l->split_stride;
    cut->parts = (int32_t)tessera_ceil_div(task->kv_end - task->kv_begin, part_keys(l, task));
    atomic_init(&cut->unfinished, cut->parts);
    for (int32_t part = 0; part < cut->parts; part++) {
        l->parts[l->part_count].cut = l->cut_count;
        l->parts[l->part_count++].part = part;
    }
    l->cut_count++;
}

static void cut_long_tiles(struct launch *l) {
    for (int32_t p = 0; p < l->sequence_count; p++) {
        // Tiles of one sequence see no more than its keys, and sequences come longest first.
        if (tessera_fmha_fwd_parts(l->sequences[p].lengths.seqlen_k, l->all_keys / l->heads, l->units) == 1) return;
        for (int64_t tile = 0; tile < l->sequences[p].tiles; tile++)
            for (int32_t head = 0; head < l->args.nhead_k; head += l->heads) {
                const task_t task = tile_task(l, &l->sequences[p], head, tile);
                if (!is_cut(l, &task)) break;
                cut_tile(l, &task);
            }
    }
}

// ---- running

static void attend(const struct launch *l, task_t *task, void *scratch) {
    task->copies = (uint8_t *)scratch + l->kernel_scratch;
    l->instance->run(&l->problem, task, scratch);
}

static void run_part(struct launch *l, int64_t index, void *scratch) {
    struct cut *const cut = &l->cuts[l->parts[index].cut];
    const int32_t part = l->parts[index].part;
    const int64_t keys = part_keys(l, &cut->task);
    task_t task = cut->task;
    task.partial += part * l->split_stride;
    task.kv_begin = (int32_t)(cut->task.kv_begin + part * keys);
    task.kv_end = (int32_t)tessera_min(task.kv_begin + keys, cut->task.kv_end);
    attend(l, &task, scratch);
    if (atomic_fetch_sub(&cut->unfinished, 1) == 1)
        l->instance->combine(&l->problem, &cut->task, cut->parts, l->split_stride);
}

static task_t find_tile(const struct launch *l, int64_t index) {
    int32_t low = 0, high = l->sequence_count; // the last sequence whose first tile is not after index
    while (high - low > 1) {
        const int32_t middle = low + (high - low) / 2;
        *(l->sequences[middle].first_tile <= index ? &low : &high) = middle;
    }
    const struct sequence *const sequence = &l->sequences[low];
    const int64_t heads = l->args.nhead_k / l->heads, at = index - sequence->first_tile;
    // Without a mask all tiles weigh the same, and tiles of one head share its keys.
    const bool masked = l->traits.mask_type != TESSERA_MASK_NONE;
    const int64_t tile = masked ? sequence->tiles - 1 - at / heads : at % sequence->tiles;
    return tile_task(l, sequence, l->heads * (int32_t)(masked ? at % heads : at / sequence->tiles), tile);
}

static void run_tile(struct launch *l, int64_t index, void *scratch) {
    task_t task = find_tile(l, index);
    if (l->splits == 1 || !is_cut(l, &task)) attend(l, &task, scratch);
}

// A split is a multiple of SPLIT_KEYS keys. The first one of a tile is never empty: it stores what no key adds to.
enum { SPLIT_KEYS = 32 };

static void run_split(struct launch *l, int64_t index, void *scratch) {
    const int64_t tile = index / l->splits, split = index % l->splits;
    task_t whole = find_tile(l, tile);
    const int64_t all = whole.kv_end - whole.kv_begin;
    const int64_t keys = tessera_round_up(tessera_max(tessera_ceil_div(all, l->splits), 1), SPLIT_KEYS);
    const int32_t parts = (int32_t)tessera_max(tessera_ceil_div(all, keys), 1);
    if (split >= parts) return;
    if (parts == 1) {
        attend(l, &whole, scratch);
        return;
    }
    whole.partial = l->partials + tile * l->splits * l->split_stride;
    task_t task = whole;
    task.partial += split * l->split_stride;
    task.kv_begin = (int32_t)(whole.kv_begin + split * keys);
    task.kv_end = (int32_t)tessera_min(task.kv_begin + keys, whole.kv_end);
    attend(l, &task, scratch);
    if (atomic_fetch_add(&l->unfinished[tile], 1) == parts - 1)
        l->instance->combine(&l->problem, &whole, parts, l->split_stride);
}

static void run(void *launch, int64_t index, void *scratch) {
    struct launch *const l = launch;
    if (l->splits > 1)
        run_split(l, index, scratch);
    else if (index < l->part_count)
        run_part(l, index, scratch);
    else
        run_tile(l, index - l->part_count, scratch);
}

// ---- the plan

// Kernels rely on this: pointers that the traits do not ask for are NULL, and strides that a mode ignores are 0.
static void normalize(const tessera_fmha_fwd_traits *t, tessera_fmha_fwd_args *a) {
    if (t->bias_type == TESSERA_BIAS_NONE) a->bias_ptr = NULL;
    if (!t->has_lse) a->lse_ptr = NULL;
    if (!t->has_sink) a->sink_ptr = NULL;
    if (!t->has_dropout || !a->s_randval) a->rand_val_ptr = NULL;
    if (t->qscale_type == TESSERA_QSCALE_NONE) a->q_descale_ptr = a->k_descale_ptr = a->v_descale_ptr = NULL;
    if (!t->is_group_mode) return;
    a->batch_stride_q = a->batch_stride_k = a->batch_stride_v = a->batch_stride_o = 0;
    a->batch_stride_bias = a->batch_stride_lse = a->batch_stride_randval = 0;
    a->batch_stride_q_descale = a->batch_stride_k_descale = a->batch_stride_v_descale = 0;
}

// Rows of a block of keys, where they are copied, and a scale of each, for as many heads as a task may have.
static size_t copy_bytes(const struct tessera_attention_cache *cache, const tessera_fmha_fwd_instance *instance) {
    const struct tessera_attention_pages *const p = &cache->pages;
    const bool copied = p->piece_v || p->dtype != TESSERA_KV_AUTO || p->k_rope;
    if (!copied && !p->k_scale.base && !p->v_scale.base) return 0;
    const int64_t keys = instance->tile.bn0, numbers = copied ? keys * (p->hdim_q + p->hdim_v) : 0;
    const int64_t heads = instance->heads > 1 ? (int64_t)instance->heads * instance->tile.bm0 : 1;
    const int64_t scales = 2 * heads * tessera_round_up(keys * (int)sizeof(float), TESSERA_PLAN_ALIGNMENT);
    return (size_t)(scales + tessera_round_up(numbers * tessera_type_bits(p->number) / 8, TESSERA_PLAN_ALIGNMENT));
}

static void set_problem(struct launch *l, const struct tessera_attention_cache *cache) {
    const tessera_fmha_fwd_traits *const t = &l->traits;
    const tessera_fmha_fwd_args *const a = &l->args;
    const struct tessera_attention_storages *const storages = &tessera_attention_storages[t->data_type];
    const bool per_tensor = t->qscale_type == TESSERA_QSCALE_PER_TENSOR;
    const float keep = t->has_dropout ? 1.0f - a->p_drop : 1.0f;
    l->problem = (struct tessera_fmha_fwd_cpu_problem){
        .traits = t,
        .args = a,
        .qkv_storage = storages->qkv,
        .o_storage = storages->o,
        .bias_storage = storages->bias,
        .group = a->nhead_q / a->nhead_k,
        .scale_s = a->scale_s,
        .scale_o = 1.0f,
        .drop_seed = a->drop_seed,
        .drop_offset = a->drop_offset,
        .keep_below = tessera_attention_keep_below(keep),
        .keep_scale = 1.0f / keep,
        .find_rows = cache ? cache->find : NULL,
        .pages = cache ? &cache->pages : NULL,
        .copy_bytes = cache ? copy_bytes(cache, l->instance) : 0,
    };
    if (per_tensor) {
        l->problem.scale_s *= *(const float *)a->q_descale_ptr * *(const float *)a->k_descale_ptr;
        l->problem.scale_o = *(const float *)a->v_descale_ptr;
    }
    if (cache && cache->scale_k) l->problem.scale_s *= *cache->scale_k;
    if (cache && cache->scale_v) l->problem.scale_o = *cache->scale_v;
    if (cache && cache->scale_q) l->problem.scale_s *= *cache->scale_q;
    if (cache) l->problem.q_scales = cache->q_scales;
    if (t->has_dropout && a->drop_prefs) {
        l->problem.drop_seed = *a->drop_seed_ptr;
        l->problem.drop_offset = *a->drop_offset_ptr;
    }
}

// The workspace holds the sequences and their order, the partial results, and each thread's scratch.
static const char sequences_region[] = "sequences", partials_region[] = "partials",
                  unfinished_region[] = "unfinished splits", scratch_region[] = "scratch";

// Rows of a tile, where a key head has so many.
static int64_t most_rows(const tessera_fmha_fwd_instance *instance, int64_t of_head, int32_t nhead_k) {
    const int64_t rows = tessera_min(of_head, instance->tile.bm0);
    return tessera_max(rows, tessera_min(rows * nhead_k, (int64_t)instance->heads * instance->tile.bm0));
}

struct layout {
    size_t sequences, partials, unfinished, scratch; // bytes; scratch is one thread's
    size_t kernel_scratch;                           // its part without copies of rows
    int64_t split_stride;
};

static struct layout lay_out(const struct tessera_fmha_fwd_call *call, const tessera_instance *row,
                             const struct tessera_plan *plan) {
    const tessera_fmha_fwd_instance *const instance = (const tessera_fmha_fwd_instance *)row;
    const tessera_fmha_fwd_args *const a = &call->args;
    const bool group = call->traits.is_group_mode;
    const int64_t queries = group ? a->max_seqlen_q : a->seqlen_q;
    const int64_t rows = most_rows(instance, queries * (a->nhead_q / a->nhead_k), call->splits ? 1 : a->nhead_k);
    const bool may_cut = group || a->seqlen_k >= 2 * TESSERA_FMHA_FWD_PART_KEYS;
    struct layout layout;
    layout.split_stride = tessera_round_up(rows * (a->hdim_v + 2), TESSERA_PLAN_ALIGNMENT / (int)sizeof(float));
    layout.sequences = (sizeof(struct sequence) + sizeof(uint64_t)) * (size_t)a->batch;
    size_t parts = may_cut ? (size_t)tessera_fmha_fwd_most_parts(plan->facts->compute_units) : 0;
    const size_t tiles =
        call->splits > 1 ? (size_t)(call->heads * tessera_ceil_div(call->rows, instance->tile.bm0)) : 0;
    if (call->splits > 0) parts = tiles * (size_t)call->splits;
    layout.partials = (size_t)layout.split_stride * sizeof(float) * parts;
    layout.unfinished = sizeof(atomic_int) * tiles;
    layout.kernel_scratch =
        (size_t)tessera_round_up((int64_t)instance->scratch_bytes(a->hdim_q, a->hdim_v), TESSERA_PLAN_ALIGNMENT);
    layout.scratch = layout.kernel_scratch + (call->cache ? 2 * copy_bytes(call->cache, instance) : 0);
    return layout;
}

tessera_status tessera_fmha_fwd_cpu_regions(const struct tessera_fmha_fwd_call *call, const tessera_instance *row,
                                            struct tessera_plan *plan) {
    const struct layout layout = lay_out(call, row, plan);
    TRY(tessera_add_region(plan, sequences_region, layout.sequences, false));
    TRY(tessera_add_region(plan, partials_region, layout.partials, false));
    TRY(tessera_add_region(plan, unfinished_region, layout.unfinished, true));
    return tessera_add_region(plan, scratch_region, layout.scratch * (size_t)plan->threads, false);
}

// Lists the sequences that are to be computed as keys << 32 | ~number, those with most keys first. Returns their
// number.
static int32_t order_sequences(const struct tessera_fmha_fwd_call *call, uint64_t *order) {
    int32_t count = 0;
    for (int32_t b = 0; b < call->args.batch; b++) {
        const struct tessera_attention_sequence s = tessera_fmha_fwd_get_sequence(call, b);
        const bool is_short = call->traits.skip_min_seqlen_q && s.seqlen_q <= call->args.min_seqlen_q;
        if (s.seqlen_q == 0 || is_short || tessera_fmha_fwd_is_left_alone(call, &s)) continue;
        order[count++] = (uint64_t)s.seqlen_k << 32 | ~(uint32_t)b;
    }
    sort(order, count);
    return count;
}

// Whether the rows of all heads of a token lie side by side.
static bool lie_side_by_side(const struct launch *l) {
    const tessera_fmha_fwd_args *const a = &l->args;
    const struct tessera_attention_pages *const p = l->problem.pages;
    if (p) return !p->piece_v && !p->k_rope && p->of_k.head == p->row_k && p->of_v.head == p->row_v;
    return a->nhead_stride_k == a->hdim_q && a->nhead_stride_v == a->hdim_v;
}

// Bytes of a key and its value, where a table says where they lie.
static int64_t bytes_in_pages(const struct tessera_attention_pages *p) {
    return (int64_t)p->element_bytes * (p->row_k + p->row_v);
}

// The key heads that share tiles. Where their rows lie side by side, memory is read in its order if there are many: all
// whose rows and a block of whose keys have room, while each compute unit finds about 8 tasks.
static int32_t choose_heads(const struct launch *l) {
    enum { BLOCK_BYTES = 256 << 10 }; // of K and V, so that L2 has room for the next block, too
    const tessera_fmha_fwd_instance *const instance = l->instance;
    if (instance->heads == 1 || l->splits || l->traits.qscale_type == TESSERA_QSCALE_MX || !lie_side_by_side(l))
        return 1;
    int64_t rows = 1, tiles = 0;
    for (int32_t p = 0; p < l->sequence_count; p++) {
        const struct sequence *const s = &l->sequences[p];
        rows = tessera_max(rows, tessera_min((int64_t)s->lengths.seqlen_q * l->problem.group, instance->tile.bm0));
        tiles += s->tiles * l->args.nhead_k;
    }
    const int64_t numbers = l->args.hdim_q + l->args.hdim_v;
    const int64_t key_bytes =
        l->problem.pages ? bytes_in_pages(l->problem.pages) : numbers * tessera_type_bits(l->problem.qkv_storage) / 8;
    const double wanted = 8.0 * l->units, parts = l->all_keys / TESSERA_FMHA_FWD_PART_KEYS;
    const double tasks = wanted <= TESSERA_FMHA_FWD_PARTS && parts > (double)tiles ? parts : (double)tiles;
    const int64_t most = (int64_t)instance->heads * instance->tile.bm0;
    int32_t heads = l->args.nhead_k;
    while (heads > 1 && (l->args.nhead_k % heads || heads * rows > most || tasks < wanted * heads ||
                         heads * instance->tile.bn0 * key_bytes > BLOCK_BYTES))
        heads--;
    return heads;
}

static void make_sequences(struct launch *l, const struct tessera_fmha_fwd_call *call, uint64_t *order) {
    l->sequence_count = order_sequences(call, order);
    for (int32_t p = 0; p < l->sequence_count; p++) {
        struct sequence *const sequence = &l->sequences[p];
        sequence->lengths = tessera_fmha_fwd_get_sequence(call, (int32_t) ~(uint32_t)order[p]);
        sequence->tiles =
            tessera_ceil_div((int64_t)sequence->lengths.seqlen_q * l->problem.group, l->instance->tile.bm0);
        sequence->mask =
            tessera_attention_get_mask(l->traits.mask_type, l->args.window_size_left, l->args.window_size_right,
                                       l->traits.has_sink ? l->args.sink_size : 0, &sequence->lengths);
        measure(l, sequence);
    }
    l->heads = choose_heads(l);
    for (int32_t p = 0; p < l->sequence_count; p++) {
        l->sequences[p].first_tile = l->tiles;
        l->tiles += l->sequences[p].tiles * (l->args.nhead_k / l->heads);
    }
}

// Waking a thread pays off from about a million multiply-adds on.
static int64_t workers_for(const struct launch *l) {
    const double useful = 1 + l->macs / (1 << 20);
    return useful < TESSERA_MAX_THREADS ? (int64_t)useful : TESSERA_MAX_THREADS;
}

tessera_status tessera_fmha_fwd_cpu_steps(const struct tessera_fmha_fwd_call *call, const tessera_instance *row,
                                          struct tessera_plan *plan) {
    const struct layout layout = lay_out(call, row, plan);
    void *room;
    TRY(tessera_plan_room(plan, sizeof(struct launch), &room));
    struct launch *const l = room;
    l->instance = (const tessera_fmha_fwd_instance *)row;
    l->units = plan->facts->compute_units;
    l->traits = call->traits;
    l->args = call->args;
    l->sequences = tessera_region_memory(plan, sequences_region);
    l->partials = tessera_region_memory(plan, partials_region);
    l->split_stride = layout.split_stride;
    l->splits = call->splits;
    l->kernel_scratch = layout.kernel_scratch;
    l->unfinished = tessera_region_memory(plan, unfinished_region);
    l->sequence_count = l->cut_count = l->part_count = 0;
    l->heads = 1;
    l->tiles = 0;
    l->all_keys = l->macs = 0;
    normalize(&l->traits, &l->args);
    set_problem(l, call->cache);
    make_sequences(l, call, (uint64_t *)(l->sequences + l->args.batch)); // the order lies behind them
    if (l->splits == 0) cut_long_tiles(l);
    const int64_t tasks = l->splits > 1 ? l->tiles * l->splits : l->part_count + l->tiles;
    return tessera_add_work(plan, run, l, tasks, workers_for(l), tessera_region_memory(plan, scratch_region),
                            layout.scratch);
}
