// SPDX-License-Identifier: MIT
// Which tasks a workgroup has, one after the other: taken from a counter that all share, or dealt out in turns.
//
// Takes args.
#ifndef TESSERA_DEVICE_ATTENTION_CUDA_NEXT_TASK_H
#define TESSERA_DEVICE_ATTENTION_CUDA_NEXT_TASK_H

#include "tessera/device/attention/cuda/task.h"

// The number of the next task. In turns every other round goes backwards, since tasks get shorter with their numbers.
INLINE int next_number(const args *a, int round) {
    const int workgroups = workgroup_count();
    if (round == 0) return workgroup_x();
    if (a->counter) return workgroups + take_number(a->counter);
    return round * workgroups + (round % 2 ? workgroups - 1 - workgroup_x() : workgroup_x());
}

// The next task that has something to do; its first row is below 0 where there is none.
INLINE struct task next_task(const args *a, int *round) {
    struct task task;
    int number = next_number(a, (*round)++);
    while (number < a->tasks && !find_task(&task, a, number)) number = next_number(a, (*round)++);
    if (number >= a->tasks) task.first = -1;
    return task;
}

#endif
