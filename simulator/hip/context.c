// SPDX-License-Identifier: MIT
// Contexts: each device has only its primary context, whose handle is the device. Each thread has a short stack of
// them.
#include "state.h"

enum { DEEPEST = 64 };

static _Thread_local hipCtx_t pushed[DEEPEST]; // the contexts that were current before each push
static _Thread_local int depth;
static atomic_int retained[HIP_MOST_DEVICES];

static bool is_context(hipCtx_t context) {
    for (int i = 0; i < tessera_hip_device_count(); i++)
        if (context == tessera_hip_device(i)) return true;
    return false;
}

static hipError_t make_current(hipCtx_t context) { return hipSetDevice(context->index); }

HIP_API hipError_t hipCtxCreate(hipCtx_t *context, unsigned flags, hipDevice_t device) {
    HIP_ENTER();
    (void)flags;
    HIP_REQUIRE(context, hipErrorInvalidValue);
    HIP_REQUIRE(tessera_hip_device(device), hipErrorInvalidDevice);
    HIP_REQUIRE(depth < DEEPEST, hipErrorOutOfMemory);
    pushed[depth++] = tessera_hip_current();
    *context = tessera_hip_device(device);
    return make_current(*context);
}

HIP_API hipError_t hipCtxDestroy(hipCtx_t context) {
    HIP_ENTER();
    HIP_REQUIRE(is_context(context), hipErrorInvalidValue);
    if (depth && context == tessera_hip_current()) return make_current(pushed[--depth]);
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipCtxPushCurrent(hipCtx_t context) {
    HIP_ENTER();
    HIP_REQUIRE(is_context(context), hipErrorInvalidContext);
    HIP_REQUIRE(depth < DEEPEST, hipErrorOutOfMemory);
    pushed[depth++] = tessera_hip_current();
    return make_current(context);
}

HIP_API hipError_t hipCtxPopCurrent(hipCtx_t *context) {
    HIP_ENTER();
    HIP_REQUIRE(depth, hipErrorInvalidContext);
    if (context) *context = tessera_hip_current();
    return make_current(pushed[--depth]);
}

HIP_API hipError_t hipCtxSetCurrent(hipCtx_t context) {
    HIP_ENTER();
    if (!context) return tessera_hip_result(hipSuccess); // the device's own context stays current
    HIP_REQUIRE(is_context(context), hipErrorInvalidContext);
    return make_current(context);
}

HIP_API hipError_t hipCtxGetCurrent(hipCtx_t *context) {
    HIP_ENTER();
    HIP_REQUIRE(context, hipErrorInvalidValue);
    *context = tessera_hip_current();
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipCtxGetDevice(hipDevice_t *device) {
    HIP_ENTER();
    HIP_REQUIRE(device, hipErrorInvalidValue);
    *device = tessera_hip_current()->index;
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipCtxGetFlags(unsigned *flags) {
    HIP_ENTER();
    HIP_REQUIRE(flags, hipErrorInvalidValue);
    *flags = tessera_hip_current()->flags;
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipCtxGetApiVersion(hipCtx_t context, int *version) {
    HIP_ENTER();
    HIP_REQUIRE(version, hipErrorInvalidValue);
    HIP_REQUIRE(!context || is_context(context), hipErrorInvalidContext);
    *version = 4; // as AMD's runtime returns in all versions
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipCtxSynchronize(void) {
    HIP_ENTER();
    HIP_TRY(tessera_hip_device_wait());
    return tessera_hip_result(tessera_hip_device_error(tessera_hip_current()));
}

HIP_API hipError_t hipDevicePrimaryCtxRetain(hipCtx_t *context, hipDevice_t device) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_device(device), hipErrorInvalidDevice);
    HIP_REQUIRE(context, hipErrorInvalidValue);
    atomic_fetch_add(&retained[device], 1);
    *context = tessera_hip_device(device);
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipDevicePrimaryCtxRelease(hipDevice_t device) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_device(device), hipErrorInvalidDevice);
    if (atomic_load(&retained[device]) > 0) atomic_fetch_sub(&retained[device], 1);
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipDevicePrimaryCtxReset(hipDevice_t device) {
    HIP_ENTER();
    return tessera_hip_result(tessera_hip_device(device) ? hipSuccess : hipErrorInvalidDevice);
}

HIP_API hipError_t hipDevicePrimaryCtxGetState(hipDevice_t device, unsigned *flags, int *active) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_device(device), hipErrorInvalidDevice);
    if (flags) *flags = tessera_hip_device(device)->flags;
    if (active) *active = atomic_load(&retained[device]) > 0 || tessera_hip_current()->index == device;
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipDevicePrimaryCtxSetFlags(hipDevice_t device, unsigned flags) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_device(device), hipErrorInvalidDevice);
    (void)flags;
    return tessera_hip_result(hipErrorContextAlreadyInUse);
}
