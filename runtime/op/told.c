// SPDX-License-Identifier: MIT
// The line that TESSERA_VERBOSE prints of a call: operation, device, instance, problem, time.
#define _POSIX_C_SOURCE 199309L // clock_gettime
#include "op/told.h"

#include <time.h>

#include "guard.h"
#include "verbose.h"

static double milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

tessera_status tessera_told_begin(struct tessera_told *told) {
    told->timed = true;
    if (told->device->gpu) TRY(tessera_gpu_wait(told->device, told->stream, &told->timed));
    if (told->device->gpu && told->timed) TRY(tessera_load_plan(told->device, told->plan));
    told->start = milliseconds();
    return TESSERA_SUCCESS;
}

tessera_status tessera_told_end(struct tessera_told *told, const char *problem) {
    const char *const device = tessera_device_name(told->device), *const name = told->plan->row->name;
    if (told->device->gpu && told->timed) TRY(tessera_gpu_wait(told->device, told->stream, &told->timed));
    const double time = milliseconds() - told->start;
    if (told->timed)
        tessera_verbose_line("%s %s %s %s %.3f ms", told->operation, device, name, problem, time);
    else
        tessera_verbose_line("%s %s %s %s not timed", told->operation, device, name, problem);
    return TESSERA_SUCCESS;
}
