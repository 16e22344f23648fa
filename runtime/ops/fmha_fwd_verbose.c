// SPDX-License-Identifier: MIT
// What TESSERA_VERBOSE prints of a call: its problem, as tile_example_fmha_fwd spells it. The rest: op/told.c.
#include "guard.h"
#include "op/told.h"
#include "ops/fmha_fwd_internal.h"

static void add_mask(const struct tessera_fmha_fwd_call *call, struct tessera_text *out) {
    static const char letters[TESSERA_MASK_COUNT] = {
        [TESSERA_MASK_TOP_LEFT] = 't', [TESSERA_MASK_BOTTOM_RIGHT] = 'b', [TESSERA_MASK_GENERIC] = 'g'};
    const tessera_fmha_fwd_args *const a = &call->args;
    if (call->traits.mask_type == TESSERA_MASK_NONE) return;
    tessera_text_add(out, " -mask=%c:%d,%d", letters[call->traits.mask_type], a->window_size_left,
                     a->window_size_right);
    if (call->traits.has_sink && a->sink_size > 0) tessera_text_add(out, ",%d", a->sink_size);
}

// Lengths of sequences of their own are not read: in group mode s is that of the longest, and s_k what the caller said.
static void add_problem(const struct tessera_fmha_fwd_call *call, struct tessera_text *out) {
    const tessera_fmha_fwd_traits *const t = &call->traits;
    const tessera_fmha_fwd_args *const a = &call->args;
    tessera_text_add(out, "-prec=%s -mode=%d -b=%d -h=%d -h_k=%d -s=%d -s_k=%d -d=%d -d_v=%d",
                     tessera_fmha_dtype_string(t->data_type), t->is_group_mode ? 1 : 0, a->batch, a->nhead_q,
                     a->nhead_k, t->is_group_mode ? a->max_seqlen_q : a->seqlen_q, a->seqlen_k, a->hdim_q, a->hdim_v);
    add_mask(call, out);
    if (t->bias_type != TESSERA_BIAS_NONE)
        tessera_text_add(out, " -bias=%c", t->bias_type == TESSERA_BIAS_ALIBI ? 'a' : 'e');
    if (t->has_logits_soft_cap) tessera_text_add(out, " -logits_soft_cap=%g", (double)a->logits_soft_cap);
    if (t->qscale_type != TESSERA_QSCALE_NONE)
        tessera_text_add(out, " -qscale=%s", tessera_qscale_string(t->qscale_type));
    if (!t->is_v_rowmajor) tessera_text_add(out, " -vlayout=c");
    if (t->has_lse) tessera_text_add(out, " -lse=1");
    if (t->has_dropout) tessera_text_add(out, " -p_drop=%g", (double)a->p_drop);
    if (t->has_sink && a->sink_ptr) tessera_text_add(out, " -init_sink=1");
    if (t->skip_min_seqlen_q) tessera_text_add(out, " -min_seqlen_q=%d", a->min_seqlen_q);
}

tessera_status tessera_fmha_fwd_launch_told(const tessera_device *device, const tessera_fmha_fwd_instance *instance,
                                            const struct tessera_fmha_fwd_call *call, int threads, void *stream) {
    struct tessera_told told = {.operation = "fmha_fwd", .device = device, .row = &instance->base, .stream = stream};
    char text[512];
    struct tessera_text problem = {text, sizeof text, 0};
    add_problem(call, &problem);
    if (!device->gpu) tessera_text_add(&problem, " -threads=%d", threads);
    TRY(tessera_told_begin(&told));
    TRY(tessera_fmha_fwd_launch(device, instance, call, threads, stream));
    return tessera_told_end(&told, text);
}
