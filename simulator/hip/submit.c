// SPDX-License-Identifier: MIT
// Gives work to streams: it is done at once, or added to the graph that the stream captures.
#include "state.h"

static hipError_t run_and_release(struct hip_stream *stream, struct hip_work *work) {
    const hipError_t error = tessera_hip_run(stream->device, work);
    tessera_hip_release(work);
    return error;
}

hipError_t tessera_hip_submit(hipStream_t handle, struct hip_work *work) {
    struct hip_stream *stream = tessera_hip_stream(handle);
    hipError_t error = hipErrorContextIsDestroyed;
    if (stream && tessera_hip_stream_capture(stream)) return tessera_hip_capture_work(stream, work);
    // The legacy stream waits for all blocking ones; it cannot wait for one that captures.
    if (stream) error = tessera_hip_is_legacy(handle) ? tessera_hip_implicit_call() : hipSuccess;
    if (error == hipSuccess) return run_and_release(stream, work);
    tessera_hip_release(work);
    return error;
}

hipError_t tessera_hip_submit_and_wait(hipStream_t handle, struct hip_work *work) {
    struct hip_stream *stream = tessera_hip_stream(handle);
    hipError_t error = stream ? tessera_hip_waiting_call() : hipErrorContextIsDestroyed;
    if (error == hipSuccess) error = run_and_release(stream, work);
    return error == hipSuccess ? tessera_hip_device_error(stream->device) : error;
}
