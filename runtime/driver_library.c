// SPDX-License-Identifier: MIT
// Where the libraries of drivers are: see the drivers' order in tessera/device.h.
#define _GNU_SOURCE // dl_iterate_phdr, dladdr
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

struct found {
    const char *device;
    void *library;
    char *origin;
    size_t origin_size;
};

static bool try_open(struct found *found, const char *file, int flags) {
    found->library = dlopen(file, RTLD_NOW | RTLD_LOCAL | flags);
    if (found->library) snprintf(found->origin, found->origin_size, "%s", file);
    return found->library;
}

static const char *variable(const char *name) {
    const char *const value = getenv(name);
    return value && *value ? value : NULL;
}

static tessera_status open_named(struct found *found, const char *name, const char *file) {
    if (try_open(found, file, 0)) return TESSERA_SUCCESS;
    const char *const why = dlerror();
    return tessera_fail(TESSERA_ERROR_DEVICE, "%s: %s=%s cannot be opened: %s", found->device, name, file,
                        why ? why : "no reason given");
}

// ---- libamdhip64

static const char *const hip_names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"};
enum { HIP_NAMES = sizeof hip_names / sizeof *hip_names };

// A copy that was loaded by path under another name, as wheels have them: libamdhip64-<hash>.so.
static int open_if_hip(struct dl_phdr_info *info, size_t size, void *user) {
    (void)size;
    static const char stem[] = "libamdhip64";
    const char *const slash = strrchr(info->dlpi_name, '/');
    const char *const base = slash ? slash + 1 : info->dlpi_name;
    if (strncmp(base, stem, sizeof stem - 1) != 0 || !strchr(".-", base[sizeof stem - 1])) return 0;
    return try_open(user, info->dlpi_name, RTLD_NOLOAD);
}

static tessera_status open_hip(struct found *found) {
    const char *const named = variable("TESSERA_HIP_LIBRARY");
    if (named) return open_named(found, "TESSERA_HIP_LIBRARY", named);
    for (int i = 0; i < HIP_NAMES; i++)
        if (try_open(found, hip_names[i], RTLD_NOLOAD)) return TESSERA_SUCCESS;
    if (dl_iterate_phdr(open_if_hip, found)) return TESSERA_SUCCESS;
    for (int i = 0; i < HIP_NAMES; i++)
        if (try_open(found, hip_names[i], 0)) return TESSERA_SUCCESS;
    return tessera_fail(
        TESSERA_ERROR_DEVICE,
        "%s: the HIP runtime is not there: neither %s, %s nor %s can be opened, and TESSERA_HIP_LIBRARY "
        "names no file",
        found->device, hip_names[0], hip_names[1], hip_names[2]);
}

// ---- libtessera_sim

static tessera_status open_sim(struct found *found) {
    const char *const named = variable("TESSERA_SIM_LIBRARY");
    if (named) return open_named(found, "TESSERA_SIM_LIBRARY", named);
    char name[64], file[4096];
    Dl_info self;
    snprintf(name, sizeof name, "libtessera_sim.so.%d", atoi(tessera_version()));
    if (dladdr(hip_names, &self) && self.dli_fname) { // a static copy of this library: the program's own directory
        const char *const slash = strrchr(self.dli_fname, '/');
        const int length = slash ? (int)(slash + 1 - self.dli_fname) : 0;
        const int needed = snprintf(file, sizeof file, "%.*s%s", length, self.dli_fname, name);
        if (length && needed < (int)sizeof file && try_open(found, file, 0)) return TESSERA_SUCCESS;
    }
    if (try_open(found, name, 0)) return TESSERA_SUCCESS;
    return tessera_fail(
        TESSERA_ERROR_DEVICE,
        "%s: the simulator is not there: %s can be opened neither beside this library nor by the loader, "
        "and TESSERA_SIM_LIBRARY names no file",
        found->device, name);
}

tessera_status tessera_driver_library(enum tessera_driver_kind kind, const char *name, void **out, char *origin,
                                      size_t origin_size) {
    struct found found = {name, NULL, origin, origin_size};
    const tessera_status status = kind == TESSERA_DRIVER_SIM ? open_sim(&found) : open_hip(&found);
    *out = found.library;
    return status;
}
