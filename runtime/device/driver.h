// SPDX-License-Identifier: MIT
// Drivers of GPUs: the functions that this library needs of a vendor's runtime, whichever that is.
#ifndef TESSERA_RUNTIME_DRIVER_H
#define TESSERA_RUNTIME_DRIVER_H

#include <stdatomic.h>
#include <stddef.h>

#include "internal.h"

struct tessera_launch;
struct tessera_tensor_map;
struct tessera_tensor_map_shape;

// A device of a driver.
struct tessera_chip {
    struct tessera_driver *driver;
    int ordinal;   // the driver's number of it
    char name[32]; // for messages
    // Where a device can have several address spaces, the one that attach() chose, and whether detach() gives it back.
    void *context;
    bool retained;
};

// A loaded image and its kernel.
struct tessera_module {
    void *module, *function;
};

enum { TESSERA_ARCH_BYTES = 256 };

// The functions of a driver. One that fails has called tessera_fail() with a line that names the device.
struct tessera_driver_calls {
    tessera_status (*count)(const struct tessera_chip *chip, int *out); // devices of the driver
    // The word of the chip's target, with the features that the driver adds behind colons: "gfx942:sramecc+:xnack-".
    tessera_status (*arch)(const struct tessera_chip *chip, char arch[TESSERA_ARCH_BYTES]);
    tessera_status (*facts)(const struct tessera_chip *chip, tessera_device_facts *out); // compute units, L2, LDS

    // Called when a device is opened and closed; NULL where there is nothing to do.
    tessera_status (*attach)(struct tessera_chip *chip);
    void (*detach)(const struct tessera_chip *chip);

    // Between these two the chip is the thread's current one, which all functions below require.
    tessera_status (*enter)(const struct tessera_chip *chip, intptr_t *previous);
    tessera_status (*leave)(const struct tessera_chip *chip, intptr_t previous);

    tessera_status (*malloc)(const struct tessera_chip *chip, size_t bytes, void **out);
    tessera_status (*free)(const struct tessera_chip *chip, void *memory);
    tessera_status (*copy_to)(const struct tessera_chip *chip, void *to, const void *host_from, size_t bytes);
    tessera_status (*copy_from)(const struct tessera_chip *chip, void *host_to, const void *from, size_t bytes);
    tessera_status (*set)(const struct tessera_chip *chip, void *to, int byte, size_t bytes); // done when it returns
    tessera_status (*synchronize)(const struct tessera_chip *chip);
    // Of simulated devices: see tessera/device.h. NULL where a kind has none; where one device of a kind has and
    // another has not, they fail by tessera_driver_no_clock().
    tessera_status (*set_clock)(const struct tessera_chip *chip, tessera_sim_clock clock);
    tessera_status (*set_output)(const struct tessera_chip *chip, tessera_sim_output output, const char *path);
    tessera_status (*take_timing)(const struct tessera_chip *chip, tessera_sim_timing *out);

    tessera_status (*load)(const struct tessera_chip *chip, const void *image, size_t bytes, const char *symbol,
                           struct tessera_module *out);
    void (*unload)(const struct tessera_chip *chip, const struct tessera_module *module);

    // NULL where the kind's kernels take none.
    tessera_status (*make_tensor_map)(const struct tessera_chip *chip, const struct tessera_tensor_map_shape *shape,
                                      struct tessera_tensor_map *out);

    // Whether launches may be of clusters; NULL where they never are.
    bool (*has_clusters)(const struct tessera_chip *chip);

    // Functions that put work into a stream. device.h describes them under the same names.
    tessera_status (*launch)(const struct tessera_chip *chip, const struct tessera_module *module,
                             const struct tessera_launch *launch, const void *argument, size_t bytes, void *stream);
    tessera_status (*is_capturing)(const struct tessera_chip *chip, void *stream, bool *out);
    tessera_status (*zero)(const struct tessera_chip *chip, void *to, size_t bytes, void *stream);
    tessera_status (*copy_small)(const struct tessera_chip *chip, void *to, const void *from, size_t bytes,
                                 void *stream); // for a stream that does not capture
    tessera_status (*set_words)(const struct tessera_chip *chip, uint32_t *to, const uint32_t *words, size_t count,
                                void *stream); // for one that captures: each word becomes a node
    tessera_status (*wait)(const struct tessera_chip *chip, void *stream, bool *waited);
};

// The first member of each driver kind's own struct.
struct tessera_driver {
    const struct tessera_driver_calls *calls;
    char origin[256]; // for messages: the library's file
    atomic_int users;
};

static inline tessera_status tessera_driver_no_clock(const struct tessera_chip *chip) {
    return tessera_fail(TESSERA_ERROR_DEVICE, "%s: only simulated devices have a clock", chip->name);
}

// ---- kinds of drivers

// Where a driver's functions come from: a library, or a host's table where `library` is NULL.
struct tessera_driver_source {
    void *library;
    const tessera_driver_entry *entries;
    size_t count;
    char origin[256];
};

struct tessera_driver_kind {
    const char *word;    // begins its devices' names: "hip"
    const char *targets; // the kind of its devices' targets
    bool is_simulated;   // devices are named by architecture instead of number, and "auto" skips them
    const char *form;    // of devices' names: "hip:N"
    // Refuses a malformed rest of a device's name, which follows the colon. NULL: it is a number.
    tessera_status (*check)(const char *rest);
    // Finds the driver's library, and fails where there is none. Error lines name `device`.
    tessera_status (*find)(const char *device, struct tessera_driver_source *out);
    // The kind's own struct and its functions.
    size_t bytes;
    const struct tessera_driver_calls *calls;
    // Finds the driver's functions and initializes it; NULL where there is nothing to do. Error lines name `device`.
    tessera_status (*start)(const char *device, const struct tessera_driver_source *source,
                            struct tessera_driver *driver);
};

// All kinds, in the order in which "auto" tries them, ended by NULL.
extern const struct tessera_driver_kind *const tessera_driver_kinds[];

// Opens the driver of a kind, which the caller closes. Error lines name device `name`.
tessera_status tessera_driver_open(const struct tessera_driver_kind *kind, const char *name,
                                   struct tessera_driver **out);
void tessera_driver_close(struct tessera_driver *driver);

// ---- finding functions (driver_library.c)

// A function, and where a kind's own struct keeps it.
struct tessera_driver_member {
    const char *name;
    size_t offset;
    bool needed; // else it is NULL where the source lacks it
};
#define TESSERA_DRIVER_MEMBER(type, name, needed)                                                                      \
    { #name, offsetof(type, name), needed }

// Finds all functions of a driver. Error lines name `device`.
tessera_status tessera_driver_fill(const struct tessera_driver_source *source, const char *device,
                                   const struct tessera_driver_member *members, size_t count,
                                   struct tessera_driver *driver);

// Opens a library with additional dlopen() flags. Libraries are never closed: they have threads of their own.
bool tessera_driver_try(struct tessera_driver_source *source, const char *file, int flags);
// Opens the file that an environment variable names; sets *named to false where the variable is not set or empty.
tessera_status tessera_driver_try_variable(struct tessera_driver_source *source, const char *device,
                                           const char *variable, bool *named);
// Opens a library that the process has loaded under another name, as wheels name them: STEM-<hash>.so.
bool tessera_driver_try_loaded(struct tessera_driver_source *source, const char *stem);
// Opens a file in the folder of this library, or of the program that this library is linked into statically.
bool tessera_driver_try_beside(struct tessera_driver_source *source, const char *file);

#endif
