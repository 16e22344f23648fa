// SPDX-License-Identifier: MIT
// Copies and fills, in all the forms that the API has.
#include <stdlib.h>

#include "state.h"

// ---- copies of bytes

hipError_t tessera_hip_make_copy(struct hip_work *work, void *to, const void *from, size_t bytes, int kind) {
    *work = (struct hip_work){.kind = HIP_EMPTY};
    if (bytes == 0) return hipSuccess;
    if (!to || !from) return hipErrorInvalidValue;
    if ((kind < hipMemcpyHostToHost || kind > hipMemcpyDefault) && kind != hipMemcpyDeviceToDeviceNoCU)
        return hipErrorInvalidMemcpyDirection;
    if (!tessera_hip_fits(to, bytes) || !tessera_hip_fits(from, bytes)) return hipErrorInvalidValue;
    *work =
        (struct hip_work){.kind = HIP_COPY, .copy = {.to = to, .from = from, .width = bytes, .height = 1, .depth = 1}};
    return hipSuccess;
}

static hipError_t copy_now(void *to, const void *from, size_t bytes, int kind, hipStream_t stream) {
    struct hip_work work;
    const hipError_t error = tessera_hip_make_copy(&work, to, from, bytes, kind);
    return error == hipSuccess ? tessera_hip_submit_and_wait(stream, &work) : error;
}

static hipError_t copy_later(void *to, const void *from, size_t bytes, int kind, hipStream_t stream) {
    struct hip_work work;
    const hipError_t error = tessera_hip_make_copy(&work, to, from, bytes, kind);
    return error == hipSuccess ? tessera_hip_submit(stream, &work) : error;
}

HIP_API hipError_t hipMemcpy(void *to, const void *from, size_t bytes, int kind) {
    HIP_ENTER();
    return tessera_hip_result(copy_now(to, from, bytes, kind, NULL));
}

HIP_API hipError_t hipMemcpyWithStream(void *to, const void *from, size_t bytes, int kind, hipStream_t stream) {
    HIP_ENTER();
    return tessera_hip_result(copy_now(to, from, bytes, kind, stream));
}

HIP_API hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, int kind, hipStream_t stream) {
    HIP_ENTER();
    return tessera_hip_result(copy_later(to, from, bytes, kind, stream));
}

HIP_API hipError_t hipMemcpyHtoD(hipDeviceptr_t to, const void *from, size_t bytes) {
    return hipMemcpy(to, from, bytes, hipMemcpyHostToDevice);
}

HIP_API hipError_t hipMemcpyDtoH(void *to, hipDeviceptr_t from, size_t bytes) {
    return hipMemcpy(to, from, bytes, hipMemcpyDeviceToHost);
}

HIP_API hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes) {
    return hipMemcpy(to, from, bytes, hipMemcpyDeviceToDevice);
}

HIP_API hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, const void *from, size_t bytes, hipStream_t stream) {
    return hipMemcpyAsync(to, from, bytes, hipMemcpyHostToDevice, stream);
}

HIP_API hipError_t hipMemcpyDtoHAsync(void *to, hipDeviceptr_t from, size_t bytes, hipStream_t stream) {
    return hipMemcpyAsync(to, from, bytes, hipMemcpyDeviceToHost, stream);
}

HIP_API hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes, hipStream_t stream) {
    return hipMemcpyAsync(to, from, bytes, hipMemcpyDeviceToDevice, stream);
}

HIP_API hipError_t hipMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_device(to_device) && tessera_hip_device(from_device), hipErrorInvalidDevice);
    return hipMemcpy(to, from, bytes, hipMemcpyDeviceToDevice);
}

HIP_API hipError_t hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                      hipStream_t stream) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_device(to_device) && tessera_hip_device(from_device), hipErrorInvalidDevice);
    return hipMemcpyAsync(to, from, bytes, hipMemcpyDeviceToDevice, stream);
}

// ---- copies of rows and slices

// Whether depth slices of height rows of width bytes end inside the allocation that they start in.
static bool rows_fit(const void *address, size_t pitch, size_t slice, size_t width, size_t height, size_t depth) {
    return tessera_hip_fits(address, (depth - 1) * slice + (height - 1) * pitch + width);
}

static hipError_t make_rows(struct hip_work *work, struct hip_copy_work copy, int kind) {
    *work = (struct hip_work){.kind = HIP_EMPTY};
    if (copy.width == 0 || copy.height == 0 || copy.depth == 0) return hipSuccess;
    if (!copy.to || !copy.from) return hipErrorInvalidValue;
    if (kind < hipMemcpyHostToHost || kind > hipMemcpyDefault) return hipErrorInvalidMemcpyDirection;
    if (copy.height > 1 && (copy.to_pitch < copy.width || copy.from_pitch < copy.width))
        return hipErrorInvalidPitchValue;
    if (!rows_fit(copy.to, copy.to_pitch, copy.to_slice, copy.width, copy.height, copy.depth) ||
        !rows_fit(copy.from, copy.from_pitch, copy.from_slice, copy.width, copy.height, copy.depth))
        return hipErrorInvalidValue;
    *work = (struct hip_work){.kind = HIP_COPY, .copy = copy};
    return hipSuccess;
}

static struct hip_copy_work copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                    size_t height) {
    return (struct hip_copy_work){.to = to,
                                  .from = from,
                                  .to_pitch = to_pitch,
                                  .from_pitch = from_pitch,
                                  .width = width,
                                  .height = height,
                                  .depth = 1};
}

HIP_API hipError_t hipMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                               size_t height, int kind) {
    HIP_ENTER();
    struct hip_work work;
    HIP_TRY(make_rows(&work, copy_2d(to, to_pitch, from, from_pitch, width, height), kind));
    return tessera_hip_result(tessera_hip_submit_and_wait(NULL, &work));
}

HIP_API hipError_t hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                    size_t height, int kind, hipStream_t stream) {
    HIP_ENTER();
    struct hip_work work;
    HIP_TRY(make_rows(&work, copy_2d(to, to_pitch, from, from_pitch, width, height), kind));
    return tessera_hip_result(tessera_hip_submit(stream, &work));
}

static hipError_t make_3d(struct hip_work *work, const hipMemcpy3DParms *params) {
    if (!params) return hipErrorInvalidValue;
    if (params->srcArray || params->dstArray) return hipErrorNotSupported;
    const hipPitchedPtr *to = &params->dstPtr, *from = &params->srcPtr;
    const hipPos *at = &params->dstPos, *of = &params->srcPos;
    const size_t to_slice = to->pitch * to->ysize, from_slice = from->pitch * from->ysize;
    if (!to->ptr || !from->ptr) return hipErrorInvalidValue;
    const struct hip_copy_work copy = {
        .to = (char *)to->ptr + at->z * to_slice + at->y * to->pitch + at->x,
        .from = (const char *)from->ptr + of->z * from_slice + of->y * from->pitch + of->x,
        .to_pitch = to->pitch,
        .to_slice = to_slice,
        .from_pitch = from->pitch,
        .from_slice = from_slice,
        .width = params->extent.width,
        .height = params->extent.height,
        .depth = params->extent.depth,
    };
    return make_rows(work, copy, params->kind);
}

HIP_API hipError_t hipMemcpy3D(const hipMemcpy3DParms *params) {
    HIP_ENTER();
    struct hip_work work;
    HIP_TRY(make_3d(&work, params));
    return tessera_hip_result(tessera_hip_submit_and_wait(NULL, &work));
}

HIP_API hipError_t hipMemcpy3DAsync(const hipMemcpy3DParms *params, hipStream_t stream) {
    HIP_ENTER();
    struct hip_work work;
    HIP_TRY(make_3d(&work, params));
    return tessera_hip_result(tessera_hip_submit(stream, &work));
}

// ---- fills

hipError_t tessera_hip_make_set(struct hip_work *work, void *to, size_t pitch, uint32_t value, uint32_t element,
                                size_t width, size_t height, size_t depth) {
    *work = (struct hip_work){.kind = HIP_EMPTY};
    if (width == 0 || height == 0 || depth == 0) return hipSuccess;
    if (!to || (uintptr_t)to % element != 0) return hipErrorInvalidValue;
    if (height > 1 && pitch < width) return hipErrorInvalidValue;
    if (tessera_hip_find(to).kind == hipMemoryTypeUnregistered) return hipErrorInvalidValue;
    const size_t slice = pitch * height;
    if (!rows_fit(to, pitch, slice, width, height, depth)) return hipErrorInvalidValue;
    *work = (struct hip_work){.kind = HIP_SET,
                              .set = {.to = to,
                                      .pitch = pitch,
                                      .slice = slice,
                                      .value = value,
                                      .element = element,
                                      .width = width,
                                      .height = height,
                                      .depth = depth}};
    return hipSuccess;
}

static hipError_t set_now(void *to, uint32_t value, uint32_t element, size_t count) {
    struct hip_work work;
    if (count > SIZE_MAX / element) return hipErrorInvalidValue;
    const hipError_t error = tessera_hip_make_set(&work, to, 0, value, element, count * element, 1, 1);
    return error == hipSuccess ? tessera_hip_submit_and_wait(NULL, &work) : error;
}

static hipError_t set_later(void *to, uint32_t value, uint32_t element, size_t count, hipStream_t stream) {
    struct hip_work work;
    if (count > SIZE_MAX / element) return hipErrorInvalidValue;
    const hipError_t error = tessera_hip_make_set(&work, to, 0, value, element, count * element, 1, 1);
    return error == hipSuccess ? tessera_hip_submit(stream, &work) : error;
}

HIP_API hipError_t hipMemset(void *to, int value, size_t bytes) {
    HIP_ENTER();
    return tessera_hip_result(set_now(to, (uint8_t)value, 1, bytes));
}

HIP_API hipError_t hipMemsetAsync(void *to, int value, size_t bytes, hipStream_t stream) {
    HIP_ENTER();
    return tessera_hip_result(set_later(to, (uint8_t)value, 1, bytes, stream));
}

HIP_API hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, size_t count) {
    HIP_ENTER();
    return tessera_hip_result(set_now(to, value, 1, count));
}

HIP_API hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, size_t count, hipStream_t stream) {
    HIP_ENTER();
    return tessera_hip_result(set_later(to, value, 1, count, stream));
}

HIP_API hipError_t hipMemsetD16(hipDeviceptr_t to, unsigned short value, size_t count) {
    HIP_ENTER();
    return tessera_hip_result(set_now(to, value, 2, count));
}

HIP_API hipError_t hipMemsetD16Async(hipDeviceptr_t to, unsigned short value, size_t count, hipStream_t stream) {
    HIP_ENTER();
    return tessera_hip_result(set_later(to, value, 2, count, stream));
}

HIP_API hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count) {
    HIP_ENTER();
    return tessera_hip_result(set_now(to, (uint32_t)value, 4, count));
}

HIP_API hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count, hipStream_t stream) {
    HIP_ENTER();
    return tessera_hip_result(set_later(to, (uint32_t)value, 4, count, stream));
}

HIP_API hipError_t hipMemset2D(void *to, size_t pitch, int value, size_t width, size_t height) {
    HIP_ENTER();
    struct hip_work work;
    HIP_TRY(tessera_hip_make_set(&work, to, pitch, (uint8_t)value, 1, width, height, 1));
    return tessera_hip_result(tessera_hip_submit_and_wait(NULL, &work));
}

HIP_API hipError_t hipMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                                    hipStream_t stream) {
    HIP_ENTER();
    struct hip_work work;
    HIP_TRY(tessera_hip_make_set(&work, to, pitch, (uint8_t)value, 1, width, height, 1));
    return tessera_hip_result(tessera_hip_submit(stream, &work));
}

// Slices lie ysize rows apart, not the number of rows to fill.
static hipError_t make_set_3d(struct hip_work *work, hipPitchedPtr to, int value, hipExtent extent) {
    const hipError_t error =
        tessera_hip_make_set(work, to.ptr, to.pitch, (uint8_t)value, 1, extent.width, extent.height, extent.depth);
    if (error != hipSuccess || work->kind != HIP_SET) return error;
    work->set.slice = to.pitch * to.ysize;
    return rows_fit(to.ptr, to.pitch, work->set.slice, extent.width, extent.height, extent.depth)
               ? hipSuccess
               : hipErrorInvalidValue;
}

HIP_API hipError_t hipMemset3D(hipPitchedPtr to, int value, hipExtent extent) {
    HIP_ENTER();
    struct hip_work work;
    HIP_TRY(make_set_3d(&work, to, value, extent));
    return tessera_hip_result(tessera_hip_submit_and_wait(NULL, &work));
}

HIP_API hipError_t hipMemset3DAsync(hipPitchedPtr to, int value, hipExtent extent, hipStream_t stream) {
    HIP_ENTER();
    struct hip_work work;
    HIP_TRY(make_set_3d(&work, to, value, extent));
    return tessera_hip_result(tessera_hip_submit(stream, &work));
}

// ---- variables of the program

static hipError_t find_variable(const void *symbol, size_t bytes, size_t offset, char **address) {
    void *base;
    size_t size;
    const hipError_t error = tessera_hip_symbol_variable(symbol, &base, &size);
    if (error != hipSuccess) return error;
    if (offset > size || bytes > size - offset) return hipErrorInvalidDevicePointer;
    *address = (char *)base + offset;
    return hipSuccess;
}

HIP_API hipError_t hipMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, int kind) {
    HIP_ENTER();
    char *to;
    HIP_TRY(find_variable(symbol, bytes, offset, &to));
    return tessera_hip_result(copy_now(to, from, bytes, kind, NULL));
}

HIP_API hipError_t hipMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset, int kind,
                                          hipStream_t stream) {
    HIP_ENTER();
    char *to;
    HIP_TRY(find_variable(symbol, bytes, offset, &to));
    return tessera_hip_result(copy_later(to, from, bytes, kind, stream));
}

HIP_API hipError_t hipMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, int kind) {
    HIP_ENTER();
    char *from;
    HIP_TRY(find_variable(symbol, bytes, offset, &from));
    return tessera_hip_result(copy_now(to, from, bytes, kind, NULL));
}

HIP_API hipError_t hipMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset, int kind,
                                            hipStream_t stream) {
    HIP_ENTER();
    char *from;
    HIP_TRY(find_variable(symbol, bytes, offset, &from));
    return tessera_hip_result(copy_later(to, from, bytes, kind, stream));
}
