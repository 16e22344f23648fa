// SPDX-License-Identifier: MIT
// Does the work of streams and graphs: kernels, copies, fills and calls of the host.
#include <stdlib.h>
#include <string.h>

#include "state.h"

// The GPU whose memory `to` lies in, because its sanitizer must know what the host writes; NULL: none.
static tessera_sim *gpu_of(const char *to) {
    const struct hip_place place = tessera_hip_find(to);
    return place.kind == hipMemoryTypeDevice ? tessera_hip_device(place.device)->sim : NULL;
}

static void run_copy(const struct hip_copy_work *copy) {
    tessera_sim *gpu = gpu_of(copy->to);
    for (size_t z = 0; z < copy->depth; z++)
        for (size_t y = 0; y < copy->height; y++) {
            char *to = copy->to + z * copy->to_slice + y * copy->to_pitch;
            memmove(to, copy->from + z * copy->from_slice + y * copy->from_pitch, copy->width);
            if (gpu) tessera_sim_mark_defined(gpu, to, copy->width);
        }
}

static void set_row(char *to, uint32_t value, uint32_t element, size_t bytes) {
    if (element == 1) {
        memset(to, (int)value, bytes);
        return;
    }
    for (size_t at = 0; at + element <= bytes; at += element) memcpy(to + at, &value, element);
}

static void run_set(const struct hip_set_work *set) {
    tessera_sim *gpu = gpu_of(set->to);
    for (size_t z = 0; z < set->depth; z++)
        for (size_t y = 0; y < set->height; y++) {
            char *to = set->to + z * set->slice + y * set->pitch;
            set_row(to, set->value, set->element, set->width);
            if (gpu) tessera_sim_mark_defined(gpu, to, set->width);
        }
}

static hipError_t run_kernel(struct hip_device *device, const struct hip_kernel_work *kernel) {
    if (!tessera_hip_handle_is(kernel->function, HIP_FUNCTION))
        return hipErrorInvalidHandle; // its module has been unloaded
    const hipError_t error = tessera_hip_open_hostcall(device, kernel->function->info);
    if (error != hipSuccess) return error;
    const tessera_sim_launch_args args = {
        .struct_size = sizeof args,
        .grid = {kernel->grid.x, kernel->grid.y, kernel->grid.z},
        .block = {kernel->block.x, kernel->block.y, kernel->block.z},
        .dynamic_lds_bytes = kernel->lds_bytes,
        .stack_bytes = (uint32_t)device->stack_bytes,
        .kernarg = kernel->kernarg,
        .kernarg_bytes = kernel->kernarg_bytes,
    };
    const tessera_status status = tessera_sim_launch(kernel->function->kernel, &args, NULL);
    if (status == TESSERA_SUCCESS || tessera_hip_device_error(device) != hipSuccess)
        return hipSuccess; // the device's next call returns the error of a fault
    tessera_hip_say("kernel %s: %s", kernel->function->info->name, tessera_sim_last_error());
    return tessera_hip_from_status(status);
}

hipError_t tessera_hip_run(struct hip_device *device, const struct hip_work *work) {
    if (work->kind == HIP_HOST) { // the function may call the stand-in, so no lock is held
        work->host.fn(work->host.user);
        return hipSuccess;
    }
    hipError_t error = tessera_hip_device_error(device);
    if (error != hipSuccess) return error;
    pthread_mutex_lock(&device->run);
    switch (work->kind) {
    case HIP_KERNEL:
        error = run_kernel(device, &work->kernel);
        break;
    case HIP_COPY:
        run_copy(&work->copy);
        break;
    case HIP_SET:
        run_set(&work->set);
        break;
    default:
        break;
    }
    pthread_mutex_unlock(&device->run);
    return error;
}

void tessera_hip_release(struct hip_work *work) {
    if (work->kind == HIP_KERNEL) free(work->kernel.kernarg);
    work->kind = HIP_EMPTY;
}
