// SPDX-License-Identifier: MIT
// The calls of a step: append the next tokens of several sequences, attend to all that each of them has. A cache of
// another type than the queries' is appended to by rows of bytes.
#define _POSIX_C_SOURCE 199309L // clock_gettime
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "elements.h"
#include "random.h"
#include "serving.h"
#include "tessera/fmha_fwd_appendkv.h"
#include "tessera/fmha_fwd_splitkv.h"
#include "tessera/paged_attention.h"

// ---- memory of the device

static tessera_status grow(const serving_calls *c, serving_room *room, size_t bytes) {
    if (bytes <= room->bytes) return TESSERA_SUCCESS;
    tessera_device_free(c->model->device, room->memory);
    *room = (serving_room){NULL, 0};
    TRY(tessera_device_malloc(c->model->device, bytes, &room->memory));
    room->bytes = bytes;
    return TESSERA_SUCCESS;
}

static tessera_status put(const serving_calls *c, serving_room *room, const void *host, size_t bytes) {
    TRY(grow(c, room, bytes));
    return tessera_device_copy_to(c->model->device, room->memory, host, bytes);
}

void serving_close_calls(serving_calls *c) {
    serving_room *const all[] = {&c->q,       &c->knew,  &c->vnew,      &c->o,
                                 &c->lengths, &c->table, &c->centroids, &c->workspace};
    for (size_t n = 0; n < sizeof all / sizeof *all; n++) tessera_device_free(c->model->device, all[n]->memory);
}

// ---- what a step has, on the host

typedef struct step {
    serving_sequence *const *list;
    int32_t count, tokens;
    char *q, *knew, *vnew; // [sequence, head, hdim]; [sequence, token, head, row]
    int32_t *lengths, *table;
} step;

static size_t row_bytes(const serving_model *m) { return (size_t)m->row_elements * (size_t)m->element_bytes; }

// The scale of a row, behind whose sequence's page lies that of its scale.
static tessera_status put_scale(const serving_calls *c, const serving_sequence *s, int tensor, int32_t token,
                                int32_t head, float scale) {
    const serving_pages *const p = c->pages;
    if (!p->tensors[tensor].memory) return TESSERA_SUCCESS;
    const size_t page = (size_t)s->pages[token / p->rows];
    const size_t row = (size_t)(token % p->rows) * (size_t)c->model->heads_k + (size_t)head;
    return tessera_device_copy_to(c->model->device,
                                  p->tensors[tensor].memory + page * p->tensors[tensor].page_bytes + row * sizeof scale,
                                  &scale, sizeof scale);
}

static void draw(serving_sequence *s, float *x, int32_t count) {
    for (int32_t i = 0; i < count; i++) x[i] = (float)example_uniform(&s->random, -1, 1);
}

// Key and value of a token of every head: into the step's rows, and into the sequence's own copy.
static tessera_status draw_token(const serving_calls *c, const step *step, int32_t n, int32_t j) {
    const serving_model *const m = c->model;
    serving_sequence *const s = step->list[n];
    float x[512];
    for (int32_t g = 0; g < m->heads_k; g++) {
        const size_t row = ((size_t)(n * step->tokens + j) * (size_t)m->heads_k + (size_t)g) * row_bytes(m);
        const size_t own = ((size_t)(s->length + j) * (size_t)m->heads_k + (size_t)g) * (size_t)m->hdim;
        draw(s, x, m->hdim);
        TRY(put_scale(c, s, SERVING_K_SCALE, s->length + j, g, m->kv->store(m, x, step->knew + row, s->k + own)));
        draw(s, x, m->hdim);
        TRY(put_scale(c, s, SERVING_V_SCALE, s->length + j, g, m->kv->store(m, x, step->vnew + row, s->v + own)));
    }
    return TESSERA_SUCCESS;
}

static void draw_query(const serving_model *m, const step *step, int32_t n) {
    serving_sequence *const s = step->list[n];
    const int32_t count = m->heads * m->hdim;
    draw(s, s->q, count);
    for (int32_t i = 0; i < count; i++) {
        const int64_t at = (int64_t)n * count + i;
        element_store(m->type, step->q, at, (double)s->q[i]);
        s->q[i] = (float)element_load(m->type, step->q, at);
    }
}

// Entries behind a sequence's pages are no pages.
static void fill_table(const serving_calls *c, const step *step) {
    for (int32_t n = 0; n < step->count; n++)
        for (int32_t i = 0; i < c->columns; i++)
            step->table[n * c->columns + i] = i < step->list[n]->page_count ? step->list[n]->pages[i] : -1;
}

static void *take(size_t bytes) {
    void *const memory = malloc(bytes + 1);
    if (!memory) abort();
    return memory;
}

static step make_step(const serving_calls *c, serving_sequence *const *list, int32_t count, int32_t tokens) {
    const serving_model *const m = c->model;
    const size_t rows = (size_t)count * (size_t)tokens * (size_t)m->heads_k;
    return (step){list,
                  count,
                  tokens,
                  take((size_t)count * (size_t)(m->heads * m->hdim) * sizeof(float)),
                  take(rows * row_bytes(m)),
                  take(rows * row_bytes(m)),
                  take(sizeof(int32_t) * (size_t)count),
                  take(sizeof(int32_t) * (size_t)(count * c->columns))};
}

static void drop_step(const step *s) { free(s->q), free(s->knew), free(s->vnew), free(s->lengths), free(s->table); }

// ---- calls

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Runs a call with the workspace that it needs; counts its time.
#define CALL(op, traits, args)                                                                                         \
    do {                                                                                                               \
        TRY(tessera_##op##_workspace_size(m->device, &(traits), &(args), &(args).workspace_size));                     \
        TRY(grow(c, &c->workspace, (args).workspace_size));                                                            \
        (args).workspace_ptr = c->workspace.memory;                                                                    \
        const double begin_ = now();                                                                                   \
        TRY(tessera_##op(m->device, &(traits), &(args), NULL));                                                        \
        TRY(tessera_device_synchronize(m->device));                                                                    \
        c->seconds += now() - begin_;                                                                                  \
    } while (0)

// What args of all operations call the same. Rows of a page are [row, head, element], as those of the new keys.
#define CACHE_ARGS(a)                                                                                                  \
    ((a).nhead_q = m->heads, (a).nhead_k = m->heads_k, (a).seqlen_k_ptr = c->lengths.memory,                           \
     (a).block_table_ptr = c->table.memory, (a).batch_stride_block_table = c->columns,                                 \
     (a).page_block_size = c->pages->rows, (a).k_ptr = c->pages->tensors[SERVING_K].memory,                            \
     (a).v_ptr = c->pages->tensors[SERVING_V].memory, (a).nhead_stride_k = (a).nhead_stride_v = m->row_elements,       \
     (a).stride_k = (a).stride_v = (int64_t)m->heads_k * m->row_elements,                                              \
     (a).batch_stride_k = (a).batch_stride_v = c->pages->rows * (a).stride_k)
#define NEW_ARGS(a, tokens)                                                                                            \
    ((a).knew_ptr = c->knew.memory, (a).vnew_ptr = c->vnew.memory, (a).seqlen_knew = (tokens),                         \
     (a).nhead_stride_knew = (a).nhead_stride_vnew = m->row_elements,                                                  \
     (a).stride_knew = (a).stride_vnew = (int64_t)m->heads_k * m->row_elements,                                        \
     (a).batch_stride_knew = (a).batch_stride_vnew = (tokens) * (a).stride_knew)
#define ATTENTION_ARGS(a)                                                                                              \
    ((a).q_ptr = c->q.memory, (a).o_ptr = c->o.memory, (a).hdim_q = (a).hdim_v = m->hdim,                              \
     (a).scale_s = 1 / sqrtf((float)m->hdim), (a).nhead_stride_q = (a).nhead_stride_o = m->hdim,                       \
     (a).stride_q = (a).stride_o = (int64_t)m->heads * m->hdim,                                                        \
     (a).batch_stride_q = (a).batch_stride_o = (a).stride_q)

static tessera_status append(serving_calls *c, int32_t count, int32_t tokens) {
    const serving_model *const m = c->model;
    tessera_fmha_fwd_appendkv_traits t = tessera_fmha_fwd_appendkv_traits_init();
    tessera_fmha_fwd_appendkv_args a = tessera_fmha_fwd_appendkv_args_init();
    CACHE_ARGS(a);
    NEW_ARGS(a, tokens);
    t.hdim_q = t.hdim_v = a.hdim_q = a.hdim_v = m->row_elements;
    t.data_type = m->kv->element_bytes ? TESSERA_FMHA_FP8 : m->dtype; // bytes are copied, whatever they mean
    a.batch = count;
    a.max_seqlen_k = c->columns * c->pages->rows;
    a.cache_blocks = c->pages->count;
    CALL(fmha_fwd_appendkv, t, a);
    return TESSERA_SUCCESS;
}

static tessera_status append_and_attend(serving_calls *c, int32_t count) {
    const serving_model *const m = c->model;
    tessera_fmha_fwd_splitkv_traits t = tessera_fmha_fwd_splitkv_traits_init();
    tessera_fmha_fwd_splitkv_args a = tessera_fmha_fwd_splitkv_args_init();
    CACHE_ARGS(a);
    NEW_ARGS(a, 1);
    ATTENTION_ARGS(a);
    t.hdim_q = t.hdim_v = m->hdim;
    t.data_type = m->dtype;
    a.batch = count, a.seqlen_q = a.max_seqlen_q = 1;
    a.seqlen_k = c->columns * c->pages->rows;
    a.cache_blocks = c->pages->count;
    CALL(fmha_fwd_splitkv, t, a);
    return TESSERA_SUCCESS;
}

static tessera_status attend(serving_calls *c, int32_t count) {
    const serving_model *const m = c->model;
    const serving_pages *const p = c->pages;
    tessera_paged_attention_traits t = tessera_paged_attention_traits_init();
    tessera_paged_attention_args a = tessera_paged_attention_args_init();
    CACHE_ARGS(a);
    ATTENTION_ARGS(a);
    t.hdim_q = t.hdim_v = m->hdim;
    t.data_type = m->dtype;
    t.kv_cache_dtype = (tessera_kv_cache_dtype)(m->kv - serving_kv_types);
    t.kv_memory_layout = TESSERA_KV_LINEAR;
    a.batch = count, a.max_seqlen_q = 1;
    a.max_seqlen_k = c->columns * p->rows;
    a.num_total_pages = p->count;
    a.centroids_ptr = c->centroids.memory;
    a.k_scale_ptr = p->tensors[SERVING_K_SCALE].memory, a.v_scale_ptr = p->tensors[SERVING_V_SCALE].memory;
    a.nhead_stride_k_scale = a.nhead_stride_v_scale = 1;
    a.stride_k_scale = a.stride_v_scale = m->heads_k;
    a.batch_stride_k_scale = a.batch_stride_v_scale = (int64_t)p->rows * m->heads_k;
    CALL(paged_attention, t, a);
    return TESSERA_SUCCESS;
}

static tessera_status put_lengths(serving_calls *c, const step *s, int32_t more) {
    for (int32_t n = 0; n < s->count; n++) s->lengths[n] = s->list[n]->length + more;
    return put(c, &c->lengths, s->lengths, sizeof(int32_t) * (size_t)s->count);
}

static tessera_status run(serving_calls *c, const step *s, int fused, void *o) {
    const serving_model *const m = c->model;
    const size_t rows = (size_t)(s->count * s->tokens) * (size_t)m->heads_k * row_bytes(m);
    const size_t queries = (size_t)(s->count * m->heads * m->hdim) * (size_t)element_bits(m->type) / 8;
    for (int32_t n = 0; n < s->count; n++) {
        for (int32_t j = 0; j < s->tokens; j++) TRY(draw_token(c, s, n, j));
        draw_query(m, s, n);
    }
    fill_table(c, s);
    TRY(put(c, &c->knew, s->knew, rows));
    TRY(put(c, &c->vnew, s->vnew, rows));
    TRY(put(c, &c->q, s->q, queries));
    TRY(put(c, &c->table, s->table, sizeof(int32_t) * (size_t)(s->count * c->columns)));
    TRY(put(c, &c->centroids, m->centroids, sizeof m->centroids));
    TRY(grow(c, &c->o, queries));
    TRY(put_lengths(c, s, 0));
    TRY(fused ? append_and_attend(c, s->count) : append(c, s->count, s->tokens));
    TRY(put_lengths(c, s, s->tokens));
    if (!fused && o) TRY(attend(c, s->count));
    return o ? tessera_device_copy_from(m->device, o, c->o.memory, queries) : TESSERA_SUCCESS;
}

tessera_status serving_step(serving_calls *c, serving_sequence *const *list, int32_t count, int32_t tokens, int fused,
                            void *o) {
    const step s = make_step(c, list, count, tokens);
    const tessera_status status = run(c, &s, fused, o);
    for (int32_t n = 0; n < count; n++) list[n]->length += tokens;
    drop_step(&s);
    return status;
}
