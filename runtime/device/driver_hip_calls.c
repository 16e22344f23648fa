// SPDX-License-Identifier: MIT
// The functions of a driver (device/driver.h), by those of a HIP runtime.
#include <string.h>

#include "device/device.h"
#include "device/driver_hip.h"
#include "guard.h"

static const struct tessera_hip *hip_of(const struct tessera_chip *chip) {
    return (const struct tessera_hip *)chip->driver;
}

static tessera_status told(const struct tessera_chip *chip, const char *call, int error) {
    return error ? tessera_hip_fail(hip_of(chip), chip->name, call, error) : TESSERA_SUCCESS;
}

#define CALL(chip, function, ...) told(chip, #function, hip_of(chip)->function(__VA_ARGS__))

#define NEED(chip, function)                                                                                           \
    if (!hip_of(chip)->function)                                                                                       \
    return tessera_fail(TESSERA_ERROR_DEVICE, "%s: %s lacks the function " #function, (chip)->name,                    \
                        (chip)->driver->origin)

// ---- devices

static tessera_status count(const struct tessera_chip *chip, int *out) { return CALL(chip, hipGetDeviceCount, out); }

// hipDeviceProp_t has one layout up to ROCm 5, and another since then, hipDeviceProp_tR0600. The offsets are those of
// gcnArchName in hip_runtime_api.h 5.2 and 6.0. PROPERTIES_BYTES exceeds the size of both.
enum { ARCH_OFFSET_R0000 = 396, ARCH_OFFSET_R0600 = 1160, PROPERTIES_BYTES = 4096 };

static tessera_status arch(const struct tessera_chip *chip, char out[TESSERA_ARCH_BYTES]) {
    _Alignas(16) char properties[PROPERTIES_BYTES] = {0};
    const bool is_new = hip_of(chip)->hipGetDevicePropertiesR0600;
    if (is_new)
        TRY(CALL(chip, hipGetDevicePropertiesR0600, properties, chip->ordinal));
    else
        TRY(CALL(chip, hipGetDeviceProperties, properties, chip->ordinal));
    memcpy(out, properties + (is_new ? ARCH_OFFSET_R0600 : ARCH_OFFSET_R0000), TESSERA_ARCH_BYTES);
    out[TESSERA_ARCH_BYTES - 1] = '\0';
    if (strncmp(out, "gfx", 3) != 0)
        return tessera_fail(TESSERA_ERROR_DEVICE,
                            "%s: %s says that its architecture is \"%s\": a version of the HIP runtime that this "
                            "library does not know?",
                            chip->name, chip->driver->origin, out);
    return TESSERA_SUCCESS;
}

static tessera_status facts(const struct tessera_chip *chip, tessera_device_facts *out) {
    int units = 0, l2 = 0, lds = 0;
    TRY(CALL(chip, hipDeviceGetAttribute, &units, HIP_ATTRIBUTE_COMPUTE_UNITS, chip->ordinal));
    TRY(CALL(chip, hipDeviceGetAttribute, &l2, HIP_ATTRIBUTE_L2_BYTES, chip->ordinal));
    TRY(CALL(chip, hipDeviceGetAttribute, &lds, HIP_ATTRIBUTE_LDS_BYTES, chip->ordinal));
    out->compute_units = units;
    out->l2_bytes = l2;
    out->lds_bytes = lds;
    return TESSERA_SUCCESS;
}

static tessera_status enter(const struct tessera_chip *chip, intptr_t *previous) {
    int current = 0;
    TRY(CALL(chip, hipGetDevice, &current));
    *previous = current;
    return current == chip->ordinal ? TESSERA_SUCCESS : CALL(chip, hipSetDevice, chip->ordinal);
}

static tessera_status leave(const struct tessera_chip *chip, intptr_t previous) {
    return previous == chip->ordinal ? TESSERA_SUCCESS : CALL(chip, hipSetDevice, (int)previous);
}

// ---- memory

static tessera_status allocate(const struct tessera_chip *chip, size_t bytes, void **out) {
    return CALL(chip, hipMalloc, out, bytes);
}

static tessera_status release(const struct tessera_chip *chip, void *memory) { return CALL(chip, hipFree, memory); }

static tessera_status copy_to(const struct tessera_chip *chip, void *to, const void *host_from, size_t bytes) {
    return CALL(chip, hipMemcpy, to, host_from, bytes, HIP_COPY_TO_DEVICE);
}

static tessera_status copy_from(const struct tessera_chip *chip, void *host_to, const void *from, size_t bytes) {
    return CALL(chip, hipMemcpy, host_to, from, bytes, HIP_COPY_FROM_DEVICE);
}

static tessera_status synchronize(const struct tessera_chip *chip) { return CALL(chip, hipDeviceSynchronize); }

// hipMemset may return before the memory is set.
static tessera_status set(const struct tessera_chip *chip, void *to, int byte, size_t bytes) {
    TRY(CALL(chip, hipMemset, to, byte, bytes));
    return synchronize(chip);
}

// ---- code

static tessera_status load(const struct tessera_chip *chip, const void *image, size_t bytes, const char *symbol,
                           struct tessera_module *out) {
    (void)bytes;
    TRY(CALL(chip, hipModuleLoadData, &out->module, image));
    const tessera_status status = CALL(chip, hipModuleGetFunction, &out->function, out->module, symbol);
    if (status != TESSERA_SUCCESS) hip_of(chip)->hipModuleUnload(out->module);
    return status;
}

static void unload(const struct tessera_chip *chip, const struct tessera_module *module) {
    hip_of(chip)->hipModuleUnload(module->module);
}

// ---- streams

static tessera_status launch(const struct tessera_chip *chip, const struct tessera_module *module,
                             const struct tessera_launch *how, const void *argument, size_t bytes, void *stream) {
    // HIP_LAUNCH_PARAM_BUFFER_POINTER, _BUFFER_SIZE and _END
    void *extra[] = {(void *)1, (void *)(size_t)argument, (void *)2, &bytes, (void *)3};
    const uint32_t *const grid = how->grid, *const block = how->block;
    return CALL(chip, hipModuleLaunchKernel, module->function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                how->lds_bytes, stream, NULL, extra);
}

static tessera_status is_capturing(const struct tessera_chip *chip, void *stream, bool *out) {
    int capturing = 0;
    int error = hip_of(chip)->hipStreamIsCapturing(stream, &capturing);
    if (error == HIP_ERROR_STREAM_CAPTURE_IMPLICIT) {
        hip_of(chip)->hipGetLastError();
        capturing = 1;
        error = 0;
    }
    *out = capturing;
    return told(chip, "hipStreamIsCapturing", error);
}

static tessera_status zero(const struct tessera_chip *chip, void *to, size_t bytes, void *stream) {
    NEED(chip, hipMemsetAsync);
    return CALL(chip, hipMemsetAsync, to, 0, bytes, stream);
}

static tessera_status copy_small(const struct tessera_chip *chip, void *to, const void *from, size_t bytes,
                                 void *stream) {
    NEED(chip, hipMemcpyAsync);
    return CALL(chip, hipMemcpyAsync, to, from, bytes, HIP_COPY_TO_DEVICE, stream);
}

static tessera_status set_words(const struct tessera_chip *chip, uint32_t *to, const uint32_t *words, size_t n,
                                void *stream) {
    NEED(chip, hipMemsetD32Async);
    for (size_t i = 0; i < n; i++) TRY(CALL(chip, hipMemsetD32Async, &to[i], (int)words[i], 1, stream));
    return TESSERA_SUCCESS;
}

static tessera_status wait_for(const struct tessera_chip *chip, void *stream, bool *waited) {
    *waited = false;
    if (!hip_of(chip)->hipStreamSynchronize) return TESSERA_SUCCESS;
    const int error = hip_of(chip)->hipStreamSynchronize(stream);
    *waited = error != HIP_ERROR_STREAM_CAPTURE_UNSUPPORTED; // which a capture of another stream can cause too
    if (*waited) return told(chip, "hipStreamSynchronize", error);
    hip_of(chip)->hipGetLastError();
    return TESSERA_SUCCESS;
}

static tessera_status set_clock(const struct tessera_chip *chip, tessera_sim_clock clock) {
    if (!hip_of(chip)->tessera_hip_set_clock) return tessera_driver_no_clock(chip);
    return CALL(chip, tessera_hip_set_clock, chip->ordinal, (int)clock);
}

static tessera_status set_output(const struct tessera_chip *chip, tessera_sim_output output, const char *path) {
    if (!hip_of(chip)->tessera_hip_set_output) return tessera_driver_no_clock(chip);
    return CALL(chip, tessera_hip_set_output, chip->ordinal, (int)output, path);
}

static tessera_status take_timing(const struct tessera_chip *chip, tessera_sim_timing *out) {
    if (!hip_of(chip)->tessera_hip_take_timing) return tessera_driver_no_clock(chip);
    TRY(synchronize(chip));
    return CALL(chip, tessera_hip_take_timing, chip->ordinal, out);
}

const struct tessera_driver_calls tessera_hip_calls = {
    .count = count,
    .arch = arch,
    .facts = facts,
    .enter = enter,
    .leave = leave,
    .malloc = allocate,
    .free = release,
    .copy_to = copy_to,
    .copy_from = copy_from,
    .set = set,
    .synchronize = synchronize,
    .set_clock = set_clock,
    .set_output = set_output,
    .take_timing = take_timing,
    .load = load,
    .unload = unload,
    .launch = launch,
    .is_capturing = is_capturing,
    .zero = zero,
    .copy_small = copy_small,
    .set_words = set_words,
    .wait = wait_for,
};
