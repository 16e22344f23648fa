// SPDX-License-Identifier: MIT
// Turns bytes into instructions that are ready to run, each decoded once; answers questions about a kernel's code.
#include "fetch.h"

#include <stdlib.h>
#include <string.h>

#include "code_object/module.h"
#include "effects.h"
#include "machine/launch.h"
#include "runtime/device/cpu.h"
#include "semantics.h"

static const struct sim_semantics_list *const lists[] = {
    &tessera_sim_hardware_registers, &tessera_sim_gws_list,       &tessera_sim_scalar,
    &tessera_sim_scalar_control,     &tessera_sim_scalar_memory,  &tessera_sim_lane_moves,
    &tessera_sim_vector_memory,      &tessera_sim_buffer_formats, &tessera_sim_lds_list,
    &tessera_sim_matrix_scaled,      &tessera_sim_vector_small,
};

// The number of lists that are compiled for several instruction sets of the host.
enum { VECTOR_LISTS = 5 };
#define VECTOR_LISTS_OF(suffix)                                                                                        \
    {                                                                                                                  \
        &tessera_sim_vector_integer##suffix, &tessera_sim_vector_float##suffix, &tessera_sim_vector_convert##suffix,   \
            &tessera_sim_vector_compare##suffix, &tessera_sim_matrix##suffix                                           \
    }
typedef const struct sim_semantics_list *vector_lists[VECTOR_LISTS];
static const vector_lists baseline = VECTOR_LISTS_OF();

#ifdef SIM_ISA_VARIANTS
#define DECLARE(suffix)                                                                                                \
    extern const struct sim_semantics_list tessera_sim_vector_integer##suffix, tessera_sim_vector_float##suffix,       \
        tessera_sim_vector_convert##suffix, tessera_sim_vector_compare##suffix, tessera_sim_matrix##suffix
DECLARE(_v3);
DECLARE(_v4);
static const vector_lists x86_64_v3 = VECTOR_LISTS_OF(_v3), x86_64_v4 = VECTOR_LISTS_OF(_v4);

static const vector_lists *choose(void) {
    const uint32_t targets = tessera_cpu_targets();
    if (targets >> TESSERA_TARGET_X86_64_V4 & 1) return &x86_64_v4;
    return targets >> TESSERA_TARGET_X86_64_V3 & 1 ? &x86_64_v3 : &baseline;
}
#else
static const vector_lists *choose(void) { return &baseline; }
#endif

static const struct sim_semantics *by_op[SIM_OPS];
static pthread_once_t by_op_once = PTHREAD_ONCE_INIT;

static void add_list(const struct sim_semantics_list *list) {
    for (size_t i = 0; i < list->count; i++) by_op[list->rows[i].op] = &list->rows[i];
}

static void fill_by_op(void) {
    const vector_lists *chosen = choose();
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) add_list(lists[i]);
    for (size_t i = 0; i < VECTOR_LISTS; i++) add_list((*chosen)[i]);
}

const struct sim_semantics *tessera_sim_find_semantics(uint16_t op) {
    pthread_once(&by_op_once, fill_by_op);
    return op < SIM_OPS ? by_op[op] : NULL;
}

static void undecodable(struct sim_wave *wave, uintptr_t pc, size_t words, enum sim_decode_error error) {
    uint32_t word[2] = {0};
    memcpy(word, (const void *)pc, words > 1 ? 8 : 4);
    wave->code = NULL;
    tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNKNOWN_INSTRUCTION, -1, 0, "%08x %08x: %s", word[0], word[1],
                        tessera_sim_decode_error_name(error));
}

static void unimplemented(struct sim_wave *wave, const struct sim_code *code) {
    (void)code;
    tessera_sim_trouble(wave, TESSERA_SIM_FAULT_UNIMPLEMENTED, -1, 0, "the simulator lacks this instruction");
}

struct sim_code *tessera_sim_make_code(enum sim_arch arch, const uint32_t *words, size_t count,
                                       enum sim_decode_error *error) {
    struct sim_code *code = calloc(1, sizeof *code);
    if (!code) abort();
    *error = tessera_sim_decode(arch, words, count, &code->inst);
    if (*error != SIM_DECODED) {
        free(code);
        return NULL;
    }
    const struct sim_semantics *semantics = tessera_sim_find_semantics(code->inst.row->op);
    code->size = code->inst.size;
    code->execute = unimplemented;
    for (unsigned i = 0; i < code->inst.row->fields; i++) {
        const struct sim_field *field = &code->inst.row->field[i];
        if (field->slot < SIM_SLOTS) code->element[field->slot] = (uint8_t)field->element;
    }
    if (semantics) {
        code->execute = semantics->execute;
        code->lanes = semantics->lanes;
        code->detail = semantics->detail;
    }
    tessera_sim_find_effects(code, &code->effects);
    return code;
}

static struct sim_code *decode(struct sim_wave *wave, uintptr_t pc, size_t words) {
    enum sim_decode_error error;
    const tessera_sim *sim = wave->group->launch->sim;
    struct sim_code *code = tessera_sim_make_code(sim->arch, (const uint32_t *)pc, words, &error);
    if (!code) undecodable(wave, pc, words, error);
    for (const struct sim_observer *const *observer = sim->observers; code && *observer; observer++)
        if ((*observer)->decoded) (*observer)->decoded(code);
    return code;
}

const struct sim_code *tessera_sim_fetch(struct sim_wave *wave, uintptr_t pc) {
    tessera_sim_module *module = wave->group->launch->kernel->module;
    const uintptr_t offset = pc - module->code_base;
    if (offset >= module->code_bytes || offset % 4 != 0) {
        wave->code = NULL;
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_OUT_OF_BOUNDS, -1, pc, "execution left the code");
        return NULL;
    }
    struct sim_code *code = atomic_load_explicit(&module->code[offset / 4], memory_order_acquire);
    if (code) return code;
    struct sim_code *fresh = decode(wave, pc, (module->code_bytes - offset) / 4);
    if (fresh && !atomic_compare_exchange_strong(&module->code[offset / 4], &code, fresh)) {
        free(fresh); // another thread has decoded it first
        return code;
    }
    return fresh;
}

// Searches all code of the module, which includes more than the kernel runs.
bool tessera_sim_has_atomics(const tessera_sim_kernel *kernel) {
    const tessera_sim_module *module = kernel->module;
    const uint32_t *words = (const uint32_t *)module->code_base;
    const size_t count = module->code_bytes / 4;
    struct sim_inst inst;
    for (size_t at = 0; at < count;) {
        const bool good = tessera_sim_decode(module->sim->arch, words + at, count - at, &inst) == SIM_DECODED;
        const bool memory = good && (inst.format >= SIM_MUBUF || inst.format == SIM_SMEM);
        if (memory && strstr(inst.row->mnemonic, "atomic")) return true;
        at += good ? inst.size / 4 : 1;
    }
    return false;
}
