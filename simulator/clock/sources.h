// SPDX-License-Identifier: MIT
// The lines of C that a module's instructions stem from, where it has line tables and the files are still there.
#pragma once

#include "code_object/module.h"

struct sim_source_file {
    bool read; // or tried to
    char *text;
    size_t bytes;
};

struct sim_sources {
    uintptr_t base; // of addresses in the table
    struct sim_line_table table;
    struct sim_source_file *files; // of the table's
    const char *wrong;             // why there is no table; NULL: there is one
};

void tessera_sim_sources_open(struct sim_sources *sources, const tessera_sim_module *module);
void tessera_sim_sources_close(struct sim_sources *sources);

// The line of an instruction; NULL where none is known.
const struct sim_line_row *tessera_sim_source_of(const struct sim_sources *sources, uintptr_t address);

// The name of a row's file without its folder.
const char *tessera_sim_source_name(const struct sim_sources *sources, const struct sim_line_row *row);

// A row's line without the blanks around it. Its length is 0 where the file cannot be read or has no such line.
const char *tessera_sim_source_text(struct sim_sources *sources, const struct sim_line_row *row, size_t *length);
