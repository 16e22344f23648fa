// SPDX-License-Identifier: MIT
// A reference of probabilities that stays: P in bf16 has the range of fp32, so that the greatest score of the first
// tile of which a row sees something serves all tiles. Where the sums then come out too great for that, which takes a
// score far above it, the block is computed again, with references that follow the scores.
//
// Takes P_SHIFT, MMA_PART, PARTS, RING.
#ifndef TESSERA_DEVICE_ATTENTION_CDNA_STANDING_H
#define TESSERA_DEVICE_ATTENTION_CDNA_STANDING_H

#include "tessera/device/attention/cdna/bundles.h"
#include "tessera/device/attention/cdna/softmax.h"

#define GREATEST_SUM 0x1p32f // of a lane's probabilities: O has room for such sums of values

// A tile's scores are s. Rows without a reference get the greatest one, if they see something of the tile. One that is
// so great that rounding the shift would spoil P leaves an infinite sum. Returns whether rows lack one yet.
INLINE int keep_reference(struct loop *x, const f32x16 s[KEY_BLOCKS]) {
    if (!any_lane(x->row.max == -INFINITY_F32)) return 0;
    UNROLL
    for (int e = 0; e < KEY_BLOCKS * ELEMENTS; e += 2) maximum(x, s, e);
    float max = greatest_score(x);
    max = max_f32(max, other_half(max));
    if (x->row.max == -INFINITY_F32) x->row.max = max;
    x->shift = shift_of(x->row.max, x->scale);
    if (spoils(x->shift)) x->sum[0] = INFINITY_F32;
    return any_lane(x->row.max == -INFINITY_F32);
}

// Whether sums of any of the workgroup's waves are too great, or no numbers. No wave reads `votes` or writes there
// else. Volatile, or where these are in one of two places the compiler reads both.
INLINE int sums_overflow(const struct loop *x, SHARED volatile uint32_t *votes) {
    votes[wave_id()] = (uint32_t)any_lane(!(x->row.sum <= GREATEST_SUM));
    barrier();
    uint32_t any = 0;
    UNROLL
    for (int w = 0; w < WAVES; w++) any |= votes[w];
    return uniform((int)any);
}

#endif
