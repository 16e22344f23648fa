// SPDX-License-Identifier: MIT
// The bundles of code that programs of hipcc register before main(), and the host's addresses of their kernels and
// variables. A bundle is loaded on a device when one of its symbols is first needed there.
#include <stdlib.h>
#include <string.h>

#include "state.h"

enum { WRAPPER_MAGIC = 0x48495046 }; // "HIPF"

struct wrapper {
    uint32_t magic, version;
    const void *image;
    void *unused;
};

enum symbol_kind { KERNEL, VARIABLE, MANAGED };

struct symbol {
    enum symbol_kind kind;
    const void *host;
    char *name;
    void *managed; // memory of a managed variable, which the module's variable of that name points to
    size_t bytes;
};

struct fat_binary {
    const void *image;
    struct symbol *symbols;
    size_t count, capacity;
    struct hip_module *modules[HIP_MOST_DEVICES];
    struct fat_binary *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fat_binary *binaries;

// ---- registration

HIP_API void **__hipRegisterFatBinary(const void *data) {
    const struct wrapper *wrapper = data;
    if (!wrapper || wrapper->magic != WRAPPER_MAGIC || wrapper->version != 1) {
        tessera_hip_say("a fat binary of an unknown kind was registered");
        return NULL;
    }
    struct fat_binary *binary = calloc(1, sizeof *binary);
    if (!binary) return NULL;
    binary->image = wrapper->image;
    pthread_mutex_lock(&lock);
    binary->next = binaries;
    binaries = binary;
    pthread_mutex_unlock(&lock);
    return (void **)binary;
}

HIP_API void __hipUnregisterFatBinary(void **handle) {
    struct fat_binary *binary = (struct fat_binary *)handle;
    if (!binary) return;
    pthread_mutex_lock(&lock);
    struct fat_binary **link = &binaries;
    while (*link && *link != binary) link = &(*link)->next;
    if (*link) *link = binary->next;
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < HIP_MOST_DEVICES; i++)
        if (binary->modules[i]) tessera_hip_module_close(binary->modules[i]);
    for (size_t i = 0; i < binary->count; i++) free(binary->symbols[i].name);
    free(binary->symbols);
    free(binary);
}

static void add_symbol(void **handle, struct symbol symbol, const char *name) {
    struct fat_binary *binary = (struct fat_binary *)handle;
    if (!binary || !name || !(symbol.name = strdup(name))) return;
    pthread_mutex_lock(&lock);
    if (binary->count == binary->capacity) {
        const size_t capacity = binary->capacity ? 2 * binary->capacity : 16;
        struct symbol *symbols = realloc(binary->symbols, capacity * sizeof *symbols);
        if (symbols) {
            binary->symbols = symbols;
            binary->capacity = capacity;
        }
    }
    if (binary->count < binary->capacity)
        binary->symbols[binary->count++] = symbol;
    else
        free(symbol.name);
    pthread_mutex_unlock(&lock);
}

HIP_API void __hipRegisterFunction(void **handle, const void *host, char *device_function, const char *name,
                                   unsigned threads, void *tid, void *bid, void *block, void *grid, int *size) {
    (void)device_function, (void)threads, (void)tid, (void)bid, (void)block, (void)grid, (void)size;
    add_symbol(handle, (struct symbol){.kind = KERNEL, .host = host}, name);
}

HIP_API void __hipRegisterVar(void **handle, void *host, char *device_variable, char *name, int is_extern, size_t bytes,
                              int is_constant, int is_global) {
    (void)device_variable, (void)is_extern, (void)is_constant, (void)is_global;
    add_symbol(handle, (struct symbol){.kind = VARIABLE, .host = host, .bytes = bytes}, name);
}

// The program reads the variable through *host, so its memory must be there at once.
HIP_API void __hipRegisterManagedVar(void **handle, void **host, const void *initial, const char *name, size_t bytes,
                                     unsigned alignment) {
    (void)alignment; // memory is aligned to pages
    void *memory;
    if (tessera_hip_open() != hipSuccess ||
        tessera_hip_shared_malloc(&memory, bytes, hipMemoryTypeManaged, 1) != hipSuccess) {
        tessera_hip_say("no memory for the managed variable %s", name);
        return;
    }
    memcpy(memory, initial, bytes);
    *host = memory;
    add_symbol(handle, (struct symbol){.kind = MANAGED, .host = memory, .managed = memory, .bytes = bytes}, name);
}

// ---- finding

static void point_managed(const struct fat_binary *binary, const struct hip_module *module) {
    for (size_t i = 0; i < binary->count; i++) {
        const struct symbol *symbol = &binary->symbols[i];
        void *pointer;
        size_t bytes;
        if (symbol->kind != MANAGED ||
            tessera_sim_global(module->code, symbol->name, &pointer, &bytes) != TESSERA_SUCCESS ||
            bytes != sizeof symbol->managed)
            continue;
        memcpy(pointer, &symbol->managed, sizeof symbol->managed);
    }
}

// The module of a bundle on a device; the caller holds the lock.
static hipError_t load(struct fat_binary *binary, struct hip_device *device, struct hip_module **out) {
    struct hip_module **module = &binary->modules[device->index];
    if (!*module) {
        const hipError_t error = tessera_hip_module_open(device, binary->image, SIZE_MAX, module);
        if (error != hipSuccess) return error;
        point_managed(binary, *module);
    }
    *out = *module;
    return hipSuccess;
}

// The symbol of a host address, and its bundle's module on the current device; the caller holds the lock.
static hipError_t find(const void *host, bool kernel, const struct symbol **symbol, struct hip_module **module) {
    for (struct fat_binary *binary = binaries; binary; binary = binary->next)
        for (size_t i = 0; i < binary->count; i++) {
            if (binary->symbols[i].host != host || (binary->symbols[i].kind == KERNEL) != kernel) continue;
            *symbol = &binary->symbols[i];
            return load(binary, tessera_hip_current(), module);
        }
    return kernel ? hipErrorInvalidDeviceFunction : hipErrorInvalidSymbol;
}

hipError_t tessera_hip_symbol_function(const void *host, struct hip_function **out) {
    if (!host) return hipErrorInvalidDeviceFunction;
    const struct symbol *symbol;
    struct hip_module *module;
    pthread_mutex_lock(&lock);
    hipError_t error = find(host, true, &symbol, &module);
    if (error == hipSuccess && tessera_hip_module_function(module, symbol->name, out) != hipSuccess)
        error = hipErrorInvalidDeviceFunction;
    pthread_mutex_unlock(&lock);
    return error;
}

hipError_t tessera_hip_symbol_variable(const void *host, void **address, size_t *bytes) {
    if (!host) return hipErrorInvalidSymbol;
    const struct symbol *symbol;
    struct hip_module *module;
    pthread_mutex_lock(&lock);
    hipError_t error = find(host, false, &symbol, &module);
    if (error == hipSuccess && symbol->kind == MANAGED) {
        *address = symbol->managed;
        *bytes = symbol->bytes;
    } else if (error == hipSuccess &&
               tessera_sim_global(module->code, symbol->name, address, bytes) != TESSERA_SUCCESS) {
        error = hipErrorInvalidSymbol;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

HIP_API hipError_t hipGetSymbolAddress(void **address, const void *host) {
    HIP_ENTER();
    HIP_REQUIRE(address, hipErrorInvalidValue);
    size_t bytes;
    return tessera_hip_result(tessera_hip_symbol_variable(host, address, &bytes));
}

HIP_API hipError_t hipGetSymbolSize(size_t *bytes, const void *host) {
    HIP_ENTER();
    HIP_REQUIRE(bytes, hipErrorInvalidValue);
    void *address;
    return tessera_hip_result(tessera_hip_symbol_variable(host, &address, bytes));
}

HIP_API hipError_t hipGetFuncBySymbol(hipFunction_t *out, const void *host) {
    HIP_ENTER();
    HIP_REQUIRE(out, hipErrorInvalidValue);
    return tessera_hip_result(tessera_hip_symbol_function(host, out));
}

// Names of kernels, for tools that trace.
HIP_API const char *hipKernelNameRef(hipFunction_t function) {
    return tessera_hip_handle_is(function, HIP_FUNCTION) ? function->info->name : NULL;
}

HIP_API const char *hipKernelNameRefByPtr(const void *host, hipStream_t stream) {
    struct hip_function *function;
    (void)stream;
    if (tessera_hip_open() != hipSuccess || tessera_hip_symbol_function(host, &function) != hipSuccess) return NULL;
    return function->info->name;
}
