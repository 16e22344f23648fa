// SPDX-License-Identifier: MIT
// One table of arguments: read, defaults and help all come from it.
#include "fmha_fwd_arguments.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind {
    INTEGER,
    FLAG,
    UNSIGNED32,
    UNSIGNED64,
    REAL,
    TEXT,
    INTEGER_OR_LIST, // one value for all, or one a sequence
    LIST,
    FIXED // an integer that must keep its default
} kind;

typedef struct argument {
    const char *name;
    kind kind;
    size_t offset;     // in fmha_fwd_arguments
    int list;          // of the lists; -1: none
    const char *value; // the default, as a user would write it
    const char *help;
} argument;

#define OPTION(name) offsetof(fmha_fwd_arguments, options) + offsetof(fmha_fwd_options, name)
#define OWN(name) offsetof(fmha_fwd_arguments, name)

static const argument table[] = {
    {"v", INTEGER, OPTION(v), -1, "1",
     "verification against the fp64 reference: 0 none; 1 all rows, or a sample above 2^37 FLOP;\n"
     "2 as 1 (CK's check on the GPU); 3 all rows whatever it takes"},
    {"mode", INTEGER, OPTION(mode), -1, "0", "0: batch, 1: group (sequences of different lengths, concatenated)"},
    {"b", INTEGER, OPTION(b), -1, "2", "number of sequences"},
    {"h", INTEGER, OPTION(h), -1, "8", "heads of q"},
    {"h_k", INTEGER, OPTION(h_k), -1, "-1", "heads of k and v, a divisor of h; -1: h"},
    {"s", INTEGER_OR_LIST, OPTION(s), 0, "3328",
     "length of q; group mode: the mean of lengths that are drawn by -seed,\n"
     "or a list of b lengths with commas between them"},
    {"s_k", INTEGER_OR_LIST, OPTION(s_k), 1, "-1", "length of k and v, in the same ways; -1: those of q"},
    {"s_knew", FIXED, OWN(s_knew), -1, "0", "new keys to append: not in this operation"},
    {"s_qpad", INTEGER_OR_LIST, OPTION(s_qpad), 2, "-1",
     "room of a sequence of q in tokens, at least its length; -1: no more than that\n"
     "(group mode: one value for all, or b values)"},
    {"s_kpad", INTEGER_OR_LIST, OPTION(s_kpad), 3, "-1", "the same for k and v"},
    {"d", INTEGER, OPTION(d), -1, "128", "head dim of q and k, 1 to 512"},
    {"d_v", INTEGER, OPTION(d_v), -1, "-1", "head dim of v and o, 1 to 512; -1: d"},
    {"scale_s", REAL, OPTION(scale_s), -1, "0", "factor of q k; 0: 1/sqrt(d)"},
    {"qscale", TEXT, OPTION(qscale), -1, "n",
     "scales of the inputs: n or 0 none; pt or 1 one a tensor; bs or 2 one for 128 tokens of a head;\n"
     "mx or 4 one for 32 elements (mxfp8, mxfp4); kvbs or 3 belongs to batch_prefill: refused"},
    {"logits_soft_cap", REAL, OPTION(logits_soft_cap), -1, "0", "c: logits become c tanh(logits / c); 0: no cap"},
    {"iperm", FLAG, OPTION(iperm), -1, "1", "inputs lie as 1: b*h*s*d, 0: b*s*h*d"},
    {"operm", FLAG, OPTION(operm), -1, "1", "the output, likewise"},
    {"bias", TEXT, OPTION(bias), -1, "n",
     "n or 0: none; e or 1: elementwise 1*1*s*s, e:1: 1*h*s*s, e:2: b*h*s*s;\n"
     "a or 2: alibi with 1*h slopes, a:1: with b*h"},
    {"prec", TEXT, OPTION(prec), -1, "fp16", "fp32, fp16, bf16, fp8, fp8bf16, fp8fp32, mxfp8 or mxfp4"},
    {"mask", TEXT, OPTION(mask), -1, "0",
     "0: none; 1 or t: causal from the top left; 2 or b: causal from the bottom right;\n"
     "t:l,r and b:l,r: a window of l keys to the left and r to the right, -1: all (FlashAttention's way);\n"
     "t:l,r,n and b:l,r,n: and the first n keys (attention sinks);\n"
     "xt:w and xb:w: a window of w keys around the diagonal, w <= 0: causal (xformers' way);\n"
     "g:y,x: query i sees keys i-y < j < i+x"},
    {"vlayout", TEXT, OPTION(vlayout), -1, "r", "v lies as r: seqlen*hdim, c: hdim*seqlen"},
    {"lse", FLAG, OPTION(lse), -1, "0", "1: also store the log-sum-exp of every row"},
    {"kname", INTEGER, OWN(kname), -1, "0", "print the kernel's 1: short name, 2: name as CK would make it"},
    {"init", TEXT, OPTION(init), -1, "uf",
     "inputs: ui or 0 integers of -3 to 3; ni rounded normal; uf or 1 uniform in 0 to 1; nf normal;\n"
     "tf or 2 cosines; 3 or uf:q uniform over the type's range"},
    {"seed", UNSIGNED32, OPTION(seed), -1, "11939", "seed of inputs, lengths and sampled rows; 0: another every time"},
    {"p_drop", REAL, OPTION(p_drop), -1, "0", "probability of dropout, 0 <= p < 1"},
    {"drop_seed", UNSIGNED64, OPTION(drop_seed), -1, "1", "seed of dropout"},
    {"drop_offset", UNSIGNED64, OPTION(drop_offset), -1, "0", "offset of dropout"},
    {"drop_prefs", FLAG, OPTION(drop_prefs), -1, "0", "give seed and offset 0: by value, 1: by pointer"},
    {"timer", TEXT, OWN(timer), -1, "gpu",
     "gpu or cpu; every device is timed by the CPU's clock, GPUs over all runs at once"},
    {"rotary_dim", FIXED, OWN(rotary_dim), -1, "0", "rotary embedding: not in this operation"},
    {"rotary_interleaved", FIXED, OWN(rotary_interleaved), -1, "1", "its form: not in this operation"},
    {"num_splits", INTEGER, OWN(num_splits), -1, "1",
     "splits of the keys: 0 (CK's heuristic) or 1; the library chooses them either way"},
    {"page_block_size", FIXED, OWN(page_block_size), -1, "0", "paged KV cache: not in this operation"},
    {"cache_batch_idx", FIXED, OWN(cache_batch_idx), -1, "0", "indexed KV cache: not in this operation"},
    {"pack_gqa", FIXED, OWN(pack_gqa), -1, "1", "fold the heads that share a key head into one tile: always so here"},
    {"warmup", INTEGER, OPTION(warmup), -1, "5", "runs before timing"},
    {"repeat", INTEGER, OPTION(repeat), -1, "20",
     "timed runs, of which the mean is printed;\nwithout -warmup and -repeat timing stops after 3 s"},
    {"json", FLAG, OWN(json), -1, "0", "1: write the result as JSON"},
    {"jsonfile", TEXT, OWN(jsonfile), -1, "fmha_fwd.json", "where to"},
    {"q_eff_lens", LIST, OPTION(q_eff_lens), 4, "",
     "batch mode: b lengths of q to use of the s that there is room for"},
    {"kv_eff_lens", LIST, OPTION(kv_eff_lens), 5, "", "the same for k and v"},
    {"init_sink", INTEGER, OPTION(init_sink), -1, "0", "not 0: a learned sink per head (30 to 60)"},
    {"device", TEXT, OPTION(device), -1, "auto",
     "auto: the first GPU that there are kernels for, else the CPU; cpu; cpu:TARGET such as cpu:x86-64-v3 for its\n"
     "kernels alone; hip:N: an AMD GPU; sim:ARCH such as sim:gfx942: a simulated one, where a problem is run once\n"
     "unless -warmup or -repeat say otherwise"},
    {"instance", TEXT, OPTION(instance), -1, "",
     "the kernel to take, by its short name; without it that of least estimated cost"},
    {"pack", TEXT, OWN(pack), -1, "", "a file of code objects for tessera_load_pack()"},
    {"threads", INTEGER, OPTION(threads), -1, "0", "CPU threads; 0: affinity, quota and TESSERA_NUM_THREADS decide"},
    {"explain", INTEGER, OWN(explain), -1, "0",
     "1: first list the kernels that can serve with their costs, the chosen one behind a *, and count for each reason\n"
     "those that cannot; 2: and name each of these with all of its reasons"},
};
enum { ARGUMENTS = sizeof table / sizeof *table };

typedef struct reader {
    fmha_fwd_arguments *out;
    char *message;
    size_t size;
} reader;

__attribute__((format(printf, 2, 3))) static int fail(const reader *r, const char *format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(r->message, r->size, format, values);
    va_end(values);
    return -1;
}

static int read_integer(const char *text, const char **end, int64_t least, int64_t greatest, int64_t *out) {
    char *stop;
    errno = 0;
    long long value = strtoll(text, &stop, 10);
    *end = stop;
    if (stop == text || *text == ' ' || errno || value < least || value > greatest) return -1;
    *out = value;
    return 0;
}

// Integers with commas between them, into a list of their own.
static int read_list(const reader *r, const argument *a, const char *value) {
    int32_t count = 1;
    for (const char *c = value; *c; c++) count += *c == ',';
    int32_t *list = malloc((size_t)count * sizeof *list);
    if (!list) return fail(r, "-%s: no memory for %d values", a->name, count);
    free(r->out->lists[a->list]);
    r->out->lists[a->list] = list;
    r->out->list_sizes[a->list] = count;
    const char *text = value;
    for (int32_t n = 0; n < count; n++) {
        int64_t number;
        if (read_integer(text, &text, INT32_MIN, INT32_MAX, &number) || *text != (n + 1 < count ? ',' : '\0'))
            return fail(r, "-%s=%s: 32-bit integers with commas between them", a->name, value);
        list[n] = (int32_t)number;
        text++;
    }
    return 0;
}

static int read_flag(const char *value) {
    if (!strcmp(value, "1") || !strcmp(value, "t") || !strcmp(value, "true")) return 1;
    if (!strcmp(value, "0") || !strcmp(value, "f") || !strcmp(value, "false")) return 0;
    return -1;
}

static void drop_list(fmha_fwd_arguments *out, int list) {
    if (list < 0) return;
    free(out->lists[list]);
    out->lists[list] = NULL;
    out->list_sizes[list] = 0;
}

static int read_value(const reader *r, const argument *a, const char *value) {
    void *field = (char *)r->out + a->offset;
    const char *end;
    int64_t number = 0;
    int64_t least = a->kind == UNSIGNED32 ? 0 : INT32_MIN, greatest = a->kind == UNSIGNED32 ? UINT32_MAX : INT32_MAX;
    if (a->kind == LIST || strchr(value, ',')) {
        drop_list(r->out, a->list);
        if (a->kind == LIST && !*value) return 0;
        if (a->kind == LIST || a->kind == INTEGER_OR_LIST) return read_list(r, a, value);
    }
    if (!*value) return fail(r, "-%s=: no value; -? says which there are", a->name);
    switch (a->kind) {
    case TEXT:
        *(const char **)field = value;
        return 0;
    case FLAG:
        if ((*(int32_t *)field = read_flag(value)) < 0) return fail(r, "-%s=%s: 0 or 1", a->name, value);
        return 0;
    case REAL: {
        char *stop;
        *(float *)field = strtof(value, &stop);
        return *stop || stop == value ? fail(r, "-%s=%s: a number", a->name, value) : 0;
    }
    case UNSIGNED64: {
        char *stop;
        errno = 0;
        *(uint64_t *)field = strtoull(value, &stop, 10);
        if (*stop || *value < '0' || *value > '9' || errno)
            return fail(r, "-%s=%s: an integer from 0 to 2^64 - 1", a->name, value);
        return 0;
    }
    default:
        if (read_integer(value, &end, least, greatest, &number) || *end)
            return fail(r, "-%s=%s: %s", a->name, value,
                        a->kind == UNSIGNED32        ? "an integer from 0 to 2^32 - 1"
                        : a->kind == INTEGER_OR_LIST ? "a 32-bit integer, or b of them with commas between them"
                                                     : "a 32-bit integer");
        if (a->kind == UNSIGNED32)
            *(uint32_t *)field = (uint32_t)number;
        else
            *(int32_t *)field = (int32_t)number;
        drop_list(r->out, a->list);
        if (a->kind == FIXED && number != strtoll(a->value, NULL, 10))
            return fail(r, "-%s=%s: only %s, the default (%s)", a->name, value, a->value, a->help);
        return 0;
    }
}

static int read_argument(const reader *r, const char *text) {
    if (text[0] != '-') return fail(r, "%s: arguments look like -name=value; -? lists them", text);
    if (!strcmp(text, "-?") || !strcmp(text, "-help") || !strcmp(text, "--help")) return r->out->help = 1, 0;
    size_t length = strcspn(text + 1, "=");
    for (int n = 0; n < ARGUMENTS; n++) {
        const argument *a = &table[n];
        if (strlen(a->name) != length || strncmp(text + 1, a->name, length) != 0) continue;
        if (text[1 + length] != '=')
            return fail(r, "-%s: a value is missing, as in -%s=%s", a->name, a->name, a->value);
        r->out->warmup_given |= !strcmp(a->name, "warmup");
        r->out->repeat_given |= !strcmp(a->name, "repeat");
        return read_value(r, a, text + 2 + length);
    }
    return fail(r, "-%.*s: no such argument; -? lists them", (int)length, text + 1);
}

// A list has one value a sequence; a single one, which only the lists of effective lengths keep, is for all.
static int spread_lists(const reader *r) {
    fmha_fwd_options *o = &r->out->options;
    for (int n = 0; n < ARGUMENTS; n++) {
        const argument *a = &table[n];
        if (a->list < 0 || !r->out->lists[a->list]) continue;
        int32_t size = r->out->list_sizes[a->list];
        if (size != o->b && size != 1)
            return fail(r, "-%s: %d values, and -b=%d sequences need %d%s", a->name, size, o->b, o->b,
                        o->b > 1 ? " or 1" : "");
        if (size < o->b) {
            int32_t *longer = realloc(r->out->lists[a->list], (size_t)o->b * sizeof *longer);
            if (!longer) return fail(r, "-%s: no memory for %d values", a->name, o->b);
            for (int32_t b = 1; b < o->b; b++) longer[b] = longer[0];
            r->out->lists[a->list] = longer;
        }
    }
    o->s_list = r->out->lists[0];
    o->s_k_list = r->out->lists[1];
    o->s_qpad_list = r->out->lists[2];
    o->s_kpad_list = r->out->lists[3];
    o->q_eff_lens = r->out->lists[4];
    o->kv_eff_lens = r->out->lists[5];
    return 0;
}

static void set_defaults(const reader *r) {
    *r->out = (fmha_fwd_arguments){.options = {.time_limit_s = 3, .rtol = -1, .atol = -1, .lse_atol = -1}};
    for (int n = 0; n < ARGUMENTS; n++) read_value(r, &table[n], table[n].value);
}

fmha_fwd_options fmha_fwd_options_default(void) {
    fmha_fwd_arguments arguments;
    char message[64];
    set_defaults(&(reader){&arguments, message, sizeof message});
    return arguments.options;
}

int fmha_fwd_read_arguments(int argc, char *const *argv, fmha_fwd_arguments *out, char *message, size_t size) {
    reader r = {out, message, size};
    set_defaults(&r);
    for (int n = 1; n < argc; n++)
        if (read_argument(&r, argv[n])) return -1;
    if (out->help) return 0;
    if (out->kname < 0 || out->kname > 2) return fail(&r, "-kname=%d: 0, 1 or 2", out->kname);
    if (out->explain < 0 || out->explain > 2) return fail(&r, "-explain=%d: 0, 1 or 2", out->explain);
    if (out->num_splits < 0 || out->num_splits > 1)
        return fail(&r, "-num_splits=%d: 0 (a heuristic's) or 1; the library chooses the splits of the keys",
                    out->num_splits);
    if (strcmp(out->timer, "gpu") != 0 && strcmp(out->timer, "cpu") != 0)
        return fail(&r, "-timer=%s: gpu or cpu", out->timer);
    if (out->options.threads < 0) return fail(&r, "-threads=%d: 0 or more", out->options.threads);
    if (out->warmup_given || out->repeat_given) out->options.time_limit_s = 0;
    if (strncmp(out->options.device, "sim:", 4) == 0) {
        if (!out->warmup_given) out->options.warmup = 0;
        if (!out->repeat_given) out->options.repeat = 1;
    }
    return spread_lists(&r);
}

void fmha_fwd_free_arguments(fmha_fwd_arguments *arguments) {
    for (int list = 0; list < FMHA_FWD_LISTS; list++) drop_list(arguments, list);
}

void fmha_fwd_print_help(FILE *file) {
    fputs("Runs one fused attention forward pass, times it and checks it. Arguments look like -name=value:\n", file);
    for (int n = 0; n < ARGUMENTS; n++) {
        fprintf(file, "%*s-%s    ", 19 - (int)strlen(table[n].name), "", table[n].name);
        for (const char *c = table[n].help; *c; c++) {
            fputc(*c, file);
            if (*c == '\n') fprintf(file, "%24s", "");
        }
        fprintf(file, " (default: %s)\n", *table[n].value ? table[n].value : "none");
    }
    fputs("Exit codes: 0 all is well, 1 wrong arguments, 2 no kernel serves the problem, 3 wrong result, 4 device "
          "error, or the output cannot be written.\n",
          file);
}
