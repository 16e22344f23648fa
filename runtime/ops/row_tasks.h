// SPDX-License-Identifier: MIT
// How rows that are read, changed a little and written are shared among threads of a CPU, and how many a GPU takes.
// Nothing here is exported.
#ifndef TESSERA_RUNTIME_OPS_ROW_TASKS_H
#define TESSERA_RUNTIME_OPS_ROW_TASKS_H

#include "guard.h"
#include "integers.h"
#include "tessera/operation.h"

struct tessera_row_tasks {
    int64_t rows;           // of a task; 1 or more
    int64_t count, workers; // tasks, and threads that take them
};

// `bytes`: of all rows, 1 or more of them, read and written.
static inline struct tessera_row_tasks tessera_cut_rows(int64_t rows, double bytes, int64_t threads) {
    enum { THREAD_BYTES = 128 << 10, TASK_BYTES = 64 << 10 }; // waking a thread pays from some bytes on
    const int64_t workers = tessera_min(threads, 1 + (int64_t)(bytes / THREAD_BYTES));
    const int64_t some = workers == 1 ? rows : 1 + (int64_t)(TASK_BYTES / (bytes / (double)rows));
    return (struct tessera_row_tasks){some, tessera_ceil_div(rows, some), workers};
}

// No axis of a GPU's grid has 2^32 threads.
static inline tessera_status tessera_check_gpu_rows(const tessera_instance *row, int64_t rows) {
    enum { MOST_GPU_ROWS = 1 << 24 };
    GUARD(!row->symbol || rows <= MOST_GPU_ROWS, "there are %lld rows, of all tokens and heads: on a GPU at most %d",
          (long long)rows, MOST_GPU_ROWS);
    return TESSERA_SUCCESS;
}

#endif
