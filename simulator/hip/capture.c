// SPDX-License-Identifier: MIT
// Capture: a stream's work is added to a graph and not done, as is the work of streams that wait for its events. Calls
// that cannot be captured are refused, and make the capture invalid.
#include <stdlib.h>
#include <string.h>

#include "state.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct hip_capture *captures; // the captures under way
static uint64_t last_id;
static _Thread_local hipStreamCaptureMode thread_mode; // which captures this thread's unsafe calls collide with

// ---- calls that a capture forbids

// Whether the capture forbids unsafe calls of the calling thread.
static bool concerns_thread(const struct hip_capture *capture) {
    if (thread_mode == hipStreamCaptureModeRelaxed || capture->mode == hipStreamCaptureModeRelaxed) return false;
    if (pthread_equal(capture->thread, pthread_self())) return true;
    return capture->mode == hipStreamCaptureModeGlobal && thread_mode == hipStreamCaptureModeGlobal;
}

hipError_t tessera_hip_unsafe_call(void) {
    hipError_t error = hipSuccess;
    pthread_mutex_lock(&lock);
    for (struct hip_capture *capture = captures; capture; capture = capture->next)
        if (concerns_thread(capture)) {
            capture->invalid = true;
            error = hipErrorStreamCaptureUnsupported;
        }
    pthread_mutex_unlock(&lock);
    return error;
}

// Invalidates all captures under way (`blocking_only`: those of blocking streams), and returns `error` if there are
// any.
static hipError_t collide(hipError_t error, bool blocking_only) {
    hipError_t result = hipSuccess;
    pthread_mutex_lock(&lock);
    for (struct hip_capture *capture = captures; capture; capture = capture->next) {
        if (blocking_only && capture->origin->flags & hipStreamNonBlocking) continue;
        capture->invalid = true;
        result = error;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

hipError_t tessera_hip_implicit_call(void) { return collide(hipErrorStreamCaptureImplicit, true); }

hipError_t tessera_hip_waiting_call(void) { return collide(hipErrorStreamCaptureImplicit, false); }

hipError_t tessera_hip_device_wait(void) { return collide(hipErrorStreamCaptureUnsupported, false); }

hipError_t tessera_hip_stream_wait(struct hip_stream *stream) {
    struct hip_capture *capture = tessera_hip_stream_capture(stream);
    if (!capture) return tessera_hip_unsafe_call();
    capture->invalid = true;
    return hipErrorStreamCaptureUnsupported;
}

// ---- fronts: the nodes that a stream's next node depends on

static bool set_fronts(size_t **fronts, size_t *count, const size_t *from, size_t from_count) {
    size_t *copy = malloc((from_count + 1) * sizeof *copy);
    if (!copy) return false;
    if (from_count) memcpy(copy, from, from_count * sizeof *copy);
    free(*fronts);
    *fronts = copy;
    *count = from_count;
    return true;
}

static bool add_fronts(struct hip_stream *stream, const size_t *more, size_t count) {
    size_t *all = realloc(stream->fronts, (stream->front_count + count + 1) * sizeof *all);
    if (!all) return false;
    stream->fronts = all;
    for (size_t i = 0; i < count; i++) {
        bool known = false;
        for (size_t k = 0; k < stream->front_count && !known; k++) known = all[k] == more[i];
        if (!known) all[stream->front_count++] = more[i];
    }
    return true;
}

// A capture that has ended stays allocated while streams and events refer to it; it has no graph any more.
static bool is_over(const struct hip_capture *capture) { return capture->graph == NULL; }

static void let_go(struct hip_capture *capture) {
    if (capture && --capture->references == 0) free(capture);
}

void tessera_hip_event_forget(struct hip_event *event) {
    pthread_mutex_lock(&lock);
    let_go(event->capture);
    event->capture = NULL;
    pthread_mutex_unlock(&lock);
    free(event->fronts);
    event->fronts = NULL;
    event->front_count = 0;
}

void tessera_hip_stream_forget(struct hip_stream *stream) {
    pthread_mutex_lock(&lock);
    struct hip_capture *capture = stream->capture;
    stream->capture = NULL;
    if (capture && capture->origin == stream) { // the capture ends without a graph
        for (struct hip_capture **link = &captures; *link; link = &(*link)->next)
            if (*link == capture) {
                *link = capture->next;
                break;
            }
        tessera_hip_graph_close(capture->graph);
        capture->graph = NULL;
    }
    let_go(capture);
    pthread_mutex_unlock(&lock);
    free(stream->fronts);
    stream->fronts = NULL;
    stream->front_count = 0;
}

struct hip_capture *tessera_hip_stream_capture(struct hip_stream *stream) {
    pthread_mutex_lock(&lock);
    const bool over = stream->capture && is_over(stream->capture);
    pthread_mutex_unlock(&lock);
    if (over) tessera_hip_stream_forget(stream);
    return stream->capture;
}

struct hip_capture *tessera_hip_event_capture(struct hip_event *event) {
    pthread_mutex_lock(&lock);
    const bool over = event->capture && is_over(event->capture);
    pthread_mutex_unlock(&lock);
    if (over) tessera_hip_event_forget(event);
    return event->capture;
}

hipError_t tessera_hip_capture_work(struct hip_stream *stream, struct hip_work *work) {
    size_t index;
    hipError_t error = hipErrorStreamCaptureInvalidated;
    pthread_mutex_lock(&lock);
    struct hip_capture *capture = stream->capture;
    if (!capture->invalid) {
        error = tessera_hip_graph_add(capture->graph, work, stream->fronts, stream->front_count, &index);
        if (error == hipSuccess && !set_fronts(&stream->fronts, &stream->front_count, &index, 1))
            error = hipErrorOutOfMemory;
        capture->invalid = error != hipSuccess;
    }
    pthread_mutex_unlock(&lock);
    if (error == hipErrorStreamCaptureInvalidated) tessera_hip_release(work);
    return error;
}

hipError_t tessera_hip_capture_event(struct hip_stream *stream, struct hip_event *event) {
    if (stream->capture->invalid) return hipErrorStreamCaptureInvalidated;
    tessera_hip_event_forget(event);
    if (!set_fronts(&event->fronts, &event->front_count, stream->fronts, stream->front_count))
        return hipErrorOutOfMemory;
    pthread_mutex_lock(&lock);
    event->capture = stream->capture;
    event->capture->references++;
    pthread_mutex_unlock(&lock);
    return hipSuccess;
}

static hipError_t wait_locked(struct hip_stream *stream, struct hip_event *event) {
    struct hip_capture *from = event->capture;
    if (!from) { // the event is of work that was done, not captured
        stream->capture->invalid = true;
        return hipErrorStreamCaptureIsolation;
    }
    if (from->invalid) return hipErrorStreamCaptureInvalidated;
    if (stream == tessera_hip_default_stream(stream->device)) {
        from->invalid = true;
        return hipErrorStreamCaptureImplicit;
    }
    if (stream->capture && stream->capture != from) {
        stream->capture->invalid = from->invalid = true;
        return hipErrorStreamCaptureMerge;
    }
    if (!stream->capture) {
        stream->capture = from;
        stream->front_count = 0;
        from->references++;
    }
    return add_fronts(stream, event->fronts, event->front_count) ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t tessera_hip_capture_wait(struct hip_stream *stream, struct hip_event *event) {
    pthread_mutex_lock(&lock);
    const hipError_t error = wait_locked(stream, event);
    pthread_mutex_unlock(&lock);
    return error;
}

// ---- beginning and ending

HIP_API hipError_t hipStreamBeginCapture(hipStream_t handle, hipStreamCaptureMode mode) {
    HIP_ENTER();
    struct hip_stream *stream = tessera_hip_stream(handle);
    HIP_REQUIRE(stream, hipErrorContextIsDestroyed);
    HIP_REQUIRE(!tessera_hip_is_legacy(handle), hipErrorStreamCaptureUnsupported);
    HIP_REQUIRE((unsigned)mode <= hipStreamCaptureModeRelaxed, hipErrorInvalidValue);
    HIP_REQUIRE(!tessera_hip_stream_capture(stream), hipErrorIllegalState);
    struct hip_capture *capture = calloc(1, sizeof *capture);
    HIP_REQUIRE(capture, hipErrorOutOfMemory);
    *capture = (struct hip_capture){.origin = stream, .mode = mode, .thread = pthread_self(), .references = 1};
    if (tessera_hip_graph_open(stream->device, &capture->graph) != hipSuccess) {
        free(capture);
        return tessera_hip_result(hipErrorOutOfMemory);
    }
    pthread_mutex_lock(&lock);
    capture->id = ++last_id;
    capture->next = captures;
    captures = capture;
    stream->capture = capture;
    stream->front_count = 0;
    pthread_mutex_unlock(&lock);
    return tessera_hip_result(hipSuccess);
}

// Whether all forks have joined: the stream's next node would wait, directly or not, for every node.
static bool is_joined(const struct hip_graph *graph, const size_t *fronts, size_t count) {
    bool *reached = calloc(graph->count + 1, sizeof *reached);
    bool joined = reached != NULL;
    for (size_t i = 0; joined && i < count; i++) reached[fronts[i]] = true;
    for (size_t i = graph->count; joined && i-- > 0;) {
        const struct hip_graph_node *node = graph->nodes[i];
        joined = reached[i];
        for (size_t k = 0; k < node->after_count; k++) reached[node->after[k]] = true;
    }
    free(reached);
    return joined;
}

HIP_API hipError_t hipStreamEndCapture(hipStream_t handle, hipGraph_t *out) {
    HIP_ENTER();
    HIP_REQUIRE(out, hipErrorInvalidValue);
    HIP_REQUIRE(!tessera_hip_is_legacy(handle), hipErrorIllegalState);
    struct hip_stream *stream = tessera_hip_stream(handle);
    HIP_REQUIRE(stream, hipErrorContextIsDestroyed);
    struct hip_capture *capture = tessera_hip_stream_capture(stream);
    HIP_REQUIRE(capture, hipErrorIllegalState);
    HIP_REQUIRE(capture->origin == stream, hipErrorStreamCaptureUnmatched);
    HIP_REQUIRE(capture->mode == hipStreamCaptureModeRelaxed || pthread_equal(capture->thread, pthread_self()),
                hipErrorStreamCaptureWrongThread);
    hipError_t error = capture->invalid ? hipErrorStreamCaptureInvalidated : hipSuccess;
    if (error == hipSuccess && !is_joined(capture->graph, stream->fronts, stream->front_count))
        error = hipErrorStreamCaptureUnjoined;
    *out = NULL;
    if (error == hipSuccess) {
        *out = capture->graph;
        capture->graph = NULL;
    }
    tessera_hip_stream_forget(stream);
    return tessera_hip_result(error);
}

static hipStreamCaptureStatus status_of(struct hip_stream *stream) {
    const struct hip_capture *capture = tessera_hip_stream_capture(stream);
    if (!capture) return hipStreamCaptureStatusNone;
    return capture->invalid ? hipStreamCaptureStatusInvalidated : hipStreamCaptureStatusActive;
}

HIP_API hipError_t hipStreamIsCapturing(hipStream_t handle, hipStreamCaptureStatus *status) {
    HIP_ENTER();
    HIP_REQUIRE(status, hipErrorInvalidValue);
    if (tessera_hip_is_legacy(handle)) HIP_TRY(tessera_hip_implicit_call());
    struct hip_stream *stream = tessera_hip_stream(handle);
    HIP_REQUIRE(stream, hipErrorContextIsDestroyed);
    *status = status_of(stream);
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipStreamGetCaptureInfo(hipStream_t handle, hipStreamCaptureStatus *status, unsigned long long *id) {
    HIP_ENTER();
    HIP_REQUIRE(status, hipErrorInvalidValue);
    if (tessera_hip_is_legacy(handle)) HIP_TRY(tessera_hip_implicit_call());
    struct hip_stream *stream = tessera_hip_stream(handle);
    HIP_REQUIRE(stream, hipErrorContextIsDestroyed);
    *status = status_of(stream);
    if (id) *id = *status == hipStreamCaptureStatusActive ? stream->capture->id : 0;
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode) {
    HIP_ENTER();
    HIP_REQUIRE(mode && (unsigned)*mode <= hipStreamCaptureModeRelaxed, hipErrorInvalidValue);
    const hipStreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return tessera_hip_result(hipSuccess);
}
