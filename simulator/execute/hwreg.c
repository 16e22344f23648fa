// SPDX-License-Identifier: MIT
// s_getreg_b32 and s_setreg: the hardware registers. "AMD Instinct MI300 Instruction Set Architecture", section
// "Hardware Registers" and the sections of STATUS, MODE and TRAPSTS; fields that it does not list are as in Linux's
// trap handler.
#include "code_object/module.h"
#include "machine/access.h"
#include "operands.h"
#include "semantics.h"

enum hwreg {
    MODE = 1,
    STATUS = 2,
    TRAPSTS = 3,
    HW_ID = 4,
    GPR_ALLOC = 5,
    LDS_ALLOC = 6,
    IB_STS = 7,
    SH_MEM_BASES = 15,
    XCC_ID = 20,
};

static const char *name(unsigned id) {
    static const char *const names[] = {
        [1] = "MODE",
        [2] = "STATUS",
        [3] = "TRAPSTS",
        [4] = "HW_ID",
        [5] = "GPR_ALLOC",
        [6] = "LDS_ALLOC",
        [7] = "IB_STS",
        [8] = "PC_LO",
        [9] = "PC_HI",
        [10] = "INST_DW0",
        [11] = "INST_DW1",
        [12] = "IB_DBG0",
        [13] = "IB_DBG1",
        [14] = "FLUSH_IB",
        [15] = "SH_MEM_BASES",
        [16] = "SQ_SHADER_TBA_LO",
        [20] = "XCC_ID",
        [17] = "SQ_SHADER_TBA_HI",
        [18] = "SQ_SHADER_TMA_LO",
        [19] = "SQ_SHADER_TMA_HI",
    };
    return id < sizeof names / sizeof *names && names[id] ? names[id] : "unknown";
}

static uint32_t status(struct sim_wave *wave) {
    enum { USER_PRIORITY = 3, TRAP_ENABLE = 6, EXECZ = 9, VCCZ = 10, IN_GROUP = 11, VALID = 16 };
    const uint32_t rsrc2 = wave->group->launch->kernel->descriptor.compute_pgm_rsrc2;
    return (uint32_t)wave->scc | (uint32_t)wave->priority << USER_PRIORITY | (rsrc2 >> 6 & 1) << TRAP_ENABLE |
           (uint32_t)(sim_exec(wave) == 0) << EXECZ | (uint32_t)(sim_get_sgpr64(wave, SIM_VCC) == 0) << VCCZ |
           (uint32_t)(wave->group->wave_count > 1) << IN_GROUP | 1u << VALID;
}

// A workgroup's waves go to the four SIMDs in turn; all other unit numbers are 0.
static uint32_t hardware_id(const struct sim_wave *wave) {
    enum { SIMDS = 4, SIMD_SHIFT = 4 };
    return wave->index / SIMDS | wave->index % SIMDS << SIMD_SHIFT;
}

static uint32_t registers_allocated(const struct sim_wave *wave) {
    enum { VGPR_SIZE = 6, ACCUMULATION_OFFSET = 12, SGPR_SIZE = 24, SGPRS_BY_16 = 7 };
    const struct sim_descriptor *descriptor = &wave->group->launch->kernel->descriptor;
    return (descriptor->compute_pgm_rsrc1 & 63) << VGPR_SIZE |
           (descriptor->compute_pgm_rsrc3 & 63) << ACCUMULATION_OFFSET | (uint32_t)(SGPRS_BY_16 - 1) << SGPR_SIZE;
}

static bool read(struct sim_wave *wave, unsigned id, uint32_t *value) {
    // Workgroups go to the dies of a MI300X in turn.
    enum { LDS_SIZE = 12, LDS_UNIT = 256, LDS_GRANULE = 512, DIES = 8 };
    const enum sim_arch arch = wave->group->launch->sim->arch;
    switch (id) {
    case MODE:
        *value = wave->mode;
        return true;
    case STATUS:
        *value = status(wave);
        return true;
    case TRAPSTS: // exceptions are not recorded
    case IB_STS:  // counters of operations in flight; here operations complete at once
        *value = 0;
        return true;
    case HW_ID:
        *value = hardware_id(wave);
        return true;
    case GPR_ALLOC:
        *value = registers_allocated(wave);
        return true;
    case LDS_ALLOC:
        if (arch == SIM_GFX950) break; // its granularity differs, and no document at hand names it
        *value = (wave->group->lds_bytes + LDS_GRANULE - 1) / LDS_GRANULE * (LDS_GRANULE / LDS_UNIT) << LDS_SIZE;
        return true;
    case SH_MEM_BASES:
        *value = (uint32_t)(SIM_SHARED_APERTURE >> 48) << 16 | (uint32_t)(SIM_PRIVATE_APERTURE >> 48);
        return true;
    case XCC_ID:
        if (arch == SIM_GFX90A) break;
        *value = (uint32_t)(wave->group->number % DIES);
        return true;
    }
    tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNIMPLEMENTED, -1, 0, "reading hardware register %u, %s", id, name(id));
    return false;
}

// The instruction's 16 bits: the register, the first bit, and the number of bits less one.
static unsigned first_bit(unsigned which) { return which >> 6 & 31; }
static uint32_t field_mask(unsigned which) { return UINT32_MAX >> (31 - (which >> 11 & 31)); }

static void get_register(struct sim_wave *wave, const struct sim_code *code) {
    const unsigned which = (unsigned)code->inst.imm & 0xffff;
    uint32_t value;
    if (read(wave, which & 63, &value))
        tessera_sim_write_scalar(wave, &code->inst.op[SIM_DST], value >> first_bit(which) & field_mask(which));
}

static void set_register(struct sim_wave *wave, const struct sim_code *code) {
    const unsigned which = (unsigned)code->inst.imm & 0xffff, id = which & 63;
    const uint32_t mask = field_mask(which) << first_bit(which);
    const uint32_t value = (uint32_t)tessera_sim_read_scalar(wave, &code->inst.op[SIM_SRC0]) << first_bit(which) & mask;
    if (id == TRAPSTS && value == 0) return; // clears exceptions, which are never recorded
    if (id == MODE)
        tessera_sim_set_mode(wave, (wave->mode & ~mask) | value);
    else
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNIMPLEMENTED, -1, 0, "writing 0x%x to hardware register %u, %s",
                            value, id, name(id));
}

static void set_priority(struct sim_wave *wave, const struct sim_code *code) {
    wave->priority = (uint8_t)(code->inst.imm & 3);
}

#define ROW(op, execute)                                                                                               \
    { SIM_OP_##op, execute, NULL, 0 }
static const struct sim_semantics rows[] = {
    ROW(s_getreg_b32, get_register),
    ROW(s_setreg_b32, set_register),
    ROW(s_setreg_imm32_b32, set_register),
    ROW(s_setprio, set_priority),
};
const struct sim_semantics_list tessera_sim_hardware_registers = {rows, sizeof rows / sizeof *rows};
