// SPDX-License-Identifier: MIT
// The inside of a problem, for the files of the runner only.
#ifndef FMHA_FWD_PROBLEM_H
#define FMHA_FWD_PROBLEM_H

#include <stddef.h>

#include "fmha_fwd_reference.h"
#include "fmha_fwd_runner.h"

// Bytes of pattern before and after every buffer, and what they and unwritten outputs hold. An output of 0xff bytes is
// NaN in every type that has one but FNUZ's e4m3, and so are inputs past a logical length.
enum { FMHA_FWD_GUARD = 256, FMHA_FWD_GUARD_BYTE = 0xc3, FMHA_FWD_UNWRITTEN_BYTE = 0xff };

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
    BUFFER_O, // the first output
    BUFFER_LSE,
    BUFFER_RANDVAL,
    BUFFER_COUNT
} fmha_fwd_buffer_id;

typedef struct fmha_fwd_buffer {
    int used;
    int64_t bytes;
    int32_t element_bytes; // at least 1
    int64_t offset;        // in the arena
    void *device_memory;   // that holds a copy, where the device reads no host memory
} fmha_fwd_buffer;

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

struct fmha_fwd_problem {
    fmha_fwd_options options; // negative "as the other" values replaced; texts are borrowed
    tessera_fmha_dtype dtype;
    tessera_fp8_format fp8; // the device's
    tessera_qscale qscale;
    fmha_fwd_init init;
    fmha_fwd_mask mask;
    fmha_fwd_bias bias;
    uint64_t seed;

    // One a sequence. Rooms are physical lengths; effective lengths count in batch mode.
    int32_t *seqlen_q, *seqlen_k, *room_q, *room_k;
    int32_t max_seqlen_q, max_seqlen_k;
    int64_t shape_batch, shape_seqlen_q, shape_seqlen_k; // of the tensors: group mode has one batch and all tokens

    uint8_t *arena;
    int64_t arena_bytes, input_bytes; // inputs and their guard zones come first
    fmha_fwd_buffer buffers[BUFFER_COUNT];
    uint64_t input_sum;
    uint8_t *workspace; // its guard zones included
    int64_t workspace_bytes;

    tessera_device *device;
    tessera_fmha_fwd_traits traits;
    tessera_fmha_fwd_args args;
    int32_t tile_rows; // bm0 of the instance that ran
    int32_t fold;      // query heads that share a tile's rows
};

// Steps of building, in this order. Lengths and rooms of the sequences:
fmha_fwd_outcome fmha_fwd_settle_lengths(fmha_fwd_problem *problem, fmha_fwd_result *result);
// Sizes, strides and places of the buffers:
fmha_fwd_outcome fmha_fwd_lay_out(fmha_fwd_problem *problem, fmha_fwd_result *result);
// The arena. Guard zones hold their pattern, buffers the unwritten one:
fmha_fwd_outcome fmha_fwd_allocate(fmha_fwd_problem *problem, fmha_fwd_result *result);
// Lengths, starts and seeds that are given by pointer:
void fmha_fwd_put_lengths(fmha_fwd_problem *problem);

// What a buffer holds before anything is put into it: NaN, where its elements have one.
uint8_t fmha_fwd_unwritten_byte(const fmha_fwd_problem *problem, fmha_fwd_buffer_id id);

// A buffer, or NULL where the problem has none, and its name for messages.
void *fmha_fwd_pointer(const fmha_fwd_problem *problem, fmha_fwd_buffer_id id);
const char *fmha_fwd_buffer_name(fmha_fwd_buffer_id id);

// Fills in the pointers of args by what `at` says of each buffer.
void fmha_fwd_set_pointers(const fmha_fwd_problem *problem,
                           void *at(const fmha_fwd_problem *problem, fmha_fwd_buffer_id id),
                           tessera_fmha_fwd_args *args);

// The copies on a device that reads no host memory; on the CPU there are none, and nothing is done.
int fmha_fwd_on_cpu(const fmha_fwd_problem *problem);
int fmha_fwd_is_simulated(const fmha_fwd_problem *problem);
fmha_fwd_outcome fmha_fwd_upload(fmha_fwd_problem *problem, fmha_fwd_result *result);
fmha_fwd_outcome fmha_fwd_download(fmha_fwd_problem *problem, fmha_fwd_result *result);
void fmha_fwd_free_device_memory(fmha_fwd_problem *problem);
// The args that the library gets: those of the problem, with pointers to the copies.
tessera_fmha_fwd_args fmha_fwd_device_args(const fmha_fwd_problem *problem);

// Under AddressSanitizer nothing may even read the guard zones, until they are looked at.
void fmha_fwd_guard(const fmha_fwd_problem *problem);
void fmha_fwd_unguard(const fmha_fwd_problem *problem);
// Sum of the inputs and their guard zones.
uint64_t fmha_fwd_input_sum(const fmha_fwd_problem *problem);

// Refuses what no machine, or this one, can hold.
fmha_fwd_outcome fmha_fwd_check_memory(const fmha_fwd_options *options, double bytes, const char *what,
                                       fmha_fwd_result *result);

// Fills every input buffer of a problem that is laid out.
void fmha_fwd_fill_inputs(fmha_fwd_problem *problem);

// Draws lengths of that mean, each at least 1 (all 0 for mean 0) and at most its room where that is not 0.
void fmha_fwd_draw_lengths(uint64_t seed, int32_t count, int32_t mean, const int32_t *rooms, int32_t *lengths);

// Read the command line's spellings. Each returns 0, or -1 and leaves *out alone.
int fmha_fwd_read_mask(const char *text, fmha_fwd_mask *out);
int fmha_fwd_read_bias(const char *text, fmha_fwd_bias *out);
int fmha_fwd_read_qscale(const char *text, tessera_qscale *out);
int fmha_fwd_read_init(const char *text, fmha_fwd_init *out);

// Shows on stderr how far work of `total` steps is, if that is a terminal and the work takes a while.
typedef struct fmha_fwd_progress {
    const char *what;
    int64_t total, done;
    double due; // when it is shown next
    int shown;
} fmha_fwd_progress;
fmha_fwd_progress fmha_fwd_progress_begin(const char *what, int64_t total);
void fmha_fwd_progress_step(fmha_fwd_progress *progress);
void fmha_fwd_progress_end(const fmha_fwd_progress *progress);

// Sets outcome and message; returns the outcome.
__attribute__((format(printf, 3, 4))) fmha_fwd_outcome fmha_fwd_fail(fmha_fwd_result *result, fmha_fwd_outcome outcome,
                                                                     const char *format, ...);
#define FMHA_FWD_WRONG(...) fmha_fwd_fail(result, FMHA_FWD_WRONG_ARGUMENT, __VA_ARGS__)
// The same for a call of the library that failed.
fmha_fwd_outcome fmha_fwd_fail_status(fmha_fwd_result *result, tessera_status status, const char *call);

#endif
