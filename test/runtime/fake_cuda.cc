// SPDX-License-Identifier: MIT
#include "fake_cuda.h"

#include <cstring>

namespace {

FakeCuda *fake;

enum {
    INVALID_VALUE = 1,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_IMPLICIT = 906
};
using Address = unsigned long long;

FakeContext *current() { return FakeCuda::stack().empty() ? nullptr : FakeCuda::stack().back(); }
void *memory_at(Address address) { return reinterpret_cast<void *>(static_cast<uintptr_t>(address)); }
bool is_device(int device) { return device >= 0 && device < static_cast<int>(fake->capabilities.size()); }

#define CALL(name)                                                                                                     \
    const std::lock_guard<std::mutex> lock(fake->mutex);                                                               \
    if (const int error = fake->called(#name)) return error
#define CALL_IN_CONTEXT(name)                                                                                          \
    CALL(name);                                                                                                        \
    if (!current()) return INVALID_CONTEXT

int cuInit(unsigned flags) {
    CALL(cuInit);
    return flags ? INVALID_VALUE : 0;
}
int cuDriverGetVersion(int *version) {
    CALL(cuDriverGetVersion);
    *version = fake->version;
    return 0;
}
int cuGetErrorName(int error, const char **name) {
    *name = error == NOT_FOUND ? "CUDA_ERROR_NOT_FOUND" : error == INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE" : nullptr;
    if (error >= 700) *name = "CUDA_ERROR_OF_THE_FAKE";
    return *name ? 0 : INVALID_VALUE;
}
int cuGetErrorString(int error, const char **text) {
    const char *name;
    *text = cuGetErrorName(error, &name) ? nullptr : "the fake was told to";
    return *text ? 0 : INVALID_VALUE;
}

// ---- devices and contexts

int cuDeviceGetCount(int *count) {
    CALL(cuDeviceGetCount);
    *count = static_cast<int>(fake->capabilities.size());
    return 0;
}
int cuDeviceGet(int *device, int ordinal) {
    CALL(cuDeviceGet);
    *device = ordinal;
    return is_device(ordinal) ? 0 : INVALID_DEVICE;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    CALL(cuDeviceGetAttribute);
    if (!is_device(device)) return INVALID_DEVICE;
    const int capability = fake->capabilities[static_cast<size_t>(device)];
    const std::map<int, int> values = {{16, fake->units ? fake->units + device : 0},
                                       {38, 50 << 20},
                                       {75, capability / 10},
                                       {76, capability % 10},
                                       {97, 227 << 10}};
    const auto found = values.find(attribute);
    if (found == values.end()) return INVALID_VALUE;
    *value = found->second;
    return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
    CALL(cuDevicePrimaryCtxRetain);
    if (!is_device(device)) return INVALID_DEVICE;
    FakeContext &primary = fake->primary[static_cast<size_t>(device)];
    primary.users++;
    *context = &primary;
    return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
    CALL(cuDevicePrimaryCtxRelease_v2);
    if (!is_device(device) || !fake->primary[static_cast<size_t>(device)].users) return INVALID_CONTEXT;
    fake->primary[static_cast<size_t>(device)].users--;
    return 0;
}
int cuCtxGetCurrent(void **context) {
    CALL(cuCtxGetCurrent);
    *context = current();
    return 0;
}
int cuCtxGetDevice(int *device) {
    CALL_IN_CONTEXT(cuCtxGetDevice);
    *device = current()->device;
    return 0;
}
int cuCtxPushCurrent_v2(void *context) {
    CALL(cuCtxPushCurrent_v2);
    if (!context) return INVALID_CONTEXT;
    FakeCuda::stack().push_back(static_cast<FakeContext *>(context));
    return 0;
}
int cuCtxPopCurrent_v2(void **context) {
    CALL_IN_CONTEXT(cuCtxPopCurrent_v2);
    *context = current();
    FakeCuda::stack().pop_back();
    return 0;
}
int cuCtxSynchronize() {
    CALL_IN_CONTEXT(cuCtxSynchronize);
    return 0;
}

// ---- memory

int cuMemAlloc_v2(Address *out, size_t bytes) {
    CALL_IN_CONTEXT(cuMemAlloc_v2);
    *out = reinterpret_cast<uintptr_t>(fake->allocate(bytes));
    return 0;
}
int cuMemFree_v2(Address memory) {
    CALL_IN_CONTEXT(cuMemFree_v2);
    fake->release(memory_at(memory));
    return 0;
}
int cuMemcpyHtoD_v2(Address to, const void *from, size_t bytes) {
    CALL_IN_CONTEXT(cuMemcpyHtoD_v2);
    memcpy(memory_at(to), from, bytes);
    return 0;
}
int cuMemcpyDtoH_v2(void *to, Address from, size_t bytes) {
    CALL_IN_CONTEXT(cuMemcpyDtoH_v2);
    memcpy(to, memory_at(from), bytes);
    return 0;
}
int cuMemsetD8Async(Address to, unsigned char byte, size_t count, void *stream) {
    CALL_IN_CONTEXT(cuMemsetD8Async);
    fake->filled = stream;
    memset(memory_at(to), byte, count);
    return 0;
}
int cuMemsetD32Async(Address to, unsigned word, size_t count, void *stream) {
    CALL_IN_CONTEXT(cuMemsetD32Async);
    fake->filled = stream;
    for (size_t i = 0; i < count; i++) static_cast<unsigned *>(memory_at(to))[i] = word;
    return 0;
}
int cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, void *stream) {
    CALL_IN_CONTEXT(cuMemcpyHtoDAsync_v2);
    if (stream && stream == fake->capturing) return CAPTURE_UNSUPPORTED;
    fake->filled = stream;
    memcpy(memory_at(to), from, bytes);
    return 0;
}

// ---- streams

int cuStreamSynchronize(void *stream) {
    CALL_IN_CONTEXT(cuStreamSynchronize);
    return stream && stream == fake->capturing ? CAPTURE_UNSUPPORTED : 0;
}
int cuStreamIsCapturing(void *stream, int *status) {
    CALL_IN_CONTEXT(cuStreamIsCapturing);
    if (fake->capturing && !stream) return CAPTURE_IMPLICIT;
    *status = stream && stream == fake->capturing;
    return 0;
}
int cuThreadExchangeStreamCaptureMode(int *mode) {
    CALL(cuThreadExchangeStreamCaptureMode);
    std::swap(*mode, FakeCuda::capture_mode());
    return 0;
}

// ---- code

int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
    CALL_IN_CONTEXT(cuModuleLoadDataEx);
    const char *const text = static_cast<const char *>(image);
    if (fake->captures_elsewhere && FakeCuda::capture_mode() != 2) return CAPTURE_UNSUPPORTED;
    const bool is_cubin = strncmp(text,
                                  "\x7f"
                                  "ELF",
                                  4) == 0;
    if (is_cubin && fake->cubin_error) return fake->cubin_error;
    if (!is_cubin && fake->ptx_error) {
        if (count != 2 || options[0] != 5 || options[1] != 6) return INVALID_VALUE;
        strncpy(static_cast<char *>(values[0]), "ptxas fatal :\nno such thing", reinterpret_cast<size_t>(values[1]));
        return fake->ptx_error;
    }
    *module = fake->load(text, current());
    return 0;
}
int cuModuleUnload(void *module) {
    CALL_IN_CONTEXT(cuModuleUnload);
    if (static_cast<FakeModule *>(module)->context != current()) return INVALID_CONTEXT;
    fake->unload(module);
    return 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    CALL_IN_CONTEXT(cuModuleGetFunction);
    *function = fake->find(module, name, 48 << 10);
    return *function ? 0 : NOT_FOUND;
}
int cuFuncLoad(void *) {
    CALL_IN_CONTEXT(cuFuncLoad);
    return 0;
}
int cuFuncGetAttribute(int *value, int attribute, void *) {
    CALL_IN_CONTEXT(cuFuncGetAttribute);
    *value = 1024;
    return attribute == 1 ? 0 : INVALID_VALUE;
}
int cuFuncSetAttribute(void *function, int attribute, int value) {
    CALL_IN_CONTEXT(cuFuncSetAttribute);
    if (attribute != 8 || value < 0 || value + 1024 > 227 << 10) return INVALID_VALUE;
    static_cast<FakeFunction *>(function)->most_lds = static_cast<unsigned>(value);
    return 0;
}
int add_launch(void *function, const unsigned grid[3], const unsigned block[3], unsigned shared, void *stream,
               void **params, void **extra, unsigned cluster, bool overlaps) {
    const auto *const f = static_cast<FakeFunction *>(function);
    if (f->module->context != current()) return INVALID_HANDLE;
    if (!params || !params[0] || extra || shared > f->most_lds) return INVALID_VALUE;
    const auto *const bytes = static_cast<const unsigned char *>(params[0]);
    fake->launches.push_back({f->symbol,
                              current()->device,
                              {grid[0], grid[1], grid[2]},
                              {block[0], block[1], block[2]},
                              shared,
                              stream,
                              {bytes, bytes + fake->argument_bytes},
                              cluster,
                              overlaps});
    return 0;
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **params, void **extra) {
    CALL_IN_CONTEXT(cuLaunchKernel);
    const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
    return add_launch(function, grid, block, shared, stream, params, extra, 0, false);
}
struct LaunchAttribute { // cuda.h of CUDA 13: an identifier, four bytes, and a union of 64
    int id;
    char pad[4];
    unsigned value[16];
};
struct LaunchConfig {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared;
    void *stream;
    LaunchAttribute *attributes;
    unsigned count;
};
int cuLaunchKernelEx(const LaunchConfig *c, void *function, void **params, void **extra) {
    CALL_IN_CONTEXT(cuLaunchKernelEx);
    const unsigned grid[3] = {c->grid_x, c->grid_y, c->grid_z}, block[3] = {c->block_x, c->block_y, c->block_z};
    unsigned cluster = 0;
    bool overlaps = false;
    for (unsigned i = 0; i < c->count; i++) {
        const LaunchAttribute &a = c->attributes[i];
        if (a.id == 4) { // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            cluster = a.value[0];
            if (cluster == 0 || grid[0] % cluster || a.value[1] != 1 || a.value[2] != 1) return INVALID_VALUE;
        } else if (a.id == 6) { // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            overlaps = a.value[0];
        } else {
            return INVALID_VALUE;
        }
    }
    return add_launch(function, grid, block, c->shared, c->stream, params, extra, cluster, overlaps);
}

int cuTensorMapEncodeTiled(void *out, int element, uint32_t rank, void *base, const uint64_t *sizes,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *element_strides,
                           int interleave, int swizzle, int promotion, int fill) {
    CALL_IN_CONTEXT(cuTensorMapEncodeTiled);
    if (reinterpret_cast<uintptr_t>(out) % 64) return INVALID_VALUE;
    memset(out, 0x5a, 128);
    fake->maps.push_back({out,
                          base,
                          element,
                          interleave,
                          swizzle,
                          promotion,
                          fill,
                          {sizes, sizes + rank},
                          {strides, strides + rank - 1},
                          {box, box + rank},
                          {element_strides, element_strides + rank}});
    return 0;
}

} // namespace

std::vector<FakeContext *> &FakeCuda::stack() {
    static thread_local std::vector<FakeContext *> contexts;
    return contexts;
}

int &FakeCuda::capture_mode() {
    static thread_local int mode = 0;
    return mode;
}

std::vector<tessera_driver_entry> FakeCuda::entries() const {
#define ENTRY(name)                                                                                                    \
    { #name, reinterpret_cast < tessera_driver_function>(name) }
    return {ENTRY(cuInit),
            ENTRY(cuDriverGetVersion),
            ENTRY(cuGetErrorName),
            ENTRY(cuGetErrorString),
            ENTRY(cuDeviceGetCount),
            ENTRY(cuDeviceGet),
            ENTRY(cuDeviceGetAttribute),
            ENTRY(cuDevicePrimaryCtxRetain),
            ENTRY(cuDevicePrimaryCtxRelease_v2),
            ENTRY(cuCtxGetCurrent),
            ENTRY(cuCtxGetDevice),
            ENTRY(cuCtxPushCurrent_v2),
            ENTRY(cuCtxPopCurrent_v2),
            ENTRY(cuCtxSynchronize),
            ENTRY(cuMemAlloc_v2),
            ENTRY(cuMemFree_v2),
            ENTRY(cuMemcpyHtoD_v2),
            ENTRY(cuMemcpyDtoH_v2),
            ENTRY(cuMemsetD8Async),
            ENTRY(cuMemsetD32Async),
            ENTRY(cuMemcpyHtoDAsync_v2),
            ENTRY(cuStreamSynchronize),
            ENTRY(cuStreamIsCapturing),
            ENTRY(cuThreadExchangeStreamCaptureMode),
            ENTRY(cuModuleLoadDataEx),
            ENTRY(cuModuleUnload),
            ENTRY(cuModuleGetFunction),
            ENTRY(cuFuncLoad),
            ENTRY(cuFuncGetAttribute),
            ENTRY(cuFuncSetAttribute),
            ENTRY(cuLaunchKernel),
            ENTRY(cuLaunchKernelEx),
            ENTRY(cuTensorMapEncodeTiled)};
}

FakeCuda::FakeCuda(std::vector<int> capabilities_) : FakeDriver("cuda"), capabilities(std::move(capabilities_)) {
    for (size_t i = 0; i < capabilities.size(); i++) primary.push_back({static_cast<int>(i), 0});
    fake = this;
    begin();
}

FakeCuda::~FakeCuda() { fake = nullptr; }
