// SPDX-License-Identifier: MIT
// The tasks of a workgroup, one after the other: taken from a counter that all share, or dealt out in turns.
//
// Takes args.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_TASKS_H
#define TESSERA_DEVICE_ATTENTION_CUDA_TASKS_H

#include "tessera/device/attention/cuda/pipe.h"
#include "tessera/device/attention/cuda/task.h"

// The number of the next task. In turns every other round goes backwards, since tasks get shorter with their numbers.
INLINE int next_number(const args *a, int round) {
    const int workgroups = workgroup_count();
    if (round == 0) return workgroup_x();
    if (a->counter) {
        int number = 0;
        if (lane_id() == 0) number = workgroups + (int)take_number(a->counter);
        return of_first_lane(number);
    }
    return round * workgroups + (round % 2 ? workgroups - 1 - workgroup_x() : workgroup_x());
}

// Hands task number n of the workgroup, or the end, to all warps.
INLINE void hand_over_task(const args *a, uint32_t base, uint32_t n, int *round) {
    const struct place place = task_place(base, n);
    struct task task;
    int number = next_number(a, (*round)++);
    while (number < a->tasks && !find_task(&task, a, number)) number = next_number(a, (*round)++);
    if (number >= a->tasks) task.first = -1;
    wait_until_empty(place);
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
