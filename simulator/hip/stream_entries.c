// SPDX-License-Identifier: MIT
// Streams and events. Work is done when it is submitted, so what has been recorded has also happened.
#include <stdlib.h>
#include <time.h>

#include "state.h"

enum { LOWEST_PRIORITY = 1, HIGHEST_PRIORITY = -1 };

static atomic_uint_fast64_t next_id = 1;

// ---- streams

static hipError_t create(hipStream_t *out, unsigned flags, int priority) {
    if (!out) return hipErrorInvalidValue;
    if (flags != 0 && flags != hipStreamNonBlocking) return hipErrorInvalidValue;
    if (priority < HIGHEST_PRIORITY) priority = HIGHEST_PRIORITY;
    if (priority > LOWEST_PRIORITY) priority = LOWEST_PRIORITY;
    struct hip_stream *stream = calloc(1, sizeof *stream);
    if (!stream || !tessera_hip_handle_add(stream, HIP_STREAM)) {
        free(stream);
        return hipErrorOutOfMemory;
    }
    stream->device = tessera_hip_current();
    stream->flags = flags;
    stream->priority = priority;
    stream->id = atomic_fetch_add(&next_id, 1);
    *out = stream;
    return hipSuccess;
}

HIP_API hipError_t hipStreamCreate(hipStream_t *stream) {
    HIP_ENTER();
    return tessera_hip_result(create(stream, 0, 0));
}

HIP_API hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags) {
    HIP_ENTER();
    return tessera_hip_result(create(stream, flags, 0));
}

HIP_API hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned flags, int priority) {
    HIP_ENTER();
    return tessera_hip_result(create(stream, flags, priority));
}

HIP_API hipError_t hipExtStreamCreateWithCUMask(hipStream_t *stream, uint32_t words, const uint32_t *mask) {
    HIP_ENTER();
    HIP_REQUIRE(words && mask, hipErrorInvalidValue);
    return tessera_hip_result(create(stream, 0, 0));
}

HIP_API hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest) {
    HIP_ENTER();
    if (least) *least = LOWEST_PRIORITY;
    if (greatest) *greatest = HIGHEST_PRIORITY;
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipStreamDestroy(hipStream_t stream) {
    HIP_ENTER();
    HIP_REQUIRE(!tessera_hip_is_legacy(stream) && stream != hipStreamPerThread, hipErrorInvalidHandle);
    HIP_REQUIRE(tessera_hip_stream(stream), hipErrorContextIsDestroyed);
    tessera_hip_stream_forget(stream);
    tessera_hip_handle_remove(stream);
    free(stream);
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipStreamSynchronize(hipStream_t handle) {
    HIP_ENTER();
    struct hip_stream *stream = tessera_hip_stream(handle);
    HIP_REQUIRE(stream, hipErrorContextIsDestroyed);
    HIP_TRY(tessera_hip_is_legacy(handle) ? tessera_hip_implicit_call() : tessera_hip_stream_wait(stream));
    return tessera_hip_result(tessera_hip_device_error(stream->device));
}

HIP_API hipError_t hipDeviceSynchronize(void) {
    HIP_ENTER();
    HIP_TRY(tessera_hip_device_wait());
    return tessera_hip_result(tessera_hip_device_error(tessera_hip_current()));
}

HIP_API hipError_t hipStreamQuery(hipStream_t stream) { return hipStreamSynchronize(stream); }

HIP_API hipError_t hipStreamWaitEvent(hipStream_t handle, hipEvent_t event, unsigned flags) {
    enum { EXTERNAL = 1 };
    HIP_ENTER();
    struct hip_stream *stream = tessera_hip_stream(handle);
    HIP_REQUIRE(stream && tessera_hip_handle_is(event, HIP_EVENT), hipErrorInvalidHandle);
    HIP_REQUIRE(flags <= EXTERNAL, hipErrorInvalidValue);
    if (tessera_hip_event_capture(event) || tessera_hip_stream_capture(stream))
        return tessera_hip_result(tessera_hip_capture_wait(stream, event));
    return tessera_hip_result(tessera_hip_device_error(stream->device));
}

HIP_API hipError_t hipStreamGetFlags(hipStream_t handle, unsigned *flags) {
    HIP_ENTER();
    struct hip_stream *stream = tessera_hip_stream(handle);
    HIP_REQUIRE(flags, hipErrorInvalidValue);
    HIP_REQUIRE(stream, hipErrorContextIsDestroyed);
    *flags = stream->flags;
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipStreamGetPriority(hipStream_t handle, int *priority) {
    HIP_ENTER();
    struct hip_stream *stream = tessera_hip_stream(handle);
    HIP_REQUIRE(priority, hipErrorInvalidValue);
    HIP_REQUIRE(stream, hipErrorContextIsDestroyed);
    *priority = stream->priority;
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipStreamGetDevice(hipStream_t handle, hipDevice_t *device) {
    HIP_ENTER();
    struct hip_stream *stream = tessera_hip_stream(handle);
    HIP_REQUIRE(device, hipErrorInvalidValue);
    HIP_REQUIRE(stream, hipErrorContextIsDestroyed);
    *device = stream->device->index;
    return tessera_hip_result(hipSuccess);
}

HIP_API int hipGetStreamDeviceId(hipStream_t handle) {
    const struct hip_stream *stream = tessera_hip_open() == hipSuccess ? tessera_hip_stream(handle) : NULL;
    return stream ? stream->device->index : -1;
}

HIP_API hipError_t hipStreamGetId(hipStream_t handle, unsigned long long *id) {
    HIP_ENTER();
    struct hip_stream *stream = tessera_hip_stream(handle);
    HIP_REQUIRE(id, hipErrorInvalidValue);
    HIP_REQUIRE(stream, hipErrorContextIsDestroyed);
    *id = stream->id;
    return tessera_hip_result(hipSuccess);
}

// ---- calls of the host, in a stream's order

HIP_API hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t fn, void *user) {
    HIP_ENTER();
    HIP_REQUIRE(fn, hipErrorInvalidValue);
    struct hip_work work = {.kind = HIP_HOST, .host = {fn, user}};
    return tessera_hip_result(tessera_hip_submit(stream, &work));
}

HIP_API hipError_t hipStreamAddCallback(hipStream_t handle, hipStreamCallback_t callback, void *user, unsigned flags) {
    HIP_ENTER();
    HIP_REQUIRE(callback && flags == 0, hipErrorInvalidValue);
    struct hip_stream *stream = tessera_hip_stream(handle);
    HIP_REQUIRE(stream, hipErrorContextIsDestroyed);
    HIP_TRY(tessera_hip_is_legacy(handle) ? tessera_hip_implicit_call() : tessera_hip_stream_wait(stream));
    callback(handle, tessera_hip_device_error(stream->device), user);
    return tessera_hip_result(hipSuccess);
}

// ---- events

static double now_milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

HIP_API hipError_t hipEventCreateWithFlags(hipEvent_t *out, unsigned flags) {
    const unsigned known = hipEventBlockingSync | hipEventDisableTiming | hipEventInterprocess |
                           hipEventDisableSystemFence | hipEventReleaseToDevice | hipEventReleaseToSystem;
    const unsigned releases = hipEventReleaseToDevice | hipEventReleaseToSystem | hipEventDisableSystemFence;
    const unsigned release = flags & releases;
    HIP_ENTER();
    HIP_REQUIRE(out && (flags & ~known) == 0 && (release & (release - 1)) == 0, hipErrorInvalidValue);
    struct hip_event *event = calloc(1, sizeof *event);
    if (!event || !tessera_hip_handle_add(event, HIP_EVENT)) {
        free(event);
        return tessera_hip_result(hipErrorOutOfMemory);
    }
    event->device = tessera_hip_current();
    event->flags = flags;
    *out = event;
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipEventCreate(hipEvent_t *out) { return hipEventCreateWithFlags(out, 0); }

HIP_API hipError_t hipEventDestroy(hipEvent_t event) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_handle_is(event, HIP_EVENT), hipErrorInvalidHandle);
    tessera_hip_event_forget(event);
    tessera_hip_handle_remove(event);
    free(event);
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipEventRecord(hipEvent_t event, hipStream_t handle) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_handle_is(event, HIP_EVENT), hipErrorInvalidHandle);
    struct hip_stream *stream = tessera_hip_stream(handle);
    HIP_REQUIRE(stream, hipErrorContextIsDestroyed);
    if (tessera_hip_stream_capture(stream)) return tessera_hip_result(tessera_hip_capture_event(stream, event));
    HIP_REQUIRE(stream->device == event->device, hipErrorInvalidHandle);
    if (tessera_hip_is_legacy(handle)) HIP_TRY(tessera_hip_implicit_call());
    tessera_hip_event_forget(event);
    event->recorded = true;
    event->time = now_milliseconds();
    return tessera_hip_result(tessera_hip_device_error(stream->device));
}

HIP_API hipError_t hipEventRecordWithFlags(hipEvent_t event, hipStream_t stream, unsigned flags) {
    HIP_REQUIRE(flags <= 1, hipErrorInvalidValue);
    return hipEventRecord(event, stream);
}

HIP_API hipError_t hipEventSynchronize(hipEvent_t event) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_handle_is(event, HIP_EVENT), hipErrorInvalidHandle);
    if (tessera_hip_event_capture(event)) {
        event->capture->invalid = true;
        return tessera_hip_result(hipErrorCapturedEvent);
    }
    return tessera_hip_result(tessera_hip_device_error(event->device));
}

HIP_API hipError_t hipEventQuery(hipEvent_t event) {
    if (tessera_hip_open() == hipSuccess && tessera_hip_handle_is(event, HIP_EVENT) && tessera_hip_major >= 7)
        HIP_TRY(tessera_hip_unsafe_call());
    return hipEventSynchronize(event);
}

HIP_API hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t start, hipEvent_t stop) {
    HIP_ENTER();
    HIP_REQUIRE(milliseconds, hipErrorInvalidValue);
    HIP_REQUIRE(tessera_hip_handle_is(start, HIP_EVENT) && tessera_hip_handle_is(stop, HIP_EVENT),
                hipErrorInvalidHandle);
    HIP_REQUIRE(start->device == stop->device && start->recorded && stop->recorded, hipErrorInvalidHandle);
    HIP_REQUIRE(!((start->flags | stop->flags) & hipEventDisableTiming), hipErrorInvalidHandle);
    *milliseconds = (float)(stop->time - start->time); // of the simulator, not of a GPU
    return tessera_hip_result(tessera_hip_device_error(start->device));
}
