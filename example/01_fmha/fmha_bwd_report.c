// SPDX-License-Identifier: MIT
// CK's line up to the kernel's name, and the members of CK's JSON.
#include "fmha_bwd_problem.h"
#include "fmha_fwd_report.h"
#include "json.h"
#include "tessera/kernel/fmha_bwd.h"
#include "tessera/kernel/fmha_bwd_convert_dq.h"
#include "tessera/kernel/fmha_bwd_dot_do_o.h"

// What a launcher says before there are arguments: of the workspace what belongs to sums of dq, and the most parts that
// there are of a head. 0 where no instance serves the problem.
static size_t find_workspace(const fmha_bwd_problem *p, int64_t *splits) {
    tessera_fmha_bwd_launcher launcher;
    *splits = 0;
    if (tessera_fmha_bwd_launcher_init(p->base.device, &p->traits, &launcher) != TESSERA_SUCCESS) return 0;
    const int64_t bn0 = launcher.instance->tile.bn0;
    const double part = (double)p->traits.nhead_q * p->traits.hdim_q * (double)sizeof(float) * p->traits.seqlen_q;
    *splits = launcher.instance->tile.is_ordered ? 1 : (p->traits.max_seqlen_k + bn0 - 1) / bn0;
    if (!p->traits.is_group_mode && part > 0)
        *splits = (int64_t)((double)launcher.device_ws_size / (part * p->traits.batch) + 0.5);
    return launcher.host_ws_size + launcher.device_ws_size;
}

static long long mebibytes(size_t bytes) { return (long long)((bytes + (1 << 20) - 1) >> 20); }

void fmha_bwd_print(const example_problem *base, FILE *file) {
    const fmha_bwd_problem *p = (const fmha_bwd_problem *)base;
    const fmha_fwd_problem *f = p->forward;
    int64_t splits;
    fmha_fwd_print_shape(f, 0, file);
    fprintf(file, ", scale:%g", (double)p->args.scale);
    fmha_fwd_print_bias(&f->bias, file);
    fprintf(file, ", dbias:%d, p_drop:%g", p->traits.has_dbias, (double)p->args.p_drop);
    if (f->options.init_sink) fprintf(file, ", sink:(rand[%s], grad)", f->options.init_sink == 2 ? "-1,1" : "30,60");
    fprintf(file, ", s_randval:%d, deterministic:%d", p->traits.is_store_randval, p->traits.is_deterministic);
    if (p->traits.is_deterministic) {
        const size_t bytes = find_workspace(p, &splits);
        fprintf(file, ", workspace:%lldMiB|%lldsplits", mebibytes(bytes), (long long)splits);
    }
    fmha_fwd_print_mask(&f->mask, file);
    if (p->traits.is_dkv_reduced) fputs(", dkv_heads:k", file);
    if (f->options.mode) {
        fmha_fwd_print_list("q_logical", f->seqlen_q, f->options.b, file);
        fmha_fwd_print_list("k_logical", f->seqlen_k, f->options.b, file);
    }
}

// In the order of their launches.
void fmha_bwd_print_kernels(const example_problem *base, FILE *file) {
    const fmha_bwd_problem *p = (const fmha_bwd_problem *)base;
    tessera_fmha_bwd_launcher l;
    if (tessera_fmha_bwd_launcher_init(base->device, &p->traits, &l) != TESSERA_SUCCESS) return;
    fprintf(file, ", %s@%s", l.dot_do_o->base.name, base->instance->name);
    if (l.convert_dq) fprintf(file, "@%s", l.convert_dq->base.name);
}

void fmha_bwd_put_json(const example_problem *base, FILE *file) {
    static const char *const masks[TESSERA_MASK_COUNT] = {[TESSERA_MASK_NONE] = "no_mask",
                                                          [TESSERA_MASK_TOP_LEFT] = "mask_top_left",
                                                          [TESSERA_MASK_BOTTOM_RIGHT] = "mask_bottom_right",
                                                          [TESSERA_MASK_GENERIC] = "window_generic"};
    const fmha_bwd_problem *p = (const fmha_bwd_problem *)base;
    const fmha_fwd_problem *f = p->forward;
    const fmha_fwd_options *o = &f->options;
    int64_t splits;
    example_put_text(file, "prec", o->prec);
    example_put_text(file, "mode", o->mode ? "group" : "batch");
    example_put_text(file, "i_perm", o->iperm ? "true" : "false");
    example_put_text(file, "o_perm", o->operm ? "true" : "false");
    fmha_fwd_put_heads(f, file);
    fmha_fwd_put_seqlens(f, file);
    example_put_integer(file, "hdim_q", o->d);
    example_put_integer(file, "hdim_v", o->d_v);
    example_put_number(file, "scale", (double)p->args.scale);
    fmha_fwd_put_bias(&f->bias, file);
    example_put_bool(file, "use_dbias", p->traits.has_dbias);
    example_put_number(file, "p_drop", (double)o->p_drop);
    example_put_bool(file, "s_randval", p->traits.is_store_randval);
    example_put_text(file, "deterministic", p->traits.is_deterministic ? "true" : "false");
    example_put_text(file, "mask", masks[f->mask.type]);
    example_put_integer(file, "mask_left", f->mask.left);
    example_put_integer(file, "mask_right", f->mask.right);
    example_put_integer(file, "workspace_size", mebibytes(find_workspace(p, &splits)));
    example_put_text(file, "dkv_heads", p->arguments.dkv_heads);
    example_put_bool(file, "sink_grad", o->init_sink != 0);
}

void fmha_bwd_put_error(const example_problem *base, FILE *file) {
    static const char *const names[FMHA_BWD_TENSORS] = {"max_error_d",  "max_error_dq",    "max_error_dk",
                                                        "max_error_dv", "max_error_dbias", "max_error_randval"};
    const fmha_bwd_problem *p = (const fmha_bwd_problem *)base;
    for (int n = 0; n < FMHA_BWD_RANDVAL; n++) example_put_number(file, names[n], p->max_error[n]);
    example_put_number(file, "max_error_over_bound", p->max_error_ratio);
}
