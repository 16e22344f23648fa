// SPDX-License-Identifier: MIT
// Shown on the line below the cursor, which stays where it is for the result.
#define _POSIX_C_SOURCE 200809L // clock_gettime
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "progress.h"

static const double BEFORE_THE_FIRST = 0.5, BETWEEN = 0.2; // seconds

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int on_terminal(void) {
    const char *const kind = getenv("TERM");
    return isatty(STDERR_FILENO) && kind && strcmp(kind, "dumb") != 0;
}

example_progress example_progress_begin(const char *what, int64_t total) {
    return (example_progress){.what = what, .total = total, .due = on_terminal() ? now() + BEFORE_THE_FIRST : INFINITY};
}

void example_progress_step(example_progress *p) {
    p->done++;
    if (isinf(p->due) || now() < p->due) return;
    if (!p->shown) fputs("\033D\033M", stderr); // down and up: where there was no line below, now there is
    p->shown = 1;
    p->due = now() + BETWEEN;
    fprintf(stderr, "\0337\n%s: %lld of %lld\033[K\0338", p->what, (long long)p->done, (long long)p->total);
}

void example_progress_end(const example_progress *p) {
    if (p->shown) fputs("\0337\n\033[K\0338", stderr);
}
