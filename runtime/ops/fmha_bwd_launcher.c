// SPDX-License-Identifier: MIT
// Launchers of fmha_bwd, which prepare its workspace before there are arguments.
#include <stdlib.h>

#include "guard.h"
#include "op/call.h"
#include "ops/fmha_bwd_internal.h"

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
    struct tessera_choice chosen;
    tessera_ask(&r, &device->facts);
    TRY(tessera_choose(&r, &chosen));
    return tessera_plan_call(op, call, chosen.row, &device->facts, tessera_num_threads(), plan);
}

static tessera_status fill_in(const tessera_device *device, tessera_fmha_bwd_launcher *l) {
    struct tessera_fmha_bwd_call call;
    struct tessera_fmha_bwd_layout layout;
    struct tessera_plan plan;
    begin_call(&l->traits, &call);
    TRY(choose(device, &call, &plan));
    TRY(tessera_fmha_bwd_lay_out(&l->traits, plan.row, plan.facts->compute_units, &layout));
    l->instance = (const tessera_fmha_bwd_instance *)plan.row;
    l->dot_do_o = call.dot_do_o;
    l->convert_dq = call.convert_dq;
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

// ---- preparation

static tessera_status check_workspace(const tessera_fmha_bwd_launcher *l, const void *workspace) {
    if (!workspace || (uintptr_t)workspace % TESSERA_PLAN_ALIGNMENT)
        return tessera_fail(TESSERA_ERROR_WORKSPACE, "workspace is %p: %zu bytes, aligned to %d", workspace,
                            l->workspace_size, TESSERA_PLAN_ALIGNMENT);
    return TESSERA_SUCCESS;
}

static tessera_status prepare_on_cpu(const tessera_fmha_bwd_launcher *l, const struct tessera_fmha_bwd_layout *layout,
                                     const void *seqstart_q, const void *seqstart_k, void *workspace) {
    struct tessera_plan plan;
    TRY(tessera_fmha_bwd_write_head(&l->traits, layout, seqstart_q, seqstart_k, workspace));
    tessera_begin_plan(&plan, &l->device->facts, tessera_fmha_bwd_operation.name,
                       &(struct tessera_choice){.row = &l->instance->base}, tessera_num_threads());
    if (layout->is_zeroed)
        TRY(tessera_fmha_bwd_add_zeroing(&plan, (char *)workspace + layout->host_bytes, layout->device_bytes));
    return tessera_run_plan(l->device, &plan, NULL);
}

// Copies the head of a workspace, which the host has made.
static tessera_status copy_head(const tessera_fmha_bwd_launcher *l, const char *head, size_t bytes, char *workspace,
                                void *stream) {
    for (size_t at = 0; at < bytes; at += TESSERA_PLAN_COPY) {
        const size_t left = bytes - at, piece = left < TESSERA_PLAN_COPY ? left : TESSERA_PLAN_COPY;
        TRY(tessera_gpu_copy_small(l->device, workspace + at, (const uint32_t *)(const void *)(head + at), piece,
                                   stream));
    }
    return TESSERA_SUCCESS;
}

// Zeroes the workspace, and writes its head: on the device, or with `head` on the host.
static tessera_status prepare_on_gpu(const tessera_fmha_bwd_launcher *l, const struct tessera_fmha_bwd_layout *layout,
                                     const void *seqstart_q, const void *seqstart_k, const char *head, void *workspace,
                                     void *stream) {
    struct tessera_fmha_bwd_call call;
    struct tessera_plan plan;
    intptr_t previous = 0;
    begin_call(&l->traits, &call);
    TRY(tessera_plan_call(&tessera_fmha_bwd_operation, &call, &l->instance->base, &l->device->facts,
                          tessera_num_threads(), &plan));
    plan.device = l->device;
    tessera_place_regions(&plan, workspace);
    if (!head) TRY(tessera_fmha_bwd_gpu_prepare(&call, &plan, seqstart_q, seqstart_k));
    TRY(tessera_device_enter(l->device, &previous));
    tessera_status status = tessera_run_plan(l->device, &plan, stream);
    if (status == TESSERA_SUCCESS && head) status = copy_head(l, head, layout->host_bytes, workspace, stream);
    return tessera_device_leave(l->device, previous, status);
}

tessera_status tessera_fmha_bwd_prepare_workspace_async(const tessera_fmha_bwd_launcher *l, void *workspace,
                                                        const void *seqstart_q, const void *seqstart_k, void *stream) {
    struct tessera_fmha_bwd_layout layout;
    TRY(check_launcher(l));
    GUARD(!stream || l->device->gpu, "stream is %p: NULL on the CPU", stream);
    if (!l->workspace_size) return TESSERA_SUCCESS;
    TRY(check_workspace(l, workspace));
    TRY(tessera_fmha_bwd_lay_out(&l->traits, &l->instance->base, l->device->facts.compute_units, &layout));
    if (!l->device->gpu) return prepare_on_cpu(l, &layout, seqstart_q, seqstart_k, workspace);
    const bool group = l->traits.is_group_mode;
    GUARD(!group || seqstart_q, "seqstart_q is NULL: group mode needs it");
    GUARD(!group || seqstart_k, "seqstart_k is NULL: group mode needs it");
    return prepare_on_gpu(l, &layout, seqstart_q, seqstart_k, NULL, workspace, stream);
}

// On a GPU: what the host knows needs no kernel.
static tessera_status prepare_from_host(const tessera_fmha_bwd_launcher *l, void *workspace, void *stream) {
    const tessera_fmha_bwd_traits *const t = &l->traits;
    struct tessera_fmha_bwd_layout layout;
    TRY(check_workspace(l, workspace));
    TRY(tessera_fmha_bwd_lay_out(t, &l->instance->base, l->device->facts.compute_units, &layout));
    char *const head = malloc(layout.host_bytes);
    if (!head) return tessera_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for %zu bytes", layout.host_bytes);
    tessera_status status = tessera_fmha_bwd_write_head(t, &layout, t->seqstart_qs, t->seqstart_ks, head);
    if (status == TESSERA_SUCCESS) status = prepare_on_gpu(l, &layout, NULL, NULL, head, workspace, stream);
    free(head);
    return status;
}

tessera_status tessera_fmha_bwd_prepare_workspace(const tessera_fmha_bwd_launcher *l, void *workspace, void *stream) {
    TRY(check_launcher(l));
    GUARD(!l->traits.is_group_mode || (l->traits.seqstart_qs && l->traits.seqstart_ks),
          "seqstart_qs, seqstart_ks of the launcher's traits are NULL: group mode needs them, or "
          "tessera_fmha_bwd_prepare_workspace_async() with those on the device");
    if (!l->workspace_size) return TESSERA_SUCCESS;
    if (l->device->gpu) return prepare_from_host(l, workspace, stream);
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
