// SPDX-License-Identifier: MIT
// The workspace of a call and its parts of dq, and launchers, which prepare it before there are arguments.
#include "guard.h"
#include "op/call.h"
#include "ops/fmha_bwd_internal.h"

typedef const struct tessera_fmha_bwd_layout layout_t;

// ---- sizes

// Parts of dq of each head in deterministic batch mode: `workers` workers take `share` blocks of keys each, one after
// the other, so that so many of them may meet in a head of n blocks.
static int64_t parts_of(int64_t n, int64_t share) {
    if (n % share == 0) return n / share;
    if (share % n == 0) return 1;
    return 1 + tessera_ceil_div(n - 1, share);
}

// *sum += a * b * c * d; false where that overflows.
static bool add_product(int64_t *sum, int64_t a, int64_t b, int64_t c, int64_t d) {
    int64_t product;
    return !__builtin_mul_overflow(a, b, &product) && !__builtin_mul_overflow(product, c, &product) &&
           !__builtin_mul_overflow(product, d, &product) && !__builtin_add_overflow(*sum, product, sum);
}

static bool count_group(const tessera_fmha_bwd_traits *t, layout_t *l, int64_t *elements) {
    const int32_t *const q = t->seqstart_qs, *const k = t->seqstart_ks;
    const bool known = q && k;
    if (!l->is_by_sequence) return add_product(elements, t->nhead_q, 1, q ? q[t->batch] : t->seqlen_q, t->hdim_q);
    if (!known)
        return add_product(elements, t->nhead_q, tessera_ceil_div(t->max_seqlen_k, l->bn0), t->seqlen_q, t->hdim_q);
    for (int32_t b = 0; b < t->batch; b++)
        if (!add_product(elements, t->nhead_q, tessera_ceil_div(k[b + 1] - k[b], l->bn0), q[b + 1] - q[b], t->hdim_q))
            return false;
    return true;
}

static void set_parts(const tessera_fmha_bwd_traits *t, int64_t units, struct tessera_fmha_bwd_layout *l) {
    l->nsplits = 1;
    l->blocks = tessera_ceil_div(t->seqlen_k, l->bn0);
    l->workers = units * TESSERA_FMHA_BWD_CPU_WORKERS;
    l->share = tessera_max(tessera_ceil_div(t->batch * l->heads * l->blocks, l->workers), 1);
    l->is_by_sequence = t->is_deterministic && t->is_group_mode;
    if (t->is_deterministic) l->nsplits = l->blocks ? (int32_t)parts_of(l->blocks, l->share) : 0;
}

tessera_status tessera_fmha_bwd_lay_out(const tessera_fmha_bwd_traits *t, const tessera_instance *row, int64_t units,
                                        struct tessera_fmha_bwd_layout *l) {
    const bool group = t->is_group_mode;
    int64_t elements = 0;
    *l = (struct tessera_fmha_bwd_layout){.heads = t->is_dkv_reduced ? t->nhead_k : t->nhead_q,
                                          .bn0 = ((const tessera_fmha_bwd_instance *)row)->tile.bn0};
    set_parts(t, units, l);
    l->nsplits_count = l->is_by_sequence ? t->batch : 1;
    l->is_zeroed = !group || !t->is_deterministic || t->mask_type != TESSERA_MASK_NONE;
    l->offsets_offset = (size_t)tessera_round_up(l->nsplits_count * 4, TESSERA_FMHA_BWD_ALIGNMENT);
    l->host_bytes = l->offsets_offset;
    if (group) l->host_bytes += (size_t)tessera_round_up(((int64_t)t->batch + 1) * 8, TESSERA_FMHA_BWD_ALIGNMENT);
    const bool fits = group
                          ? count_group(t, l, &elements)
                          : add_product(&elements, (int64_t)t->batch * t->nhead_q, l->nsplits, t->seqlen_q, t->hdim_q);
    GUARD(fits && elements <= INT64_MAX / 8, "dq_acc: partial sums of dq are more than 2^60 elements");
    l->device_bytes = (size_t)elements * sizeof(float);
    return TESSERA_SUCCESS;
}

// ---- the head

static int32_t nsplits_of(layout_t *l, const int32_t *seqstart_k, int64_t n) {
    return l->is_by_sequence ? (int32_t)tessera_ceil_div(seqstart_k[n + 1] - seqstart_k[n], l->bn0) : l->nsplits;
}

static tessera_status check_room(layout_t *l, int64_t elements) {
    GUARD(elements <= (int64_t)(l->device_bytes / sizeof(float)),
          "the workspace has room for %zu elements of dq_acc, and these lengths need %lld: traits of the longest "
          "sequences, padding included, make it large enough",
          l->device_bytes / sizeof(float), (long long)elements);
    return TESSERA_SUCCESS;
}

// The offset behind sequence b.
static int64_t offset_after(const tessera_fmha_bwd_traits *t, layout_t *l, const int32_t *q, const int32_t *k,
                            int32_t b, int64_t before) {
    const int64_t queries = q[b + 1] - q[b];
    return before + t->nhead_q * (int64_t)nsplits_of(l, k, b) * queries * t->hdim_q;
}

static tessera_status check_starts(const char *name, const int32_t *start, int32_t batch) {
    GUARD(start, "%s is NULL: group mode needs it", name);
    for (int32_t b = 0; b < batch; b++)
        GUARD(start[b] >= 0 && start[b + 1] >= start[b], "%s[%d] is %d: at least the one before, %d", name, b + 1,
              start[b + 1], start[b]);
    return TESSERA_SUCCESS;
}

static tessera_status check_lengths(const tessera_fmha_bwd_traits *t, layout_t *l, const int32_t *q, const int32_t *k) {
    int64_t offset = 0;
    if (!t->is_group_mode) return TESSERA_SUCCESS;
    TRY(check_starts("seqstart_q", q, t->batch));
    TRY(check_starts("seqstart_k", k, t->batch));
    for (int32_t b = 0; b < t->batch; b++) offset = offset_after(t, l, q, k, b, offset);
    return check_room(l, offset);
}

tessera_status tessera_fmha_bwd_write_head(const tessera_fmha_bwd_traits *t, layout_t *l, const int32_t *q,
                                           const int32_t *k, void *workspace) {
    TRY(check_lengths(t, l, q, k));
    int32_t *const nsplits = workspace;
    int64_t *const offsets = (int64_t *)(void *)((char *)workspace + l->offsets_offset);
    memset(workspace, 0, l->host_bytes);
    for (int64_t n = 0; n < l->nsplits_count; n++) nsplits[n] = nsplits_of(l, k, n);
    for (int32_t b = 0; t->is_group_mode && b < t->batch; b++) offsets[b + 1] = offset_after(t, l, q, k, b, offsets[b]);
    return TESSERA_SUCCESS;
}

tessera_status tessera_fmha_bwd_check_head(const tessera_fmha_bwd_traits *t, layout_t *l, const int32_t *q,
                                           const int32_t *k, const void *workspace) {
    const char *const what = "the workspace is not one that was prepared for these lengths";
    TRY(check_lengths(t, l, q, k));
    const int32_t *const nsplits = workspace;
    const int64_t *const offsets = (const int64_t *)(const void *)((const char *)workspace + l->offsets_offset);
    for (int64_t n = 0; n < l->nsplits_count; n++)
        if (nsplits[n] != nsplits_of(l, k, n))
            return tessera_fail(TESSERA_ERROR_WORKSPACE, "%s: nsplits[%lld] is %d", what, (long long)n, nsplits[n]);
    for (int32_t b = 0; t->is_group_mode && b < t->batch; b++)
        if (offsets[b + 1] != offset_after(t, l, q, k, b, offsets[b]) || offsets[0] != 0)
            return tessera_fail(TESSERA_ERROR_WORKSPACE, "%s: dq_acc_offsets[%d] is %lld", what, b + 1,
                                (long long)offsets[b + 1]);
    return TESSERA_SUCCESS;
}

// ---- zeroing

enum { PIECE = 1 << 20 };

struct zeroing {
    char *memory;
    size_t bytes;
};

static void zero_piece(void *of, int64_t index, void *scratch) {
    const struct zeroing *const z = of;
    const size_t at = (size_t)index * PIECE, left = z->bytes - at;
    (void)scratch;
    memset(z->memory + at, 0, left < PIECE ? left : PIECE);
}

tessera_status tessera_fmha_bwd_add_zeroing(struct tessera_plan *plan, void *memory, size_t bytes) {
    void *room;
    TRY(tessera_plan_room(plan, sizeof(struct zeroing), &room));
    *(struct zeroing *)room = (struct zeroing){memory, bytes};
    const int64_t pieces = tessera_ceil_div((int64_t)bytes, PIECE);
    return tessera_add_work(plan, zero_piece, room, pieces, pieces, NULL, 0);
}

// ---- launchers

// A call with the sizes that traits have, which is enough to choose instances and to lay out the workspace.
static void begin_call(const tessera_fmha_bwd_traits *t, struct tessera_fmha_bwd_call *call) {
    *call = (struct tessera_fmha_bwd_call){.traits = *t, .args = tessera_fmha_bwd_args_init()};
    tessera_fmha_bwd_args *const a = &call->args;
    a->seqlen_q = t->seqlen_q, a->seqlen_k = t->seqlen_k, a->batch = t->batch;
    a->max_seqlen_q = t->max_seqlen_q, a->max_seqlen_k = t->max_seqlen_k;
    a->hdim_q = t->hdim_q, a->hdim_v = t->hdim_v, a->nhead_q = t->nhead_q, a->nhead_k = t->nhead_k;
    a->mask_type = t->mask_type;
}

static tessera_status choose(const tessera_device *device, struct tessera_fmha_bwd_call *call,
                             struct tessera_plan *plan) {
    const tessera_op *const op = &tessera_fmha_bwd_operation;
    struct tessera_request r = {
        .kernels = &op->kernels, .table = op->kernels.get_table(), .traits = &call->traits, .call = call};
    const tessera_instance *row;
    tessera_ask(&r, &device->facts);
    TRY(tessera_choose(&r, &row));
    return tessera_plan_call(op, call, row, &device->facts, tessera_num_threads(), plan);
}

static tessera_status fill_in(const tessera_device *device, tessera_fmha_bwd_launcher *l) {
    struct tessera_fmha_bwd_call call;
    struct tessera_fmha_bwd_layout layout;
    struct tessera_plan plan;
    begin_call(&l->traits, &call);
    TRY(choose(device, &call, &plan));
    TRY(tessera_fmha_bwd_lay_out(&l->traits, plan.row, plan.facts->compute_units, &layout));
    l->instance = (const tessera_fmha_bwd_instance *)plan.row;
    l->workspace_size = tessera_plan_workspace(&plan);
    l->offsets_offset = layout.offsets_offset;
    l->host_ws_size = layout.host_bytes;
    l->device_ws_size = layout.device_bytes;
    l->scratch_offset =
        (size_t)tessera_round_up((int64_t)(layout.host_bytes + layout.device_bytes), TESSERA_PLAN_ALIGNMENT);
    l->needs_zero_dq_acc = layout.is_zeroed;
    return TESSERA_SUCCESS;
}

tessera_status tessera_fmha_bwd_launcher_init(const tessera_device *device, const tessera_fmha_bwd_traits *traits,
                                              tessera_fmha_bwd_launcher *out) {
    GUARD(device, "device is NULL: tessera_device_open() opens one");
    GUARD(out, "out is NULL");
    tessera_fmha_bwd_launcher l = {.struct_size = sizeof l, .device = device, .traits = tessera_fmha_bwd_traits_init()};
    *out = l;
    TRY(tessera_read_struct("traits", traits, &l.traits, sizeof l.traits));
    l.traits.struct_size = sizeof l.traits;
    TRY(tessera_fmha_bwd_check_traits(&l.traits));
    out->traits = l.traits;
    const tessera_status status = fill_in(device, &l);
    if (status == TESSERA_SUCCESS) *out = l;
    if (status == TESSERA_ERROR_NO_INSTANCE) tessera_log(TESSERA_LOG_WARNING, "fmha_bwd: %s", tessera_last_error());
    return status;
}

// Whether a launcher found instances; a warning and an error where it did not.
static tessera_status check_launcher(const tessera_fmha_bwd_launcher *l) {
    GUARD(l, "launcher is NULL: tessera_fmha_bwd_launcher_init() fills one in");
    GUARD(l->struct_size == sizeof *l && l->device, "launcher was not filled in by tessera_fmha_bwd_launcher_init()");
    if (l->instance) return TESSERA_SUCCESS;
    const char *const what = "fmha_bwd: this launcher found no instance for its traits";
    tessera_log(TESSERA_LOG_WARNING, "%s", what);
    return tessera_fail(TESSERA_ERROR_NO_INSTANCE, "%s", what);
}

tessera_status tessera_fmha_bwd_prepare_workspace_async(const tessera_fmha_bwd_launcher *l, void *workspace,
                                                        const void *seqstart_q, const void *seqstart_k, void *stream) {
    struct tessera_fmha_bwd_layout layout;
    struct tessera_plan plan;
    TRY(check_launcher(l));
    GUARD(!stream, "stream is %p: NULL on the CPU", stream);
    if (!workspace || (uintptr_t)workspace % TESSERA_PLAN_ALIGNMENT)
        return tessera_fail(TESSERA_ERROR_WORKSPACE, "workspace is %p: %zu bytes, aligned to %d", workspace,
                            l->workspace_size, TESSERA_PLAN_ALIGNMENT);
    const tessera_instance *const row = (const tessera_instance *)l->instance;
    TRY(tessera_fmha_bwd_lay_out(&l->traits, row, l->device->facts.compute_units, &layout));
    TRY(tessera_fmha_bwd_write_head(&l->traits, &layout, seqstart_q, seqstart_k, workspace));
    tessera_begin_plan(&plan, &l->device->facts, tessera_fmha_bwd_operation.name, row, tessera_num_threads());
    if (layout.is_zeroed)
        TRY(tessera_fmha_bwd_add_zeroing(&plan, (char *)workspace + layout.host_bytes, layout.device_bytes));
    return tessera_run_plan(l->device, &plan, stream);
}

tessera_status tessera_fmha_bwd_prepare_workspace(const tessera_fmha_bwd_launcher *l, void *workspace, void *stream) {
    TRY(check_launcher(l));
    GUARD(!l->traits.is_group_mode || (l->traits.seqstart_qs && l->traits.seqstart_ks),
          "seqstart_qs, seqstart_ks of the launcher's traits are NULL: group mode needs them, or "
          "tessera_fmha_bwd_prepare_workspace_async() with those on the device");
    return tessera_fmha_bwd_prepare_workspace_async(l, workspace, l->traits.seqstart_qs, l->traits.seqstart_ks, stream);
}

tessera_status tessera_fmha_bwd_launcher_run(const tessera_fmha_bwd_launcher *l, const tessera_fmha_bwd_args *args,
                                             void *stream) {
    tessera_fmha_bwd_args prepared = tessera_fmha_bwd_args_init();
    TRY(check_launcher(l));
    TRY(tessera_read_struct("args", args, &prepared, sizeof prepared));
    prepared.struct_size = sizeof prepared;
    prepared.workspace_size = l->workspace_size;
    prepared.is_workspace_prepared = 1;
    if (!prepared.instance) prepared.instance = l->instance;
    return tessera_fmha_bwd(l->device, &l->traits, &prepared, stream);
}
