// SPDX-License-Identifier: MIT
#include "parts.h"

#include <pthread.h>

typedef struct worker {
    part_of_work *part;
    void *context;
    int n;
    int64_t begin, end;
    pthread_t thread;
    int started;
} worker;

static void *work(void *argument) {
    const worker *self = argument;
    self->part(self->context, self->n, self->begin, self->end);
    return NULL;
}

void do_in_parts(int64_t count, int threads, part_of_work *part, void *context) {
    worker workers[MOST_PARTS];
    if (threads > MOST_PARTS) threads = MOST_PARTS;
    if (threads > count) threads = (int)count;
    if (threads < 1) threads = 1;
    for (int n = threads; n-- > 0;) {
        worker *one = &workers[n];
        *one = (worker){.part = part, .context = context, .n = n};
        one->begin = count * n / threads;
        one->end = count * (n + 1) / threads;
        one->started = n > 0 && pthread_create(&one->thread, NULL, work, one) == 0;
        if (!one->started) work(one);
    }
    for (int n = 1; n < threads; n++)
        if (workers[n].started) pthread_join(workers[n].thread, NULL);
}
