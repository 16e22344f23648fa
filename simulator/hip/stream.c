// SPDX-License-Identifier: MIT
// Which stream a handle means.
#include "state.h"

static struct hip_stream default_streams[HIP_MOST_DEVICES];
static _Thread_local struct hip_stream thread_streams[HIP_MOST_DEVICES];

struct hip_stream *tessera_hip_default_stream(struct hip_device *device) {
    struct hip_stream *stream = &default_streams[device->index];
    stream->device = device;
    return stream;
}

struct hip_stream *tessera_hip_thread_stream(struct hip_device *device) {
    struct hip_stream *stream = &thread_streams[device->index];
    stream->device = device;
    return stream;
}

bool tessera_hip_is_legacy(hipStream_t handle) { return handle == NULL || handle == hipStreamLegacy; }

struct hip_stream *tessera_hip_stream(hipStream_t handle) {
    if (tessera_hip_is_legacy(handle)) return tessera_hip_default_stream(tessera_hip_current());
    if (handle == hipStreamPerThread) return tessera_hip_thread_stream(tessera_hip_current());
    return tessera_hip_handle_is(handle, HIP_STREAM) ? handle : NULL;
}
