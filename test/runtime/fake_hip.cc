// SPDX-License-Identifier: MIT
#include "fake_hip.h"

#include <cstring>

namespace {

FakeHip *fake;

#define CALL(name)                                                                                                     \
    const std::lock_guard<std::mutex> lock(fake->mutex);                                                               \
    if (const int error = fake->called(#name)) return fake->last_error = error

int hipInit(unsigned) {
    CALL(hipInit);
    return 0;
}
int hipRuntimeGetVersion(int *version) {
    CALL(hipRuntimeGetVersion);
    *version = 60142131;
    return 0;
}
int hipGetDeviceCount(int *count) {
    CALL(hipGetDeviceCount);
    *count = static_cast<int>(fake->archs.size());
    return 0;
}
int hipGetDevice(int *device) {
    CALL(hipGetDevice);
    *device = fake->current;
    return 0;
}
int hipSetDevice(int device) {
    CALL(hipSetDevice);
    fake->current = device;
    return 0;
}
int hipDeviceGetAttribute(int *value, int attribute, int device) {
    CALL(hipDeviceGetAttribute);
    *value = attribute == 63 ? fake->units + device : attribute == 19 ? 4 << 20 : attribute == 74 ? 64 << 10 : -1;
    return 0;
}
int hipDeviceSynchronize() {
    CALL(hipDeviceSynchronize);
    return 0;
}
int hipMalloc(void **out, size_t bytes) {
    CALL(hipMalloc);
    *out = fake->allocate(bytes);
    return 0;
}
int hipFree(void *memory) {
    CALL(hipFree);
    fake->release(memory);
    return 0;
}
int hipMemcpy(void *to, const void *from, size_t bytes, int kind) {
    CALL(hipMemcpy);
    if (kind != 1 && kind != 2) return 1;
    memcpy(to, from, bytes);
    return 0;
}
int hipMemset(void *to, int byte, size_t bytes) {
    CALL(hipMemset);
    memset(to, byte, bytes);
    return 0;
}
int hipMemsetAsync(void *to, int byte, size_t bytes, void *stream) {
    CALL(hipMemsetAsync);
    fake->filled = stream;
    memset(to, byte, bytes);
    return 0;
}
int hipMemsetD32Async(void *to, int word, size_t count, void *stream) {
    CALL(hipMemsetD32Async);
    fake->filled = stream;
    for (size_t i = 0; i < count; i++) static_cast<int *>(to)[i] = word;
    return 0;
}
int hipMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream) {
    CALL(hipMemcpyAsync);
    if (kind != 1 || (stream && stream == fake->capturing)) return 1;
    fake->filled = stream;
    memcpy(to, from, bytes);
    return 0;
}
int hipModuleLoadData(void **module, const void *image) {
    CALL(hipModuleLoadData);
    *module = fake->load(static_cast<const char *>(image), nullptr);
    return 0;
}
int hipModuleUnload(void *module) {
    CALL(hipModuleUnload);
    fake->unload(module);
    return 0;
}
int hipModuleGetFunction(void **function, void *module, const char *name) {
    CALL(hipModuleGetFunction);
    *function = fake->find(module, name, 64 << 10);
    return *function ? 0 : 500; // hipErrorNotFound
}
int hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void *stream, void **params, void **extra) {
    CALL(hipModuleLaunchKernel);
    if (params || !extra || extra[0] != reinterpret_cast<void *>(1) || extra[2] != reinterpret_cast<void *>(2) ||
        extra[4] != reinterpret_cast<void *>(3))
        return 1; // hipErrorInvalidValue
    const auto *const bytes = static_cast<const unsigned char *>(extra[1]);
    fake->launches.push_back({static_cast<FakeFunction *>(function)->symbol,
                              fake->current,
                              {gx, gy, gz},
                              {bx, by, bz},
                              shared,
                              stream,
                              {bytes, bytes + *static_cast<size_t *>(extra[3])}});
    return 0;
}
int hipStreamIsCapturing(void *stream, int *status) {
    CALL(hipStreamIsCapturing);
    if (fake->capturing && !stream) return fake->last_error = 906;
    *status = stream && stream == fake->capturing;
    return 0;
}
int hipStreamSynchronize(void *stream) {
    CALL(hipStreamSynchronize);
    return stream && stream == fake->capturing ? fake->last_error = 900 : 0;
}
int hipGetLastError() {
    const std::lock_guard<std::mutex> lock(fake->mutex);
    fake->calls["hipGetLastError"]++;
    const int error = fake->last_error;
    fake->last_error = 0;
    return error;
}
const char *hipGetErrorName(int error) { return error == 500 ? "hipErrorNotFound" : "hipErrorOfTheFake"; }
const char *hipGetErrorString(int) { return "the fake was told to"; }

int put_arch(void *properties, size_t offset, int device) {
    strcpy(static_cast<char *>(properties) + offset, fake->archs.at(static_cast<size_t>(device)).c_str());
    return 0;
}
int hipGetDevicePropertiesR0600(void *properties, int device) {
    CALL(hipGetDevicePropertiesR0600);
    return put_arch(properties, 1160, device);
}
int hipGetDeviceProperties(void *properties, int device) {
    CALL(hipGetDeviceProperties);
    return put_arch(properties, 396, device);
}

} // namespace

std::vector<tessera_driver_entry> FakeHip::entries() const {
#define ENTRY(name) {#name, reinterpret_cast<tessera_driver_function>(name)}
    std::vector<tessera_driver_entry> all = {ENTRY(hipInit),
                                             ENTRY(hipRuntimeGetVersion),
                                             ENTRY(hipGetDeviceCount),
                                             ENTRY(hipGetDevice),
                                             ENTRY(hipSetDevice),
                                             ENTRY(hipDeviceGetAttribute),
                                             ENTRY(hipMalloc),
                                             ENTRY(hipFree),
                                             ENTRY(hipDeviceSynchronize),
                                             ENTRY(hipMemcpy),
                                             ENTRY(hipMemset),
                                             ENTRY(hipMemsetAsync),
                                             ENTRY(hipMemsetD32Async),
                                             ENTRY(hipMemcpyAsync),
                                             ENTRY(hipModuleLoadData),
                                             ENTRY(hipModuleUnload),
                                             ENTRY(hipModuleGetFunction),
                                             ENTRY(hipModuleLaunchKernel),
                                             ENTRY(hipGetLastError),
                                             ENTRY(hipGetErrorName),
                                             ENTRY(hipStreamIsCapturing),
                                             ENTRY(hipStreamSynchronize),
                                             ENTRY(hipGetErrorString),
                                             ENTRY(hipGetDeviceProperties)};
    if (with_r0600) all.push_back(ENTRY(hipGetDevicePropertiesR0600));
    return all;
}

FakeHip::FakeHip(std::vector<std::string> archs_, bool with_r0600_)
    : FakeDriver("hip"), archs(std::move(archs_)), with_r0600(with_r0600_) {
    fake = this;
    begin();
}

FakeHip::~FakeHip() { fake = nullptr; }
