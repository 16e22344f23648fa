// SPDX-License-Identifier: MIT
// The tasks of a workgroup, which its first warp finds for all, in two places in turn.
//
// Takes args.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_PAGES_TASKS_H
#define TESSERA_DEVICE_ATTENTION_CUDA_PAGES_TASKS_H

#include "tessera/device/attention/cuda/next_task.h"
#include "tessera/device/attention/cuda_pages/sizes.h"

// Puts the next task where the last one, `last`, is not. Returns that place, which all may read once they have met.
INLINE uint32_t put_next_task(const args *a, uint32_t base, int warp, uint32_t last, int *round) {
    const uint32_t at = 2 * (base + AT_TASKS) + TASK_BYTES - last;
    if (warp == 0) {
        const struct task task = next_task(a, round);
        if (lane_id() == 0) put_task(at, &task);
    }
    return at;
}

#endif
