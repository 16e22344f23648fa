// SPDX-License-Identifier: MIT
// Errors: their names, and the last one of each thread.
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "state.h"

static _Thread_local hipError_t last_error; // what hipGetLastError() returns
static _Thread_local hipError_t last_result;

hipError_t tessera_hip_result(hipError_t error) {
    last_result = error;
    // Since version 7, success and "not ready" do not replace an error that has not been fetched yet.
    if (tessera_hip_major < 7 || (error != hipSuccess && error != hipErrorNotReady)) last_error = error;
    return error;
}

hipError_t tessera_hip_from_status(tessera_status status) {
    switch (status) {
    case TESSERA_SUCCESS:
        return hipSuccess;
    case TESSERA_ERROR_OUT_OF_MEMORY:
        return hipErrorOutOfMemory;
    case TESSERA_ERROR_DEVICE:
        return hipErrorLaunchFailure;
    default:
        return hipErrorInvalidValue;
    }
}

// Messages that explain errors go to stderr, or to the program's listener. NULL: stderr again.
typedef void tessera_hip_listener(const char *line);
static _Atomic(tessera_hip_listener *) listener;

HIP_API void tessera_hip_listen(tessera_hip_listener *to) { atomic_store(&listener, to); }

void tessera_hip_say(const char *format, ...) {
    char text[768];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    tessera_hip_listener *const to = atomic_load(&listener);
    if (to)
        to(text);
    else
        fprintf(stderr, "tessera_sim: %s\n", text);
}

int tessera_hip_refuse(const char *name) {
    tessera_hip_say("%s: not in this stand-in for libamdhip64", name);
    return tessera_hip_result(hipErrorNotSupported);
}

HIP_API hipError_t hipGetLastError(void) {
    const hipError_t error = last_error;
    last_error = last_result = hipSuccess;
    return error;
}

HIP_API hipError_t hipPeekAtLastError(void) { return last_error; }

HIP_API hipError_t hipExtGetLastError(void) {
    const hipError_t error = last_result;
    last_error = last_result = hipSuccess;
    return error;
}

struct error_text {
    hipError_t error;
    const char *name, *text;
};

#define TEXT(error, text)                                                                                              \
    { error, #error, text }

static const struct error_text texts[] = {
    TEXT(hipSuccess, "no error"),
    TEXT(hipErrorInvalidValue, "invalid argument"),
    TEXT(hipErrorOutOfMemory, "out of memory"),
    TEXT(hipErrorNotInitialized, "initialization error"),
    TEXT(hipErrorDeinitialized, "driver shutting down"),
    TEXT(hipErrorProfilerDisabled, "profiler disabled while using external profiling tool"),
    TEXT(hipErrorProfilerNotInitialized, "profiler is not initialized"),
    TEXT(hipErrorProfilerAlreadyStarted, "profiler already started"),
    TEXT(hipErrorProfilerAlreadyStopped, "profiler already stopped"),
    TEXT(hipErrorInvalidConfiguration, "invalid configuration argument"),
    TEXT(hipErrorInvalidPitchValue, "invalid pitch argument"),
    TEXT(hipErrorInvalidSymbol, "invalid device symbol"),
    TEXT(hipErrorInvalidDevicePointer, "invalid device pointer"),
    TEXT(hipErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    TEXT(hipErrorInsufficientDriver, "driver version is insufficient for runtime version"),
    TEXT(hipErrorMissingConfiguration, "__global__ function call is not configured"),
    TEXT(hipErrorPriorLaunchFailure, "unspecified launch failure in prior launch"),
    TEXT(hipErrorInvalidDeviceFunction, "invalid device function"),
    TEXT(hipErrorNoDevice, "no ROCm-capable device is detected"),
    TEXT(hipErrorInvalidDevice, "invalid device ordinal"),
    TEXT(hipErrorInvalidImage, "device kernel image is invalid"),
    TEXT(hipErrorInvalidContext, "invalid device context"),
    TEXT(hipErrorContextAlreadyCurrent, "context is already current context"),
    TEXT(hipErrorMapFailed, "mapping of buffer object failed"),
    TEXT(hipErrorUnmapFailed, "unmapping of buffer object failed"),
    TEXT(hipErrorArrayIsMapped, "array is mapped"),
    TEXT(hipErrorAlreadyMapped, "resource already mapped"),
    TEXT(hipErrorNoBinaryForGpu, "no kernel image is available for execution on the device"),
    TEXT(hipErrorAlreadyAcquired, "resource already acquired"),
    TEXT(hipErrorNotMapped, "resource not mapped"),
    TEXT(hipErrorNotMappedAsArray, "resource not mapped as array"),
    TEXT(hipErrorNotMappedAsPointer, "resource not mapped as pointer"),
    TEXT(hipErrorECCNotCorrectable, "uncorrectable ECC error encountered"),
    TEXT(hipErrorUnsupportedLimit, "limit is not supported on this architecture"),
    TEXT(hipErrorContextAlreadyInUse, "exclusive-thread device already in use by a different thread"),
    TEXT(hipErrorPeerAccessUnsupported, "peer access is not supported between these two devices"),
    TEXT(hipErrorInvalidKernelFile, "invalid kernel file"),
    TEXT(hipErrorInvalidGraphicsContext, "invalid OpenGL or DirectX context"),
    TEXT(hipErrorInvalidSource, "device kernel image is invalid"),
    TEXT(hipErrorFileNotFound, "file not found"),
    TEXT(hipErrorSharedObjectSymbolNotFound, "shared object symbol not found"),
    TEXT(hipErrorSharedObjectInitFailed, "shared object initialization failed"),
    TEXT(hipErrorOperatingSystem, "OS call failed or operation not supported on this OS"),
    TEXT(hipErrorInvalidHandle, "invalid resource handle"),
    TEXT(hipErrorIllegalState, "the operation cannot be performed in the present state"),
    TEXT(hipErrorNotFound, "named symbol not found"),
    TEXT(hipErrorNotReady, "device not ready"),
    TEXT(hipErrorIllegalAddress, "an illegal memory access was encountered"),
    TEXT(hipErrorLaunchOutOfResources, "too many resources requested for launch"),
    TEXT(hipErrorLaunchTimeOut, "the launch timed out and was terminated"),
    TEXT(hipErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    TEXT(hipErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    TEXT(hipErrorSetOnActiveProcess, "cannot set while device is active in this process"),
    TEXT(hipErrorContextIsDestroyed, "context is destroyed"),
    TEXT(hipErrorAssert, "device-side assert triggered"),
    TEXT(hipErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped"),
    TEXT(hipErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"),
    TEXT(hipErrorLaunchFailure, "unspecified launch failure"),
    TEXT(hipErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch"),
    TEXT(hipErrorNotSupported, "operation not supported"),
    TEXT(hipErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    TEXT(hipErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    TEXT(hipErrorStreamCaptureMerge, "operation would result in a merge of separate capture sequences"),
    TEXT(hipErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began"),
    TEXT(hipErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    TEXT(hipErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"),
    TEXT(hipErrorStreamCaptureImplicit, "operation would make the legacy stream depend on a capturing blocking stream"),
    TEXT(hipErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream"),
    TEXT(hipErrorStreamCaptureWrongThread, "attempt to terminate a thread-local capture sequence from another thread"),
    TEXT(hipErrorGraphExecUpdateFailure, "the graph was not updated: what changed cannot be updated"),
    TEXT(hipErrorInvalidChannelDescriptor, "invalid channel descriptor"),
    TEXT(hipErrorInvalidTexture, "invalid texture"),
    TEXT(hipErrorUnknown, "unknown error"),
    TEXT(hipErrorRuntimeMemory, "runtime memory call returned error"),
    TEXT(hipErrorRuntimeOther, "runtime call other than memory returned error"),
    TEXT(hipErrorTbd, "an error without a number of its own"),
};

static const struct error_text *find_text(hipError_t error) {
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].error == error) return &texts[i];
    return find_text(hipErrorUnknown);
}

HIP_API const char *hipGetErrorName(hipError_t error) { return find_text(error)->name; }

HIP_API const char *hipGetErrorString(hipError_t error) { return find_text(error)->text; }

HIP_API hipError_t hipDrvGetErrorName(hipError_t error, const char **out) {
    HIP_REQUIRE(out, hipErrorInvalidValue);
    *out = find_text(error)->name;
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipDrvGetErrorString(hipError_t error, const char **out) {
    HIP_REQUIRE(out, hipErrorInvalidValue);
    *out = find_text(error)->text;
    return tessera_hip_result(hipSuccess);
}
