// SPDX-License-Identifier: MIT
// Entry points of memory: memory of devices, memory of the host that devices may touch, managed memory, and pools.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

// ---- memory of a device

// The memory that the host can give: MemAvailable of /proc/meminfo; SIZE_MAX where that is unknown.
static size_t host_bytes(void) {
    FILE *file = fopen("/proc/meminfo", "r");
    if (!file) return SIZE_MAX;
    size_t kilobytes = SIZE_MAX / 1024;
    char line[128];
    while (fgets(line, sizeof line, file) && sscanf(line, "MemAvailable: %zu", &kilobytes) != 1) continue;
    fclose(file);
    return kilobytes * 1024;
}

// The memory that the board has left, or the host if that is less: most hosts have less than a board.
static size_t free_bytes(struct hip_device *device) {
    const size_t used = atomic_load(&device->used), total = (size_t)device->facts->memory_bytes;
    const size_t board = used < total ? total - used : 0, host = host_bytes();
    return host < board ? host : board;
}

static hipError_t device_malloc(struct hip_device *device, void **out, size_t bytes) {
    enum { LARGE = 16 << 20 }; // smaller allocations are tried without asking
    const hipError_t error = tessera_hip_device_error(device);
    if (error != hipSuccess) return error;
    if (bytes >= LARGE && bytes > free_bytes(device)) return hipErrorOutOfMemory;
    const hipError_t got = tessera_hip_from_status(tessera_sim_malloc(device->sim, bytes, out));
    if (got == hipSuccess) atomic_fetch_add(&device->used, bytes);
    return got;
}

// Frees memory of any of the allocating functions.
static hipError_t free_any(void *address) {
    if (!address) return hipSuccess;
    const struct hip_place place = tessera_hip_find(address);
    if (place.kind == hipMemoryTypeUnregistered || place.base != address) return hipErrorInvalidValue;
    if (place.kind != hipMemoryTypeDevice)
        return tessera_hip_take_back(address, true) ? hipSuccess : hipErrorInvalidValue;
    struct hip_device *device = tessera_hip_device(place.device);
    pthread_mutex_lock(&device->run); // not while a kernel of another thread may use it
    const tessera_status status = tessera_sim_free(device->sim, address);
    pthread_mutex_unlock(&device->run);
    if (status != TESSERA_SUCCESS) return hipErrorInvalidValue; // memory of a module
    atomic_fetch_sub(&device->used, place.bytes);
    return tessera_hip_device_error(device);
}

HIP_API hipError_t hipMalloc(void **out, size_t bytes) {
    HIP_ENTER();
    HIP_TRY(tessera_hip_unsafe_call());
    HIP_REQUIRE(out, hipErrorInvalidValue);
    return tessera_hip_result(device_malloc(tessera_hip_current(), out, bytes));
}

HIP_API hipError_t hipExtMallocWithFlags(void **out, size_t bytes, unsigned flags) {
    enum { FINE_GRAINED = 1, SIGNAL = 2, UNCACHED = 3, CONTIGUOUS = 4 };
    HIP_REQUIRE(flags <= CONTIGUOUS && (flags != SIGNAL || bytes == 8), hipErrorInvalidValue);
    return hipMalloc(out, bytes);
}

HIP_API hipError_t hipFree(void *address) {
    HIP_ENTER();
    HIP_TRY(tessera_hip_unsafe_call());
    return tessera_hip_result(free_any(address));
}

HIP_API hipError_t hipMemGetInfo(size_t *free, size_t *total) {
    HIP_ENTER();
    if (free) *free = free_bytes(tessera_hip_current());
    if (total) *total = (size_t)tessera_hip_current()->facts->memory_bytes;
    return tessera_hip_result(hipSuccess);
}

// Rows of pitched memory start at multiples of PITCH.
enum { PITCH = 256 };

static hipError_t malloc_pitch(void **out, size_t *pitch, size_t width, size_t rows) {
    if (!out || !pitch) return hipErrorInvalidValue;
    if (width == 0 || rows == 0) {
        *out = NULL;
        *pitch = 0;
        return hipSuccess;
    }
    if (width > SIZE_MAX - PITCH) return hipErrorOutOfMemory;
    const size_t padded = (width + PITCH - 1) / PITCH * PITCH;
    if (rows > SIZE_MAX / padded) return hipErrorOutOfMemory;
    const hipError_t error = device_malloc(tessera_hip_current(), out, padded * rows);
    if (error == hipSuccess) *pitch = padded;
    return error;
}

HIP_API hipError_t hipMallocPitch(void **out, size_t *pitch, size_t width, size_t height) {
    HIP_ENTER();
    HIP_TRY(tessera_hip_unsafe_call());
    return tessera_hip_result(malloc_pitch(out, pitch, width, height));
}

HIP_API hipError_t hipMemAllocPitch(void **out, size_t *pitch, size_t width, size_t height, unsigned element) {
    HIP_REQUIRE(element == 4 || element == 8 || element == 16, hipErrorInvalidValue);
    return hipMallocPitch(out, pitch, width, height);
}

HIP_API hipError_t hipMalloc3D(hipPitchedPtr *out, hipExtent extent) {
    HIP_ENTER();
    HIP_TRY(tessera_hip_unsafe_call());
    HIP_REQUIRE(out, hipErrorInvalidValue);
    HIP_REQUIRE(extent.depth == 0 || extent.height <= SIZE_MAX / extent.depth, hipErrorOutOfMemory);
    hipPitchedPtr made = {.xsize = extent.width, .ysize = extent.height};
    HIP_TRY(malloc_pitch(&made.ptr, &made.pitch, extent.width, extent.height * extent.depth));
    *out = made;
    return tessera_hip_result(hipSuccess);
}

// ---- memory of the host

static bool is_shared(struct hip_place place) {
    return place.kind == hipMemoryTypeHost || place.kind == hipMemoryTypeManaged;
}

static bool host_flags_are_good(unsigned flags) {
    const unsigned known = hipHostMallocPortable | hipHostMallocMapped | hipHostMallocWriteCombined |
                           hipHostMallocNumaUser | hipHostMallocCoherent | hipHostMallocNonCoherent;
    const unsigned both = hipHostMallocCoherent | hipHostMallocNonCoherent;
    return (flags & ~known) == 0 && (flags & both) != both;
}

HIP_API hipError_t hipHostMalloc(void **out, size_t bytes, unsigned flags) {
    HIP_ENTER();
    HIP_TRY(tessera_hip_unsafe_call());
    HIP_REQUIRE(out, hipErrorInvalidValue);
    *out = NULL;
    HIP_REQUIRE(host_flags_are_good(flags), hipErrorInvalidValue);
    if (bytes == 0) return tessera_hip_result(hipSuccess);
    return tessera_hip_result(tessera_hip_shared_malloc(out, bytes, hipMemoryTypeHost, flags));
}

HIP_API hipError_t hipHostAlloc(void **out, size_t bytes, unsigned flags) { return hipHostMalloc(out, bytes, flags); }

HIP_API hipError_t hipExtHostAlloc(void **out, size_t bytes, unsigned flags) {
    return hipHostMalloc(out, bytes, flags);
}

HIP_API hipError_t hipMallocHost(void **out, size_t bytes) { return hipHostMalloc(out, bytes, 0); }

HIP_API hipError_t hipMemAllocHost(void **out, size_t bytes) { return hipHostMalloc(out, bytes, 0); }

HIP_API hipError_t hipHostFree(void *address) { return hipFree(address); }

HIP_API hipError_t hipFreeHost(void *address) { return hipFree(address); }

HIP_API hipError_t hipHostRegister(void *address, size_t bytes, unsigned flags) {
    HIP_ENTER();
    HIP_TRY(tessera_hip_unsafe_call());
    HIP_REQUIRE(address && bytes && flags < 16, hipErrorInvalidValue);
    const struct hip_place place = {hipMemoryTypeHost, tessera_hip_current()->index, address, bytes, flags};
    return tessera_hip_result(tessera_hip_lend(place, false));
}

HIP_API hipError_t hipHostUnregister(void *address) {
    HIP_ENTER();
    HIP_TRY(tessera_hip_unsafe_call());
    HIP_REQUIRE(address, hipErrorInvalidValue);
    return tessera_hip_result(tessera_hip_take_back(address, false) ? hipSuccess : hipErrorHostMemoryNotRegistered);
}

HIP_API hipError_t hipHostGetDevicePointer(void **out, void *address, unsigned flags) {
    HIP_ENTER();
    HIP_REQUIRE(out && address && flags == 0, hipErrorInvalidValue);
    HIP_REQUIRE(is_shared(tessera_hip_find(address)), hipErrorInvalidValue);
    *out = address; // one address space
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipHostGetFlags(unsigned *flags, void *address) {
    HIP_ENTER();
    const struct hip_place place = tessera_hip_find(address);
    HIP_REQUIRE(flags && address && is_shared(place), hipErrorInvalidValue);
    *flags = place.flags;
    return tessera_hip_result(hipSuccess);
}

// ---- managed memory

HIP_API hipError_t hipMallocManaged(void **out, size_t bytes, unsigned flags) {
    enum { ATTACH_GLOBAL = 1, ATTACH_HOST = 2 };
    HIP_ENTER();
    HIP_TRY(tessera_hip_unsafe_call());
    HIP_REQUIRE(out && bytes && (flags == ATTACH_GLOBAL || flags == ATTACH_HOST), hipErrorInvalidValue);
    return tessera_hip_result(tessera_hip_shared_malloc(out, bytes, hipMemoryTypeManaged, flags));
}

static bool is_managed(const void *address, size_t bytes) {
    return tessera_hip_find(address).kind == hipMemoryTypeManaged && tessera_hip_fits(address, bytes);
}

static bool is_device_or_host(int device) { return device == hipCpuDeviceId || tessera_hip_device(device); }

HIP_API hipError_t hipMemPrefetchAsync(const void *address, size_t bytes, int device, hipStream_t stream) {
    HIP_ENTER();
    HIP_REQUIRE(address && bytes && is_managed(address, bytes), hipErrorInvalidValue);
    HIP_REQUIRE(is_device_or_host(device), hipErrorInvalidDevice);
    HIP_REQUIRE(tessera_hip_stream(stream), hipErrorContextIsDestroyed);
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipMemAdvise(const void *address, size_t bytes, int advice, int device) {
    HIP_ENTER();
    if (tessera_hip_major >= 7) HIP_TRY(tessera_hip_unsafe_call());
    HIP_REQUIRE(address && bytes && is_managed(address, bytes), hipErrorInvalidValue);
    HIP_REQUIRE(is_device_or_host(device), hipErrorInvalidDevice);
    HIP_REQUIRE((advice >= 1 && advice <= 6) || advice == 100 || advice == 101, hipErrorInvalidValue);
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipStreamAttachMemAsync(hipStream_t stream, void *address, size_t bytes, unsigned flags) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_stream(stream), hipErrorContextIsDestroyed);
    HIP_REQUIRE(address && is_managed(address, bytes), hipErrorInvalidValue);
    HIP_REQUIRE(flags == 1 || flags == 2 || flags == 4, hipErrorInvalidValue);
    return tessera_hip_result(hipSuccess);
}

// ---- attributes of addresses

HIP_API hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *address) {
    HIP_ENTER();
    if (!attributes || !address) return tessera_hip_result(tessera_hip_major >= 7 ? hipSuccess : hipErrorInvalidValue);
    const struct hip_place place = tessera_hip_find(address);
    *attributes = (hipPointerAttribute_t){.type = place.kind, .device = place.device};
    // Before version 6, memory that the runtime does not know is an error, and kinds have other numbers.
    if (place.kind == hipMemoryTypeUnregistered)
        return tessera_hip_result(tessera_hip_major >= 6 ? hipSuccess : hipErrorInvalidValue);
    if (tessera_hip_major < 6)
        attributes->type = place.kind == hipMemoryTypeDevice || place.kind == hipMemoryTypeManaged ? HIP5_MEMORY_DEVICE
                                                                                                   : HIP5_MEMORY_HOST;
    attributes->devicePointer = (void *)address;
    if (place.kind != hipMemoryTypeDevice) attributes->hostPointer = (void *)address;
    attributes->isManaged = place.kind == hipMemoryTypeManaged;
    attributes->allocationFlags = place.flags;
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *bytes, hipDeviceptr_t address) {
    HIP_ENTER();
    HIP_REQUIRE(address && (base || bytes), hipErrorInvalidValue);
    const struct hip_place place = tessera_hip_find(address);
    HIP_REQUIRE(place.kind != hipMemoryTypeUnregistered, hipErrorNotFound);
    if (base) *base = place.base;
    if (bytes) *bytes = place.bytes;
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipMemPtrGetInfo(void *address, size_t *bytes) {
    HIP_ENTER();
    HIP_REQUIRE(address && bytes, hipErrorInvalidValue);
    const struct hip_place place = tessera_hip_find(address);
    HIP_REQUIRE(place.kind != hipMemoryTypeUnregistered, hipErrorInvalidValue);
    *bytes = place.bytes;
    return tessera_hip_result(hipSuccess);
}

// ---- allocation in the order of a stream: each device has one pool, which is its memory

static struct hip_device *find_pool(hipMemPool_t pool) {
    for (int i = 0; i < tessera_hip_device_count(); i++)
        if (pool == tessera_hip_device(i)) return tessera_hip_device(i);
    return NULL;
}

HIP_API hipError_t hipMallocFromPoolAsync(void **out, size_t bytes, hipMemPool_t pool, hipStream_t stream) {
    HIP_ENTER();
    HIP_REQUIRE(out && find_pool(pool), hipErrorInvalidValue);
    struct hip_stream *on = tessera_hip_stream(stream);
    HIP_REQUIRE(on, hipErrorInvalidHandle);
    HIP_REQUIRE(!tessera_hip_stream_capture(on), hipErrorNotSupported); // graphs have no allocation nodes here
    *out = NULL;
    if (bytes == 0) return tessera_hip_result(hipSuccess);
    return tessera_hip_result(device_malloc(pool, out, bytes));
}

HIP_API hipError_t hipMallocAsync(void **out, size_t bytes, hipStream_t stream) {
    HIP_ENTER();
    struct hip_stream *on = tessera_hip_stream(stream);
    HIP_REQUIRE(on, hipErrorInvalidHandle);
    return hipMallocFromPoolAsync(out, bytes, on->device->pool, stream);
}

HIP_API hipError_t hipFreeAsync(void *address, hipStream_t stream) {
    HIP_ENTER();
    struct hip_stream *on = tessera_hip_stream(stream);
    HIP_REQUIRE(on, hipErrorInvalidHandle);
    if (!address) return tessera_hip_result(tessera_hip_major >= 7 ? hipSuccess : hipErrorInvalidValue);
    HIP_REQUIRE(!tessera_hip_stream_capture(on), hipErrorNotSupported);
    return tessera_hip_result(free_any(address));
}

HIP_API hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t *pool, int device) {
    HIP_ENTER();
    HIP_REQUIRE(pool, hipErrorInvalidValue);
    HIP_REQUIRE(tessera_hip_device(device), hipErrorInvalidDevice);
    *pool = tessera_hip_device(device);
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipDeviceGetMemPool(hipMemPool_t *pool, int device) {
    return hipDeviceGetDefaultMemPool(pool, device);
}

HIP_API hipError_t hipDeviceSetMemPool(int device, hipMemPool_t pool) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_device(device), hipErrorInvalidDevice);
    return tessera_hip_result(pool == tessera_hip_device(device) ? hipSuccess : hipErrorInvalidValue);
}

HIP_API hipError_t hipMemPoolTrimTo(hipMemPool_t pool, size_t bytes) {
    HIP_ENTER();
    (void)bytes; // the pool keeps no freed memory
    return tessera_hip_result(find_pool(pool) ? hipSuccess : hipErrorInvalidValue);
}

enum pool_attribute {
    REUSE_FOLLOW_EVENTS = 1,
    REUSE_OPPORTUNISTIC,
    REUSE_INTERNAL,
    RELEASE_THRESHOLD,
    RESERVED_CURRENT,
    RESERVED_HIGH,
    USED_CURRENT,
    USED_HIGH
};

HIP_API hipError_t hipMemPoolSetAttribute(hipMemPool_t pool, int attribute, void *value) {
    HIP_ENTER();
    HIP_REQUIRE(find_pool(pool) && value, hipErrorInvalidValue);
    HIP_REQUIRE(attribute >= REUSE_FOLLOW_EVENTS && attribute <= RELEASE_THRESHOLD, hipErrorInvalidValue);
    if (attribute == RELEASE_THRESHOLD) memcpy(&pool->pool_threshold, value, sizeof pool->pool_threshold);
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipMemPoolGetAttribute(hipMemPool_t pool, int attribute, void *value) {
    HIP_ENTER();
    HIP_REQUIRE(find_pool(pool) && value, hipErrorInvalidValue);
    HIP_REQUIRE(attribute >= REUSE_FOLLOW_EVENTS && attribute <= USED_HIGH, hipErrorInvalidValue);
    const int reuse = 1;
    const uint64_t bytes = attribute == RELEASE_THRESHOLD ? pool->pool_threshold : atomic_load(&pool->used);
    if (attribute <= REUSE_INTERNAL)
        memcpy(value, &reuse, sizeof reuse);
    else
        memcpy(value, &bytes, sizeof bytes);
    return tessera_hip_result(hipSuccess);
}
