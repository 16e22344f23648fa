// SPDX-License-Identifier: MIT
// The Walsh-Hadamard transform of rows on CPUs. Comes after a vocabulary.
#ifndef TESSERA_DEVICE_ATTENTION_CPU_HADAMARD_H
#define TESSERA_DEVICE_ATTENTION_CPU_HADAMARD_H

#include <math.h>

#include "tessera/isa/cpu_common.h"

// The most numbers of a row, and the fewest that are rotated.
enum { MOST_HDIM = 512, LEAST_ROTATED = 64 };
static_assert(LEAST_ROTATED >= 2 * LANES, "a stage has whole vectors");

// Loads the `hdim` numbers of a row as floats; up to two whole vectors 0 follows.
INLINE void load_row(tessera_type type, const void *from, int64_t at, int hdim, float *to) {
    for (int d = 0; d < hdim || d % (2 * LANES); d += LANES) {
        const int rest = hdim - d;
        v_store(to + d, rest > 0 ? v_fetch(type, from, at + d, rest < LANES ? rest : LANES) : v_set1(0.0f));
    }
}

// One stage: y[i] = x[2 i] + x[2 i + 1] and y[i + hdim / 2] = x[2 i] - x[2 i + 1]. As many of them as hdim has bits are
// the whole transform, in natural order.
INLINE void transform_stage(const float *x, int hdim, float *y) {
    for (int i = 0; i < hdim / 2; i += LANES) {
        vf pair[2];
        v_load_split(x + 2 * i, pair);
        v_store(y + i, v_add(pair[0], pair[1]));
        v_store(y + i + hdim / 2, v_sub(pair[0], pair[1]));
    }
}

// Rotates a row in place; hdim is a power of 2 from LEAST_ROTATED on.
INLINE void rotate_row(float *x, int hdim) {
    const vf unit = v_set1(1.0f / sqrtf((float)hdim));
    float room[MOST_HDIM], *from = x, *to = room;
    for (int rest = hdim; rest > 1; rest /= 2) {
        transform_stage(from, hdim, to);
        float *const was = from;
        from = to;
        to = was;
    }
    for (int d = 0; d < hdim; d += LANES) v_store(x + d, v_mul(v_load(from + d), unit));
}

#endif
