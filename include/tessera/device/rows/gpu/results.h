// SPDX-License-Identifier: MIT
// z as it is stored: rounded to the type of the inputs, or quantized.
//
// Takes problem.
#ifndef TESSERA_DEVICE_ROWS_GPU_RESULTS_H
#define TESSERA_DEVICE_ROWS_GPU_RESULTS_H

#include "tessera/device/rows/gpu/values.h"

// What is stored beside it, if it is asked for.
INLINE void store_residual(const problem *p, const struct row *r, const struct piece *at, const values s) {
    if (STATISTICS != NONE && p->residual_out) store_numbers(p->residual_out, r->row * p->residual_out_stride, at, s);
}

INLINE void store_unquantized(const problem *p, const struct row *r, const struct piece *at, const values z) {
    if (STATISTICS == SQUARE && p->unquantized) store_numbers(p->unquantized, r->row * p->y_stride, at, z);
}

// What z is multiplied with: first `up`, a power of 2, so that `by` is a normal number even of the greatest rows and of
// the least.
struct quantization {
    float up, by;
};

INLINE struct quantization quantization_of(const problem *p, const struct row *r, uint32_t greatest) {
#ifdef GREATEST_FP8
    const float most = p->out == TESSERA_TYPE_INT8 ? 127.0f : GREATEST_FP8;
#else
    const float most = 127.0f;
#endif
    const float max = AS_F32(greatest);
    store_one(p->y_scale, r, max / most);
    const float up = greatest < AS_U32(0x1p-100f) ? 0x1p100f : greatest > AS_U32(0x1p100f) ? 0x1p-100f : 1.0f;
    return (struct quantization){up, greatest ? most * reciprocal(max * up) : 0.0f};
}

// No result is out of range: of those of a row `by` makes the greatest the type's.
INLINE void store_quantized(const values z, const problem *p, const struct row *r, const struct piece *at,
                            struct quantization q) {
    const columns to = columns_of(p->y, r->row * p->y_stride, at, 8);
    UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        float y[CHUNK];
        UNROLL
        for (int i = 0; i < CHUNK; i++) y[i] = z[c][i] * q.up * q.by;
#ifdef GREATEST_FP8
        if (p->out != TESSERA_TYPE_INT8) {
            store_bytes(to, at, c, pack_fp8(y[0], y[1], y[2], y[3]), pack_fp8(y[4], y[5], y[6], y[7]));
            continue;
        }
#endif
        store_bytes(to, at, c, pack_int8(y[0], y[1], y[2], y[3]), pack_int8(y[4], y[5], y[6], y[7]));
    }
}

#endif
