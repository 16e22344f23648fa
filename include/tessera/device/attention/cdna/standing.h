// SPDX-License-Identifier: MIT
// A reference of probabilities that stays: P in bf16 has the range of fp32, so that the greatest score of the first
// tile of which a row sees something serves all tiles. Where the sums then come out too great for that, which takes a
// score far above it, the block is computed again, with references that follow the scores.
//
// Takes P_SHIFT, MMA_PART, PARTS, RING.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_STANDING_H
#define TESSERA_DEVICE_ATTENTION_CDNA_STANDING_H

#include "tessera/device/attention/cdna/bundles.h"

#define GREATEST_SUM 0x1p32f // of a lane's probabilities: O has room for such sums of values

// The greatest score of a row, of those before and a tile's.
INLINE float greatest_with(struct loop *x, const f32x16 s[KEY_BLOCKS]) {
    UNROLL
    for (int e = 0; e < KEY_BLOCKS * ELEMENTS; e += 2) maximum(x, s, e);
    const float max = greatest_score(x);
    return max_f32(max, other_half(max));
}

// A tile's scores are s. Rows without a reference get one, if they see something of the tile. One that is so great that
// its rounding would spoil P is subtracted from the scores here, exactly. Returns whether tiles that follow need this,
// too.
INLINE int keep_reference(struct loop *x, f32x16 s[KEY_BLOCKS]) {
    if (any_lane(x->row.max == -INFINITY_F32)) {
        const float max = greatest_with(x, s);
        if (x->row.max == -INFINITY_F32) x->row.max = max;
    }
    const int lacks = x->row.max == -INFINITY_F32;
    const float least = lacks ? 0.0f : x->row.max, shift = least * x->scale - P_SHIFT;
    const int is_great = abs_f32(shift) >= 0x1p20f;
    x->shift = is_great ? -P_SHIFT : shift;
    UNROLL
    for (int b = 0; b < KEY_BLOCKS; b++) {
        UNROLL
        for (int e = 0; e < ELEMENTS; e++) {
            s[b][e] -= is_great ? least : 0.0f;
            one_after_the_other();
        }
    }
    return any_lane(lacks || is_great);
}

// Whether sums of any of the workgroup's waves are too great, or no numbers. No wave reads `votes` or writes there
// else.
INLINE int sums_overflow(const struct loop *x, SHARED uint32_t *votes) {
    votes[wave_id()] = (uint32_t)any_lane(!(x->row.sum <= GREATEST_SUM));
    barrier();
    uint32_t any = 0;
    UNROLL
    for (int w = 0; w < WAVES; w++) any |= votes[w];
    return uniform((int)any);
}

#endif
