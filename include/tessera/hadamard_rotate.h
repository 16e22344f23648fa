// SPDX-License-Identifier: MIT
// Rotates rows by the normalised Walsh-Hadamard transform (J. Hadamard's matrix in natural order), which spreads what a
// few numbers of a row have over all of them: queries before, and results after attention over a cache of turbo4, whose
// keys and values were rotated when they were quantised (tessera/kv_cache_quantize_turbo4.h).
//
// For every token t, head h and n = hdim:
//
//   y[t, h, i] = n^-1/2 sum_j (-1)^(bits that i and j have in common) x[t, h, j]
//
// computed in fp32 and rounded to nearest even. It is its own inverse, and keeps products of rows: q . k is that of
// both rotated. A row with NaN or infinity gives a row of NaN and infinities.
#ifndef TESSERA_HADAMARD_ROTATE_H
#define TESSERA_HADAMARD_ROTATE_H

#include "tessera/attention.h"
#include "tessera/call.h"

#ifdef __cplusplus
extern "C" {
#endif

// Decides which instances may serve a request.
typedef struct tessera_hadamard_rotate_traits {
    size_t struct_size;           // sizeof(tessera_hadamard_rotate_traits)
    int32_t hdim;                 // 64, 128, 256
    tessera_fmha_dtype data_type; // of x and y: fp32, fp16, bf16
} tessera_hadamard_rotate_traits;

// x and y are [tokens, nhead, hdim], the innermost dimension contiguous; strides count elements, and those of y span
// all elements along the axes of smaller strides. Pointers are aligned to the element. y may be x with the same
// strides, and overlaps nothing else. On GPUs tokens * nhead is at most 2^24, and rows that begin at multiples of 16
// bytes are read by vectors. Memory must stay valid until the stream has finished the call.
typedef struct tessera_hadamard_rotate_args {
    size_t struct_size; // sizeof(tessera_hadamard_rotate_args)
    const void *x_ptr;
    void *y_ptr;
    int32_t tokens, nhead; // 0 or more, 1 or more
    int64_t stride_x, stride_y;
    int64_t nhead_stride_x, nhead_stride_y;
    void *workspace_ptr; // none is needed
    size_t workspace_size;
    const struct tessera_hadamard_rotate_instance *instance; // that must be taken; NULL: that of least estimated cost
} tessera_hadamard_rotate_args;

typedef struct tessera_hadamard_rotate_instance tessera_hadamard_rotate_instance;

TESSERA_INIT(tessera_hadamard_rotate_traits)
TESSERA_INIT(tessera_hadamard_rotate_args)

TESSERA_CALLS(hadamard_rotate)

#ifdef __cplusplus
}
#endif
#endif
