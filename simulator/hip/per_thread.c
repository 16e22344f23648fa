// SPDX-License-Identifier: MIT
// Entry points that programs compiled with -fgpu-default-stream=per-thread call: their default stream is the thread's
// own. Synchronous copies and fills are the same with both streams, because no work is left to wait for.
#include "state.h"

static hipStream_t own(hipStream_t stream) { return tessera_hip_is_legacy(stream) ? hipStreamPerThread : stream; }

HIP_API hipError_t hipEventRecord_spt(hipEvent_t event, hipStream_t stream) {
    return hipEventRecord(event, own(stream));
}

HIP_API hipError_t hipGraphLaunch_spt(hipGraphExec_t exec, hipStream_t stream) {
    return hipGraphLaunch(exec, own(stream));
}

HIP_API hipError_t hipLaunchHostFunc_spt(hipStream_t stream, hipHostFn_t fn, void *user) {
    return hipLaunchHostFunc(own(stream), fn, user);
}

HIP_API hipError_t hipLaunchKernel_spt(const void *host, dim3 grid, dim3 block, void **params, size_t lds_bytes,
                                       hipStream_t stream) {
    return hipLaunchKernel(host, grid, block, params, lds_bytes, own(stream));
}

HIP_API hipError_t hipMemcpy_spt(void *to, const void *from, size_t bytes, int kind) {
    return hipMemcpy(to, from, bytes, kind);
}

HIP_API hipError_t hipMemcpy2D_spt(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                   size_t height, int kind) {
    return hipMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}

HIP_API hipError_t hipMemcpy2DAsync_spt(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                        size_t height, int kind, hipStream_t stream) {
    return hipMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, own(stream));
}

HIP_API hipError_t hipMemcpy3D_spt(const hipMemcpy3DParms *params) { return hipMemcpy3D(params); }

HIP_API hipError_t hipMemcpy3DAsync_spt(const hipMemcpy3DParms *params, hipStream_t stream) {
    return hipMemcpy3DAsync(params, own(stream));
}

HIP_API hipError_t hipMemcpyAsync_spt(void *to, const void *from, size_t bytes, int kind, hipStream_t stream) {
    return hipMemcpyAsync(to, from, bytes, kind, own(stream));
}

HIP_API hipError_t hipMemcpyFromSymbol_spt(void *to, const void *symbol, size_t bytes, size_t offset, int kind) {
    return hipMemcpyFromSymbol(to, symbol, bytes, offset, kind);
}

HIP_API hipError_t hipMemcpyFromSymbolAsync_spt(void *to, const void *symbol, size_t bytes, size_t offset, int kind,
                                                hipStream_t stream) {
    return hipMemcpyFromSymbolAsync(to, symbol, bytes, offset, kind, own(stream));
}

HIP_API hipError_t hipMemcpyToSymbol_spt(const void *symbol, const void *from, size_t bytes, size_t offset, int kind) {
    return hipMemcpyToSymbol(symbol, from, bytes, offset, kind);
}

HIP_API hipError_t hipMemcpyToSymbolAsync_spt(const void *symbol, const void *from, size_t bytes, size_t offset,
                                              int kind, hipStream_t stream) {
    return hipMemcpyToSymbolAsync(symbol, from, bytes, offset, kind, own(stream));
}

HIP_API hipError_t hipMemset_spt(void *to, int value, size_t bytes) { return hipMemset(to, value, bytes); }

HIP_API hipError_t hipMemset2D_spt(void *to, size_t pitch, int value, size_t width, size_t height) {
    return hipMemset2D(to, pitch, value, width, height);
}

HIP_API hipError_t hipMemset2DAsync_spt(void *to, size_t pitch, int value, size_t width, size_t height,
                                        hipStream_t stream) {
    return hipMemset2DAsync(to, pitch, value, width, height, own(stream));
}

HIP_API hipError_t hipMemset3D_spt(hipPitchedPtr to, int value, hipExtent extent) {
    return hipMemset3D(to, value, extent);
}

HIP_API hipError_t hipMemset3DAsync_spt(hipPitchedPtr to, int value, hipExtent extent, hipStream_t stream) {
    return hipMemset3DAsync(to, value, extent, own(stream));
}

HIP_API hipError_t hipMemsetAsync_spt(void *to, int value, size_t bytes, hipStream_t stream) {
    return hipMemsetAsync(to, value, bytes, own(stream));
}

HIP_API hipError_t hipStreamAddCallback_spt(hipStream_t stream, hipStreamCallback_t callback, void *user,
                                            unsigned flags) {
    return hipStreamAddCallback(own(stream), callback, user, flags);
}

HIP_API hipError_t hipStreamBeginCapture_spt(hipStream_t stream, hipStreamCaptureMode mode) {
    return hipStreamBeginCapture(own(stream), mode);
}

HIP_API hipError_t hipStreamEndCapture_spt(hipStream_t stream, hipGraph_t *out) {
    return hipStreamEndCapture(own(stream), out);
}

HIP_API hipError_t hipStreamGetCaptureInfo_spt(hipStream_t stream, hipStreamCaptureStatus *status,
                                               unsigned long long *id) {
    return hipStreamGetCaptureInfo(own(stream), status, id);
}

HIP_API hipError_t hipStreamGetFlags_spt(hipStream_t stream, unsigned *flags) {
    return hipStreamGetFlags(own(stream), flags);
}

HIP_API hipError_t hipStreamGetPriority_spt(hipStream_t stream, int *priority) {
    return hipStreamGetPriority(own(stream), priority);
}

HIP_API hipError_t hipStreamIsCapturing_spt(hipStream_t stream, hipStreamCaptureStatus *status) {
    return hipStreamIsCapturing(own(stream), status);
}

HIP_API hipError_t hipStreamQuery_spt(hipStream_t stream) { return hipStreamQuery(own(stream)); }

HIP_API hipError_t hipStreamSynchronize_spt(hipStream_t stream) { return hipStreamSynchronize(own(stream)); }

HIP_API hipError_t hipStreamWaitEvent_spt(hipStream_t stream, hipEvent_t event, unsigned flags) {
    return hipStreamWaitEvent(own(stream), event, flags);
}
