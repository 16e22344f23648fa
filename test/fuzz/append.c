// SPDX-License-Identifier: MIT
#include "append.h"

#include <stdlib.h>
#include <string.h>

#include "fmha_fwd_reference.h"

// ---- choices

void choose_rope(append_traits *t) {
    const int may = t->data_type < TESSERA_FMHA_FP8 && t->hdim_q >= 16;
    t->rope_type = may ? (tessera_rope)below(TESSERA_ROPE_COUNT) : TESSERA_ROPE_NONE;
}

void choose_append(const append_traits *t, append_args *a, int32_t positions) {
    a->hdim_q = t->hdim_q, a->hdim_v = t->hdim_v;
    a->rotary_dim = t->rope_type == TESSERA_ROPE_NONE ? 0 : 16 * between(1, t->hdim_q / 16);
    a->rotary_rows = t->rope_type == TESSERA_ROPE_NONE ? 0 : positions + between(0, 3);
    choose_strides(a->nhead_k, a->seqlen_knew, t->hdim_q, &a->batch_stride_knew, &a->nhead_stride_knew,
                   &a->stride_knew);
    choose_strides(a->nhead_k, a->seqlen_knew, t->hdim_v, &a->batch_stride_vnew, &a->nhead_stride_vnew,
                   &a->stride_vnew);
}

// ---- what the call may touch

static int bits_of(const append_traits *t) { return element_bits(fmha_fwd_input_element(t->data_type, on.fp8)); }

int32_t rows_of_block(const append_args *a) { return a->block_table_ptr ? a->page_block_size : a->max_seqlen_k; }

int append_fits(const append_traits *t, const append_args *a, int *comparable) {
    const int bits = bits_of(t), rotates = t->rope_type != TESSERA_ROPE_NONE;
    const double rows = rows_of_block(a), angles = (double)a->rotary_rows * a->rotary_dim / 2 - 1;
#define FITS(x, heads, rows, inner)                                                                                    \
    fits(a->x##_ptr, last_of(blocks, heads, rows, inner, a->batch_stride_##x, a->nhead_stride_##x, a->stride_##x),     \
         bits, comparable)
    double blocks = a->cache_blocks;
    int good = FITS(k, a->nhead_k, rows, a->hdim_q) && FITS(v, a->nhead_k, rows, a->hdim_v);
    blocks = a->batch;
    good =
        good && FITS(knew, a->nhead_k, a->seqlen_knew, a->hdim_q) && FITS(vnew, a->nhead_k, a->seqlen_knew, a->hdim_v);
    if (rotates)
        good = good && FITS(q, a->nhead_q, a->seqlen_q, a->hdim_q) &&
               FITS(q_rotated, a->nhead_q, a->seqlen_q, a->hdim_q) &&
               fits(a->rotary_cos_ptr, angles, bits, comparable) && fits(a->rotary_sin_ptr, angles, bits, comparable);
#undef FITS
    return good;
}

// The sequence or page of the cache, and the row in it, of the new key j of sequence b.
static int64_t find_row(const append_args *a, int32_t b, int32_t j, int32_t *row) {
    const int32_t position = ((const int32_t *)a->seqlen_k_ptr)[b] + j;
    *row = position;
    if (!a->block_table_ptr) return a->cache_batch_idx ? ((const int32_t *)a->cache_batch_idx)[b] : b;
    *row = position % a->page_block_size;
    return ((const int32_t *)a->block_table_ptr)[b * a->batch_stride_block_table + position / a->page_block_size];
}

// Whether a GPU leaves a key out; the CPU refuses such calls.
static int is_left_out(const append_traits *t, const append_args *a, int32_t b, int32_t j) {
    int32_t row;
    const int32_t position = ((const int32_t *)a->seqlen_k_ptr)[b] + j;
    if (position >= a->max_seqlen_k || (t->rope_type != TESSERA_ROPE_NONE && position >= a->rotary_rows)) return 1;
    const int64_t block = find_row(a, b, j, &row);
    return block < 0 || block >= a->cache_blocks;
}

static void allow_key(const append_traits *t, const append_args *a, int32_t b, int32_t j) {
    const int64_t bytes = bits_of(t) / 8;
    int32_t row;
    const int64_t block = find_row(a, b, j, &row);
    for (int32_t g = 0; g < a->nhead_k; g++) {
        allow((char *)a->k_ptr + bytes * (block * a->batch_stride_k + g * a->nhead_stride_k + row * a->stride_k),
              bytes * a->hdim_q);
        allow((char *)a->v_ptr + bytes * (block * a->batch_stride_v + g * a->nhead_stride_v + row * a->stride_v),
              bytes * a->hdim_v);
    }
}

static void allow_query(const append_traits *t, const append_args *a, int32_t b, int32_t i) {
    const int64_t bytes = bits_of(t) / 8;
    const int32_t position = ((const int32_t *)a->seqlen_k_ptr)[b] + (a->has_mask ? i : 0);
    for (int32_t h = 0; h < a->nhead_q && position < a->rotary_rows; h++)
        allow((char *)a->q_rotated_ptr +
                  bytes * (b * a->batch_stride_q_rotated + h * a->nhead_stride_q_rotated + i * a->stride_q_rotated),
              bytes * a->hdim_q);
}

void allow_append(const append_traits *t, const append_args *a) {
    const int rotates = t->rope_type != TESSERA_ROPE_NONE && a->q_rotated_ptr;
    for (int32_t b = 0; b < a->batch; b++) {
        for (int32_t j = 0; j < a->seqlen_knew; j++)
            if (!is_left_out(t, a, b, j)) allow_key(t, a, b, j);
        for (int32_t i = 0; i < a->seqlen_q && rotates; i++) allow_query(t, a, b, i);
    }
}

// ---- verdicts

// What the reference is told: tensors that the call does not write are as they were.
static appendkv_call call_of(const append_traits *t, const append_args *a) {
    return (appendkv_call){
        .type = fmha_fwd_input_element(t->data_type, on.fp8),
        .rope = t->rope_type,
        .batch = a->batch,
        .heads_q = a->nhead_q,
        .heads_k = a->nhead_k,
        .queries = a->q_rotated_ptr ? a->seqlen_q : 0,
        .added = a->seqlen_knew,
        .rotary_dim = t->rope_type == TESSERA_ROPE_NONE ? 0 : a->rotary_dim,
        .positions_differ = a->has_mask,
        .keys_before = a->seqlen_k_ptr,
        .pages = a->block_table_ptr,
        .page_size = a->page_block_size,
        .table_stride = (int32_t)a->batch_stride_block_table,
        .cache_of = a->cache_batch_idx,
        .q = {a->q_ptr ? before_call(a->q_ptr) : NULL, a->batch_stride_q, a->nhead_stride_q, a->stride_q, a->hdim_q},
        .knew = {a->knew_ptr, a->batch_stride_knew, a->nhead_stride_knew, a->stride_knew, a->hdim_q},
        .vnew = {a->vnew_ptr, a->batch_stride_vnew, a->nhead_stride_vnew, a->stride_vnew, a->hdim_v},
        .cos = a->rotary_cos_ptr,
        .sin = a->rotary_sin_ptr,
        .positions = a->max_seqlen_k,
        .blocks = a->cache_blocks,
        .angles = a->rotary_rows,
    };
}

void compare_append(const append_traits *t, const append_args *a) {
    static char before[3][ROOM]; // to which the check puts what it has found to be right
    appendkv_call c = call_of(t, a);
    appendkv_verdict verdict = {0};
    // The rest of these tensors end_call() compares.
    c.k =
        (appendkv_output){{a->k_ptr, a->batch_stride_k, a->nhead_stride_k, a->stride_k, a->hdim_q}, before[0], 0, "k"};
    c.v =
        (appendkv_output){{a->v_ptr, a->batch_stride_v, a->nhead_stride_v, a->stride_v, a->hdim_v}, before[1], 0, "v"};
    c.q_rotated = (appendkv_output){
        {a->q_rotated_ptr, a->batch_stride_q_rotated, a->nhead_stride_q_rotated, a->stride_q_rotated, a->hdim_q},
        before[2],
        0,
        "q_rotated"};
    appendkv_check(&c, &verdict);
    if (verdict.wrong) fail(verdict.first);
    counts.rows += (uint64_t)(verdict.checked / (a->hdim_q + a->hdim_v));
}

void *rotated_queries(const append_traits *t, const append_args *a) {
    const appendkv_call c = call_of(t, a);
    char *const all = malloc(ROOM);
    if (!all) fail("no memory for queries");
    memcpy(all, a->q_ptr, ROOM - BEFORE - 512); // which is more than there is of them
    for (int32_t b = 0; b < a->batch; b++)
        for (int32_t h = 0; h < a->nhead_q; h++)
            for (int32_t i = 0; i < a->seqlen_q; i++) {
                const int64_t begin = b * a->batch_stride_q + h * a->nhead_stride_q + i * a->stride_q;
                const int32_t position = c.keys_before[b] + (a->has_mask ? i : 0);
                for (int32_t d = 0; d < c.rotary_dim; d++)
                    element_store(c.type, all, begin + d, appendkv_rotated(&c, &c.q, begin, position, d));
            }
    return all;
}
