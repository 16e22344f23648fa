// SPDX-License-Identifier: MIT
#include "annotate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code_object/module.h"
#include "kinds.h"
#include "sources.h"

static size_t words_of(const struct sim_launch *launch) { return launch->kernel->module->code_bytes / 4; }

static const struct sim_code *code_at(const struct sim_launch *launch, size_t word) {
    return atomic_load_explicit(&launch->kernel->module->code[word], memory_order_acquire);
}

bool tessera_sim_profile_open(struct sim_profile *profile, const struct sim_launch *launch) {
    profile->issues = calloc(words_of(launch) + 1, sizeof *profile->issues);
    profile->taken = calloc(words_of(launch) + 1, sizeof *profile->taken);
    profile->cycles = calloc(words_of(launch) + 1, sizeof *profile->cycles);
    return profile->issues && profile->taken && profile->cycles;
}

void tessera_sim_profile_close(struct sim_profile *profile) {
    free(profile->issues);
    free(profile->taken);
    free(profile->cycles);
}

// ---- loops: from the target of a branch that went back, to that branch

struct loop {
    size_t first, last; // words
    uint64_t rounds, cycles, matrix;
};

static bool find_loop(const struct sim_launch *launch, const struct sim_profile *profile, size_t word,
                      struct loop *loop) {
    const struct sim_code *code = code_at(launch, word);
    if (!profile->taken[word] || code->inst.format != SIM_SOPP || !strstr(code->inst.row->mnemonic, "branch"))
        return false;
    const int64_t target = (int64_t)word + 1 + code->inst.imm;
    if (code->inst.imm >= 0 || target < 0) return false;
    *loop = (struct loop){.first = (size_t)target, .last = word, .rounds = profile->issues[word]};
    for (size_t i = loop->first; i <= word; i++) {
        loop->cycles += profile->cycles[i];
        if (profile->issues[i] && code_at(launch, i)->kind == SIM_KIND_MATRIX) loop->matrix += profile->issues[i];
    }
    return true;
}

static void write_loop(FILE *file, const struct sim_launch *launch, const struct sim_profile *profile,
                       const struct loop *loop) {
    fprintf(file, "# loop +0x%zx to +0x%zx: %" PRIu64 " rounds, %.1f cycles of a wave each", loop->first * 4,
            loop->last * 4, loop->rounds, (double)loop->cycles / (double)loop->rounds);
    if (loop->matrix) fprintf(file, ", %.1f MFMA", (double)loop->matrix / (double)loop->rounds);
    fputs("\n#   ", file);
    for (size_t i = loop->first; i <= loop->last; i++)
        if (profile->issues[i]) fputc(tessera_sim_letter(code_at(launch, i)), file);
    fputs("\n", file);
}

static void write_loops(FILE *file, const struct sim_launch *launch, const struct sim_profile *profile) {
    struct loop loop;
    for (size_t word = 0; word < words_of(launch); word++)
        if (find_loop(launch, profile, word, &loop)) write_loop(file, launch, profile, &loop);
}

// ---- lines of C

static uint64_t all_cycles(const struct sim_launch *launch, const struct sim_profile *profile) {
    uint64_t all = 0;
    for (size_t word = 0; word < words_of(launch); word++) all += profile->cycles[word];
    return all ? all : 1;
}

static const struct sim_line_row *line_of(const struct sim_launch *launch, const struct sim_sources *sources,
                                          size_t word) {
    return tessera_sim_source_of(sources, launch->kernel->module->code_base + 4 * word);
}

static void write_line(FILE *file, struct sim_sources *sources, const struct sim_line_row *row) {
    size_t length;
    const char *text = tessera_sim_source_text(sources, row, &length);
    fprintf(file, "%s:%" PRIu32 "%s%.*s\n", tessera_sim_source_name(sources, row), row->line, length ? ": " : "",
            (int)length, text);
}

// What the instructions of a line take.
struct line_cost {
    const struct sim_line_row *row;
    uint64_t cycles;
};

static int compare_places(const void *a, const void *b) {
    const struct sim_line_row *x = ((const struct line_cost *)a)->row, *y = ((const struct line_cost *)b)->row;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

static int compare_costs(const void *a, const void *b) {
    const struct line_cost *x = a, *y = b;
    if (x->cycles != y->cycles) return x->cycles > y->cycles ? -1 : 1;
    return compare_places(a, b);
}

// Each line once, in order; returns how many there are.
static size_t sum_lines(const struct sim_launch *launch, const struct sim_profile *profile,
                        const struct sim_sources *sources, struct line_cost *costs) {
    size_t count = 0, sums = 0;
    for (size_t word = 0; word < words_of(launch); word++) {
        const struct sim_line_row *row = profile->issues[word] ? line_of(launch, sources, word) : NULL;
        if (row) costs[count++] = (struct line_cost){row, profile->cycles[word]};
    }
    if (count) qsort(costs, count, sizeof *costs, compare_places);
    for (size_t i = 0; i < count; i++) {
        if (sums && compare_places(&costs[sums - 1], &costs[i]) == 0)
            costs[sums - 1].cycles += costs[i].cycles;
        else
            costs[sums++] = costs[i];
    }
    return sums;
}

static void write_lines(FILE *file, const struct sim_launch *launch, const struct sim_profile *profile,
                        struct sim_sources *sources) {
    enum { MOST = 12 };
    struct line_cost *costs = sources->wrong ? NULL : malloc((words_of(launch) + 1) * sizeof *costs);
    if (sources->wrong) fprintf(file, "# no lines of C: %s\n", sources->wrong);
    if (!costs) return;
    const size_t count = sum_lines(launch, profile, sources, costs);
    const double all = (double)all_cycles(launch, profile);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || costs[i].row->file != costs[i - 1].row->file)
            fprintf(file, "# source %s\n", sources->table.files[costs[i].row->file]);
    if (count) fputs("# lines of most cycles\n", file);
    if (count) qsort(costs, count, sizeof *costs, compare_costs);
    for (size_t i = 0; i < count && i < MOST; i++) {
        fprintf(file, "#%7.2f%% ", 100 * (double)costs[i].cycles / all);
        write_line(file, sources, costs[i].row);
    }
    free(costs);
}

// ---- instructions

static bool is_other(const struct sim_line_row *row, const struct sim_line_row *last) {
    return row && (!last || row->file != last->file || row->line != last->line);
}

// Each instruction that issued, below the line that it stems from where that is not the one before.
static void write_instructions(FILE *file, const struct sim_launch *launch, const struct sim_profile *profile,
                               struct sim_sources *sources) {
    char text[128];
    const double all = (double)all_cycles(launch, profile);
    const struct sim_line_row *last = NULL;
    fputs("#    share  cycles  issues  place  instruction\n", file);
    for (size_t word = 0; word < words_of(launch); word++) {
        const uint64_t issues = profile->issues[word], cycles = profile->cycles[word];
        if (!issues) continue;
        const struct sim_line_row *row = line_of(launch, sources, word);
        if (is_other(row, last)) {
            fputs("; ", file);
            write_line(file, sources, row);
            last = row;
        }
        tessera_sim_print(&code_at(launch, word)->inst, text, sizeof text);
        fprintf(file, "%8.2f%% %7.1f %7" PRIu64 "  +0x%04zx %s\n", 100 * (double)cycles / all,
                (double)cycles / (double)issues, issues, word * 4, text);
    }
}

bool tessera_sim_annotate(const char *path, const struct sim_launch *launch, const struct sim_profile *profile) {
    struct sim_sources sources;
    FILE *file = fopen(path, "a");
    if (!file) return false;
    tessera_sim_sources_open(&sources, launch->kernel->module);
    fprintf(file, "# %s on %s, modelled: waves' cycles up to each instruction\n", launch->kernel->info.name,
            tessera_sim_arch_names[launch->sim->arch]);
    write_loops(file, launch, profile);
    write_lines(file, launch, profile, &sources);
    write_instructions(file, launch, profile, &sources);
    tessera_sim_sources_close(&sources);
    return fclose(file) == 0;
}
