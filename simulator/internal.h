// SPDX-License-Identifier: MIT
// What the files of the simulator share. Nothing here is exported.
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE // pthread_rwlock_t
#endif

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "decode.h"
#include "effects.h"
#include "isa_names.h"
#include "tessera/simulator.h"

enum { SIM_LANES = 64, SIM_SGPRS = 128, SIM_VGPRS = 256 };

// ---- errors (api.c)

// Sets this thread's last error and returns `status`.
tessera_status tessera_sim_fail(tessera_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

// ---- memory (memory.c)

struct sim_range {
    uintptr_t base;
    size_t bytes;
    bool read_only;
    bool owned;         // allocated by tessera_sim_malloc
    uint8_t *undefined; // a byte each: the bits that nothing has set; NULL: they count as set
};

enum { SIM_FREED = 64 };

// Ranges that kernels may touch, in order of their addresses, and the latest that were freed.
struct sim_memory {
    pthread_rwlock_t lock;
    struct sim_range *ranges;
    size_t count, capacity;
    struct sim_range freed[SIM_FREED]; // owned: kept from the host's allocator until its place is wanted
    size_t freed_count;                // in all; the latest is at (freed_count - 1) % SIM_FREED
};

void tessera_sim_memory_open(struct sim_memory *memory);
void tessera_sim_memory_close(struct sim_memory *memory);
tessera_status tessera_sim_memory_add(struct sim_memory *memory, struct sim_range range);
// Takes a range of memory that somebody lent out; false where none starts at `base`.
bool tessera_sim_memory_remove(struct sim_memory *memory, uintptr_t base);
// The range that holds `address`; one of 0 bytes where none does.
struct sim_range tessera_sim_memory_find(struct sim_memory *memory, uintptr_t address);
// Says where an address that no range holds lies, beside the nearest range; whether it was freed.
bool tessera_sim_memory_describe(struct sim_memory *memory, uintptr_t address, char *text, size_t size);

// ---- the GPU

// A resource of global wave sync (gws.c): a semaphore, or a barrier with its phase.
struct sim_gws {
    int32_t counter;
    uint32_t released; // how often all its waves were let go
    bool flag;
};

enum { SIM_GWS_RESOURCES = 64 };

struct tessera_sim {
    enum sim_arch arch;
    int threads;
    bool sanitize;
    tessera_sim_order order; // of launches that leave it open
    uint64_t seed;
    tessera_sim_landing landing;
    struct sim_memory memory;
    pthread_mutex_t lock; // of the list of modules and of callbacks
    tessera_sim_module *modules;
    tessera_sim_report_fn report;
    void *report_user;
    void *hostcall_buffer;
    tessera_sim_hostcall_fn hostcall;
    void *hostcall_user;
    char *trace_path;     // NULL: no trace
    FILE *trace;          // opened by the first launch
    uint32_t trace_count; // launches in it
    char *stats_path;     // NULL: stats are not written
    struct sim_gws gws[SIM_GWS_RESOURCES];
};

extern const char *const tessera_sim_arch_names[SIM_ARCHS];
uint32_t tessera_sim_lds_limit(enum sim_arch arch);

// ---- code objects (elf.c, metadata.c)

// The kernel descriptor, as the code object holds it.
struct sim_descriptor {
    uint32_t group_segment_fixed_size;
    uint32_t private_segment_fixed_size;
    uint32_t kernarg_size;
    uint32_t reserved0;
    int64_t kernel_code_entry_byte_offset;
    uint8_t reserved1[20];
    uint32_t compute_pgm_rsrc3, compute_pgm_rsrc1, compute_pgm_rsrc2;
    uint16_t kernel_code_properties;
    uint16_t kernarg_preload;
    uint8_t reserved2[4];
};

struct tessera_sim_kernel {
    tessera_sim_module *module;
    tessera_sim_kernel_info info;
    struct sim_descriptor descriptor;
    uintptr_t descriptor_address, entry;
    bool dynamic_stack;
    tessera_sim_argument *arguments;
};

struct sim_symbol {
    const char *name;
    uintptr_t address;
    size_t bytes;
    uint8_t type; // STT_*
};

struct sim_code;

struct tessera_sim_module {
    tessera_sim *sim;
    tessera_sim_module *next;
    uint8_t *memory; // the loaded segments
    size_t bytes;
    uintptr_t ranges[16]; // registered segments
    size_t range_count;
    uintptr_t code_base; // the executable segment
    size_t code_bytes;
    _Atomic(struct sim_code *) *code; // one entry a word, filled as instructions are reached
    struct sim_symbol *symbols;       // defined ones, by address
    size_t symbol_count;
    tessera_sim_kernel *kernels;
    size_t kernel_count;
    struct sim_names *names; // strings of the metadata and of symbols
};

// Fills in what the metadata note says of the module's kernels.
tessera_status tessera_sim_read_metadata(tessera_sim_module *module, const uint8_t *note, size_t bytes);
// A copy of a string that lives as long as the module; NULL when out of memory.
const char *tessera_sim_keep_string(tessera_sim_module *module, const char *text, size_t length);
void tessera_sim_free_strings(tessera_sim_module *module);

// ---- instructions

struct sim_wave;
struct sim_alu;

typedef void (*sim_execute)(struct sim_wave *wave, const struct sim_code *code);
typedef void (*sim_lanes)(struct sim_alu *alu);

// What an instruction does: `execute` moves operands, `lanes` is the arithmetic over 64 lanes for those that share an
// `execute`; `detail` is its parameter (bytes of an access, index in a table, flags), as each file says.
struct sim_semantics {
    uint16_t op; // enum sim_op
    sim_execute execute;
    sim_lanes lanes;
    uint32_t detail;
};

struct sim_semantics_list {
    const struct sim_semantics *rows;
    size_t count;
};

// NULL where the simulator lacks the instruction.
const struct sim_semantics *tessera_sim_find_semantics(uint16_t op);

// An instruction ready to run.
struct sim_code {
    sim_execute execute;
    sim_lanes lanes;
    uint32_t detail;
    uint8_t size;
    uint8_t element[SIM_SLOTS]; // bits of an element of each operand; a packed one has several
    struct sim_inst inst;
    struct sim_effects effects;
};

// The instruction at words[0], of `count` words, for the caller to free; NULL and why not.
struct sim_code *tessera_sim_make_code(enum sim_arch arch, const uint32_t *words, size_t count,
                                       enum sim_decode_error *error);

// Notes that an instruction is about to run for the first time at its place (coverage.c).
void tessera_sim_note_ran(const struct sim_inst *inst);

// The instruction at `pc`, decoded if need be; NULL after a fault.
const struct sim_code *tessera_sim_fetch(struct sim_wave *wave, uintptr_t pc);

// ---- waves

enum sim_wave_state { SIM_RUNNING, SIM_AT_BARRIER, SIM_ENDED, SIM_FAULTED };

struct sim_group;
struct sim_checks;
struct sim_trace;

typedef uint32_t sim_vgpr[SIM_LANES];

struct sim_wave {
    uintptr_t pc, next_pc;
    enum sim_wave_state state;
    bool scc;
    bool special_floats; // MODE asks for a rounding or flushing that is not the default
    uint32_t mode;       // hwreg MODE
    uint8_t priority;    // s_setprio
    bool gws_waits;      // at a resource of global wave sync, which was as the next two say when it came
    bool gws_flag;
    uint32_t gws_released;
    uint32_t index;        // in the workgroup
    uint32_t set_sgprs;    // the first ones, which the hardware sets
    uint32_t vgprs, agprs; // how many exist
    uint32_t first_agpr;   // in vgpr
    struct sim_group *group;
    const struct sim_code *code; // the instruction that runs
    uint64_t executed;
    uint64_t issued[SIM_UNITS]; // of them, by unit
    uint64_t limit;             // instructions after which it runs away
    struct sim_range range;     // memory touched last
    struct sim_checks *checks;  // NULL where nothing is checked
    uint8_t *scratch;           // this wave's, lanes interleaved by words
    uint32_t scratch_offset;    // from the launch's scratch base
    uint32_t sgpr[SIM_SGPRS] __attribute__((aligned(8)));
    uint64_t exec_of_lanes;                                      // EXEC that exec_lanes was made from
    uint32_t exec_lanes[SIM_LANES] __attribute__((aligned(64))); // all ones: active
    sim_vgpr vgpr[2 * SIM_VGPRS] __attribute__((aligned(64)));   // one file: AGPRs from first_agpr
};

// A fault of one workgroup, before it becomes a report.
struct sim_trouble {
    tessera_sim_fault fault;
    uint64_t workgroup;
    uint32_t id[3];
    uint32_t wave;
    int32_t lane;
    uintptr_t pc;
    uint64_t address;
    char instruction[128];
    char what[256];
};

struct sim_launch;

// A workgroup while it runs; a host thread uses one for all its workgroups.
struct sim_group {
    struct sim_launch *launch;
    uint64_t number; // in order of x, y, z
    uint32_t id[3];
    uint32_t size[3]; // work-items; smaller than the block at the grid's end
    uint32_t wave_count;
    struct sim_wave *waves;
    struct sim_checks *checks; // a wave's each, where the launch is sanitized; else NULL
    struct sim_trace *trace;   // NULL: no trace
    uint64_t random;           // state of the order
    uint8_t *lds;
    uint32_t lds_bytes;
    uint8_t *scratch; // of all waves
    struct sim_trouble trouble;
};

struct sim_launch {
    tessera_sim *sim;
    const tessera_sim_kernel *kernel;
    const tessera_sim_launch_args *args;
    bool sanitize;
    tessera_sim_order order;
    uint64_t seed;
    tessera_sim_landing landing;
    uint32_t trace_number;
    int threads; // of the host
    uint32_t groups[3];
    uint64_t group_count;
    uint32_t waves_per_group;
    uint32_t lds_bytes;
    uint32_t lane_scratch_bytes;
    uint8_t *system; // what the launch lends to the kernel's system pointers: see dispatch.c
    uint8_t *kernarg;
    atomic_uint_fast64_t next_group;
    atomic_uint_fast64_t faulted_group; // the lowest one
    pthread_mutex_t lock;               // of trouble and issued
    struct sim_trouble trouble;
    uint64_t issued[SIM_UNITS]; // instructions of all waves
};

// A number below `limit`, from a state that is not 0 (wave.c).
uint32_t tessera_sim_random(uint64_t *state, uint32_t limit);

// Starts the group's waves, and runs them to their end or to a fault (wave.c).
void tessera_sim_group_run(struct sim_group *group);

// Notes a fault of the running instruction and stops the wave. `lane` -1: the wave as a whole.
void tessera_sim_trouble(struct sim_wave *wave, tessera_sim_fault fault, int lane, uint64_t address, const char *format,
                         ...) __attribute__((format(printf, 5, 6)));
// Tells the caller of the launch's fault, and returns the status of the launch.
tessera_status tessera_sim_report_trouble(struct sim_launch *launch);
// Where the environment asks for it (stats.c).
tessera_status tessera_sim_write_stats(const struct sim_launch *launch, const tessera_sim_launch_stats *stats);

// Whether the kernel's module has atomics on global memory, so that its result may depend on the order of workgroups.
bool tessera_sim_has_atomics(const tessera_sim_kernel *kernel);

enum {                            // bits of hwreg MODE
    SIM_MODE_DX10_CLAMP = 1 << 8, // clamping makes 0 of NaN
    SIM_MODE_IEEE = 1 << 9,       // signaling NaNs become quiet in minimum and maximum; no output factors
    SIM_MODE_FP16_OVFL = 1 << 23, // conversions to 16 and 8 bits, and halves, stay finite
    SIM_MODE_INDEX = 1 << 27,     // M0 indexes VGPRs
    SIM_MODE_SKIP = 1 << 28,      // what is not for the scalar unit is passed by
};
void tessera_sim_set_mode(struct sim_wave *wave, uint32_t mode);

// Counts an instruction. Whether it is to be issued: MODE may have the wave pass it by.
static inline bool sim_take(struct sim_wave *wave, const struct sim_code *code) {
    wave->executed++;
    if (wave->mode & SIM_MODE_SKIP && code->effects.unit >= SIM_UNIT_VALU) return false;
    wave->issued[code->effects.unit]++;
    return true;
}

// ---- memory accesses (access.c)

static inline bool sim_in_range(const struct sim_range *range, uint64_t address, size_t bytes) {
    return address - range->base < range->bytes && bytes <= range->bytes - (address - range->base);
}

// Every access goes through one of these two. Memory at `address`, which the kernel loads from or stores to; NULL after
// a fault of the lane.
uint8_t *tessera_sim_touch(struct sim_wave *wave, int lane, uint64_t address, size_t bytes, bool store);

// LDS at `address`; NULL after a fault of the lane (lds.c).
uint8_t *tessera_sim_lds(struct sim_wave *wave, int lane, uint32_t address, uint32_t bytes);

// Addresses that FLAT instructions take as LDS and scratch.
#define SIM_SHARED_APERTURE UINT64_C(0x0001000000000000)
#define SIM_PRIVATE_APERTURE UINT64_C(0x0002000000000000)
enum { SIM_APERTURE_SHIFT = 32 };

// ---- registers

static inline uint64_t sim_get_sgpr64(const struct sim_wave *wave, unsigned index) {
    return wave->sgpr[index] | (uint64_t)wave->sgpr[index + 1] << 32;
}

static inline void sim_set_sgpr64(struct sim_wave *wave, unsigned index, uint64_t value) {
    wave->sgpr[index] = (uint32_t)value;
    wave->sgpr[index + 1] = (uint32_t)(value >> 32);
}

static inline uint64_t sim_exec(const struct sim_wave *wave) { return sim_get_sgpr64(wave, SIM_EXEC); }

// Waves' registers for an operand; `more` registers from it must exist. NULL after a fault.
sim_vgpr *tessera_sim_registers(struct sim_wave *wave, const struct sim_operand *operand, unsigned count);

// A scalar operand's bits: SGPRs, constants and special registers, 32 or 64 of them.
uint64_t tessera_sim_read_scalar(struct sim_wave *wave, const struct sim_operand *operand);
void tessera_sim_write_scalar(struct sim_wave *wave, const struct sim_operand *operand, uint64_t value);

// exec_lanes, made anew where EXEC has changed.
const uint32_t *tessera_sim_exec_lanes(struct sim_wave *wave);
