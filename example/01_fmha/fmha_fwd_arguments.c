// SPDX-License-Identifier: MIT
#include "fmha_fwd_arguments.h"

#include <stdlib.h>
#include <string.h>

#define OPTION(name) offsetof(fmha_fwd_options, name), 0
#define OPTION_OR_LIST(name) offsetof(fmha_fwd_options, name), offsetof(fmha_fwd_arguments, name)
#define LIST(name) 0, offsetof(fmha_fwd_arguments, name)
#define OWN(name) offsetof(fmha_fwd_arguments, name), 0

static const example_argument table[] = {
    {"v", EXAMPLE_INTEGER, EXAMPLE_COMMON(v), "1",
     "verification against the fp64 reference: 0 none; 1 all rows, or a sample above 2^37 FLOP;\n"
     "2 as 1 (CK's check on the GPU); 3 all rows whatever it takes"},
    {"mode", EXAMPLE_INTEGER, OPTION(mode), "0", "0: batch, 1: group (sequences of different lengths, concatenated)"},
    {"b", EXAMPLE_INTEGER, OPTION(b), "2", "number of sequences"},
    {"h", EXAMPLE_INTEGER, OPTION(h), "8", "heads of q"},
    {"h_k", EXAMPLE_INTEGER, OPTION(h_k), "-1", "heads of k and v, a divisor of h; -1: h"},
    {"s", EXAMPLE_INTEGER_OR_LIST, OPTION_OR_LIST(s), "3328",
     "length of q; group mode: the mean of lengths that are drawn by -seed,\n"
     "or a list of b lengths with commas between them"},
    {"s_k", EXAMPLE_INTEGER_OR_LIST, OPTION_OR_LIST(s_k), "-1", "length of k and v, in the same ways; -1: those of q"},
    {"s_knew", EXAMPLE_INTEGER, OPTION(s_knew), "0",
     "keys, of s_k, that the call appends to the cache before it attends; -1: 1 to s by -seed"},
    {"s_qpad", EXAMPLE_INTEGER_OR_LIST, OPTION_OR_LIST(s_qpad), "-1",
     "room of a sequence of q in tokens, at least its length; -1: no more than that\n"
     "(group mode: one value for all, or b values)"},
    {"s_kpad", EXAMPLE_INTEGER_OR_LIST, OPTION_OR_LIST(s_kpad), "-1", "the same for k and v"},
    {"d", EXAMPLE_INTEGER, OPTION(d), "128", "head dim of q and k, 1 to 512"},
    {"d_v", EXAMPLE_INTEGER, OPTION(d_v), "-1", "head dim of v and o, 1 to 512; -1: d"},
    {"scale_s", EXAMPLE_REAL, OPTION(scale_s), "0", "factor of q k; 0: 1/sqrt(d)"},
    {"qscale", EXAMPLE_TEXT, OPTION(qscale), "n",
     "scales of the inputs: n or 0 none; pt or 1 one a tensor; bs or 2 one for 128 tokens of a head;\n"
     "mx or 4 one for 32 elements (mxfp8, mxfp4); with -api=batch_prefill kvbs or 3 one for a page and head,\n"
     "th or 5 one for a token and head"},
    {"logits_soft_cap", EXAMPLE_REAL, OPTION(logits_soft_cap), "0", "c: logits become c tanh(logits / c); 0: no cap"},
    {"iperm", EXAMPLE_FLAG, OPTION(iperm), "1", "inputs lie as 1: b*h*s*d, 0: b*s*h*d"},
    {"operm", EXAMPLE_FLAG, OPTION(operm), "1", "the output, likewise"},
    {"bias", EXAMPLE_TEXT, OPTION(bias), "n",
     "n or 0: none; e or 1: elementwise 1*1*s*s, e:1: 1*h*s*s, e:2: b*h*s*s;\n"
     "a or 2: alibi with 1*h slopes, a:1: with b*h"},
    {"prec", EXAMPLE_TEXT, OPTION(prec), "fp16", "fp32, fp16, bf16, fp8, fp8bf16, fp8fp32, mxfp8 or mxfp4"},
    {"mask", EXAMPLE_TEXT, OPTION(mask), "0",
     "0: none; 1 or t: causal from the top left; 2 or b: causal from the bottom right;\n"
     "t:l,r and b:l,r: a window of l keys to the left and r to the right, -1: all (FlashAttention's way);\n"
     "t:l,r,n and b:l,r,n: and the first n keys (attention sinks);\n"
     "xt:w and xb:w: a window of w keys around the diagonal, w <= 0: causal (xformers' way);\n"
     "g:y,x: query i sees keys i-y < j < i+x"},
    {"vlayout", EXAMPLE_TEXT, OPTION(vlayout), "r", "v lies as r: seqlen*hdim, c: hdim*seqlen"},
    {"lse", EXAMPLE_FLAG, OPTION(lse), "0", "1: also store the log-sum-exp of every row"},
    EXAMPLE_KNAME("0"),
    {"init", EXAMPLE_TEXT, OPTION(init), "uf",
     "inputs: ui or 0 integers of -3 to 3; ni rounded normal; uf or 1 uniform in 0 to 1; nf normal;\n"
     "tf or 2 cosines; 3 or uf:q uniform over the type's range"},
    {"seed", EXAMPLE_UNSIGNED32, EXAMPLE_COMMON(seed), "11939",
     "seed of inputs, lengths and sampled rows; 0: another every time"},
    {"p_drop", EXAMPLE_REAL, OPTION(p_drop), "0", "probability of dropout, 0 <= p < 1"},
    {"drop_seed", EXAMPLE_UNSIGNED64, OPTION(drop_seed), "1", "seed of dropout"},
    {"drop_offset", EXAMPLE_UNSIGNED64, OPTION(drop_offset), "0", "offset of dropout"},
    {"drop_prefs", EXAMPLE_FLAG, OPTION(drop_prefs), "0", "give seed and offset 0: by value, 1: by pointer"},
    {"timer", EXAMPLE_TEXT, OWN(timer), "gpu",
     "gpu or cpu; every device is timed by the CPU's clock, GPUs over all runs at once"},
    {"rotary_dim", EXAMPLE_INTEGER, OPTION(rotary_dim), "0",
     "elements of new keys and of queries that are rotated first, a multiple of 16; 0: none"},
    {"rotary_interleaved", EXAMPLE_FLAG, OPTION(rotary_interleaved), "1",
     "rotated together are 1: neighbours, 0: elements half of rotary_dim apart"},
    {"num_splits", EXAMPLE_INTEGER, OWN(num_splits), "1",
     "splits of the keys, up to 128; without a cache on GPUs at most so many, where there are such instances;\n"
     "0: the library chooses them, as it does for 1 without a cache; -1: as CK's 0 does, by rows alone"},
    {"page_block_size", EXAMPLE_INTEGER, OPTION(page_block_size), "0",
     "keys lie in a cache in pages of so many rows, in a random order; 0: no pages"},
    {"cache_batch_idx", EXAMPLE_FLAG, OPTION(cache_batch_idx), "0",
     "1: keys lie in a cache of sequences in a random order"},
    {"api", EXAMPLE_TEXT, OPTION(api), "",
     "the operation: fwd, fwd_splitkv, pagedkv_prefill, batch_prefill; empty: fwd_splitkv with splits\n"
     "on CPUs or a cache, and with a cache and -num_splits=0, pagedkv_prefill with a cache and 1, else fwd;\n"
     "what is appended or rotated is so in the same call, and means a cache"},
    {"pack_gqa", EXAMPLE_FIXED, OWN(pack_gqa), "1",
     "fold the heads that share a key head into one tile: always so here"},
    EXAMPLE_TIMING_AND_JSON("fmha_fwd.json"),
    {"q_eff_lens", EXAMPLE_LIST, LIST(q_eff_lens), "",
     "batch mode: b lengths of q to use of the s that there is room for"},
    {"kv_eff_lens", EXAMPLE_LIST, LIST(kv_eff_lens), "", "the same for k and v"},
    {"init_sink", EXAMPLE_INTEGER, OPTION(init_sink), "0", "not 0: a learned sink per head (30 to 60; 2: -1 to 1)"},
    EXAMPLE_DEVICE_AND_KERNEL,
};

// Extends a list with a single value, which is for all sequences, to one value for each. Only lists of effective
// lengths have not been turned into a number then.
static int spread(const char *name, int32_t b, example_list *list, const int32_t **out, char *message, size_t size) {
    *out = list->values;
    if (!list->values) return 0;
    if (list->count != b && list->count != 1)
        return example_refuse(message, size, "-%s: %d values, and -b=%d sequences need %d%s", name, list->count, b, b,
                              b > 1 ? " or 1" : "");
    if (list->count >= b) return 0;
    int32_t *longer = realloc(list->values, (size_t)b * sizeof *longer);
    if (!longer) return example_refuse(message, size, "-%s: no memory for %d values", name, b);
    for (int32_t n = 1; n < b; n++) longer[n] = longer[0];
    *list = (example_list){longer, b};
    *out = longer;
    return 0;
}

static int settle(void *values, char *message, size_t size) {
    fmha_fwd_arguments *a = values;
    fmha_fwd_options *o = &a->options;
    const int32_t b = o->b;
    o->rtol = o->atol = o->lse_atol = -1;
    if (a->num_splits < -1 || a->num_splits > 128)
        return example_refuse(message, size, "-num_splits=%d: 1 to 128, 0 for the library's choice, or -1 for CK's",
                              a->num_splits);
    if (o->page_block_size < 0)
        return example_refuse(message, size, "-page_block_size=%d: 1 or more, or 0 for none", o->page_block_size);
    if (o->rotary_dim < 0 || o->s_knew < -1)
        return example_refuse(message, size, "-s_knew=%d -rotary_dim=%d: at least -1, at least 0", o->s_knew,
                              o->rotary_dim);
    o->num_splits = a->num_splits;
    if (strcmp(a->timer, "gpu") != 0 && strcmp(a->timer, "cpu") != 0)
        return example_refuse(message, size, "-timer=%s: gpu or cpu", a->timer);
    return spread("s", b, &a->s, &o->s_list, message, size) || spread("s_k", b, &a->s_k, &o->s_k_list, message, size) ||
                   spread("s_qpad", b, &a->s_qpad, &o->s_qpad_list, message, size) ||
                   spread("s_kpad", b, &a->s_kpad, &o->s_kpad_list, message, size) ||
                   spread("q_eff_lens", b, &a->q_eff_lens, &o->q_eff_lens, message, size) ||
                   spread("kv_eff_lens", b, &a->kv_eff_lens, &o->kv_eff_lens, message, size)
               ? -1
               : 0;
}

const example_arguments fmha_fwd_arguments_table = {
    .does = "Runs one fused attention forward pass, times it and checks it.",
    .table = table,
    .count = sizeof table / sizeof *table,
    .bytes = sizeof(fmha_fwd_arguments),
    .list_length = "b",
    .settle = settle,
};
