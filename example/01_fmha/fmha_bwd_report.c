// SPDX-License-Identifier: MIT
// CK's line up to the kernel's name, and the members of CK's JSON.
#include "fmha_bwd_problem.h"
#include "fmha_fwd_report.h"
#include "json.h"
#include "tessera/kernel/fmha_bwd.h"

// What a launcher would say, so that a caller knows the workspace before there are arguments.
static int find_workspace(const fmha_bwd_problem *p, size_t *bytes, int64_t *splits) {
    tessera_fmha_bwd_launcher launcher;
    if (tessera_fmha_bwd_launcher_init(p->base.device, &p->traits, &launcher) != TESSERA_SUCCESS) return -1;
    const int64_t bn0 = launcher.instance->tile.bn0;
    const double part = (double)p->traits.nhead_q * p->traits.hdim_q * (double)sizeof(float) * p->traits.seqlen_q;
    *bytes = launcher.host_ws_size + launcher.device_ws_size;
    *splits = (p->traits.max_seqlen_k + bn0 - 1) / bn0;
    if (!p->traits.is_group_mode && part > 0)
        *splits = (int64_t)((double)launcher.device_ws_size / (part * p->traits.batch) + 0.5);
    return 0;
}

void fmha_bwd_print(const example_problem *base, FILE *file) {
    const fmha_bwd_problem *p = (const fmha_bwd_problem *)base;
    const fmha_fwd_problem *f = p->forward;
    size_t bytes;
    int64_t splits;
    fmha_fwd_print_shape(f, 0, file);
    fprintf(file, ", scale:%g", (double)p->args.scale);
    fmha_fwd_print_bias(&f->bias, file);
    fprintf(file, ", dbias:%d, p_drop:%g, s_randval:%d, deterministic:%d", p->traits.has_dbias, (double)p->args.p_drop,
            p->traits.is_store_randval, p->traits.is_deterministic);
    fmha_fwd_print_mask(&f->mask, file);
    if (p->traits.is_dkv_reduced) fputs(", dkv_heads:k", file);
    if (f->options.init_sink) fprintf(file, ", sink:(rand[%s], grad)", f->options.init_sink == 2 ? "-1,1" : "30,60");
    if (p->traits.is_deterministic && find_workspace(p, &bytes, &splits) == 0)
        fprintf(file, ", workspace:%zuMiB|%lldsplits", (bytes + (1 << 20) - 1) >> 20, (long long)splits);
    if (f->options.mode) {
        fmha_fwd_print_list("q_logical", f->seqlen_q, f->options.b, file);
        fmha_fwd_print_list("k_logical", f->seqlen_k, f->options.b, file);
    }
}

void fmha_bwd_put_json(const example_problem *base, FILE *file) {
    const fmha_bwd_problem *p = (const fmha_bwd_problem *)base;
    const fmha_fwd_problem *f = p->forward;
    const fmha_fwd_options *o = &f->options;
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
    example_put_bool(file, "deterministic", p->traits.is_deterministic);
    example_put_text(file, "mask", o->mask);
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
