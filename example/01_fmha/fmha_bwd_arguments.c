// SPDX-License-Identifier: MIT
// The command line of tile_example_fmha_bwd.
#include <string.h>

#include "fmha_bwd_runner.h"

#define FORWARD(name) offsetof(fmha_bwd_arguments, forward.options.name), 0
#define FORWARD_OR_LIST(name)                                                                                          \
    offsetof(fmha_bwd_arguments, forward.options.name), offsetof(fmha_bwd_arguments, forward.name)
#define LIST(name) 0, offsetof(fmha_bwd_arguments, forward.name)
#define OWN(name) offsetof(fmha_bwd_arguments, name), 0

static const example_argument table[] = {
    {"v", EXAMPLE_INTEGER, EXAMPLE_COMMON(v), "1",
     "verification against the fp64 reference: 0 none; 1, 2 all heads, or some above 2^35 FLOP; 3 all whatever it\n"
     "takes"},
    {"mode", EXAMPLE_INTEGER, FORWARD(mode), "0", "0: batch, 1: group (sequences of different lengths, concatenated)"},
    {"b", EXAMPLE_INTEGER, FORWARD(b), "2", "number of sequences"},
    {"h", EXAMPLE_INTEGER, FORWARD(h), "8", "heads of q"},
    {"h_k", EXAMPLE_INTEGER, FORWARD(h_k), "-1", "heads of k and v, a divisor of h; -1: h"},
    {"s", EXAMPLE_INTEGER_OR_LIST, FORWARD_OR_LIST(s), "3328",
     "length of q; group mode: the mean of lengths that are drawn by -seed,\n"
     "or a list of b lengths with commas between them"},
    {"s_qpad", EXAMPLE_INTEGER_OR_LIST, FORWARD_OR_LIST(s_qpad), "-1",
     "room of a sequence of q in tokens, at least its length; -1: no more than that\n"
     "(group mode: one value for all, or b values)"},
    {"s_k", EXAMPLE_INTEGER_OR_LIST, FORWARD_OR_LIST(s_k), "-1", "length of k and v, in the same ways; -1: those of q"},
    {"s_kpad", EXAMPLE_INTEGER_OR_LIST, FORWARD_OR_LIST(s_kpad), "-1", "the same for k and v"},
    {"d", EXAMPLE_INTEGER, FORWARD(d), "128", "head dim of q and k, 1 to 512"},
    {"d_v", EXAMPLE_INTEGER, FORWARD(d_v), "-1", "head dim of v and o, 1 to 512; -1: d"},
    {"scale", EXAMPLE_REAL, FORWARD(scale_s), "0", "factor of q k; 0: 1/sqrt(d)"},
    {"logits_soft_cap", EXAMPLE_REAL, FORWARD(logits_soft_cap), "0", "c: logits become c tanh(logits / c); 0: no cap"},
    {"iperm", EXAMPLE_FLAG, FORWARD(iperm), "1", "inputs and their gradients lie as 1: b*h*s*d, 0: b*s*h*d"},
    {"operm", EXAMPLE_FLAG, FORWARD(operm), "1", "the output and its gradient, likewise"},
    {"bias", EXAMPLE_TEXT, FORWARD(bias), "n",
     "n or 0: none; e or 1: elementwise 1*1*s*s, e:1: 1*h*s*s, e:2: b*h*s*s;\n"
     "a or 2: alibi with 1*h slopes, a:1: with b*h"},
    {"dbias", EXAMPLE_FLAG, OWN(dbias), "0", "1: also the gradient of an elementwise bias, b*h*s*s"},
    {"prec", EXAMPLE_TEXT, FORWARD(prec), "fp16", "fp32, fp16 or bf16"},
    {"mask", EXAMPLE_TEXT, FORWARD(mask), "0",
     "0: none; 1 or t: causal from the top left; 2 or b: causal from the bottom right;\n"
     "t:l,r and b:l,r: a window of l keys to the left and r to the right, -1: all (FlashAttention's way);\n"
     "t:l,r,n and b:l,r,n: and the first n keys (attention sinks);\n"
     "xt:w and xb:w: a window of w keys around the diagonal, w <= 0: causal (xformers' way);\n"
     "g:y,x: query i sees keys i-y < j < i+x"},
    EXAMPLE_KNAME("0"),
    {"init", EXAMPLE_TEXT, FORWARD(init), "uf",
     "q, k, v, bias: ui or 0 integers of -3 to 3; ni rounded normal; uf or 1 uniform in 0 to 1; nf normal;\n"
     "tf or 2 cosines; the gradient of o is uniform in -1 to 1"},
    {"seed", EXAMPLE_UNSIGNED32, EXAMPLE_COMMON(seed), "11939",
     "seed of inputs, lengths and heads to verify; 0: another every time"},
    {"p_drop", EXAMPLE_REAL, FORWARD(p_drop), "0", "probability of dropout, 0 <= p < 1"},
    {"drop_seed", EXAMPLE_UNSIGNED64, FORWARD(drop_seed), "1", "seed of dropout"},
    {"drop_offset", EXAMPLE_UNSIGNED64, FORWARD(drop_offset), "0", "offset of dropout"},
    {"drop_prefs", EXAMPLE_FLAG, FORWARD(drop_prefs), "0", "give seed and offset 0: by value, 1: by pointer"},
    {"timer", EXAMPLE_TEXT, offsetof(fmha_bwd_arguments, forward.timer), 0, "gpu",
     "gpu or cpu; every device is timed by the CPU's clock, GPUs over all runs at once"},
    {"deterministic", EXAMPLE_FLAG, OWN(deterministic), "0",
     "1: the layout of dq's partial sums by parts of keys; on CPUs results are the same in every run either way"},
    {"dkv_heads", EXAMPLE_TEXT, OWN(dkv_heads), "q",
     "heads of dk and dv: q: those of q, as in CK; k: those of k, sums"},
    {"sink_grad", EXAMPLE_INTEGER, FORWARD(init_sink), "0",
     "not 0: a learned sink per head (30 to 60; 2: -1 to 1, so that keys weigh as much), and its gradient"},
    EXAMPLE_TIMING_AND_JSON("fmha_bwd.json"),
    {"q_eff_lens", EXAMPLE_LIST, LIST(q_eff_lens), "",
     "batch mode: b lengths of q to use of the s that there is room for"},
    {"kv_eff_lens", EXAMPLE_LIST, LIST(kv_eff_lens), "", "the same for k and v"},
    EXAMPLE_DEVICE_AND_KERNEL,
};

static int settle(void *values, char *message, size_t size) {
    fmha_bwd_arguments *a = values;
    fmha_fwd_options *o = &a->forward.options;
    o->qscale = "n";
    o->vlayout = "r";
    o->lse = 1;
    if (strcmp(o->prec, "fp32") != 0 && strcmp(o->prec, "fp16") != 0 && strcmp(o->prec, "bf16") != 0)
        return example_refuse(message, size, "-prec=%s: fp32, fp16 or bf16", o->prec);
    if (strcmp(a->dkv_heads, "q") != 0 && strcmp(a->dkv_heads, "k") != 0)
        return example_refuse(message, size, "-dkv_heads=%s: q or k", a->dkv_heads);
    if (a->dbias && o->bias[0] != 'e' && o->bias[0] != '1')
        return example_refuse(message, size, "-dbias=1 with -bias=%s: the gradient of an elementwise bias, e", o->bias);
    return fmha_fwd_arguments_table.settle(&a->forward, message, size);
}

const example_arguments fmha_bwd_arguments_table = {
    .does = "Runs one fused attention backward pass, times it and checks it.",
    .table = table,
    .count = sizeof table / sizeof *table,
    .bytes = sizeof(fmha_bwd_arguments),
    .list_length = "b",
    .settle = settle,
};
