// SPDX-License-Identifier: MIT
// The functions of a driver (device/driver.h), by those of NVIDIA's.
#include <stdio.h>
#include <string.h>

#include "device/device.h"
#include "device/driver_cuda.h"
#include "guard.h"

static tessera_cuda_address at(const void *memory) { return (tessera_cuda_address)(uintptr_t)memory; }

// ---- devices

static tessera_status count(const struct tessera_chip *chip, int *out) {
    return CUDA_CALL(chip, cuDeviceGetCount, out);
}

static tessera_status attribute(const struct tessera_chip *chip, int which, int *out) {
    int device;
    TRY(CUDA_CALL(chip, cuDeviceGet, &device, chip->ordinal));
    return CUDA_CALL(chip, cuDeviceGetAttribute, out, which, device);
}

// Code of "sm_90a" runs on GPUs of compute capability 9.0 and no other: PTX ISA, ".target", architecture-specific
// features; CUDA C++ Programming Guide, "Architecture-Specific Features".
static tessera_status arch(const struct tessera_chip *chip, char out[TESSERA_ARCH_BYTES]) {
    int major, minor;
    TRY(attribute(chip, CUDA_ATTRIBUTE_CAPABILITY_MAJOR, &major));
    TRY(attribute(chip, CUDA_ATTRIBUTE_CAPABILITY_MINOR, &minor));
    snprintf(out, TESSERA_ARCH_BYTES, "sm_%d%d%s", major, minor, major >= 9 ? "a" : "");
    return TESSERA_SUCCESS;
}

static tessera_status facts(const struct tessera_chip *chip, tessera_device_facts *out) {
    int units, l2, lds;
    TRY(attribute(chip, CUDA_ATTRIBUTE_COMPUTE_UNITS, &units));
    TRY(attribute(chip, CUDA_ATTRIBUTE_L2_BYTES, &l2));
    TRY(attribute(chip, CUDA_ATTRIBUTE_SHARED_BYTES, &lds));
    out->compute_units = units;
    out->l2_bytes = l2;
    out->lds_bytes = lds;
    return TESSERA_SUCCESS;
}

// ---- memory

static tessera_status allocate(const struct tessera_chip *chip, size_t bytes, void **out) {
    tessera_cuda_address address;
    TRY(CUDA_CALL(chip, cuMemAlloc_v2, &address, bytes));
    *out = (void *)(uintptr_t)address;
    return TESSERA_SUCCESS;
}

static tessera_status release(const struct tessera_chip *chip, void *memory) {
    return CUDA_CALL(chip, cuMemFree_v2, at(memory));
}

// A copy from pageable memory may return before the last bytes have arrived.
static tessera_status copy_to(const struct tessera_chip *chip, void *to, const void *host_from, size_t bytes) {
    TRY(CUDA_CALL(chip, cuMemcpyHtoD_v2, at(to), host_from, bytes));
    return CUDA_CALL(chip, cuStreamSynchronize, NULL);
}

static tessera_status copy_from(const struct tessera_chip *chip, void *host_to, const void *from, size_t bytes) {
    return CUDA_CALL(chip, cuMemcpyDtoH_v2, host_to, at(from), bytes);
}

static tessera_status synchronize(const struct tessera_chip *chip) { return CUDA_CALL(chip, cuCtxSynchronize); }

static tessera_status set(const struct tessera_chip *chip, void *to, int byte, size_t bytes) {
    TRY(CUDA_CALL(chip, cuMemsetD8Async, at(to), (unsigned char)byte, bytes, NULL));
    return CUDA_CALL(chip, cuStreamSynchronize, NULL);
}

// ---- code

static void unload(const struct tessera_chip *chip, const struct tessera_module *module) {
    tessera_cuda_of(chip)->cuModuleUnload(module->module);
}

// ---- streams

static bool has_clusters(const struct tessera_chip *chip) { return tessera_cuda_of(chip)->cuLaunchKernelEx != NULL; }

enum { ATTRIBUTES = 2 }; // of a launch, at most

static uint32_t attributes_of(const struct tessera_chip *chip, const struct tessera_launch *how,
                              struct tessera_cuda_launch_attribute out[ATTRIBUTES]) {
    uint32_t count = 0;
    if (how->cluster)
        out[count++] = (struct tessera_cuda_launch_attribute){.id = CUDA_LAUNCH_CLUSTER, .value = {how->cluster, 1, 1}};
    if (how->overlaps && tessera_cuda_of(chip)->overlaps)
        out[count++] = (struct tessera_cuda_launch_attribute){.id = CUDA_LAUNCH_OVERLAPS, .value = {1}};
    return count;
}

static tessera_status launch_with_attributes(const struct tessera_chip *chip, const struct tessera_module *module,
                                             const struct tessera_launch *how,
                                             struct tessera_cuda_launch_attribute *attributes, uint32_t count,
                                             void **params, void *stream) {
    struct tessera_cuda_launch launch = {
        .shared_bytes = how->lds_bytes, .stream = stream, .attributes = attributes, .attribute_count = count};
    memcpy(launch.grid, how->grid, sizeof launch.grid);
    memcpy(launch.block, how->block, sizeof launch.block);
    CUDA_NEED(chip, cuLaunchKernelEx);
    return CUDA_CALL(chip, cuLaunchKernelEx, &launch, module->function, params, NULL);
}

static tessera_status launch(const struct tessera_chip *chip, const struct tessera_module *module,
                             const struct tessera_launch *how, const void *argument, size_t bytes, void *stream) {
    // Not as a buffer of all parameters: a struct that is aligned to 64, as one with tensor maps is, begins at byte 48
    // of them, as the images of ptxas 12.9 and 13.0 say, and the driver knows.
    void *params[] = {(void *)(uintptr_t)argument};
    const uint32_t *const grid = how->grid, *const block = how->block;
    struct tessera_cuda_launch_attribute attributes[ATTRIBUTES];
    const uint32_t attribute_count = attributes_of(chip, how, attributes);
    (void)bytes; // the image says how many there are
    if (attribute_count) return launch_with_attributes(chip, module, how, attributes, attribute_count, params, stream);
    return CUDA_CALL(chip, cuLaunchKernel, module->function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                     how->lds_bytes, stream, params, NULL);
}

static tessera_status is_capturing(const struct tessera_chip *chip, void *stream, bool *out) {
    int capturing = 0;
    const int error = tessera_cuda_of(chip)->cuStreamIsCapturing(stream, &capturing);
    *out = capturing || error == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    return *out ? TESSERA_SUCCESS : tessera_cuda_told(chip, "cuStreamIsCapturing", error);
}

static tessera_status zero(const struct tessera_chip *chip, void *to, size_t bytes, void *stream) {
    return CUDA_CALL(chip, cuMemsetD8Async, at(to), 0, bytes, stream);
}

static tessera_status copy_small(const struct tessera_chip *chip, void *to, const void *from, size_t bytes,
                                 void *stream) {
    CUDA_NEED(chip, cuMemcpyHtoDAsync_v2);
    return CUDA_CALL(chip, cuMemcpyHtoDAsync_v2, at(to), from, bytes, stream);
}

static tessera_status set_words(const struct tessera_chip *chip, uint32_t *to, const uint32_t *words, size_t n,
                                void *stream) {
    CUDA_NEED(chip, cuMemsetD32Async);
    for (size_t i = 0; i < n; i++) TRY(CUDA_CALL(chip, cuMemsetD32Async, at(&to[i]), words[i], 1, stream));
    return TESSERA_SUCCESS;
}

static tessera_status wait_for(const struct tessera_chip *chip, void *stream, bool *waited) {
    const int error = tessera_cuda_of(chip)->cuStreamSynchronize(stream);
    *waited = error != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; // which a capture of another stream can cause too
    return *waited ? tessera_cuda_told(chip, "cuStreamSynchronize", error) : TESSERA_SUCCESS;
}

const struct tessera_driver_calls tessera_cuda_calls = {
    .count = count,
    .arch = arch,
    .facts = facts,
    .attach = tessera_cuda_attach,
    .detach = tessera_cuda_detach,
    .enter = tessera_cuda_enter,
    .leave = tessera_cuda_leave,
    .malloc = allocate,
    .free = release,
    .copy_to = copy_to,
    .copy_from = copy_from,
    .set = set,
    .synchronize = synchronize,
    .load = tessera_cuda_load,
    .unload = unload,
    .make_tensor_map = tessera_cuda_make_tensor_map,
    .has_clusters = has_clusters,
    .launch = launch,
    .is_capturing = is_capturing,
    .zero = zero,
    .copy_small = copy_small,
    .set_words = set_words,
    .wait = wait_for,
};
