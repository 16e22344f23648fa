// SPDX-License-Identifier: MIT
// Loaded code objects, and their kernels.
#pragma once

#include "line_table.h"
#include "machine/gpu.h"

// The kernel descriptor, laid out as in the code object.
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
    _Atomic(struct sim_code *) *code; // one entry for each word, filled when its instruction is reached
    struct sim_symbol *symbols;       // the defined symbols, sorted by address
    size_t symbol_count;
    tessera_sim_kernel *kernels;
    size_t kernel_count;
    struct sim_names *names;        // strings of the metadata and of symbols
    struct sim_line_sections lines; // copies; read when they are asked for
};

// Fills in the infos of the module's kernels from the metadata note.
tessera_status tessera_sim_read_metadata(tessera_sim_module *module, const uint8_t *note, size_t bytes);
// Copies a string; the copy lives as long as the module. NULL when out of memory.
const char *tessera_sim_keep_string(tessera_sim_module *module, const char *text, size_t length);
void tessera_sim_free_strings(tessera_sim_module *module);
