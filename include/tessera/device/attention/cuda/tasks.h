// SPDX-License-Identifier: MIT
// The tasks of a workgroup, which one warp hands to all.
//
// Takes args.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_TASKS_H
#define TESSERA_DEVICE_ATTENTION_CUDA_TASKS_H

#include "tessera/device/attention/cuda/next_task.h"
#include "tessera/device/attention/cuda/pipe.h"

// Hands task number n of the workgroup, or the end, to all warps.
INLINE void hand_over_task(const args *a, uint32_t base, uint32_t n, int *round) {
    const struct place place = task_place(base, n);
    const struct task task = next_task(a, round);
    wait_until_empty(place);
    meet_lanes(); // all of them have read the task that was there
    if (lane_id() == 0) {
        put_task(place.at, &task);
        arrive(place.full);
    }
}

// Waits for task number n, which stays where it is until release().
INLINE int await_task(struct task *task, uint32_t base, uint32_t n) {
    wait_until_full(task_place(base, n));
    get_task(task_place(base, n).at, task);
    return of_first_lane(task->first) >= 0;
}

#endif
