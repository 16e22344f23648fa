// SPDX-License-Identifier: MIT
// What a piece of the row is computed from: terms, which are added up, and factors, which the sum is multiplied with.
// All of them are loaded at once, and waited for one by one.
//
// Takes problem.
#ifndef TESSERA_DEVICE_ROWS_CDNA_OPERANDS_H
#define TESSERA_DEVICE_ROWS_CDNA_OPERANDS_H

#include "tessera/device/common/cdna/row_chunks.h"
#include "tessera/device/rows/gpu/row.h"

struct terms {
    chunk x[CHUNKS], residual[CHUNKS], bias[CHUNKS];
};
struct factors {
    chunk gamma[CHUNKS], beta[CHUNKS], smooth[CHUNKS];
};

INLINE void load_terms(struct terms *t, const problem *p, const struct row *r, const struct piece *at) {
    if (STATISTICS != NONE) load_none(t->residual);
    if (STATISTICS == MEAN) load_none(t->bias);
    load_chunks(t->x, columns_of(p->x, r->from * p->x_stride, at, IN_BITS), at, IN_BITS);
    if (STATISTICS != NONE && p->residual)
        load_chunks(t->residual, columns_of(p->residual, r->row * p->residual_stride, at, IN_BITS), at, IN_BITS);
    if (STATISTICS == MEAN && p->bias) load_chunks(t->bias, columns_of(p->bias, 0, at, IN_BITS), at, IN_BITS);
}

INLINE void load_factors(struct factors *f, const problem *p, const struct row *r, const struct piece *at) {
    if (STATISTICS != NONE) load_chunks(f->gamma, columns_of(p->gamma, 0, at, IN_BITS), at, IN_BITS);
    if (STATISTICS == MEAN) load_chunks(f->beta, columns_of(p->beta, 0, at, IN_BITS), at, IN_BITS);
    if (r->smooth) load_chunks(f->smooth, columns_of(r->smooth, 0, at, 32), at, 32);
}

// Chunk c of each. It needs no room of its own.
INLINE const chunk *x_of(const struct terms *t, int c, chunk *room) { return (void)room, &t->x[c]; }
INLINE const chunk *residual_of(const struct terms *t, int c, chunk *room) { return (void)room, &t->residual[c]; }
INLINE const chunk *bias_of(const struct terms *t, int c, chunk *room) { return (void)room, &t->bias[c]; }
INLINE const chunk *gamma_of(const struct factors *f, int c, chunk *room) { return (void)room, &f->gamma[c]; }
INLINE const chunk *beta_of(const struct factors *f, int c, chunk *room) { return (void)room, &f->beta[c]; }
INLINE const chunk *smooth_of(const struct factors *f, int c, chunk *room) { return (void)room, &f->smooth[c]; }

#endif
