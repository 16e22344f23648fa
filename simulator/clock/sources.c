// SPDX-License-Identifier: MIT
#include "sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_BYTES = 1 << 24 }; // of a file: no source is longer

void tessera_sim_sources_open(struct sim_sources *sources, const tessera_sim_module *module) {
    *sources = (struct sim_sources){.base = (uintptr_t)module->memory};
    if (module->lines.line.size == 0)
        sources->wrong = "the code object has no line table (-DTESSERA_GPU_LINES=ON makes them)";
    else
        sources->wrong = tessera_sim_read_lines(&module->lines, &sources->table);
    if (sources->wrong) return;
    sources->files = calloc(sources->table.file_count + 1, sizeof *sources->files);
    if (!sources->files) sources->wrong = "no memory";
}

void tessera_sim_sources_close(struct sim_sources *sources) {
    for (size_t i = 0; sources->files && i < sources->table.file_count; i++) free(sources->files[i].text);
    free(sources->files);
    tessera_sim_free_lines(&sources->table);
}

const struct sim_line_row *tessera_sim_source_of(const struct sim_sources *sources, uintptr_t address) {
    return sources->wrong ? NULL : tessera_sim_line_at(&sources->table, address - sources->base);
}

const char *tessera_sim_source_name(const struct sim_sources *sources, const struct sim_line_row *row) {
    const char *path = sources->table.files[row->file], *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// Reads a file whole, if it is one: paths may name anything.
static void read_file(struct sim_source_file *to, const char *path) {
    struct stat facts;
    to->read = true;
    if (stat(path, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size > MOST_BYTES) return;
    FILE *file = fopen(path, "rb");
    to->text = file ? malloc((size_t)facts.st_size + 1) : NULL;
    if (to->text) to->bytes = fread(to->text, 1, (size_t)facts.st_size, file);
    if (file) fclose(file);
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

const char *tessera_sim_source_text(struct sim_sources *sources, const struct sim_line_row *row, size_t *length) {
    struct sim_source_file *file = &sources->files[row->file];
    if (!file->read) read_file(file, sources->table.files[row->file]);
    const char *at = file->text ? file->text : "", *const end = at + (file->text ? file->bytes : 0);
    for (uint32_t line = 1; line < row->line && at < end; line++) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        at = next ? next + 1 : end;
    }
    const char *last = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    if (!last) last = end;
    while (at < last && is_blank(*at)) at++;
    while (at < last && is_blank(last[-1])) last--;
    *length = (size_t)(last - at);
    return at;
}
