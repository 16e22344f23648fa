// SPDX-License-Identifier: MIT
// Devices, the facts that selection reads, device memory, code objects, drivers, and the CPU's threads.
#ifndef TESSERA_DEVICE_H
#define TESSERA_DEVICE_H

#include "tessera/clock.h"
#include "tessera/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Instruction sets that code is compiled for. Values are part of the ABI; codegen/targets.py has a page of facts of
// each.
typedef enum tessera_target {
    TESSERA_TARGET_PORTABLE = 0, // plain C for the compiler's baseline: any machine
    TESSERA_TARGET_X86_64_V2 = 1,
    TESSERA_TARGET_X86_64_V3 = 2,
    TESSERA_TARGET_X86_64_V4 = 3,
    TESSERA_TARGET_X86_64_V4_BF16 = 4,
    TESSERA_TARGET_ARMV8_A = 5,
    TESSERA_TARGET_GFX90A = 6,
    TESSERA_TARGET_GFX942 = 7,
    TESSERA_TARGET_GFX950 = 8,
    TESSERA_TARGET_SM_90A = 9,
    TESSERA_TARGET_X86_64_V4_AMX = 10,
    TESSERA_TARGET_X86_64_V4_FP16 = 11,
    TESSERA_TARGET_X86_64_V4_VP2INTERSECT = 12,
    TESSERA_TARGET_COUNT
} tessera_target;

TESSERA_API tessera_status tessera_target_from_string(const char *text, tessera_target *out);
TESSERA_API const char *tessera_target_string(tessera_target value);

// All that selection knows about a device; fill it in by hand to ask what another machine would choose.
typedef struct tessera_device_facts {
    size_t struct_size;         // sizeof(tessera_device_facts)
    uint32_t targets;           // bit t is set if the device runs code for tessera_target t
    int32_t compute_units;      // CPU: processors that this process may use, however many threads are asked for
    int64_t l1_bytes, l2_bytes; // CPU: per compute unit; GPU: 0 (drivers do not tell), and the L2 of one die
    int64_t l3_bytes;           // shared by all; 0 where there is none or a driver does not tell
    int64_t lds_bytes;          // GPU: the most that one workgroup can have; CPU: 0
} tessera_device_facts;

typedef struct tessera_device tessera_device;

// Opens a device by its name:
//   cpu          this machine; where it has AMX, asks Linux to let the whole process use its tile registers
//   cpu:TARGET   this machine with only that target's instances, such as "cpu:x86-64-v3"
//   hip:N        AMD GPU number N, as the HIP runtime counts them
//   cuda:N       NVIDIA GPU number N, as NVIDIA's driver counts them, in the context that is current if that is one of
//                the GPU, else in its primary context, which NVIDIA's runtime uses
//   sim:ARCH     a simulated AMD GPU, such as "sim:gfx942"; features as in "sim:gfx942:sramecc+:xnack-" are ignored
//   auto         the first GPU that has instances in this library, else the CPU
// The handle may be used by any number of threads at once. A GPU's code is loaded into it when first used, and no call
// may be running when it is closed.
TESSERA_API tessera_status tessera_device_open(const char *name, tessera_device **out);
TESSERA_API void tessera_device_close(tessera_device *device); // NULL is allowed
TESSERA_API const char *tessera_device_name(const tessera_device *device);
TESSERA_API const tessera_device_facts *tessera_device_get_facts(const tessera_device *device);
TESSERA_API tessera_fp8_format tessera_device_fp8_format(const tessera_device *device); // NULL: TESSERA_FP8_NONE

// Loads every instance of this library for the device, so that no call on it ever loads code (on the CPU it starts the
// threads). A call that would have to load code while its stream captures a graph returns TESSERA_ERROR_NOT_PREPARED.
TESSERA_API tessera_status tessera_preload(const tessera_device *device);

// ---- Memory of a device, for callers without its SDK. Calls accept any other memory that the device can reach, too.
//
// Copies and fills are complete when the function returns. They wait for the device's default stream;
// tessera_device_synchronize() waits for every stream. No function of this library changes the calling thread's current
// device, except while it runs.

TESSERA_API tessera_status tessera_device_malloc(const tessera_device *device, size_t bytes, void **out);
TESSERA_API tessera_status tessera_device_free(const tessera_device *device, void *memory); // NULL is allowed
TESSERA_API tessera_status tessera_device_copy_to(const tessera_device *device, void *to, const void *host_from,
                                                  size_t bytes);
TESSERA_API tessera_status tessera_device_copy_from(const tessera_device *device, void *host_to, const void *from,
                                                    size_t bytes);
TESSERA_API tessera_status tessera_device_set(const tessera_device *device, void *to, int byte, size_t bytes);
TESSERA_API tessera_status tessera_device_synchronize(const tessera_device *device);

// ---- The clock of simulated devices, which models what a GPU would take. Other devices refuse these calls.

// Launches from now on are modelled as `clock` says.
TESSERA_API tessera_status tessera_device_set_clock(const tessera_device *device, tessera_sim_clock clock);
// Launches that are modelled from now on add `output` to a file; NULL: to none. simulator.h describes the outputs.
TESSERA_API tessera_status tessera_device_set_output(const tessera_device *device, tessera_sim_output output,
                                                     const char *path);
// Waits for the device, and gets the sum over the launches that were modelled since the last call.
TESSERA_API tessera_status tessera_device_take_timing(const tessera_device *device, tessera_sim_timing *out);

// ---- Code objects that are not part of the library: packs, one file for each operation and target

// Adds a pack, which is read or copied whole and checked. Its code objects take precedence over those of packs added
// before it and over the library's own; code that a device has loaded already stays.
TESSERA_API tessera_status tessera_load_pack(const char *path);
TESSERA_API tessera_status tessera_load_pack_memory(const void *pack, size_t bytes);

// ---- Drivers. AMD's GPUs are reached through the HIP runtime (libamdhip64, of ROCm 5 to 7), which is opened with the
// first "hip:N": the functions given by tessera_set_driver(); else the file that TESSERA_HIP_LIBRARY names; else a copy
// that the process has loaded, such as PyTorch's; else the newest that the loader finds. NVIDIA's are reached in the
// same way through the driver's libcuda.so.1 (of CUDA 12 or newer) or the file that TESSERA_CUDA_LIBRARY names.
// "sim:ARCH" opens libtessera_sim: the file that TESSERA_SIM_LIBRARY names, else the one beside this library, else the
// one that the loader finds.

typedef void (*tessera_driver_function)(void);
typedef struct tessera_driver_entry {
    const char *name; // "hipMalloc"; of NVIDIA's driver as libcuda exports it: "cuMemAlloc_v2"
    tessera_driver_function function;
} tessera_driver_entry;

// Devices of `kind` ("hip", "cuda") that are opened from now on use these functions. Without entries (NULL, 0) they use
// those of a library again, which is searched for anew.
TESSERA_API tessera_status tessera_set_driver(const char *kind, const tessera_driver_entry *entries, size_t count);

// ---- CPU threads. Their default number is the least of the affinity mask, the cgroup quota and TESSERA_NUM_THREADS;
// none is started before the first call that needs one. tessera_set_num_threads(0) returns to the default. Results
// never depend on the number.
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
