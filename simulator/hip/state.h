// SPDX-License-Identifier: MIT
// State and functions that the files of the stand-in share.
//
// Work is done in the call that asks for it, one piece at a time on each device. This is legal for asynchronous calls
// and the same on every run, and a fault is known when its launch returns. A launch that faults still returns
// hipSuccess, as on a GPU; the device's later calls return its error.
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "facts.h"
#include "hip_api.h"
#include "tessera/simulator.h"

// ---- errors (error.c)

// Returns an entry point's result, and keeps it for this thread's hipGetLastError().
hipError_t tessera_hip_result(hipError_t error);
hipError_t tessera_hip_from_status(tessera_status status);
// Prints "tessera_sim: ..." to stderr.
void tessera_hip_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

// First line of an entry point: opens the devices.
#define HIP_ENTER()                                                                                                    \
    do {                                                                                                               \
        const hipError_t entered = tessera_hip_open();                                                                 \
        if (entered != hipSuccess) return tessera_hip_result(entered);                                                 \
    } while (0)
#define HIP_REQUIRE(condition, error)                                                                                  \
    do {                                                                                                               \
        if (!(condition)) return tessera_hip_result(error);                                                            \
    } while (0)
#define HIP_TRY(call)                                                                                                  \
    do {                                                                                                               \
        const hipError_t tried = (call);                                                                               \
        if (tried != hipSuccess) return tessera_hip_result(tried);                                                     \
    } while (0)

// ---- version (version.c: one for each library)

extern const int tessera_hip_major;
extern const int tessera_hip_version; // as hipRuntimeGetVersion() gives it

// ---- devices (device.c)

struct hip_device {
    tessera_sim *sim;
    const struct hip_facts *facts;
    int index;
    unsigned flags;
    atomic_int error;              // hipError_t of the first fault, for good
    atomic_size_t used;            // bytes allocated on it
    size_t stack_bytes;            // stack of a lane in kernels whose depth of calls is unknown
    pthread_mutex_t run;           // held while the device works
    struct hip_hostcall *hostcall; // NULL until a kernel that calls the host runs
    hipMemPool_t pool;
    uint64_t pool_threshold;
};

enum { HIP_MOST_DEVICES = 16 };

hipError_t tessera_hip_open(void);
int tessera_hip_device_count(void);
struct hip_device *tessera_hip_device(int index); // NULL where there is no such device
struct hip_device *tessera_hip_current(void);
hipError_t tessera_hip_device_error(struct hip_device *device);

// ---- handles (handle.c): whether a pointer is a live handle of the kind that the caller says

enum hip_kind { HIP_NO_HANDLE, HIP_STREAM, HIP_EVENT, HIP_MODULE, HIP_FUNCTION, HIP_GRAPH, HIP_NODE, HIP_EXEC };

bool tessera_hip_handle_add(const void *handle, enum hip_kind kind);
bool tessera_hip_handle_is(const void *handle, enum hip_kind kind);
void tessera_hip_handle_remove(const void *handle);

// ---- memory (memory.c)

// The allocation that an address lies in. `kind` is hipMemoryTypeUnregistered for memory that nobody has registered.
struct hip_place {
    hipMemoryType kind;
    int device;
    void *base;
    size_t bytes;
    unsigned flags;
};

struct hip_place tessera_hip_find(const void *address);
// Whether `bytes` from `address` on are within one allocation; true for memory that nobody has registered.
bool tessera_hip_fits(const void *address, size_t bytes);
// Lets all devices touch memory of the host. `owned`: it is freed when it is taken back.
hipError_t tessera_hip_lend(struct hip_place place, bool owned);
// Takes back the memory of the host that starts at `base`; false where no such memory was lent.
bool tessera_hip_take_back(void *base, bool owned);
// Allocates memory of the host that all devices may touch.
hipError_t tessera_hip_shared_malloc(void **out, size_t bytes, hipMemoryType kind, unsigned flags);

// ---- work (work.c): what streams and graphs are made of

enum hip_work_kind { HIP_EMPTY, HIP_KERNEL, HIP_COPY, HIP_SET, HIP_HOST };

struct hip_kernel_work {
    struct hip_function *function;
    dim3 grid;  // work-items
    dim3 block; //
    uint32_t lds_bytes;
    void *kernarg; // a copy that the work owns
    size_t kernarg_bytes;
};

// A copy of `depth` slices of `height` rows of `width` bytes.
struct hip_copy_work {
    char *to;
    const char *from;
    size_t to_pitch, to_slice, from_pitch, from_slice;
    size_t width, height, depth;
};

struct hip_set_work {
    char *to;
    size_t pitch, slice;
    uint32_t value, element; // element: its bytes, 1, 2 or 4
    size_t width, height, depth;
};

struct hip_host_work {
    hipHostFn_t fn;
    void *user;
};

struct hip_work {
    enum hip_work_kind kind;
    union {
        struct hip_kernel_work kernel;
        struct hip_copy_work copy;
        struct hip_set_work set;
        struct hip_host_work host;
    };
};

hipError_t tessera_hip_run(struct hip_device *device, const struct hip_work *work);
void tessera_hip_release(struct hip_work *work);

// Make the work of a copy of bytes and of a fill of rows of elements, after checks (copy.c).
hipError_t tessera_hip_make_copy(struct hip_work *work, void *to, const void *from, size_t bytes, int kind);
hipError_t tessera_hip_make_set(struct hip_work *work, void *to, size_t pitch, uint32_t value, uint32_t element,
                                size_t width, size_t height, size_t depth);

// Gets the device ready for a kernel that calls the host (hostcall.c).
hipError_t tessera_hip_open_hostcall(struct hip_device *device, const tessera_sim_kernel_info *info);

// ---- streams (stream.c) and events

struct hip_capture;

struct hip_stream {
    struct hip_device *device;
    unsigned flags;
    int priority;
    uint64_t id;
    struct hip_capture *capture; // NULL: it does not capture
    size_t *fronts;              // while it captures: the nodes that its next node depends on
    size_t front_count;
};

struct hip_event {
    struct hip_device *device;
    unsigned flags;
    bool recorded;
    double time;                 // milliseconds
    struct hip_capture *capture; // in which it was recorded
    size_t *fronts;
    size_t front_count;
};

// The stream of a handle; NULL where it is not one. The handles 0, 1 and 2 name streams of the current device.
struct hip_stream *tessera_hip_stream(hipStream_t handle);
struct hip_stream *tessera_hip_default_stream(struct hip_device *device);
struct hip_stream *tessera_hip_thread_stream(struct hip_device *device);
bool tessera_hip_is_legacy(hipStream_t handle);

// ---- capture (capture.c)

struct hip_capture {
    struct hip_graph *graph;
    struct hip_stream *origin;
    hipStreamCaptureMode mode;
    bool invalid;
    pthread_t thread; // the thread that began it
    uint64_t id;
    int references; // of streams and events
    struct hip_capture *next;
};

// Whether captures forbid a call; these invalidate the captures that the call collides with.
hipError_t tessera_hip_unsafe_call(void);   // for allocations and the like: allowed in relaxed mode
hipError_t tessera_hip_implicit_call(void); // for work of the legacy stream, which waits for blocking streams
hipError_t tessera_hip_waiting_call(void);  // for synchronous copies
hipError_t tessera_hip_device_wait(void);   // for waits for all streams
hipError_t tessera_hip_stream_wait(struct hip_stream *stream); // for waits for a stream, and queries of it
// The capture under way that a stream takes part in, or that an event was recorded in; NULL: none.
struct hip_capture *tessera_hip_stream_capture(struct hip_stream *stream);
struct hip_capture *tessera_hip_event_capture(struct hip_event *event);
hipError_t tessera_hip_capture_event(struct hip_stream *stream, struct hip_event *event);
hipError_t tessera_hip_capture_wait(struct hip_stream *stream, struct hip_event *event);
hipError_t tessera_hip_capture_work(struct hip_stream *stream, struct hip_work *work);
void tessera_hip_event_forget(struct hip_event *event);
void tessera_hip_stream_forget(struct hip_stream *stream);

// ---- graphs (graph.c)

struct hip_graph_node {
    struct hip_work work;
    struct hip_graph *graph;
    size_t *after; // indices of the nodes that it waits for
    size_t after_count;
};

struct hip_graph {
    struct hip_device *device;
    struct hip_graph_node **nodes; // each after the nodes that it waits for
    size_t count, capacity;
};

hipError_t tessera_hip_graph_open(struct hip_device *device, struct hip_graph **out);
void tessera_hip_graph_close(struct hip_graph *graph);
// Adds a node that waits for others. The node takes over the work.
hipError_t tessera_hip_graph_add(struct hip_graph *graph, struct hip_work *work, const size_t *after,
                                 size_t after_count, size_t *index);
hipError_t tessera_hip_graph_copy(const struct hip_graph *graph, struct hip_graph **out);

// ---- work that a stream is given (submit.c)

// Does the work, or adds it to the graph that the stream captures. Takes over what the work owns.
hipError_t tessera_hip_submit(hipStream_t stream, struct hip_work *work);
// The same for calls that wait for their work; these may not be captured.
hipError_t tessera_hip_submit_and_wait(hipStream_t stream, struct hip_work *work);

// ---- modules (module.c, image.c)

struct hip_function {
    const tessera_sim_kernel *kernel;
    const tessera_sim_kernel_info *info;
    struct hip_module *module;
    struct hip_function *next;
};

struct hip_module {
    struct hip_device *device;
    tessera_sim_module *code;
    struct hip_function *functions; // those that were asked for so far
    pthread_mutex_t lock;
};

struct hip_code {
    const void *image; // ELF
    size_t bytes;
    void *unpacked; // the memory that the image lies in, to be freed; NULL where it is the caller's
};

// Finds the code object for a device in an image: an ELF file, or a clang offload bundle, compressed or not. `limit`:
// the bytes of the image, SIZE_MAX where that is unknown.
hipError_t tessera_hip_find_code(const struct hip_device *device, const void *image, size_t limit,
                                 struct hip_code *code);
// Unpacks a compressed bundle into memory that the caller frees (compressed.c).
hipError_t tessera_hip_decompress(const void *image, size_t limit, void **out, size_t *bytes);
hipError_t tessera_hip_module_open(struct hip_device *device, const void *image, size_t limit, struct hip_module **out);
void tessera_hip_module_close(struct hip_module *module);
hipError_t tessera_hip_module_function(struct hip_module *module, const char *name, struct hip_function **out);

// ---- launches (launch.c) and what hipcc's programs register (register.c)

struct hip_launch {
    uint64_t grid[3]; // work-items
    uint32_t block[3];
    uint32_t lds_bytes;
    void **params, **extra;
};

hipError_t tessera_hip_launch(struct hip_function *function, const struct hip_launch *launch, hipStream_t stream);
hipError_t tessera_hip_make_kernel_work(struct hip_function *function, const struct hip_launch *launch,
                                        struct hip_work *work);

// The function or variable, on the current device, that an address in the program stands for.
hipError_t tessera_hip_symbol_function(const void *host, struct hip_function **out);
hipError_t tessera_hip_symbol_variable(const void *host, void **address, size_t *bytes);

// ---- occupancy (occupancy.c)

// The number of blocks that a compute unit holds at once.
int tessera_hip_blocks_per_unit(const struct hip_device *device, const tessera_sim_kernel_info *info, uint32_t items,
                                size_t lds_bytes);

// ---- entry points that others call

hipError_t hipSetDevice(int device);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);
hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream);
hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t fn, void *user);
hipError_t hipLaunchKernel(const void *host, dim3 grid, dim3 block, void **params, size_t lds_bytes,
                           hipStream_t stream);
hipError_t hipMemcpy(void *to, const void *from, size_t bytes, int kind);
hipError_t hipMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                       int kind);
hipError_t hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                            int kind, hipStream_t stream);
hipError_t hipMemcpy3D(const hipMemcpy3DParms *params);
hipError_t hipMemcpy3DAsync(const hipMemcpy3DParms *params, hipStream_t stream);
hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, int kind, hipStream_t stream);
hipError_t hipMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, int kind);
hipError_t hipMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset, int kind,
                                    hipStream_t stream);
hipError_t hipMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, int kind);
hipError_t hipMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset, int kind,
                                  hipStream_t stream);
hipError_t hipMemset(void *to, int value, size_t bytes);
hipError_t hipMemset2D(void *to, size_t pitch, int value, size_t width, size_t height);
hipError_t hipMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height, hipStream_t stream);
hipError_t hipMemset3D(hipPitchedPtr to, int value, hipExtent extent);
hipError_t hipMemset3DAsync(hipPitchedPtr to, int value, hipExtent extent, hipStream_t stream);
hipError_t hipMemsetAsync(void *to, int value, size_t bytes, hipStream_t stream);
hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t callback, void *user, unsigned flags);
hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode);
hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *out);
hipError_t hipStreamGetCaptureInfo(hipStream_t stream, hipStreamCaptureStatus *status, unsigned long long *id);
hipError_t hipStreamGetFlags(hipStream_t stream, unsigned *flags);
hipError_t hipStreamGetPriority(hipStream_t stream, int *priority);
hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *status);
hipError_t hipStreamQuery(hipStream_t stream);
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags);
