// SPDX-License-Identifier: MIT
// Warpgroups hand what a step has of dq over to a warp that starts its way to memory, and waits there in their stead.
//
// Takes launch.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_BWD_HAND_OVER_H
#define TESSERA_DEVICE_ATTENTION_CUDA_BWD_HAND_OVER_H

#include "tessera/device/attention/cuda_bwd/dq.h"

// By the warpgroup that `room` is of. What goes by no boxes is added by itself, and the room is handed over empty.
INLINE void hand_over_dq(const float x[DQ_SUMS], const launch *a, struct place room, int row, int plane, int rows) {
    const int thread = thread_id_again();
    wait_until_empty(room);
    if (is_by_box(a, rows)) {
        put_boxes(x, a, room.at, 0, thread);
        finish_stores();
        meet_lanes();
    } else {
        add_elements(x, a, row, plane, rows, thread);
    }
    if (thread % 32 == 0) arrive(room.full);
}

// By one lane of the warp that takes dq to memory.
INLINE void take_dq(const launch *a, struct place room, int warpgroup, int row, int plane, int rows) {
    if (is_by_box(a, rows)) start_boxes(a, room.at, warpgroup, 0, row, plane);
    await_boxes_read();
    arrive(room.empty);
}

#endif
