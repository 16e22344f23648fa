// SPDX-License-Identifier: MIT
// From the inputs to what is stored: s and z of tessera/kernel/rows.h, of a piece.
//
// Takes problem, STATISTICS, ROUND, x_of, gamma_of.
#ifndef TESSERA_DEVICE_ROWS_GPU_VALUES_H
#define TESSERA_DEVICE_ROWS_GPU_VALUES_H

typedef float values[CHUNKS][CHUNK];

// What is found of a row. Its mean is a sum of two: differences from great means are finer than these are.
struct found {
    float mean, rest, inv;
};

INLINE void add_chunk(float s[CHUNK], const chunk *x) {
    UNROLL
    for (int i = 0; i < CHUNK; i++) s[i] += number_of(x, i);
}

// s
INLINE void add_terms(values s, const struct terms *t, const problem *p) {
    chunk room;
    UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        const chunk *const x = x_of(t, c, &room);
        UNROLL
        for (int i = 0; i < CHUNK; i++) s[c][i] = number_of(x, i);
    }
    if (STATISTICS == MEAN && p->bias) {
        UNROLL
        for (int c = 0; c < CHUNKS; c++) add_chunk(s[c], bias_of(t, c, &room));
    }
    if (STATISTICS != NONE && p->residual) {
        UNROLL
        for (int c = 0; c < CHUNKS; c++) add_chunk(s[c], residual_of(t, c, &room));
    }
}

// As T5 has it: rounded before gamma and after it.
INLINE void round_twice(values z, const struct factors *f, float inv) {
    UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        chunk room;
        const chunk *const gamma = gamma_of(f, c, &room);
        UNROLL
        for (int i = 0; i < CHUNK; i++) z[c][i] = ROUND(ROUND(z[c][i] * inv) * number_of(gamma, i));
    }
}

// s to z without what smooths it.
INLINE void normalize(values z, const struct factors *f, const problem *p, struct found of) {
    if (STATISTICS == NONE) return;
    if (STATISTICS == SQUARE && p->rounds_twice) {
        round_twice(z, f, of.inv);
        return;
    }
    UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        chunk room[2];
        const chunk *const gammas = gamma_of(f, c, &room[0]);
        const chunk *const betas = STATISTICS == MEAN ? beta_of(f, c, &room[1]) : gammas;
        UNROLL
        for (int i = 0; i < CHUNK; i++) {
            const float gamma = number_of(gammas, i);
            if (STATISTICS == MEAN)
                z[c][i] = (z[c][i] - of.mean - of.rest) * of.inv * gamma + number_of(betas, i);
            else
                z[c][i] = z[c][i] * of.inv * gamma;
        }
    }
}

INLINE void multiply(values z, const struct factors *f) {
    UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        chunk room;
        const chunk *const smooth = smooth_of(f, c, &room);
        UNROLL
        for (int i = 0; i < CHUNK; i++) z[c][i] *= AS_F32(smooth->word[i]);
    }
}

#endif
