// SPDX-License-Identifier: MIT
// How the numbers of a token and head lie in a cache of each type. Scales and norms are those of the row.
#include <math.h>
#include <string.h>

#include "elements.h"
#include "serving.h"

static int32_t one_each(int32_t hdim) { return hdim; }

static float store_as_queries(const serving_model *m, const float *x, void *row, float *read) {
    for (int32_t i = 0; i < m->hdim; i++) {
        element_store(m->type, row, i, (double)x[i]);
        read[i] = (float)element_load(m->type, row, i);
    }
    return 1;
}

static float store_scaled(const serving_model *m, tessera_type type, double greatest, const float *x, void *row,
                          float *read) {
    float most = 0;
    for (int32_t i = 0; i < m->hdim; i++) most = fmaxf(most, fabsf(x[i]));
    const float scale = (float)(most / greatest);
    for (int32_t i = 0; i < m->hdim; i++) {
        element_store(type, row, i, scale > 0 ? (double)x[i] / (double)scale : 0);
        read[i] = (float)element_load(type, row, i) * scale;
    }
    return scale;
}

static float store_e4m3(const serving_model *m, const float *x, void *row, float *read) {
    return store_scaled(m, TESSERA_TYPE_E4M3, 448, x, row, read);
}

static float store_int8(const serving_model *m, const float *x, void *row, float *read) {
    return store_scaled(m, TESSERA_TYPE_INT8, 127, x, row, read);
}

// Nibbles, and a norm in fp16 behind them: see tessera/turbo4.h.
static int32_t slot_of_turbo4(int32_t hdim) { return hdim / 2 + 2; }

static int32_t nearest(const float *centroids, float x) {
    int32_t best = 0;
    for (int32_t n = 1; n < TESSERA_TURBO4_CENTROIDS; n++)
        if (fabsf(centroids[n] - x) < fabsf(centroids[best] - x)) best = n;
    return best;
}

static float store_turbo4(const serving_model *m, const float *x, void *row, float *read) {
    uint8_t *const bytes = row;
    double squares = 0;
    for (int32_t i = 0; i < m->hdim; i++) squares += (double)x[i] * (double)x[i];
    const uint16_t norm = element_encode_fp16(sqrt(squares));
    const double stored = element_decode_fp16(norm);
    memset(bytes, 0, (size_t)m->hdim / 2);
    for (int32_t i = 0; i < m->hdim; i++) {
        const int32_t number = nearest(m->centroids, stored > 0 ? (float)((double)x[i] / stored) : 0);
        uint16_t centroid[2];
        bytes[i / 2] |= (uint8_t)(number << (i % 2 * 4));
        element_store(m->type, centroid, 0, (double)m->centroids[number]);
        read[i] = (float)(stored * element_load(m->type, centroid, 0));
    }
    memcpy(bytes + m->hdim / 2, &norm, sizeof norm);
    return 1;
}

const serving_kv_type serving_kv_types[TESSERA_KV_CACHE_DTYPE_COUNT] = {
    [TESSERA_KV_AUTO] = {0, one_each, 0, store_as_queries},
    [TESSERA_KV_FP8_E4M3] = {1, one_each, 1, store_e4m3},
    [TESSERA_KV_INT8] = {1, one_each, 1, store_int8},
    [TESSERA_KV_TURBO4] = {1, slot_of_turbo4, 0, store_turbo4},
};
