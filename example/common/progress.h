// SPDX-License-Identifier: MIT
// How far long work is, on a terminal.
#ifndef EXAMPLE_PROGRESS_H
#define EXAMPLE_PROGRESS_H

#include <stdint.h>

typedef struct example_progress {
    const char *what;
    int64_t total, done;
    double due; // when it is shown next
    int shown;
} example_progress;

// Work of `total` steps is shown on stderr, if that is a terminal and the work takes a while.
example_progress example_progress_begin(const char *what, int64_t total);
void example_progress_step(example_progress *progress);
void example_progress_end(const example_progress *progress);

#endif
