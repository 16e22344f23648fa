// SPDX-License-Identifier: MIT
// Where the functions of drivers come from: libraries in several places, or a host's table.
#define _GNU_SOURCE // dl_iterate_phdr, dladdr
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/driver.h"

static tessera_driver_function find(const struct tessera_driver_source *source, const char *name) {
    tessera_driver_function function = NULL;
    if (source->library) {
        void *const address = dlsym(source->library, name);
        memcpy(&function, &address, sizeof function); // ISO C has no cast from object to function
        return function;
    }
    for (size_t i = 0; i < source->count; i++)
        if (strcmp(source->entries[i].name, name) == 0) return source->entries[i].function;
    return NULL;
}

tessera_status tessera_driver_fill(const struct tessera_driver_source *source, const char *device,
                                   const struct tessera_driver_member *members, size_t count,
                                   struct tessera_driver *driver) {
    for (size_t i = 0; i < count; i++) {
        const tessera_driver_function function = find(source, members[i].name);
        if (!function && members[i].needed)
            return tessera_fail(TESSERA_ERROR_DEVICE, "%s: %s lacks the function %s", device, source->origin,
                                members[i].name);
        memcpy((char *)driver + members[i].offset, &function, sizeof function);
    }
    return TESSERA_SUCCESS;
}

bool tessera_driver_try(struct tessera_driver_source *source, const char *file, int flags) {
    source->library = dlopen(file, RTLD_NOW | RTLD_LOCAL | flags);
    if (source->library) snprintf(source->origin, sizeof source->origin, "%.*s", (int)sizeof source->origin - 1, file);
    return source->library;
}

tessera_status tessera_driver_try_variable(struct tessera_driver_source *source, const char *device,
                                           const char *variable, bool *named) {
    const char *const file = getenv(variable);
    *named = file && *file;
    if (!*named || tessera_driver_try(source, file, 0)) return TESSERA_SUCCESS;
    const char *const why = dlerror();
    return tessera_fail(TESSERA_ERROR_DEVICE, "%s: %s=%s cannot be opened: %s", device, variable, file,
                        why ? why : "no reason given");
}

struct loaded {
    struct tessera_driver_source *source;
    const char *stem;
};

static int try_if_of_stem(struct dl_phdr_info *info, size_t size, void *user) {
    (void)size;
    const struct loaded *const wanted = user;
    const size_t length = strlen(wanted->stem);
    const char *const slash = strrchr(info->dlpi_name, '/');
    const char *const base = slash ? slash + 1 : info->dlpi_name;
    if (strncmp(base, wanted->stem, length) != 0 || !strchr(".-", base[length])) return 0;
    return tessera_driver_try(wanted->source, info->dlpi_name, RTLD_NOLOAD);
}

bool tessera_driver_try_loaded(struct tessera_driver_source *source, const char *stem) {
    return dl_iterate_phdr(try_if_of_stem, &(struct loaded){source, stem});
}

bool tessera_driver_try_beside(struct tessera_driver_source *source, const char *name) {
    static const char here;
    char file[4096];
    Dl_info self;
    if (!dladdr(&here, &self) || !self.dli_fname) return false;
    const char *const slash = strrchr(self.dli_fname, '/');
    const int length = slash ? (int)(slash + 1 - self.dli_fname) : 0;
    const int needed = snprintf(file, sizeof file, "%.*s%s", length, self.dli_fname, name);
    return length && needed < (int)sizeof file && tessera_driver_try(source, file, 0);
}
