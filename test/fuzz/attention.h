// SPDX-License-Identifier: MIT
// What programs share whose operations attend as tessera/fmha_fwd.h has it. Their calls are drawn and compared in its
// terms: of caches the reference sees what was found in them.
#ifndef TESSERA_TEST_FUZZ_ATTENTION_H
#define TESSERA_TEST_FUZZ_ATTENTION_H

#include "fmha_fwd_reference.h"
#include "fuzz.h"

typedef tessera_fmha_fwd_args attention_args;
typedef tessera_fmha_fwd_traits attention_traits;

// The shape of calls: a bit of everything, few rows of wide heads, few rows and keys that are cut into parts, or more
// rows than a tile has.
enum shape { USUAL, WIDE, LONG, TALL };
enum shape choose_shape(void);
int32_t most_queries(enum shape shape), most_keys(enum shape shape);

int32_t most_rows(int32_t hdim_q, int32_t hdim_v, int32_t heads); // that a cache's room holds, with gaps between them

int element_bits_of(tessera_fmha_dtype dtype); // of q, k and v
enum pattern element_pattern(tessera_fmha_dtype dtype);
enum pattern bias_pattern(const attention_traits *t);

// Traits but data_type, which is chosen; dropout is off, and v is row-major.
void choose_attention(attention_traits *t, enum shape shape);
// Heads, and numbers that are no sizes.
void choose_numbers(const attention_traits *t, attention_args *a, enum shape shape);
// Numbers of dropout, whose seed and offset lie in these rooms, too.
void choose_dropout(attention_args *a, int seed, int offset);
// Lengths of queries, in group mode by seqstart_q alone.
void choose_queries(const attention_traits *t, attention_args *a, enum shape shape, int32_t *starts);
// Strides of what has a row for each query; elementwise bias has so many columns.
void choose_rows(const attention_traits *t, attention_args *a, int32_t columns);

// Sometimes NaN and infinities: in q, in k, and in v where every query sees every key. In rooms of these numbers.
void choose_special(const attention_traits *t, const void *q, const void *k, const void *v, const int rooms[3]);

int64_t tokens_of(const attention_traits *t, const attention_args *a); // of q
// Whether what belongs to queries lies in the rooms; sequences have up to so many keys.
int rows_fit(const attention_traits *t, const attention_args *a, double columns, int *comparable);
void allow_rows(const attention_traits *t, const attention_args *a);
void describe_attention(const attention_traits *t, const attention_args *a);
// Compares every seventh row, starting with any of them.
void compare_rows(const attention_traits *t, const attention_args *a);

// Copies the fields that the operations share, which have the same names.
#define COPY_ATTENTION_TRAITS(to, from)                                                                                \
    do {                                                                                                               \
        (to)->hdim_q = (from)->hdim_q, (to)->hdim_v = (from)->hdim_v;                                                  \
        (to)->data_type = (from)->data_type, (to)->qscale_type = (from)->qscale_type;                                  \
        (to)->is_group_mode = (from)->is_group_mode, (to)->is_v_rowmajor = (from)->is_v_rowmajor;                      \
        (to)->has_logits_soft_cap = (from)->has_logits_soft_cap, (to)->mask_type = (from)->mask_type;                  \
        (to)->bias_type = (from)->bias_type, (to)->has_lse = (from)->has_lse, (to)->has_sink = (from)->has_sink;       \
    } while (0)
#define COPY_ATTENTION_ARGS(to, from)                                                                                  \
    do {                                                                                                               \
        (to)->q_ptr = (from)->q_ptr, (to)->o_ptr = (from)->o_ptr, (to)->lse_ptr = (from)->lse_ptr;                     \
        (to)->bias_ptr = (from)->bias_ptr, (to)->sink_ptr = (from)->sink_ptr;                                          \
        (to)->q_descale_ptr = (from)->q_descale_ptr, (to)->k_descale_ptr = (from)->k_descale_ptr;                      \
        (to)->v_descale_ptr = (from)->v_descale_ptr, (to)->seqstart_q_ptr = (from)->seqstart_q_ptr;                    \
        (to)->batch = (from)->batch, (to)->max_seqlen_q = (from)->max_seqlen_q;                                        \
        (to)->hdim_q = (from)->hdim_q, (to)->hdim_v = (from)->hdim_v;                                                  \
        (to)->nhead_q = (from)->nhead_q, (to)->nhead_k = (from)->nhead_k;                                              \
        (to)->scale_s = (from)->scale_s, (to)->logits_soft_cap = (from)->logits_soft_cap;                              \
        (to)->stride_q = (from)->stride_q, (to)->nhead_stride_q = (from)->nhead_stride_q;                              \
        (to)->stride_o = (from)->stride_o, (to)->nhead_stride_o = (from)->nhead_stride_o;                              \
        (to)->stride_bias = (from)->stride_bias, (to)->nhead_stride_bias = (from)->nhead_stride_bias;                  \
        (to)->batch_stride_q = (from)->batch_stride_q, (to)->batch_stride_o = (from)->batch_stride_o;                  \
        (to)->batch_stride_bias = (from)->batch_stride_bias, (to)->batch_stride_lse = (from)->batch_stride_lse;        \
        (to)->nhead_stride_lse = (from)->nhead_stride_lse;                                                             \
        (to)->window_size_left = (from)->window_size_left, (to)->window_size_right = (from)->window_size_right;        \
        (to)->sink_size = (from)->sink_size, (to)->mask_type = (from)->mask_type;                                      \
    } while (0)
#define COPY_DROPOUT_ARGS(to, from)                                                                                    \
    do {                                                                                                               \
        (to)->p_drop = (from)->p_drop, (to)->s_randval = (from)->s_randval, (to)->drop_prefs = (from)->drop_prefs;     \
        (to)->drop_seed = (from)->drop_seed, (to)->drop_offset = (from)->drop_offset;                                  \
        (to)->drop_seed_ptr = (from)->drop_seed_ptr, (to)->drop_offset_ptr = (from)->drop_offset_ptr;                  \
        (to)->rand_val_ptr = (from)->rand_val_ptr;                                                                     \
        (to)->stride_randval = (from)->stride_randval, (to)->nhead_stride_randval = (from)->nhead_stride_randval;      \
    } while (0)

#endif
