// SPDX-License-Identifier: MIT
#include "parts.h"

#include <pthread.h>

typedef struct worker {
    example_part *part;
    void *context;
    int64_t begin, end;
    pthread_t thread;
    int started;
} worker;

static void *work(void *argument) {
    const worker *self = argument;
    self->part(self->context, self->begin, self->end);
    return NULL;
}

void example_in_parts(int64_t count, int threads, example_part *part, void *context) {
    enum { MOST = 64 };
    worker workers[MOST];
    if (threads > MOST) threads = MOST;
    if (threads > count) threads = (int)count;
    if (threads < 1) threads = 1;
    for (int n = threads; n-- > 0;) {
        worker *one = &workers[n];
        *one = (worker){part, context, count * n / threads, count * (n + 1) / threads, 0, 0};
        one->started = n > 0 && pthread_create(&one->thread, NULL, work, one) == 0;
        if (!one->started) work(one);
    }
    for (int n = 1; n < threads; n++)
        if (workers[n].started) pthread_join(workers[n].thread, NULL);
}
