// SPDX-License-Identifier: MIT
// A call on the CPU. Its steps are those of CK: dot_do_o by rows, dq_dk_dv by blocks of keys, convert_dq by rows.
//
// Which blocks of keys add to a part of dq is the workspace's layout: all of a head where the call is not
// deterministic, so that a head is one task; else a row of blocks that a worker takes, or in group mode one block. A
// part belongs to one task, which adds to it in the order of keys, so nothing is atomic and results do not depend on
// the number of threads.

#include "guard.h"
#include "ops/fmha_bwd_internal.h"

typedef struct tessera_fmha_bwd_cpu_task task_t;

// A sequence, what its tasks share, and how many tasks of each step the sequences before it have.
struct sequence {
    struct tessera_attention_sequence lengths;
    struct tessera_attention_mask mask;
    int64_t first_dot, first_job, first_convert;
};

struct launch {
    const tessera_fmha_bwd_instance *instance;
    const tessera_fmha_bwd_dot_do_o_instance *dot_do_o;
    const tessera_fmha_bwd_convert_dq_instance *convert_dq;
    tessera_fmha_bwd_traits traits;
    tessera_fmha_bwd_args args;
    struct tessera_fmha_bwd_cpu_problem problem;
    struct tessera_fmha_bwd_layout layout;
    const int32_t *nsplits; // the workspace
    const int64_t *offsets;
    float *dq_acc;
    struct sequence *sequences;
    int64_t dots, jobs, converts; // tasks of all sequences
    double macs;
};

// ---- tasks

static task_t begin_task(const struct launch *l, int32_t b, int32_t head) {
    const struct sequence *const s = &l->sequences[b];
    return (task_t){.batch = b,
                    .head = head,
                    .heads = 1,
                    .seqlen_q = s->lengths.seqlen_q,
                    .seqlen_k = s->lengths.seqlen_k,
                    .token_q = s->lengths.token_q,
                    .token_k = s->lengths.token_k,
                    .mask_y = s->mask.mask_y,
                    .mask_x = s->mask.mask_x,
                    .sink = s->mask.sink,
                    .alibi_shift = s->mask.alibi_shift,
                    .alibi_vertical = s->mask.alibi_vertical};
}

// Parts of dq of a sequence, and where that number `part` of a head begins.
static int32_t parts_of(const struct launch *l, int32_t b) { return l->nsplits[l->layout.is_by_sequence ? b : 0]; }

static float *find_part(const struct launch *l, int32_t b, int32_t head, int64_t part) {
    const int64_t floats = (int64_t)l->sequences[b].lengths.physical_q * l->args.hdim_q, parts = parts_of(l, b);
    const int64_t batch = l->traits.is_group_mode ? l->offsets[b] : b * l->args.nhead_q * parts * floats;
    return l->dq_acc + batch + (head * parts + part) * floats;
}

// The last sequence whose first task of a step is not after index.
static int32_t find_sequence(const struct launch *l, size_t first, int64_t index) {
    int32_t low = 0, high = l->args.batch;
    while (high - low > 1) {
        const int32_t middle = low + (high - low) / 2;
        const char *const sequence = (const char *)&l->sequences[middle];
        *(*(const int64_t *)(const void *)(sequence + first) <= index ? &low : &high) = middle;
    }
    return low;
}

// The block of rows that a task of dot_do_o or convert_dq takes.
static task_t rows_task(const struct launch *l, size_t first, int64_t index, int64_t bm0) {
    const int32_t b = find_sequence(l, first, index);
    const int64_t blocks = tessera_ceil_div(l->sequences[b].lengths.seqlen_q, bm0);
    const int64_t at = index - *(const int64_t *)(const void *)((const char *)&l->sequences[b] + first);
    task_t task = begin_task(l, b, (int32_t)(at / blocks));
    task.begin = (int32_t)(at % blocks * bm0);
    task.end = (int32_t)tessera_min(task.begin + bm0, task.seqlen_q);
    return task;
}

static void run_dot_do_o(void *of, int64_t index, void *scratch) {
    const struct launch *const l = of;
    const task_t task = rows_task(l, offsetof(struct sequence, first_dot), index, l->dot_do_o->tile.bm0);
    (void)scratch;
    l->dot_do_o->run(&l->problem, &task);
}

// A head, over all sequences in order.
static void run_d_sink(void *of, int64_t head, void *scratch) {
    const struct launch *const l = of;
    double sum = 0;
    (void)scratch;
    for (int32_t b = 0; b < l->args.batch; b++) {
        task_t task = begin_task(l, b, (int32_t)head);
        task.end = task.seqlen_q;
        sum += l->dot_do_o->d_sink(&l->problem, &task);
    }
    ((float *)l->args.d_sink_ptr)[head] = (float)sum;
}

static void run_convert_dq(void *of, int64_t index, void *scratch) {
    const struct launch *const l = of;
    task_t task = rows_task(l, offsetof(struct sequence, first_convert), index, l->convert_dq->tile.bm0);
    (void)scratch;
    task.dq_parts = parts_of(l, task.batch);
    task.dq_acc = find_part(l, task.batch, task.head, 0);
    task.dq_stride = (int64_t)l->sequences[task.batch].lengths.physical_q * l->args.hdim_q;
    l->convert_dq->run(&l->problem, &task);
}

// ---- dq_dk_dv

// The queries that may see one of the task's keys; all where something is stored of every pair.
static void set_queries(const struct launch *l, task_t *task) {
    int64_t begin = tessera_max((int64_t)task->begin - task->mask_x + 1, 0);
    int64_t end = tessera_min((int64_t)task->end - 1 + task->mask_y, task->seqlen_q);
    if (task->begin < task->sink) end = task->seqlen_q;
    if (l->args.dbias_ptr || l->args.rand_val_ptr) begin = 0, end = task->seqlen_q;
    task->query_begin = (int32_t)tessera_min(begin, task->seqlen_q);
    task->query_end = (int32_t)tessera_max(end, task->query_begin);
}

// Block number `block` of the keys of head number `head` of dk, which adds to a part of dq.
static void run_block(const struct launch *l, int32_t b, int64_t head, int64_t block, int64_t part, void *scratch) {
    const int32_t heads = l->traits.is_dkv_reduced ? l->problem.group : 1;
    task_t task = begin_task(l, b, (int32_t)head * heads);
    task.heads = heads;
    task.begin = (int32_t)tessera_min(block * l->layout.bn0, task.seqlen_k);
    task.end = (int32_t)tessera_min(task.begin + (int64_t)l->layout.bn0, task.seqlen_k);
    task.dq_is_first = !l->layout.is_zeroed;
    task.dq_acc = find_part(l, b, task.head, part);
    task.dq_stride = (int64_t)parts_of(l, b) * l->sequences[b].lengths.physical_q * l->args.hdim_q;
    set_queries(l, &task);
    l->instance->run(&l->problem, &task, scratch);
}

static int64_t blocks_of(const struct launch *l, int32_t b) {
    return tessera_ceil_div(l->sequences[b].lengths.physical_k, l->layout.bn0);
}

// Not deterministic: a task is a head.
static void run_head(void *of, int64_t index, void *scratch) {
    const struct launch *const l = of;
    const int32_t b = (int32_t)(index / l->layout.heads);
    for (int64_t block = 0; block < blocks_of(l, b); block++)
        run_block(l, b, index % l->layout.heads, block, 0, scratch);
}

// Deterministic in batch mode: a task is a worker's row of blocks, which may begin and end within heads.
static void run_worker(void *of, int64_t worker, void *scratch) {
    const struct launch *const l = of;
    const int64_t blocks = l->layout.blocks, all = l->args.batch * l->layout.heads * blocks;
    const int64_t end = tessera_min((worker + 1) * l->layout.share, all);
    for (int64_t job = worker * l->layout.share; job < end; job++) {
        const int64_t head = job / blocks, part = worker - head * blocks / l->layout.share;
        run_block(l, (int32_t)(head / l->layout.heads), head % l->layout.heads, job % blocks, part, scratch);
    }
}

// Deterministic in group mode: a task is a block, and a part of its own.
static void run_job(void *of, int64_t index, void *scratch) {
    const struct launch *const l = of;
    const int32_t b = find_sequence(l, offsetof(struct sequence, first_job), index);
    const int64_t at = index - l->sequences[b].first_job, block = at % blocks_of(l, b);
    run_block(l, b, at / blocks_of(l, b), block, block, scratch);
}

// ---- the plan

// Kernels rely on this: pointers that the traits do not ask for are NULL, and strides that a mode ignores are 0.
static void normalize(const tessera_fmha_bwd_traits *t, tessera_fmha_bwd_args *a) {
    if (t->bias_type == TESSERA_BIAS_NONE) a->bias_ptr = NULL;
    if (!t->has_dbias) a->dbias_ptr = NULL;
    if (!t->has_dropout || !t->is_store_randval) a->rand_val_ptr = NULL;
    if (!a->sink_ptr) a->d_sink_ptr = NULL;
    if (!t->is_group_mode) return;
    a->batch_stride_q = a->batch_stride_k = a->batch_stride_v = a->batch_stride_o = a->batch_stride_do = 0;
    a->batch_stride_dq = a->batch_stride_dk = a->batch_stride_dv = a->batch_stride_lsed = 0;
    a->batch_stride_bias = a->batch_stride_dbias = a->batch_stride_randval = 0;
}

static void set_problem(struct launch *l) {
    const tessera_fmha_bwd_traits *const t = &l->traits;
    const tessera_fmha_bwd_args *const a = &l->args;
    const float keep = t->has_dropout ? 1.0f - a->p_drop : 1.0f;
    const bool by_pointer = t->has_dropout && a->drop_prefs;
    l->problem = (struct tessera_fmha_bwd_cpu_problem){
        .traits = t,
        .args = a,
        .storage = tessera_attention_storages[t->data_type].qkv,
        .bias_storage = tessera_attention_storages[t->data_type].bias,
        .group = a->nhead_q / a->nhead_k,
        .drop_seed = by_pointer ? *a->drop_seed_ptr : a->drop_seed,
        .drop_offset = by_pointer ? *a->drop_offset_ptr : a->drop_offset,
        .keep_below = tessera_attention_keep_below(keep),
        .keep_scale = 1.0f / keep,
    };
}

static void make_sequences(struct launch *l) {
    l->dots = l->jobs = l->converts = 0;
    l->macs = 0;
    for (int32_t b = 0; b < l->args.batch; b++) {
        struct sequence *const s = &l->sequences[b];
        s->lengths = tessera_fmha_bwd_get_sequence(&l->traits, &l->args, b);
        s->mask =
            tessera_attention_get_mask(l->traits.mask_type, l->args.window_size_left, l->args.window_size_right,
                                       l->traits.mask_type == TESSERA_MASK_NONE ? 0 : l->args.sink_size, &s->lengths);
        s->first_dot = l->dots, s->first_job = l->jobs, s->first_convert = l->converts;
        l->dots += l->args.nhead_q * tessera_ceil_div(s->lengths.seqlen_q, l->dot_do_o->tile.bm0);
        l->converts += l->args.nhead_q * tessera_ceil_div(s->lengths.seqlen_q, l->convert_dq->tile.bm0);
        l->jobs += l->layout.heads * blocks_of(l, b);
        l->macs += (double)s->lengths.seqlen_q * s->lengths.seqlen_k * l->args.nhead_q *
                   (3.0 * l->args.hdim_q + 2.0 * l->args.hdim_v);
    }
}

static size_t scratch_bytes(const struct tessera_plan *plan, const tessera_fmha_bwd_traits *t) {
    const tessera_fmha_bwd_instance *const instance = (const tessera_fmha_bwd_instance *)plan->row;
    return (size_t)tessera_round_up((int64_t)instance->scratch_bytes(t->hdim_q, t->hdim_v), TESSERA_PLAN_ALIGNMENT);
}

tessera_status tessera_fmha_bwd_cpu_regions(struct tessera_fmha_bwd_call *call, struct tessera_plan *plan) {
    const tessera_fmha_bwd_traits *const t = &call->traits;
    struct tessera_fmha_bwd_layout layout;
    TRY(tessera_fmha_bwd_choose_rows(call, plan));
    TRY(tessera_fmha_bwd_lay_out(t, plan->row, plan->facts->compute_units, &layout));
    TRY(tessera_add_region(plan, "nsplits, offsets, dq_acc", layout.host_bytes + layout.device_bytes, false));
    TRY(tessera_add_region(plan, "sequences", sizeof(struct sequence) * (size_t)t->batch, false));
    return tessera_add_region(plan, "scratch", scratch_bytes(plan, t) * (size_t)plan->threads, false);
}

static tessera_status prepare(const struct launch *l, struct tessera_plan *plan) {
    const tessera_fmha_bwd_args *const a = &l->args;
    void *const workspace = plan->regions[TESSERA_FMHA_BWD_UNIFIED].memory;
    if (a->is_workspace_prepared)
        return tessera_fmha_bwd_check_head(&l->traits, &l->layout, a->seqstart_q_ptr, a->seqstart_k_ptr, workspace);
    TRY(tessera_fmha_bwd_write_head(&l->traits, &l->layout, a->seqstart_q_ptr, a->seqstart_k_ptr, workspace));
    return l->layout.is_zeroed ? tessera_fmha_bwd_add_zeroing(plan, l->dq_acc, l->layout.device_bytes)
                               : TESSERA_SUCCESS;
}

// Waking a thread pays off from about a million multiply-adds on.
static int64_t workers_for(const struct launch *l) {
    const double useful = 1 + l->macs / (1 << 20);
    return useful < TESSERA_MAX_THREADS ? (int64_t)useful : TESSERA_MAX_THREADS;
}

static tessera_status add_dq_dk_dv(struct launch *l, struct tessera_plan *plan) {
    const bool deterministic = l->traits.is_deterministic, group = l->traits.is_group_mode;
    tessera_work_body *const body = !deterministic ? run_head : group ? run_job : run_worker;
    const int64_t heads = l->args.batch * l->layout.heads, all = heads * l->layout.blocks;
    const int64_t tasks = !deterministic ? heads : group ? l->jobs : tessera_ceil_div(all, l->layout.share);
    return tessera_add_work(plan, body, l, tasks, workers_for(l), plan->regions[TESSERA_FMHA_BWD_SCRATCH].memory,
                            scratch_bytes(plan, &l->traits));
}

tessera_status tessera_fmha_bwd_cpu_steps(struct tessera_fmha_bwd_call *call, struct tessera_plan *plan) {
    void *room;
    TRY(tessera_plan_room(plan, sizeof(struct launch), &room));
    struct launch *const l = room;
    char *const workspace = plan->regions[TESSERA_FMHA_BWD_UNIFIED].memory;
    l->instance = (const tessera_fmha_bwd_instance *)plan->row;
    l->dot_do_o = call->dot_do_o;
    l->convert_dq = call->convert_dq;
    l->traits = call->traits;
    l->args = call->args;
    TRY(tessera_fmha_bwd_lay_out(&l->traits, plan->row, plan->facts->compute_units, &l->layout));
    l->nsplits = (const int32_t *)(void *)workspace;
    l->offsets = (const int64_t *)(void *)(workspace + l->layout.offsets_offset);
    l->dq_acc = (float *)(void *)(workspace + l->layout.host_bytes);
    l->sequences = plan->regions[TESSERA_FMHA_BWD_SEQUENCES].memory;
    normalize(&l->traits, &l->args);
    set_problem(l);
    make_sequences(l);
    TRY(prepare(l, plan));
    TRY(tessera_add_work(plan, run_dot_do_o, l, l->dots, workers_for(l), NULL, 0));
    if (l->args.sink_ptr) TRY(tessera_add_work(plan, run_d_sink, l, l->args.nhead_q, workers_for(l), NULL, 0));
    TRY(add_dq_dk_dv(l, plan));
    return tessera_add_work(plan, run_convert_dq, l, l->converts, workers_for(l), NULL, 0);
}
