// SPDX-License-Identifier: MIT
// What a piece of the row is computed from: terms, which are added up, and factors, which the sum is multiplied with.
// What is of this row alone is loaded at once; what all rows have comes from caches, and takes registers only where it
// is needed, chunk by chunk.
//
// Takes problem.
#ifndef TESSERA_DEVICE_ROWS_CUDA_OPERANDS_H
#define TESSERA_DEVICE_ROWS_CUDA_OPERANDS_H

#include "tessera/device/common/cuda/row_chunks.h"
#include "tessera/device/rows/gpu/row.h"

struct terms {
    chunk x[CHUNKS], residual[CHUNKS];
    columns bias;
    const struct piece *at;
};
struct factors {
    columns gamma, beta, smooth;
    const struct piece *at;
};

INLINE void load_terms(struct terms *t, const problem *p, const struct row *r, const struct piece *at) {
    load_chunks(t->x, columns_of(p->x, r->from * p->x_stride, at, IN_BITS), at);
    if (STATISTICS != NONE && p->residual)
        load_chunks(t->residual, columns_of(p->residual, r->row * p->residual_stride, at, IN_BITS), at);
    t->bias = columns_of(p->bias, 0, at, IN_BITS);
    t->at = at;
}

INLINE void load_factors(struct factors *f, const problem *p, const struct row *r, const struct piece *at) {
    *f = (struct factors){columns_of(p->gamma, 0, at, IN_BITS), columns_of(p->beta, 0, at, IN_BITS),
                          columns_of(r->smooth, 0, at, 32), at};
}

// Chunk c of each, in the room if it is not in registers yet.
INLINE const chunk *x_of(const struct terms *t, int c, chunk *room) { return (void)room, &t->x[c]; }
INLINE const chunk *residual_of(const struct terms *t, int c, chunk *room) { return (void)room, &t->residual[c]; }
INLINE const chunk *bias_of(const struct terms *t, int c, chunk *room) {
    return load_chunk(room, t->bias, t->at, c, IN_BITS);
}
INLINE const chunk *gamma_of(const struct factors *f, int c, chunk *room) {
    return load_chunk(room, f->gamma, f->at, c, IN_BITS);
}
INLINE const chunk *beta_of(const struct factors *f, int c, chunk *room) {
    return load_chunk(room, f->beta, f->at, c, IN_BITS);
}
INLINE const chunk *smooth_of(const struct factors *f, int c, chunk *room) {
    return load_chunk(room, f->smooth, f->at, c, 32);
}

#endif
