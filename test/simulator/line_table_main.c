// SPDX-License-Identifier: MIT
// Reads line tables for test_line_table.py, from copies without a byte more, so that AddressSanitizer sees any read
// outside.
//
//     line_table LINE LINE_STRINGS STRINGS         prints its rows, or what is wrong
//     line_table LINE LINE_STRINGS STRINGS spoil   reads what is left of it when it is cut, or a byte of it changed
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code_object/line_table.h"

static struct sim_section read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) exit(2);
    fseek(file, 0, SEEK_END);
    const size_t size = (size_t)ftell(file);
    uint8_t *bytes = malloc(size ? size : 1);
    rewind(file);
    if (!bytes || fread(bytes, 1, size, file) != size) exit(2);
    fclose(file);
    return (struct sim_section){bytes, size};
}

static int print(const struct sim_line_sections *sections) {
    struct sim_line_table table;
    const char *wrong = tessera_sim_read_lines(sections, &table);
    if (wrong) return puts(wrong), 1;
    for (size_t i = 0; i < table.count; i++)
        printf("%" PRIx64 " %" PRIu32 " %s\n", table.rows[i].address, table.rows[i].line,
               table.rows[i].line ? table.files[table.rows[i].file] : "");
    tessera_sim_free_lines(&table);
    return 0;
}

// Whether it is read; then every row is looked up.
static int is_read(const struct sim_line_sections *sections, const uint8_t *bytes, size_t size) {
    struct sim_line_table table;
    struct sim_line_sections copy = *sections;
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact) exit(2);
    memcpy(exact, bytes, size);
    copy.line = (struct sim_section){exact, size};
    const int read = !tessera_sim_read_lines(&copy, &table);
    for (size_t i = 0; i < table.count; i++) {
        const struct sim_line_row *row = tessera_sim_line_at(&table, table.rows[i].address);
        if (row && (row->address != table.rows[i].address || row->file >= table.file_count)) exit(3);
    }
    tessera_sim_free_lines(&table);
    free(exact);
    return read;
}

static void spoil(const struct sim_line_sections *sections) {
    static const uint8_t masks[] = {0x01, 0x40, 0x80, 0xff};
    const size_t size = sections->line.size;
    size_t whole = 0, changed = 0;
    uint8_t *bytes = malloc(size);
    if (!bytes) exit(2);
    for (size_t cut = 1; cut < size; cut++) whole += (size_t)is_read(sections, sections->line.bytes, cut);
    for (size_t i = 0; i < size * sizeof masks; i++) {
        memcpy(bytes, sections->line.bytes, size);
        bytes[i / sizeof masks] ^= masks[i % sizeof masks];
        changed += (size_t)is_read(sections, bytes, size);
    }
    free(bytes);
    printf("%zu %zu\n", whole, changed);
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    struct sim_section parts[3];
    for (int i = 0; i < 3; i++) parts[i] = read_file(argv[i + 1]);
    const struct sim_line_sections sections = {parts[0], parts[1], parts[2]};
    const int result = argc > 4 ? (spoil(&sections), 0) : print(&sections);
    for (int i = 0; i < 3; i++) free((void *)parts[i].bytes);
    return result;
}
