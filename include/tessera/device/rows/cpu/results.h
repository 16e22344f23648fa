// SPDX-License-Identifier: MIT
// What is written of a row. Each column is written behind all that is read of it, so that outputs may be inputs.
//
// Takes problem, MEAN, SQUARE.
#ifndef TESSERA_DEVICE_ROWS_CPU_RESULTS_H
#define TESSERA_DEVICE_ROWS_CPU_RESULTS_H

#include "tessera/device/rows/cpu/row.h"

// As a tensor of that type would give it back.
INLINE vf v_rounded(tessera_type type, vf x) {
    float memory[LANES];
    v_put(type, memory, 0, LANES, x);
    return v_load_as(type, memory);
}

INLINE vf normalized(const struct row *r, tessera_type in, int64_t j, int count, vf s) {
    if (!NORMALIZES) return s;
    const vf gamma = v_fetch(in, r->gamma, j, count);
    if (MEAN) {
        const vf normal = v_mul(v_sub(s, v_set1(r->mean)), v_set1(r->inv));
        return v_fma(normal, gamma, v_fetch(in, r->beta, j, count));
    }
    const vf normal = v_mul(s, v_set1(r->inv));
    if (r->rounds_twice) return v_rounded(in, v_mul(v_rounded(in, normal), gamma));
    return v_mul(normal, gamma);
}

INLINE vf smoothed(const struct row *r, int64_t j, int count, vf z) {
    return r->smooth ? v_mul(z, v_fetch(TESSERA_TYPE_FP32, r->smooth, j, count)) : z;
}

// Of magnitudes, whose order is that of their bits: NaN is above all.
INLINE vf v_greater(vf a, vf b) { return v_if_gt_i(v_as_i(a), v_as_i(b), a, b); }

INLINE vf greater(const struct row *r, tessera_type in, int64_t j, int count, vf greatest) {
    const vf z = smoothed(r, j, count, normalized(r, in, j, count, value(r, in, j, count)));
    return v_greater(greatest, v_abs(MEAN ? v_first(z, count) : z)); // of others the lanes behind are 0
}

// The greatest magnitude of what is quantized.
INLINE float find_greatest(const struct row *r, tessera_type in) {
    vf greatest[2] = {v_set1(0), v_set1(0)};
    float lanes[LANES], all = 0;
    int64_t j = 0;
    for (; j + 2 * LANES <= r->n; j += 2 * LANES) UNROLL
    for (int u = 0; u < 2; u++) greatest[u] = greater(r, in, j + u * LANES, LANES, greatest[u]);
    for (; j + LANES <= r->n; j += LANES) greatest[0] = greater(r, in, j, LANES, greatest[0]);
    if (j < r->n) greatest[1] = greater(r, in, j, (int)(r->n - j), greatest[1]);
    v_store(lanes, v_greater(greatest[0], greatest[1]));
    for (int lane = 0; lane < LANES; lane++)
        if (!(lanes[lane] <= all)) all = lanes[lane] + all * 0.0f; // NaN stays
    return all;
}

// `up` is a power of 2, and `down` the inverse of y_scale * up.
INLINE void write_columns(const struct row *r, tessera_type in, tessera_type out, int64_t j, int count, float up,
                          float down) {
    const vf s = value(r, in, j, count);
    vf z = normalized(r, in, j, count, s);
    if (r->residual_out) v_put(in, r->residual_out, j, count, s);
    if (r->unquantized) v_put(in, r->unquantized, j, count, z);
    if (out != in) z = v_mul(v_mul(smoothed(r, j, count, z), v_set1(up)), v_set1(down));
    v_put(out, r->y, j, count, z);
}

INLINE void write_row(const struct row *r, tessera_type in, tessera_type out, float scale) {
    const float up = scale < 0x1p-100f ? 0x1p64f : 1.0f; // the inverse of a denormal would be infinite
    const float down = scale == 0 ? 0 : 1.0f / (scale * up);
    int64_t j = 0;
    for (; j + LANES <= r->n; j += LANES) write_columns(r, in, out, j, LANES, up, down);
    if (j < r->n) write_columns(r, in, out, j, (int)(r->n - j), up, down);
}

#endif
