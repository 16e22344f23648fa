// SPDX-License-Identifier: MIT
// Drivers of GPUs: what this library asks of a vendor's runtime, whichever that is.
#ifndef TESSERA_RUNTIME_DRIVER_H
#define TESSERA_RUNTIME_DRIVER_H

#include <stdatomic.h>

#include "internal.h"

struct tessera_launch;

// A device of a driver.
struct tessera_chip {
    struct tessera_driver *driver;
    int ordinal;   // as the driver counts
    char name[32]; // for messages
};

// A loaded code object and its kernel.
struct tessera_module {
    void *module, *function;
};

enum { TESSERA_ARCH_BYTES = 256 };

// What a driver does. A function that fails has told what failed, and of which device.
struct tessera_driver_calls {
    tessera_status (*count)(const struct tessera_chip *chip, int *out); // devices of the driver
    // The word of the chip's target, and behind a colon what else the driver says: "gfx942:sramecc+:xnack-".
    tessera_status (*arch)(const struct tessera_chip *chip, char arch[TESSERA_ARCH_BYTES]);
    tessera_status (*facts)(const struct tessera_chip *chip, tessera_device_facts *out); // compute units, L2, LDS

    // Between these two the chip is the thread's current one, as all that follow need it.
    tessera_status (*enter)(const struct tessera_chip *chip, intptr_t *previous);
    tessera_status (*leave)(const struct tessera_chip *chip, intptr_t previous);

    tessera_status (*malloc)(const struct tessera_chip *chip, size_t bytes, void **out);
    tessera_status (*free)(const struct tessera_chip *chip, void *memory);
    tessera_status (*copy_to)(const struct tessera_chip *chip, void *to, const void *host_from, size_t bytes);
    tessera_status (*copy_from)(const struct tessera_chip *chip, void *host_to, const void *from, size_t bytes);
    tessera_status (*set)(const struct tessera_chip *chip, void *to, int byte, size_t bytes); // done when it returns
    tessera_status (*synchronize)(const struct tessera_chip *chip);

    tessera_status (*load)(const struct tessera_chip *chip, const void *image, const char *symbol,
                           struct tessera_module *out);
    void (*unload)(const struct tessera_chip *chip, const struct tessera_module *module);

    // In a stream. What device.h says of functions of these names holds.
    tessera_status (*launch)(const struct tessera_chip *chip, const struct tessera_module *module,
                             const struct tessera_launch *launch, const void *argument, size_t bytes, void *stream);
    tessera_status (*is_capturing)(const struct tessera_chip *chip, void *stream, bool *out);
    tessera_status (*zero)(const struct tessera_chip *chip, void *to, size_t bytes, void *stream);
    tessera_status (*copy_small)(const struct tessera_chip *chip, void *to, const void *from, size_t bytes,
                                 void *stream); // that does not capture
    tessera_status (*set_words)(const struct tessera_chip *chip, uint32_t *to, const uint32_t *words, size_t count,
                                void *stream); // that captures: each becomes a node
    tessera_status (*wait)(const struct tessera_chip *chip, void *stream, bool *waited);
};

// What a kind of driver begins its own struct with.
struct tessera_driver {
    const struct tessera_driver_calls *calls;
    char origin[256]; // for messages: the library's file
    atomic_int users;
};

// ---- kinds of drivers

// Where a driver's functions come from: a library, or without one a host's table.
struct tessera_driver_source {
    void *library;
    const tessera_driver_entry *entries;
    size_t count;
    char origin[256];
};

struct tessera_driver_kind {
    const char *word;    // of its devices' names: "hip"
    const char *targets; // the kind of targets that its devices are of
    bool is_simulated;   // devices are named by their architecture, and "auto" asks none; else by their number
    const char *form;    // of names: "hip:N"
    // Refuses what stands behind the colon of a name where it is none.
    tessera_status (*check)(const char *rest);
    // Finds the library of a driver, and fails where there is none, for device `device` of error lines.
    tessera_status (*find)(const char *device, struct tessera_driver_source *out);
    // An initialized driver, for the same.
    tessera_status (*make)(const char *device, const struct tessera_driver_source *source, struct tessera_driver **out);
};

// All that there are, in the order in which "auto" asks them. NULL ends them.
extern const struct tessera_driver_kind *const tessera_driver_kinds[];

// The driver of a kind, for device `name` of error lines. Each one that is opened is to be closed.
tessera_status tessera_driver_open(const struct tessera_driver_kind *kind, const char *name,
                                   struct tessera_driver **out);
void tessera_driver_close(struct tessera_driver *driver);

// ---- finding functions (driver_library.c)

// NULL where the source lacks it.
tessera_driver_function tessera_driver_find(const struct tessera_driver_source *source, const char *name);

// Opens a library, with further flags of dlopen(). Libraries stay open: they have threads of their own.
bool tessera_driver_try(struct tessera_driver_source *source, const char *file, int flags);
// Opens the file that an environment variable names; *named is false where it names none.
tessera_status tessera_driver_try_variable(struct tessera_driver_source *source, const char *device,
                                           const char *variable, bool *named);
// Opens a library that was loaded by path under another name, as wheels have them: STEM-<hash>.so.
bool tessera_driver_try_loaded(struct tessera_driver_source *source, const char *stem);
// Opens a file in the folder of this library; of a program that has it inside, in the program's.
bool tessera_driver_try_beside(struct tessera_driver_source *source, const char *file);

#endif
