// SPDX-License-Identifier: MIT
// Drivers: from a library or a host's table to functions that can be called. One of a kind is kept for all devices.
#define _POSIX_C_SOURCE 200809L // strdup
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guard.h"

// A host's table, copied: what it was given in may not last.
struct table {
    tessera_driver_entry *entries;
    size_t count;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // guards what follows
static struct tessera_driver *opened[TESSERA_DRIVER_KINDS];
static struct table host_table;

static tessera_driver_function find(void *library, const struct table *table, const char *name) {
    tessera_driver_function function = NULL;
    if (library) {
        void *const address = dlsym(library, name);
        memcpy(&function, &address, sizeof function); // ISO C has no cast from object to function
        return function;
    }
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->entries[i].name, name) == 0) return table->entries[i].function;
    return NULL;
}

static tessera_status fill(struct tessera_driver *d, const char *name, void *library, const struct table *table) {
    tessera_driver_function function;
#define OPTIONAL(f) ((function = find(library, table, #f)), memcpy(&d->f, &function, sizeof function))
#define REQUIRED(f)                                                                                                    \
    do {                                                                                                               \
        OPTIONAL(f);                                                                                                   \
        if (!function) return tessera_fail(TESSERA_ERROR_DEVICE, "%s: %s lacks the function " #f, name, d->origin);    \
    } while (0)
#define F(f, parameters) REQUIRED(f);
    TESSERA_DRIVER_FUNCTIONS(F)
#undef F
    REQUIRED(hipGetErrorName);
    REQUIRED(hipGetErrorString);
    OPTIONAL(hipGetDevicePropertiesR0600);
    if (!function) REQUIRED(hipGetDeviceProperties);
    OPTIONAL(hipStreamSynchronize);
    OPTIONAL(hipMemsetAsync);
    OPTIONAL(hipMemsetD32Async);
    OPTIONAL(hipMemcpyAsync);
    OPTIONAL(tessera_hip_listen);
#undef REQUIRED
#undef OPTIONAL
    return TESSERA_SUCCESS;
}

// What the simulator said last: a fault's kernel and place. Told once, with the next error.
static struct {
    pthread_mutex_t mutex;
    char line[768];
} heard = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void hear(const char *line) {
    pthread_mutex_lock(&heard.mutex);
    snprintf(heard.line, sizeof heard.line, "%s", line);
    pthread_mutex_unlock(&heard.mutex);
}

// The simulator may stay when this library is unloaded.
__attribute__((destructor)) static void listen_no_more(void) {
    const struct tessera_driver *const d = opened[TESSERA_DRIVER_SIM];
    if (d && d->tessera_hip_listen) d->tessera_hip_listen(NULL);
}

static tessera_status initialize(struct tessera_driver *d, const char *name) {
    if (d->tessera_hip_listen) d->tessera_hip_listen(hear);
    int error = d->hipInit(0), version = 0;
    if (error) return tessera_driver_fail(d, name, "hipInit", error);
    error = d->hipRuntimeGetVersion(&version);
    if (error) return tessera_driver_fail(d, name, "hipRuntimeGetVersion", error);
    tessera_log(TESSERA_LOG_INFO, "driver: %s, HIP %d.%d.%d", d->origin, version / 10000000, version / 100000 % 100,
                version % 100000);
    return TESSERA_SUCCESS;
}

static tessera_status make(enum tessera_driver_kind kind, const char *name, struct tessera_driver *d) {
    void *library = NULL;
    const bool from_table = kind == TESSERA_DRIVER_HIP && host_table.count;
    if (from_table)
        snprintf(d->origin, sizeof d->origin, "the table of tessera_set_driver()");
    else
        TRY(tessera_driver_library(kind, name, &library, d->origin, sizeof d->origin));
    TRY(fill(d, name, library, &host_table));
    return initialize(d, name);
}

static tessera_status open_locked(enum tessera_driver_kind kind, const char *name, struct tessera_driver **out) {
    if (!opened[kind]) {
        struct tessera_driver *const d = calloc(1, sizeof *d);
        if (!d) return tessera_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for a driver of %zu bytes", sizeof *d);
        const tessera_status status = make(kind, name, d);
        if (status != TESSERA_SUCCESS) {
            free(d);
            return status;
        }
        atomic_init(&d->users, 1); // opened[kind] itself
        opened[kind] = d;
    }
    *out = opened[kind];
    atomic_fetch_add(&(*out)->users, 1);
    return TESSERA_SUCCESS;
}

tessera_status tessera_driver_open(enum tessera_driver_kind kind, const char *name, struct tessera_driver **out) {
    pthread_mutex_lock(&mutex);
    const tessera_status status = open_locked(kind, name, out);
    pthread_mutex_unlock(&mutex);
    return status;
}

void tessera_driver_close(struct tessera_driver *driver) {
    if (driver && atomic_fetch_sub(&driver->users, 1) == 1) free(driver);
}

// ---- a host's table

static void free_table(struct table *table) {
    for (size_t i = 0; i < table->count; i++) free((char *)(size_t)table->entries[i].name);
    free(table->entries);
    *table = (struct table){NULL, 0};
}

static tessera_status copy_table(const tessera_driver_entry *entries, size_t count, struct table *out) {
    *out = (struct table){calloc(count, sizeof *entries), 0};
    if (count && !out->entries) return tessera_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for %zu entries", count);
    for (; out->count < count; out->count++) {
        tessera_driver_entry *const entry = &out->entries[out->count];
        *entry = (tessera_driver_entry){strdup(entries[out->count].name), entries[out->count].function};
        if (!entry->name) {
            free_table(out);
            return tessera_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for %zu entries", count);
        }
    }
    return TESSERA_SUCCESS;
}

tessera_status tessera_set_driver(const char *kind, const tessera_driver_entry *entries, size_t count) {
    GUARD(kind, "kind is NULL: \"hip\"");
    GUARD(strcmp(kind, "hip") == 0, "kind is \"%s\": \"hip\"", kind);
    GUARD(entries || !count, "entries is NULL: %zu of them", count);
    for (size_t i = 0; i < count; i++) {
        GUARD(entries[i].name, "entries[%zu].name is NULL", i);
        GUARD(entries[i].function, "entries[%zu].function, which is %s, is NULL", i, entries[i].name);
    }
    struct table table;
    TRY(copy_table(entries, count, &table));
    pthread_mutex_lock(&mutex);
    free_table(&host_table);
    host_table = table;
    tessera_driver_close(opened[TESSERA_DRIVER_HIP]);
    opened[TESSERA_DRIVER_HIP] = NULL;
    pthread_mutex_unlock(&mutex);
    return TESSERA_SUCCESS;
}

// ---- what drivers say

tessera_status tessera_driver_fail(const struct tessera_driver *d, const char *name, const char *call, int error) {
    const char *const word = d->hipGetErrorName(error), *const text = d->hipGetErrorString(error);
    char more[sizeof heard.line] = "";
    d->hipGetLastError();
    if (d->tessera_hip_listen) {
        pthread_mutex_lock(&heard.mutex);
        memcpy(more, heard.line, sizeof more);
        heard.line[0] = '\0';
        pthread_mutex_unlock(&heard.mutex);
    }
    return tessera_fail(TESSERA_ERROR_DEVICE, "%s: %s failed with %s (%d): %s%s%s", name, call, word ? word : "no name",
                        error, text ? text : "no text", *more ? "; " : "", more);
}

// hipDeviceProp_t has one size and layout up to ROCm 5, another since, which is hipDeviceProp_tR0600 (the offsets are
// those of hip_runtime_api.h 5.2 and 6.0). Room is for more than either has.
enum { ARCH_OFFSET_R0000 = 396, ARCH_OFFSET_R0600 = 1160, PROPERTIES_BYTES = 4096 };

tessera_status tessera_driver_arch(const struct tessera_driver *d, const char *name, int ordinal,
                                   char arch[TESSERA_ARCH_BYTES]) {
    _Alignas(16) char properties[PROPERTIES_BYTES] = {0};
    const bool is_new = d->hipGetDevicePropertiesR0600;
    const int error =
        is_new ? d->hipGetDevicePropertiesR0600(properties, ordinal) : d->hipGetDeviceProperties(properties, ordinal);
    if (error)
        return tessera_driver_fail(d, name, is_new ? "hipGetDevicePropertiesR0600" : "hipGetDeviceProperties", error);
    memcpy(arch, properties + (is_new ? ARCH_OFFSET_R0600 : ARCH_OFFSET_R0000), TESSERA_ARCH_BYTES);
    arch[TESSERA_ARCH_BYTES - 1] = '\0';
    if (strncmp(arch, "gfx", 3) != 0)
        return tessera_fail(TESSERA_ERROR_DEVICE,
                            "%s: %s says that its architecture is \"%s\": a version of the HIP runtime that this "
                            "library does not know?",
                            name, d->origin, arch);
    return TESSERA_SUCCESS;
}
