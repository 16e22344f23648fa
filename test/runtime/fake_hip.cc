// SPDX-License-Identifier: MIT
#include "fake_hip.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#ifdef TESSERA_HAVE_ZLIB
#include <zlib.h>
#endif

namespace {

FakeHip *fake;

// Counts a call and returns the error that it is to return.
int call(const char *name) {
    fake->calls[name]++;
    const auto failure = fake->fails.find(name);
    if (failure == fake->fails.end()) return 0;
    fake->last_error = failure->second;
    return failure->second;
}

#define CALL(name)                                                                                                     \
    const std::lock_guard<std::mutex> lock(fake->mutex);                                                               \
    if (const int error = call(#name)) return error

struct Module {
    std::string image;
};
struct Function {
    Module *module;
    std::string symbol;
};
std::vector<Function *> functions;

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
    *out = malloc(bytes);
    fake->memory++;
    return 0;
}
int hipFree(void *memory) {
    CALL(hipFree);
    free(memory);
    fake->memory--;
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
    *module = new Module{static_cast<const char *>(image)};
    fake->images.push_back(static_cast<const char *>(image));
    return 0;
}
int hipModuleUnload(void *module) {
    CALL(hipModuleUnload);
    const auto *const m = static_cast<Module *>(module);
    fake->images.erase(std::find(fake->images.begin(), fake->images.end(), m->image));
    delete m;
    return 0;
}
int hipModuleGetFunction(void **function, void *module, const char *name) {
    CALL(hipModuleGetFunction);
    auto *const m = static_cast<Module *>(module);
    if (m->image.find(name) == std::string::npos) return 500; // hipErrorNotFound
    functions.push_back(new Function{m, name});
    *function = functions.back();
    return 0;
}
int hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void *stream, void **params, void **extra) {
    CALL(hipModuleLaunchKernel);
    if (params || !extra || extra[0] != reinterpret_cast<void *>(1) || extra[2] != reinterpret_cast<void *>(2) ||
        extra[4] != reinterpret_cast<void *>(3))
        return 1; // hipErrorInvalidValue
    const auto *const bytes = static_cast<const unsigned char *>(extra[1]);
    fake->launches.push_back({static_cast<Function *>(function)->symbol,
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
    : archs(std::move(archs_)), with_r0600(with_r0600_) {
    fake = this;
    const auto all = entries();
    if (tessera_set_driver("hip", all.data(), all.size()) != TESSERA_SUCCESS) abort();
}

FakeHip::~FakeHip() {
    tessera_set_driver("hip", nullptr, 0);
    for (const Function *function : functions) delete function;
    functions.clear();
    fake = nullptr;
}

int FakeHip::calls_of_all() const {
    int count = 0;
    for (const auto &entry : calls) count += entry.second;
    return count;
}

// ---- packs

namespace {

uint32_t crc32_of(const std::string &bytes) {
    uint32_t crc = ~0u;
    for (const char c : bytes) {
        crc ^= static_cast<unsigned char>(c);
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

std::string number(uint64_t value, size_t bytes) {
    std::string text;
    for (size_t i = 0; i < bytes; i++) text += static_cast<char>(value >> 8 * i);
    return text;
}

std::string padded(std::string name, size_t bytes) {
    name.resize(bytes, '\0');
    return name;
}

std::string compressed(const std::string &plain) {
#ifdef TESSERA_HAVE_ZLIB
    uLongf bytes = compressBound(plain.size());
    std::string out(bytes, '\0');
    if (compress(reinterpret_cast<Bytef *>(out.data()), &bytes, reinterpret_cast<const Bytef *>(plain.data()),
                 plain.size()) != Z_OK)
        abort();
    out.resize(bytes);
    return out;
#else
    return plain;
#endif
}

} // namespace

std::string make_pack(const std::string &op, const std::string &target,
                      const std::map<std::string, std::string> &objects, bool compress) {
    const size_t head = 80, entry = 144;
    std::string entries, data;
    for (const auto &[symbol, text] : objects) {
        const std::string plain = text + '\0', squeezed = compress ? compressed(plain) : plain;
        const std::string &packed = squeezed.size() < plain.size() ? squeezed : plain;
        data.resize(data.size() + (64 - (head + objects.size() * entry + data.size()) % 64) % 64, '\0');
        entries += padded(symbol, 120) + number(head + objects.size() * entry + data.size(), 8) +
                   number(packed.size(), 4) + number(plain.size(), 4) + number(packed.size() < plain.size(), 4) +
                   number(crc32_of(plain), 4);
        data += packed;
    }
    return "TSRPACK1" + padded(op, 32) + padded(target, 32) + number(objects.size(), 4) + number(crc32_of(entries), 4) +
           entries + data;
}
