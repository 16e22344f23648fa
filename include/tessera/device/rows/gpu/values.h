// SPDX-License-Identifier: MIT
// From the inputs to what is stored: s and z of tessera/kernel/rows.h, of a piece.
//
// Takes problem, STATISTICS, ROUND.
#ifndef TESSERA_DEVICE_ROWS_GPU_VALUES_H
#define TESSERA_DEVICE_ROWS_GPU_VALUES_H

#include "tessera/device/rows/gpu/row.h"

typedef float values[CHUNKS][CHUNK];

// What is found of a row. Its mean is a sum of two: differences from great means are finer than these are.
struct found {
    float mean, rest, inv;
};

INLINE void add_chunks(values s, const chunk x[CHUNKS]) {
    UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        UNROLL
        for (int i = 0; i < CHUNK; i++) s[c][i] += number_of(&x[c], i);
    }
}

// s
INLINE void add_terms(values s, const struct terms *t, const problem *p) {
    UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        UNROLL
        for (int i = 0; i < CHUNK; i++) s[c][i] = number_of(&t->x[c], i);
    }
    if (STATISTICS == MEAN && p->bias) add_chunks(s, t->bias);
    if (STATISTICS != NONE && p->residual) add_chunks(s, t->residual);
}

// As T5 has it: rounded before gamma and after it.
INLINE void round_twice(values z, const chunk gamma[CHUNKS], float inv) {
    UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        UNROLL
        for (int i = 0; i < CHUNK; i++) z[c][i] = ROUND(ROUND(z[c][i] * inv) * number_of(&gamma[c], i));
    }
}

// s to z without what smooths it.
INLINE void normalize(values z, const struct factors *f, const problem *p, struct found of) {
    if (STATISTICS == NONE) return;
    if (STATISTICS == SQUARE && p->rounds_twice) {
        round_twice(z, f->gamma, of.inv);
        return;
    }
    UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        UNROLL
        for (int i = 0; i < CHUNK; i++) {
            const float gamma = number_of(&f->gamma[c], i);
            if (STATISTICS == MEAN)
                z[c][i] = (z[c][i] - of.mean - of.rest) * of.inv * gamma + number_of(&f->beta[c], i);
            else
                z[c][i] = z[c][i] * of.inv * gamma;
        }
    }
}

INLINE void multiply(values z, const chunk smooth[CHUNKS]) {
    UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        UNROLL
        for (int i = 0; i < CHUNK; i++) z[c][i] *= AS_F32(smooth[c].word[i]);
    }
}

#endif
