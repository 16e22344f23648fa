// SPDX-License-Identifier: MIT
// tile_example_kv_cache_serving: sequences arrive, grow token by token, are swapped out and in where pages run short,
// and leave, over one cache in pages. Every token that is decoded is checked against attention over the sequence alone.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "elements.h"
#include "json.h"
#include "program.h"
#include "random.h"
#include "serving.h"

typedef struct options {
    example_options common;
    int32_t sequences, h, h_k, d, page_block_size, pages, prompt, tokens, gap;
    const char *prec, *kv_cache_dtype, *api;
} options;

static const char program[] = "tile_example_kv_cache_serving";

// ---- arguments

#define OPTION(name) #name, EXAMPLE_INTEGER, offsetof(options, name), 0
#define WORD(name) #name, EXAMPLE_TEXT, offsetof(options, name), 0
static const example_argument table[] = {
    {"v", EXAMPLE_INTEGER, EXAMPLE_COMMON(v), "1",
     "1: each token is compared with fmha_fwd over a contiguous copy of its sequence, in fp32 on the CPU; 0: none"},
    {OPTION(sequences), "64", "sequences that arrive"},
    {OPTION(gap), "2", "the most steps between two arrivals"},
    {OPTION(prompt), "40", "the most tokens of a prompt, which is appended whole"},
    {OPTION(tokens), "60", "the most tokens that a sequence decodes"},
    {OPTION(h), "8", "heads of q"},
    {OPTION(h_k), "2", "heads of k and v, a divisor of h"},
    {OPTION(d), "64", "head dim, 1 to 512"},
    {WORD(prec), "bf16", "type of q and o: fp16 or bf16"},
    {WORD(kv_cache_dtype), "auto",
     "type of the cache: auto (prec), fp8_e4m3 or int8 (with a scale of each token and head), turbo4"},
    {WORD(api), "",
     "append and attend by fwd_splitkv: one call, for auto; paged_attention: after fwd_appendkv; empty: by turns,\n"
     "where both can"},
    {OPTION(page_block_size), "16", "keys of a page, a power of two"},
    {OPTION(pages), "60", "pages of the cache, which sequences are swapped out of where it is full"},
    {"seed", EXAMPLE_UNSIGNED32, EXAMPLE_COMMON(seed), "11939", "seed of arrivals, lengths and numbers"},
    {"json", EXAMPLE_FLAG, EXAMPLE_COMMON(json), "0", "1: write the result as JSON"},
    {"jsonfile", EXAMPLE_TEXT, EXAMPLE_COMMON(jsonfile), "kv_cache_serving.json", "where to"},
    {"device", EXAMPLE_TEXT, EXAMPLE_COMMON(device), "cpu", "as of tile_example_kv_cache, but for auto"},
    {"threads", EXAMPLE_INTEGER, EXAMPLE_COMMON(threads), "0",
     "CPU threads; 0: affinity, quota and TESSERA_NUM_THREADS decide"},
};

static int32_t pages_of(const options *o) {
    return (o->prompt + o->tokens + o->page_block_size - 1) / o->page_block_size;
}

static int settle_arguments(void *values, char *message, size_t size) {
    const options *o = values;
    const struct {
        const char *name;
        int32_t value, least, most;
    } all[] = {{"sequences", o->sequences, 1, 1 << 20},
               {"gap", o->gap, 0, 1 << 20},
               {"prompt", o->prompt, 1, 1 << 20},
               {"tokens", o->tokens, 1, 1 << 20},
               {"h", o->h, 1, 1 << 10},
               {"d", o->d, 1, 512},
               {"page_block_size", o->page_block_size, 1, 1 << 16},
               {"pages", o->pages, 1, 1 << 24}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].value < all[i].least || all[i].value > all[i].most)
            return example_refuse(message, size, "-%s=%d: %d to %d", all[i].name, all[i].value, all[i].least,
                                  all[i].most);
    if (o->h_k < 1 || o->h % o->h_k)
        return example_refuse(message, size, "-h_k=%d: a number that divides -h=%d", o->h_k, o->h);
    if (o->pages <= pages_of(o)) // an arrival needs one more than its prompt
        return example_refuse(message, size, "-pages=%d: more than the longest sequence has, %d", o->pages,
                              pages_of(o));
    return 0;
}

static const example_arguments arguments = {
    .does = "Serves sequences over one cache in pages, token by token, and checks every token that they decode.",
    .table = table,
    .count = sizeof table / sizeof *table,
    .bytes = sizeof(options),
    .settle = settle_arguments,
};

// ---- what is served

enum { SPLITKV = 1, PAGED = 2 };

typedef struct serving {
    const options *options;
    tessera_device *device, *alone;
    serving_model model;
    serving_pages pages;
    serving_calls calls;
    int apis; // SPLITKV, PAGED, or both
    serving_sequence *sequences, **list;
    int32_t running, most_running, swaps, gone;
    int64_t steps, turns, tokens, checked;
    double worst; // error over what is allowed
} serving;

static example_outcome read_words(serving *s, example_result *result) {
    const options *const o = s->options;
    tessera_kv_cache_dtype kv;
    if (tessera_fmha_dtype_from_string(o->prec, &s->model.dtype) != TESSERA_SUCCESS ||
        (s->model.dtype != TESSERA_FMHA_FP16 && s->model.dtype != TESSERA_FMHA_BF16))
        return EXAMPLE_WRONG("-prec=%s: fp16 or bf16", o->prec);
    if (tessera_kv_cache_dtype_from_string(o->kv_cache_dtype, &kv) != TESSERA_SUCCESS ||
        !serving_kv_types[kv].row_elements)
        return EXAMPLE_WRONG("-kv_cache_dtype=%s: auto, fp8_e4m3, int8 or turbo4", o->kv_cache_dtype);
    const int can = kv == TESSERA_KV_AUTO ? SPLITKV | PAGED : PAGED;
    const char *const api = o->api ? o->api : "";
    s->apis = !*api ? can : !strcmp(api, "fwd_splitkv") ? SPLITKV : !strcmp(api, "paged_attention") ? PAGED : 0;
    if (!s->apis) return EXAMPLE_WRONG("-api=%s: fwd_splitkv or paged_attention", api);
    if (s->apis & ~can)
        return EXAMPLE_WRONG("-api=fwd_splitkv with -kv_cache_dtype=%s: it has caches of q's type", o->kv_cache_dtype);
    s->model.type = s->model.dtype == TESSERA_FMHA_FP16 ? TESSERA_TYPE_FP16 : TESSERA_TYPE_BF16;
    s->model.kv = &serving_kv_types[kv];
    return EXAMPLE_OK;
}

// Arrivals, and lengths that every sequence will reach.
static void draw_sequences(serving *s) {
    const options *const o = s->options;
    const size_t token = (size_t)o->h_k * (size_t)o->d * sizeof(float);
    uint64_t state = o->common.seed;
    int32_t arrival = 0;
    for (int32_t n = 0; n < o->sequences; n++) {
        serving_sequence *const x = &s->sequences[n];
        x->number = n;
        arrival += (int32_t)(example_random(&state) % (uint64_t)(o->gap + 1));
        x->arrival = arrival;
        x->prompt = 1 + (int32_t)(example_random(&state) % (uint64_t)o->prompt);
        x->most = x->prompt + 1 + (int32_t)(example_random(&state) % (uint64_t)o->tokens);
        x->random = example_random(&state);
        x->pages = malloc(sizeof *x->pages * (size_t)pages_of(o));
        x->k = malloc(token * (size_t)x->most), x->v = malloc(token * (size_t)x->most);
        x->q = malloc((size_t)(o->h * o->d) * sizeof(float));
        if (!x->pages || !x->k || !x->v || !x->q) abort();
    }
}

static example_outcome open_serving(serving *s, example_result *result) {
    const options *const o = s->options;
    serving_model *const m = &s->model;
    tessera_status status;
    if (read_words(s, result)) return result->outcome;
    if ((status = tessera_device_open(o->common.device, &s->device)) != TESSERA_SUCCESS ||
        (status = tessera_device_open("cpu", &s->alone)) != TESSERA_SUCCESS)
        return example_fail_status(result, status, "-device");
    m->heads = o->h, m->heads_k = o->h_k, m->hdim = o->d;
    m->device = s->device, m->alone = s->alone;
    m->element_bytes = m->kv->element_bytes ? m->kv->element_bytes : element_bits(m->type) / 8;
    m->row_elements = m->kv->row_elements(o->d);
    tessera_turbo4_codebook(o->d, m->centroids);
    s->sequences = calloc((size_t)o->sequences, sizeof *s->sequences);
    s->list = calloc((size_t)o->sequences, sizeof(serving_sequence *));
    if (!s->sequences || !s->list) abort();
    draw_sequences(s);
    s->calls = (serving_calls){.model = m, .pages = &s->pages, .columns = pages_of(o)};
    status = serving_open_pages(&s->pages, m, o->pages, o->page_block_size, o->common.seed);
    return status == TESSERA_SUCCESS ? EXAMPLE_OK : example_fail_status(result, status, "the cache");
}

static void close_serving(serving *s) {
    for (int32_t n = 0; s->sequences && n < s->options->sequences; n++) {
        serving_sequence *const x = &s->sequences[n];
        free(x->pages), free(x->swapped), free(x->k), free(x->v), free(x->q);
    }
    if (s->calls.model) serving_close_calls(&s->calls), serving_close_pages(&s->pages);
    free(s->sequences), free(s->list);
    tessera_device_close(s->device), tessera_device_close(s->alone);
}

// ---- who runs

// The sequence in that state of the least or, for the newest, greatest `since`; NULL: there is none.
static serving_sequence *find(const serving *s, serving_state state, int newest) {
    serving_sequence *found = NULL;
    for (int32_t n = 0; n < s->options->sequences; n++) {
        serving_sequence *const x = &s->sequences[n];
        if (x->state == state && (!found || (newest ? x->since > found->since : x->since < found->since))) found = x;
    }
    return found;
}

static int32_t pages_for(const serving *s, int32_t tokens) { return (tokens + s->pages.rows - 1) / s->pages.rows; }

// Those that were swapped out come back first, in the order in which they left.
static tessera_status return_swapped(serving *s) {
    for (serving_sequence *x; (x = find(s, SERVING_SWAPPED, 0)) != NULL;) {
        if (s->pages.free_count < pages_for(s, x->length + 1)) return TESSERA_SUCCESS;
        TRY(serving_swap_in(&s->pages, x));
        x->since = s->turns++;
    }
    return TESSERA_SUCCESS;
}

static tessera_status admit(serving *s) {
    for (int32_t n = 0; n < s->options->sequences; n++) {
        serving_sequence *x = &s->sequences[n];
        if (x->state != SERVING_TO_COME) continue;
        if (x->arrival > s->steps || find(s, SERVING_SWAPPED, 0) || s->pages.free_count < pages_for(s, x->prompt + 1))
            return TESSERA_SUCCESS;
        while (x->page_count < pages_for(s, x->prompt)) serving_take_page(&s->pages, x);
        TRY(serving_step(&s->calls, &x, 1, x->prompt, 0, NULL));
        x->state = SERVING_RUNNING;
        x->since = s->turns++;
    }
    return TESSERA_SUCCESS;
}

// A page for the next token of each, where the newest ones make room if there is none.
static tessera_status make_room(serving *s) {
    for (int32_t n = 0; n < s->options->sequences; n++) {
        serving_sequence *const x = &s->sequences[n];
        while (x->state == SERVING_RUNNING && x->page_count < pages_for(s, x->length + 1)) {
            if (serving_take_page(&s->pages, x)) continue;
            serving_sequence *const newest = find(s, SERVING_RUNNING, 1);
            TRY(serving_swap_out(&s->pages, newest));
            newest->since = s->turns++;
            s->swaps++;
        }
    }
    return TESSERA_SUCCESS;
}

static void list_running(serving *s) {
    s->running = 0;
    for (int32_t n = 0; n < s->options->sequences; n++)
        if (s->sequences[n].state == SERVING_RUNNING) s->list[s->running++] = &s->sequences[n];
    if (s->running > s->most_running) s->most_running = s->running;
}

static tessera_status leave(serving *s) {
    for (int32_t n = 0; n < s->running; n++) {
        serving_sequence *const x = s->list[n];
        if (x->length < x->most) continue;
        TRY(serving_give_pages(&s->pages, x));
        x->state = SERVING_GONE;
        s->gone++;
    }
    return TESSERA_SUCCESS;
}

// ---- the loop

static tessera_status check_tokens(serving *s, const char *o, example_result *result) {
    const size_t bytes = (size_t)(s->model.heads * s->model.hdim) * (size_t)element_bits(s->model.type) / 8;
    for (int32_t n = 0; n < s->running && s->options->common.v; n++) {
        double ratio;
        TRY(serving_check(&s->model, s->list[n], o + (size_t)n * bytes, &ratio));
        s->checked++;
        if (ratio > s->worst) s->worst = ratio;
        if (ratio > 1 && result->outcome == EXAMPLE_OK)
            example_fail(result, EXAMPLE_WRONG_RESULT,
                         "token %d of sequence %d, of step %lld, is %.3g times as far off as it may be",
                         s->list[n]->length - 1, s->list[n]->number, (long long)s->steps, ratio);
    }
    return TESSERA_SUCCESS;
}

static tessera_status serve_step(serving *s, char *o, example_result *result) {
    TRY(return_swapped(s));
    TRY(admit(s));
    TRY(make_room(s));
    list_running(s);
    const int fused = s->apis == SPLITKV || (s->apis == (SPLITKV | PAGED) && s->steps % 2 == 0);
    if (s->running) TRY(serving_step(&s->calls, s->list, s->running, 1, fused, o));
    TRY(check_tokens(s, o, result));
    s->tokens += s->running;
    s->steps++;
    return leave(s);
}

static example_outcome serve(serving *s, example_result *result) {
    const options *const o = s->options;
    char *const found = malloc((size_t)o->sequences * (size_t)(o->h * o->d) * sizeof(float));
    if (!found) abort();
    tessera_status status = TESSERA_SUCCESS;
    while (s->gone < o->sequences && status == TESSERA_SUCCESS && result->outcome == EXAMPLE_OK)
        status = serve_step(s, found, result);
    free(found);
    if (status != TESSERA_SUCCESS) return example_fail_status(result, status, "serving");
    if (result->outcome == EXAMPLE_OK && s->pages.free_count != s->pages.count)
        return example_fail(result, EXAMPLE_WRONG_RESULT, "%d of %d pages were given back", s->pages.free_count,
                            s->pages.count);
    return result->outcome;
}

// ---- output

static double ms_of_step(const serving *s) { return s->steps ? s->calls.seconds * 1e3 / (double)s->steps : 0; }

static void print(const serving *s, const example_result *result) {
    const options *const o = s->options;
    printf("[%s|%s] sequences:%d, h:%d/%d, d:%d, page_block_size:%d, pages:%d", o->prec, o->kv_cache_dtype,
           o->sequences, o->h, o->h_k, o->d, o->page_block_size, o->pages);
    if (result->outcome == EXAMPLE_NO_INSTANCE) {
        puts(", not supported!");
        return;
    }
    printf(", steps:%lld, tokens:%lld, most_running:%d, swaps:%d, %.3f ms a step", (long long)s->steps,
           (long long)s->tokens, s->most_running, s->swaps, ms_of_step(s));
    puts(!o->common.v ? "" : result->outcome == EXAMPLE_OK ? ", valid:y" : ", valid:n");
}

static int write_json(const serving *s, const example_result *result) {
    const options *const o = s->options;
    FILE *const file = fopen(o->common.jsonfile, "w");
    if (!file) return -1;
    fputs("{\n", file);
    example_put_text(file, "name", "kv_cache_serving");
    example_put_text(file, "prec", o->prec);
    example_put_text(file, "kv_cache_dtype", o->kv_cache_dtype);
    example_put_text(file, "device", s->device ? tessera_device_name(s->device) : o->common.device);
    example_put_integer(file, "sequences", o->sequences);
    example_put_integer(file, "page_block_size", o->page_block_size);
    example_put_integer(file, "pages", o->pages);
    example_put_integer(file, "steps", s->steps);
    example_put_integer(file, "tokens", s->tokens);
    example_put_integer(file, "most_running", s->most_running);
    example_put_integer(file, "swaps", s->swaps);
    example_put_text(file, "verification", !o->common.v ? "skipped" : result->outcome ? "fail" : "pass");
    example_put_integer(file, "tokens_verified", s->checked);
    example_put_number(file, "max_error_over_bound", s->worst);
    example_put_text(file, "message", result->message);
    fprintf(file, "  \"perf\": {\"ms_per_step\": %.9g}\n}\n", ms_of_step(s));
    const int failed = ferror(file);
    return fclose(file) != 0 || failed ? -1 : 0;
}

// One line, whatever characters the arguments that it repeats hold.
static int complain(int outcome, const char *message) {
    fflush(stdout);
    fprintf(stderr, "%s: ", program);
    for (const char *c = message; *c; c++) fputc(iscntrl((unsigned char)*c) ? '?' : *c, stderr);
    fputc('\n', stderr);
    return outcome;
}

static int run(const options *o) {
    serving s = {.options = o};
    example_result result = {0};
    if (o->common.threads && tessera_set_num_threads(o->common.threads) != TESSERA_SUCCESS)
        return complain(EXAMPLE_WRONG_ARGUMENT, tessera_last_error());
    const int opened = open_serving(&s, &result) == EXAMPLE_OK;
    if (opened) {
        serve(&s, &result);
        print(&s, &result);
    }
    if (result.outcome != EXAMPLE_OK) complain((int)result.outcome, result.message);
    if (opened && o->common.json && write_json(&s, &result) != 0) {
        snprintf(result.message, sizeof result.message, "-jsonfile=%s: it cannot be written", o->common.jsonfile);
        result.outcome = (example_outcome)complain(EXAMPLE_WRONG_ARGUMENT, result.message);
    }
    close_serving(&s);
    return (int)result.outcome;
}

int main(int argc, char **argv) {
    options values;
    char message[512];
    int code;
    memset(&values, 0, sizeof values);
    if (example_read_arguments(&arguments, argc, argv, &values, message, sizeof message) != 0)
        code = complain(EXAMPLE_WRONG_ARGUMENT, message);
    else if (values.common.help)
        code = (example_print_help(&arguments, stdout), EXAMPLE_OK);
    else
        code = run(&values);
    example_free_arguments(&arguments, &values);
    return example_exit_code(program, code);
}
