// SPDX-License-Identifier: MIT
// libtessera_sim runs the machine code of AMD GPUs (CDNA2, 3 and 4) on the CPU: it loads code objects and launches
// their kernels on the host's memory.
#ifndef TESSERA_SIMULATOR_H
#define TESSERA_SIMULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tessera/clock.h"
#include "tessera/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tessera_sim tessera_sim;               // a simulated GPU: an architecture and its memory
typedef struct tessera_sim_module tessera_sim_module; // a loaded code object
typedef struct tessera_sim_kernel tessera_sim_kernel; // a kernel of a module

// Functions that return a status leave their outputs alone when they fail. This is the error line of the thread's last
// call that failed. It is "" before any failure, and valid until the thread's next call.
TESSERA_API const char *tessera_sim_last_error(void);

// Opens a GPU of architecture "gfx90a", "gfx942" or "gfx950"; features as in "gfx942:sramecc+:xnack-" are ignored.
// Closing it frees its modules and memory; no launch may be running. NULL is allowed.
//
// The environment is read here. It sets defaults that later calls and launches may change: TESSERA_SIM_SANITIZE (0 or
// 1), TESSERA_SIM_ORDER (forward, backward, alternate, random or random:SEED), TESSERA_SIM_LANDING (late, at-once,
// random), TESSERA_SIM_THREADS (a number) and TESSERA_SIM_TRACE (a path). TESSERA_SIM_STATS names a file to which each
// launch adds a line of JSON with its stats; TESSERA_SIM_CLOCK, TESSERA_SIM_TIMING, TESSERA_SIM_ANNOTATE,
// TESSERA_SIM_TIMELINE and TESSERA_SIM_PARAMETERS are those of the clock, at the end of this file.
TESSERA_API tessera_status tessera_sim_open(const char *arch, tessera_sim **out);
TESSERA_API void tessera_sim_close(tessera_sim *sim);
TESSERA_API const char *tessera_sim_arch(const tessera_sim *sim);

// An instruction of an architecture.
typedef struct tessera_sim_instruction {
    const char *mnemonic; // as LLVM spells it, without an encoding's suffix
    const char *encoding; // the shortest one: "VOP2", "DS", ...
    bool implemented;     // if not, a kernel that reaches it faults
    bool ran;             // has run in this process, on this architecture
} tessera_sim_instruction;

// Gets the instructions of the GPU's architecture one by one; returns false after the last one.
TESSERA_API bool tessera_sim_instruction_at(const tessera_sim *sim, size_t index, tessera_sim_instruction *out);

// Sets the number of host threads that a launch may use; 0 (the default) means one for each processor that this process
// may run on. Results do not depend on it: workgroups of a kernel with global atomics run in order, on one thread.
TESSERA_API tessera_status tessera_sim_set_threads(tessera_sim *sim, int count);

// Sets whether launches from now on are checked for faults that a GPU lets pass: see TESSERA_SIM_FAULT_*. The checks
// are off by default and slow launches down several times.
TESSERA_API void tessera_sim_set_sanitize(tessera_sim *sim, bool on);

// Traces the waves of launches from now on to a file for chrome://tracing and Perfetto, until the GPU is closed or
// another path is set; NULL: no trace. The first 64 workgroups of a launch are traced. The axis is not time: it counts
// the instructions of a wave, as one microsecond each.
TESSERA_API tessera_status tessera_sim_set_trace(tessera_sim *sim, const char *path);

// ---- What went wrong in a kernel

typedef enum tessera_sim_fault {
    TESSERA_SIM_FAULT_NONE = 0,
    TESSERA_SIM_FAULT_UNKNOWN_INSTRUCTION = 1, // bytes that are no instruction of the architecture
    TESSERA_SIM_FAULT_UNIMPLEMENTED = 2,       // an instruction, or a mode of one, that the simulator lacks
    TESSERA_SIM_FAULT_OUT_OF_BOUNDS = 3,       // memory outside every allocation, a segment or the registers
    TESSERA_SIM_FAULT_MISALIGNED = 4,          // an address that the instruction does not take
    TESSERA_SIM_FAULT_READ_ONLY = 5,           // a store to code or constants
    TESSERA_SIM_FAULT_TRAP = 6,                // s_trap, as of abort()
    TESSERA_SIM_FAULT_RUNAWAY = 7,             // more instructions than tessera_sim_launch_args.max_instructions
    // Only sanitized launches find these.
    TESSERA_SIM_FAULT_EARLY_USE = 8,         // a result in flight read or overwritten before an s_waitcnt covered it
    TESSERA_SIM_FAULT_WAIT_STATES = 9,       // too few instructions between two, where hardware does not wait by itself
    TESSERA_SIM_FAULT_UNDEFINED = 10,        // a value that nothing has set decides an address, a branch or lanes
    TESSERA_SIM_FAULT_LDS_RACE = 11,         // two waves access the same LDS without a barrier between them
    TESSERA_SIM_FAULT_BARRIER_MISMATCH = 12, // waves of a workgroup wait at different barriers, or some have ended
    TESSERA_SIM_FAULT_DEADLOCK = 13,         // no wave can go on
    // All launches find this one.
    TESSERA_SIM_FAULT_USE_AFTER_FREE = 14, // memory that was passed to tessera_sim_free() not long ago
    TESSERA_SIM_FAULT_COUNT
} tessera_sim_fault;

// One fault and its place. Strings are valid during the callback.
typedef struct tessera_sim_report {
    tessera_sim_fault fault;
    const char *kernel;       // name
    uint32_t workgroup[3];    //
    uint32_t wave;            // in the workgroup
    int32_t lane;             // the first that caused it; -1: the wave as a whole
    uint64_t pc;              // byte offset from the kernel's first instruction (may lie in a function it called)
    const char *function;     // symbol that holds the instruction, "" if none
    uint64_t function_offset; // bytes from that symbol
    const char *instruction;  // text
    uint64_t address;         // of the access; 0 where there is none
    const char *text;         // the whole report as one line
} tessera_sim_report;

typedef void (*tessera_sim_report_fn)(void *user, const tessera_sim_report *report);

// Sets a function that is called for each fault, one call at a time, from any thread; the launch that faulted ends and
// returns TESSERA_ERROR_DEVICE. With NULL, the default, only tessera_sim_last_error() reports faults.
TESSERA_API void tessera_sim_set_report(tessera_sim *sim, tessera_sim_report_fn fn, void *user);

// For kernels that call the host (printf): sets their "hidden_hostcall_buffer", which must be registered memory, and a
// function that is called, one call at a time, when a wave sends an interrupt. The default is NULL for both.
typedef void (*tessera_sim_hostcall_fn)(void *user);
TESSERA_API void tessera_sim_set_hostcall(tessera_sim *sim, void *buffer, tessera_sim_hostcall_fn fn, void *user);

// The name of a fault, such as "out of bounds".
TESSERA_API const char *tessera_sim_fault_string(tessera_sim_fault fault);

// ---- Memory. Device addresses are host addresses; kernels may touch only what is registered here.

// Allocates memory, 256-byte aligned and filled with 0xcd, so that bytes that were never written do not look like
// zeros. 0 bytes give NULL. tessera_sim_free(NULL) is allowed.
TESSERA_API tessera_status tessera_sim_malloc(tessera_sim *sim, size_t bytes, void **out);
TESSERA_API tessera_status tessera_sim_free(tessera_sim *sim, void *address);

// While a GPU sanitizes, memory of tessera_sim_malloc() is undefined until a kernel stores to it or this function marks
// it: the host calls it after it has written there (hipMemcpy and hipMemset call it themselves). Registered memory
// is always defined.
TESSERA_API void tessera_sim_mark_defined(tessera_sim *sim, const void *address, size_t bytes);

// Lets kernels access the caller's memory until it is unregistered. It must not overlap other registered memory.
TESSERA_API tessera_status tessera_sim_register(tessera_sim *sim, void *address, size_t bytes);
TESSERA_API tessera_status tessera_sim_unregister(tessera_sim *sim, void *address);

// Returns whether `address` lies in an allocation, and its base and bytes.
TESSERA_API bool tessera_sim_find(tessera_sim *sim, const void *address, void **base, size_t *bytes);

// ---- Code

// Loads a code object: an ELF image of code object version 3 to 6, which is copied, relocated and checked against the
// architecture. No launch may be running when its module is unloaded; NULL is allowed.
TESSERA_API tessera_status tessera_sim_load(tessera_sim *sim, const void *image, size_t bytes,
                                            tessera_sim_module **out);
TESSERA_API void tessera_sim_unload(tessera_sim_module *module);

TESSERA_API size_t tessera_sim_kernel_count(const tessera_sim_module *module);
TESSERA_API const tessera_sim_kernel *tessera_sim_kernel_at(const tessera_sim_module *module, size_t index);
TESSERA_API const tessera_sim_kernel *tessera_sim_kernel_find(const tessera_sim_module *module, const char *name);

// Address and size of a global variable of the module.
TESSERA_API tessera_status tessera_sim_global(const tessera_sim_module *module, const char *name, void **address,
                                              size_t *bytes);

// An argument as the code object's metadata describes it. Strings are valid as long as the module.
typedef struct tessera_sim_argument {
    const char *name;       // "" where the compiler wrote none
    const char *value_kind; // "global_buffer", "by_value", "hidden_block_count_x", ...
    uint32_t offset, size;  // bytes in the kernarg segment
} tessera_sim_argument;

typedef struct tessera_sim_kernel_info {
    const char *name;
    uint32_t kernarg_bytes;          // with hidden arguments
    uint32_t explicit_kernarg_bytes; // without hidden ones: those that a caller passes
    uint32_t lds_bytes;              // static
    uint32_t private_bytes;          // a lane's scratch
    uint32_t vgprs, agprs, sgprs;
    uint32_t vgpr_spills, sgpr_spills;
    uint32_t max_workgroup_size;
    size_t argument_count;
    const tessera_sim_argument *arguments;
} tessera_sim_kernel_info;

TESSERA_API const tessera_sim_kernel_info *tessera_sim_kernel_get_info(const tessera_sim_kernel *kernel);

// ---- Running

// How the waves of a workgroup take turns between barriers. A program without races gives the same result in all
// orders.
typedef enum tessera_sim_order {
    TESSERA_SIM_ORDER_DEFAULT = 0,   // that of the environment, else forward
    TESSERA_SIM_ORDER_FORWARD = 1,   // long turns, the first wave first
    TESSERA_SIM_ORDER_BACKWARD = 2,  // long turns, the last wave first
    TESSERA_SIM_ORDER_ALTERNATE = 3, // one instruction at a time
    TESSERA_SIM_ORDER_RANDOM = 4,    // turns of random lengths, the same for the same seed
    TESSERA_SIM_ORDER_COUNT
} tessera_sim_order;

// When memory operations of a sanitized launch take effect. A program with correct waits gives the same result always.
typedef enum tessera_sim_landing {
    TESSERA_SIM_LANDING_DEFAULT = 0, // that of the environment, else late
    TESSERA_SIM_LANDING_LATE = 1,    // when an s_waitcnt or the end of the wave requires it
    TESSERA_SIM_LANDING_AT_ONCE = 2, // when they are issued
    TESSERA_SIM_LANDING_RANDOM = 3,  // at some time between these two
    TESSERA_SIM_LANDING_COUNT
} tessera_sim_landing;

typedef struct tessera_sim_launch_args {
    size_t struct_size;         // sizeof(tessera_sim_launch_args)
    uint32_t grid[3];           // work-items; the last workgroup of an axis may be incomplete
    uint32_t block[3];          // work-items of a workgroup
    uint32_t dynamic_lds_bytes; // in addition to the static ones, behind them
    uint32_t stack_bytes;       // a lane's scratch for kernels with calls of unknown depth; 0: 16 KiB
    const void *kernarg;        // explicit arguments, in the kernel's layout
    size_t kernarg_bytes;
    uint64_t max_instructions; // of one wave; 0: no limit
    tessera_sim_order order;
    tessera_sim_landing landing;
    uint64_t seed; // of random orders and landings
} tessera_sim_launch_args;

// Counts of what a launch executed.
typedef struct tessera_sim_launch_stats {
    uint64_t waves;
    uint64_t instructions; // of all waves; of these:
    uint64_t scalar;       // ALU, memory, branches, waits and barriers of the scalar unit
    uint64_t vector;       // vector ALU
    uint64_t matrix;       // MFMA
    uint64_t lds;          // DS
    uint64_t memory;       // buffer, flat, global and scratch
} tessera_sim_launch_stats;

// Runs the kernel to its end. Hidden arguments are filled in. `stats` may be NULL.
TESSERA_API tessera_status tessera_sim_launch(const tessera_sim_kernel *kernel, const tessera_sim_launch_args *args,
                                              tessera_sim_launch_stats *stats);

// ---- The clock, a model of the time that launches take: clock.h

// Sets the mode of launches from now on; the default is that of the environment's TESSERA_SIM_CLOCK (off, on or
// sample), else off.
TESSERA_API tessera_status tessera_sim_set_clock(tessera_sim *sim, tessera_sim_clock clock);

// Sets the path of an output of modelled launches from now on; NULL: none. The defaults are those of the environment:
// TESSERA_SIM_TIMING, TESSERA_SIM_ANNOTATE and TESSERA_SIM_TIMELINE. Launches add to what is in the file, but the first
// one begins a timeline anew.
//
// A timeline shows the workgroups that share a unit with the first sampled one. Each is a process; each of its waves
// has threads MFMA, VALU, scalar, LDS, memory, wait and barrier, in which nothing overlaps. A microsecond is a cycle.
// Behind 131072 events the timeline ends; the label of its processes names the cycle.
TESSERA_API tessera_status tessera_sim_set_output(tessera_sim *sim, tessera_sim_output output, const char *path);

// "mfma", "valu", ...
TESSERA_API const char *tessera_sim_cause_name(tessera_sim_cause cause);

// Gets the sum over the modelled launches since the last call.
TESSERA_API void tessera_sim_take_timing(tessera_sim *sim, tessera_sim_timing *out);

// A number that the clock knows of the GPU. The environment's TESSERA_SIM_PARAMETERS=NAME=NUMBER,... changes some.
typedef struct tessera_sim_parameter {
    const char *name;
    uint32_t value;
    const char *unit, *meaning;
    const char *source; // who says so; "not confirmed": a guess
    const char *fit;    // what it was fitted to, "" if to nothing
} tessera_sim_parameter;

// Gets the parameters one by one; returns false after the last one.
TESSERA_API bool tessera_sim_parameter_at(const tessera_sim *sim, size_t index, tessera_sim_parameter *out);

#ifdef __cplusplus
}
#endif
#endif
