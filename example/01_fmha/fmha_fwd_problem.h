// SPDX-License-Identifier: MIT
// The members of a problem, for the files of this folder only.
#ifndef FMHA_FWD_PROBLEM_H
#define FMHA_FWD_PROBLEM_H

#include "fmha_fwd_reference.h"
#include "fmha_fwd_runner.h"
#include "tessera/fmha_batch_prefill.h"
#include "tessera/fmha_fwd_pagedkv.h"
#include "tessera/fmha_fwd_splitkv.h"

typedef enum fmha_fwd_buffer_id {
    BUFFER_Q,
    BUFFER_K,
    BUFFER_V,
    BUFFER_BIAS,
    BUFFER_Q_DESCALE,
    BUFFER_K_DESCALE,
    BUFFER_V_DESCALE,
    BUFFER_SEQSTART_Q,
    BUFFER_SEQSTART_K,
    BUFFER_SEQLEN_Q,
    BUFFER_SEQLEN_K,
    BUFFER_CU_SEQLEN_Q,
    BUFFER_CU_SEQLEN_K,
    BUFFER_BLOCK_START_Q,
    BUFFER_BLOCK_START_K,
    BUFFER_V_SCALE_START,
    BUFFER_SINK,
    BUFFER_DROP_SEED,
    BUFFER_DROP_OFFSET,
    BUFFER_TABLE, // those of caches
    BUFFER_Q_SCALES,
    BUFFER_K_SCALES,
    BUFFER_V_SCALES,
    BUFFER_CACHE_INDEX,
    BUFFER_KEYS,
    BUFFER_KNEW,
    BUFFER_VNEW,
    BUFFER_COS,
    BUFFER_SIN,
    BUFFER_K_CACHE, // an output where keys are appended
    BUFFER_V_CACHE,
    BUFFER_O, // the first output: those before it may hold NaN past a logical length
    BUFFER_LSE,
    BUFFER_RANDVAL,
    BUFFER_COUNT
} fmha_fwd_buffer_id;
_Static_assert((int)BUFFER_COUNT <= (int)EXAMPLE_BUFFERS, "a problem has room for so many");

typedef enum fmha_fwd_init {
    INIT_UNIFORM_INTEGER,
    INIT_NORMAL_INTEGER,
    INIT_UNIFORM,
    INIT_NORMAL,
    INIT_TRIG,
    INIT_RANGE // uniform over the type's range
} fmha_fwd_init;

typedef struct fmha_fwd_mask {
    tessera_mask type;
    int32_t left, right; // GENERIC: y, x
    int32_t sink;
} fmha_fwd_mask;

typedef struct fmha_fwd_bias {
    tessera_bias type;
    int32_t rank;
} fmha_fwd_bias;

// The operation, by CK's words for apis.
typedef enum fmha_fwd_api {
    FMHA_FWD_PLAIN,
    FMHA_FWD_SPLITKV,
    FMHA_FWD_PAGEDKV,
    FMHA_BATCH_PREFILL,
    FMHA_FWD_API_COUNT
} fmha_fwd_api;

typedef struct fmha_fwd_strides {
    int64_t block, head, row;
} fmha_fwd_strides;

// The cache that keys lie in, for operations on caches.
typedef struct fmha_fwd_cache {
    int32_t blocks, rows, columns; // sequences or pages, rows of one, pages of a sequence
    fmha_fwd_strides of_k, of_v;
} fmha_fwd_cache;

// What is appended to the cache, and rotated.
typedef struct fmha_fwd_appended {
    int32_t before;    // keys of a sequence in the cache
    int32_t positions; // that there are angles for
    tessera_rope rope;
    fmha_fwd_strides of_knew, of_vnew;
    void *q; // rotated, for the reference
} fmha_fwd_appended;

typedef struct fmha_fwd_problem {
    example_problem base;
    fmha_fwd_options options; // with values of -1 replaced by those that they stand for; texts are borrowed
    tessera_fmha_dtype dtype;
    tessera_fp8_format fp8; // the device's
    tessera_qscale qscale;
    fmha_fwd_init init;
    fmha_fwd_mask mask;
    fmha_fwd_bias bias;

    // One for each sequence. Rooms are physical lengths; in batch mode lengths are effective ones where given.
    int32_t *seqlen_q, *seqlen_k, *room_q, *room_k;
    int32_t max_seqlen_q, max_seqlen_k;                  // logical lengths
    int64_t shape_batch, shape_seqlen_q, shape_seqlen_k; // of the tensors: group mode has one batch and all tokens
    int64_t columns; // of a bias, its gradient and dropout's bytes: effective lengths do not make rows shorter

    tessera_fmha_fwd_traits traits;
    tessera_fmha_fwd_args args;
    int api; // fmha_fwd_api
    fmha_fwd_cache cache;
    fmha_fwd_appended appended;
    union {
        tessera_fmha_fwd_splitkv_traits splitkv;
        tessera_fmha_fwd_pagedkv_traits pagedkv;
        tessera_fmha_batch_prefill_traits prefill;
    } cached_traits; // of operations on caches, in place of those above, which the reference reads
    union {
        tessera_fmha_fwd_splitkv_args splitkv;
        tessera_fmha_fwd_pagedkv_args pagedkv;
        tessera_fmha_batch_prefill_args prefill;
    } cached_args;
    double max_error;       // greatest |o - reference|
    double max_error_ratio; // greatest |o - reference| over its tolerance; valid if <= 1
    double max_lse_error;
} fmha_fwd_problem;

// Whether pages of a cache, or tokens and heads, have scales. The reference gets them as those of blocks.
static inline int fmha_fwd_scales_rows(const fmha_fwd_problem *p) {
    return p->qscale == TESSERA_QSCALE_KV_BLOCK || p->qscale == TESSERA_QSCALE_TOKEN_HEAD;
}

// Functions of the example_program. Lengths and rooms of sequences are set before sizes, strides and buffers.
example_outcome fmha_fwd_settle_lengths(fmha_fwd_problem *problem, example_result *result);
example_outcome fmha_fwd_lay_out(example_problem *problem, example_result *result);
void fmha_fwd_put_lengths(example_problem *problem); // also starts, and seeds that are given by pointer
void fmha_fwd_fill_inputs(example_problem *problem);
void fmha_fwd_count(const example_problem *problem, example_result *result);
example_outcome fmha_fwd_verify(example_problem *problem, example_result *result);
void fmha_fwd_print(const example_problem *problem, FILE *file);
void fmha_fwd_put_json(const example_problem *problem, FILE *file);
void fmha_fwd_put_error(const example_problem *problem, FILE *file);

// The same steps for what operations on caches have besides; nothing for fmha_fwd itself.
example_outcome fmha_fwd_settle_cache(fmha_fwd_problem *problem, example_result *result);
example_outcome fmha_fwd_lay_out_cache(fmha_fwd_problem *problem, example_result *result);
void fmha_fwd_put_cache(fmha_fwd_problem *problem);
void fmha_fwd_fill_cache(fmha_fwd_problem *problem);
void fmha_fwd_print_cache(const fmha_fwd_problem *problem, FILE *file);
// Puts the keys that a cache holds before the call to their places in one that lies elsewhere.
void fmha_fwd_put_keys(const fmha_fwd_problem *problem, void *k, void *v);

// And for what is appended and rotated; nothing where there is none.
int fmha_fwd_appends(const fmha_fwd_problem *problem);
example_outcome fmha_fwd_settle_appended(fmha_fwd_problem *problem, example_result *result);
void fmha_fwd_lay_out_appended(fmha_fwd_problem *problem);
void fmha_fwd_fill_appended(fmha_fwd_problem *problem);
example_outcome fmha_fwd_verify_appended(const fmha_fwd_problem *problem, example_result *result);
void fmha_fwd_print_appended(const fmha_fwd_problem *problem, FILE *file);

// Draws lengths of that mean, each at least 1 (all 0 for mean 0) and at most its room where that is not 0.
void fmha_fwd_draw_lengths(uint64_t seed, int32_t count, int32_t mean, const int32_t *rooms, int32_t *lengths);

// Read the command line's spellings. Each returns 0, or -1 and leaves *out alone.
int fmha_fwd_read_mask(const char *text, fmha_fwd_mask *out);
int fmha_fwd_read_bias(const char *text, fmha_fwd_bias *out);
int fmha_fwd_read_qscale(const char *text, tessera_qscale *out);
int fmha_fwd_read_init(const char *text, fmha_fwd_init *out);

#endif
