// SPDX-License-Identifier: MIT
// Devices, the facts that selection reads, and the CPU's threads.
#ifndef TESSERA_DEVICE_H
#define TESSERA_DEVICE_H

#include "tessera/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// What code is made for. Values are part of the ABI; codegen/targets.py holds the page of facts of each.
typedef enum tessera_target {
    TESSERA_TARGET_PORTABLE = 0, // plain C, the compiler's baseline: any machine
    TESSERA_TARGET_X86_64_V2 = 1,
    TESSERA_TARGET_X86_64_V3 = 2,
    TESSERA_TARGET_X86_64_V4 = 3,
    TESSERA_TARGET_X86_64_V4_BF16 = 4,
    TESSERA_TARGET_ARMV8_A = 5,
    TESSERA_TARGET_GFX90A = 6,
    TESSERA_TARGET_GFX942 = 7,
    TESSERA_TARGET_GFX950 = 8,
    TESSERA_TARGET_SM_90A = 9,
    TESSERA_TARGET_COUNT
} tessera_target;

TESSERA_API tessera_status tessera_target_from_string(const char *text, tessera_target *out);
TESSERA_API const char *tessera_target_string(tessera_target value);

// All that selection knows of a device; fill it in by hand to ask what another machine would choose.
typedef struct tessera_device_facts {
    size_t struct_size;         // sizeof(tessera_device_facts)
    uint32_t targets;           // bit t set: runs code for tessera_target t
    int32_t compute_units;      // CPU: processors that this process may use, however many threads are asked for
    int64_t l1_bytes, l2_bytes; // per compute unit
    int64_t l3_bytes;           // shared; 0 where there is none
} tessera_device_facts;

typedef struct tessera_device tessera_device;

// Opens "cpu" or "auto" ("hip:N", "sim:ARCH", "cuda:N" return TESSERA_ERROR_DEVICE in builds without such instances).
// "cpu:TARGET", such as "cpu:x86-64-v3", offers only that target's instances and fails where this machine cannot run
// them. The handle is immutable and may be used by any number of threads at once.
TESSERA_API tessera_status tessera_device_open(const char *name, tessera_device **out);
TESSERA_API void tessera_device_close(tessera_device *device); // NULL is allowed
TESSERA_API const char *tessera_device_name(const tessera_device *device);
TESSERA_API const tessera_device_facts *tessera_device_get_facts(const tessera_device *device);

// CPU threads. The default is the least of the affinity mask, the cgroup quota and TESSERA_NUM_THREADS; none is started
// before the first call that needs one. tessera_set_num_threads(0) returns to the default. Results never depend on the
// number.
TESSERA_API int tessera_num_threads(void);
TESSERA_API tessera_status tessera_set_num_threads(int count);

// Lends a host's pool: `loop` must call body(context, i) once for every i in [0, count), in any order and on any
// thread, and return when all have returned. NULL returns to the library's own threads.
typedef void (*tessera_parallel_body)(void *context, int64_t index);
typedef void (*tessera_parallel_for)(void *user, int64_t count, tessera_parallel_body body, void *context);
TESSERA_API void tessera_set_parallel_for(tessera_parallel_for loop, void *user);

#ifdef __cplusplus
}
#endif
#endif
