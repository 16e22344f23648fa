// SPDX-License-Identifier: MIT
// A band: rows that each pass goes over before the next pass.
//
// Takes problem, MEAN, SQUARE, BY_EXPERT.
#ifndef TESSERA_DEVICE_ROWS_CPU_BAND_H
#define TESSERA_DEVICE_ROWS_CPU_BAND_H

#include "tessera/device/rows/cpu/results.h"
#include "tessera/device/rows/cpu/statistics.h"

enum { BAND_ROWS = 8, BAND_BYTES = 32 << 10 };

struct band {
    struct shared shared;
    struct row rows[BAND_ROWS];
    int count;
    int64_t passed; // rows of the problem: those that are left as they are count too
    int most;       // rows
};

INLINE void begin_rows(const problem *p, struct band *band) {
    const int64_t bytes = bytes_of((tessera_type)p->in, p->n) * (p->residual ? 2 : 1), fit = BAND_BYTES / bytes;
    band->most = fit < ABREAST ? ABREAST : fit < BAND_ROWS ? (int)fit : BAND_ROWS;
    find_columns(p, &band->shared);
}

// Rows of a token, from slot i % slots on. Those of no expert are left as they are.
INLINE void find_slots(const problem *p, int64_t i, struct band *band) {
    const int64_t token = i / p->slots, tokens = p->m / p->slots;
    const int32_t slot = (int32_t)(i % p->slots), left = p->slots - slot;
    const void *const next = of_row((tessera_type)p->in, p->x, token + 1, p->x_stride);
    band->passed = left < BAND_ROWS ? left : BAND_ROWS;
    band->count = 0;
    for (int32_t k = 0; k < band->passed; k++) {
        const int32_t expert = p->expert[i + k];
        struct row *const row = &band->rows[band->count];
        if (expert < 0 || expert >= p->experts) continue;
        find_row(p, &band->shared, token, (slot + k) * tokens + token, p->smooth + (int64_t)expert * p->n, row);
        row->next_x = p->past && band->count == 0 ? (uintptr_t)next : 0;
        band->count++;
    }
}

// Rows from number i on, before `end`.
INLINE void find_band(const problem *p, int64_t i, int64_t end, struct band *band) {
    const tessera_type in = (tessera_type)p->in;
    if (BY_EXPERT) {
        find_slots(p, i, band);
        return;
    }
    band->passed = band->count = (int)(end - i < band->most ? end - i : band->most);
    for (int r = 0; r < band->count; r++) {
        const int64_t later = i + r + band->count;
        find_row(p, &band->shared, i + r, i + r, NULL, &band->rows[r]);
        band->rows[r].next_x = p->past ? (uintptr_t)of_row(in, p->x, later, p->x_stride) : 0;
        band->rows[r].next_residual = p->past ? (uintptr_t)of_row(in, p->residual, later, p->residual_stride) : 0;
    }
}

// How many rows from number r on are gone over abreast.
INLINE int count_abreast(const struct band *band, int r) { return band->count - r >= ABREAST ? ABREAST : 1; }

INLINE void find_greatest(const struct columns c[2], tessera_type in, struct row *rows, int count) {
    struct place places[ABREAST];
    for (int rest = 0; rest < 2; rest++) {
        if (c[rest].count == 0) continue;
        for (int r = 0; r < count; r++) places[r] = place_of(&rows[r], rest);
        greatest_passes[in][count > 1](&c[rest], places);
    }
}

// y_scale of each row.
INLINE void quantize(const problem *p, struct band *band) {
    const float most = p->out == TESSERA_TYPE_INT8 ? 127.0f : 448.0f;
    for (int r = 0, n; r < band->count; r += n) {
        n = count_abreast(band, r);
        find_greatest(band->shared.columns, (tessera_type)p->in, &band->rows[r], n);
    }
    for (int r = 0; r < band->count; r++) {
        struct row *const row = &band->rows[r];
        const float scale = p->y_scale[row->number] = greatest_of(row) / most;
        row->down = scale < FLT_MIN ? 0 : 1.0f / scale;
    }
}

INLINE void write_band(const problem *p, struct band *band) {
    const struct columns *const whole = &band->shared.columns[0], *const rest = &band->shared.columns[1];
    pass *const *const passes = write_passes_of((tessera_type)p->in, (tessera_type)p->out);
    struct place places[ABREAST];
    for (int r = 0, n; r < band->count; r += n) {
        n = count_abreast(band, r);
        for (int k = 0; k < n; k++) places[k] = place_of(&band->rows[r + k], 0);
        passes[n > 1](whole, places);
    }
    for (int r = 0; rest->count && r < band->count; r++) write_rest(p, rest, &band->rows[r], passes[0]);
}

INLINE void put_statistics(const problem *p, const struct band *band) {
    for (int r = 0; r < band->count; r++) {
        const struct row *const row = &band->rows[r];
        if (MEAN && p->mean) p->mean[row->number] = row->of.mean;
        if (NORMALIZES && p->inv) p->inv[row->number] = row->of.inv;
    }
}

#endif
