// SPDX-License-Identifier: MIT
#include "tessera/turbo4.h"

#include <math.h>

#include "guard.h"

// For N(0, 1), the upper half: scripts/turbo4_codebook.py.
enum { HALF = TESSERA_TURBO4_CENTROIDS / 2 };
static const float upper[HALF] = {0.128395030f, 0.388048299f, 0.656759119f, 0.942340456f,
                                  1.256231197f, 1.618046386f, 2.069017227f, 2.732589571f};

tessera_status tessera_turbo4_codebook(int32_t hdim, float centroids[TESSERA_TURBO4_CENTROIDS]) {
    GUARD(hdim >= 1, "hdim is %d: 1 or more", hdim);
    GUARD(centroids, "centroids is NULL: room for %d", TESSERA_TURBO4_CENTROIDS);
    const float unit = 1.0f / sqrtf((float)hdim);
    for (int i = 0; i < HALF; i++) {
        centroids[HALF + i] = upper[i] * unit;
        centroids[HALF - 1 - i] = -centroids[HALF + i];
    }
    return TESSERA_SUCCESS;
}
