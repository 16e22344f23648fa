// SPDX-License-Identifier: MIT
// Line tables of code objects (DWARF 2 to 5): from which line of a source each instruction stems.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_section {
    const uint8_t *bytes; // never NULL
    size_t size;
};

// The sections that hold it; those that an image lacks are empty.
struct sim_line_sections {
    struct sim_section line, line_strings, strings; // .debug_line, .debug_line_str, .debug_str
};

// Holds from its address to that of the next row.
struct sim_line_row {
    uint64_t address; // as the image has it
    uint32_t file;    // an index of `files`
    uint32_t line;    // from 1; 0: that of no source
    uint32_t order;   // in which the rows came, but those that end a sequence come first
};

struct sim_line_table {
    struct sim_line_row *rows; // sorted
    size_t count, capacity;
    char **files; // paths
    size_t file_count;
};

// Reads the tables of all units. Returns NULL, or says what is wrong, and then the table is empty.
const char *tessera_sim_read_lines(const struct sim_line_sections *sections, struct sim_line_table *table);
void tessera_sim_free_lines(struct sim_line_table *table);

// The row that holds at an address; NULL where none does, or no source has the instruction.
const struct sim_line_row *tessera_sim_line_at(const struct sim_line_table *table, uint64_t address);
