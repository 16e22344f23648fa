// SPDX-License-Identifier: MIT
// Numbers of a row's WAVES waves become one, the same in all lanes. Waves meet in LDS; each reduction of a row has a
// place of its own there, so that one barrier does.
//
// Takes WAVES.
#ifndef TESSERA_DEVICE_COMMON_GPU_ROW_REDUCE_H
#define TESSERA_DEVICE_COMMON_GPU_ROW_REDUCE_H

enum reduction { OF_MEAN, OF_DIFFERENCES, OF_SQUARES, OF_GREATEST, REDUCTIONS };

LDS uint32_t of_waves[REDUCTIONS][WAVES];

INLINE void share(enum reduction place, uint32_t x) {
    if (lane_id() == 0) of_waves[place][wave_id()] = x;
}

INLINE float sum_shared(enum reduction place) {
    float x = AS_F32(of_waves[place][0]);
    UNROLL
    for (int w = 1; w < WAVES; w++) x += AS_F32(of_waves[place][w]);
    return x;
}

INLINE float sum_of_row(enum reduction place, float x) {
    x = sum_of_lanes(x);
    if (WAVES == 1) return x;
    share(place, AS_U32(x));
    barrier();
    return sum_shared(place);
}

// Two sums, of one exchange.
INLINE void sums_of_row(float *differences, float *squares) {
    *differences = sum_of_lanes(*differences);
    *squares = sum_of_lanes(*squares);
    if (WAVES == 1) return;
    share(OF_DIFFERENCES, AS_U32(*differences));
    share(OF_SQUARES, AS_U32(*squares));
    barrier();
    *differences = sum_shared(OF_DIFFERENCES);
    *squares = sum_shared(OF_SQUARES);
}

INLINE uint32_t greatest_of_row(enum reduction place, uint32_t x) {
    x = greatest_of_lanes(x);
    if (WAVES == 1) return x;
    share(place, x);
    barrier();
    UNROLL
    for (int w = 0; w < WAVES; w++) x = max_u32(x, of_waves[place][w]);
    return (uint32_t)uniform((int)x);
}

#endif
