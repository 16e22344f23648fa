// SPDX-License-Identifier: MIT
#include "annotate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code_object/module.h"
#include "kinds.h"

static size_t words_of(const struct sim_launch *launch) { return launch->kernel->module->code_bytes / 4; }

static const struct sim_code *code_at(const struct sim_launch *launch, size_t word) {
    return atomic_load_explicit(&launch->kernel->module->code[word], memory_order_acquire);
}

bool tessera_sim_profile_open(struct sim_profile *profile, const struct sim_launch *launch) {
    profile->issues = calloc(words_of(launch) + 1, sizeof *profile->issues);
    profile->cycles = calloc(words_of(launch) + 1, sizeof *profile->cycles);
    return profile->issues && profile->cycles;
}

void tessera_sim_profile_close(struct sim_profile *profile) {
    free(profile->issues);
    free(profile->cycles);
}

// ---- loops: from the target of a branch that goes back, to that branch

struct loop {
    size_t first, last; // words
    uint64_t rounds, cycles, matrix;
};

static bool find_loop(const struct sim_launch *launch, const struct sim_profile *profile, size_t word,
                      struct loop *loop) {
    const struct sim_code *code = code_at(launch, word);
    if (!profile->issues[word] || code->inst.format != SIM_SOPP || !strstr(code->inst.row->mnemonic, "branch"))
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

// ---- instructions

static void write_instructions(FILE *file, const struct sim_launch *launch, const struct sim_profile *profile) {
    char text[128];
    uint64_t all = 0;
    for (size_t word = 0; word < words_of(launch); word++) all += profile->cycles[word];
    fputs("#    share  cycles  issues  place  instruction\n", file);
    for (size_t word = 0; word < words_of(launch); word++) {
        const uint64_t issues = profile->issues[word], cycles = profile->cycles[word];
        if (!issues) continue;
        tessera_sim_print(&code_at(launch, word)->inst, text, sizeof text);
        fprintf(file, "%8.2f%% %7.1f %7" PRIu64 "  +0x%04zx %s\n", 100.0 * (double)cycles / (double)(all ? all : 1),
                (double)cycles / (double)issues, issues, word * 4, text);
    }
}

bool tessera_sim_annotate(const char *path, const struct sim_launch *launch, const struct sim_profile *profile) {
    FILE *file = fopen(path, "a");
    if (!file) return false;
    fprintf(file, "# %s on %s, modelled: waves' cycles up to each instruction\n", launch->kernel->info.name,
            tessera_sim_arch_names[launch->sim->arch]);
    write_loops(file, launch, profile);
    write_instructions(file, launch, profile);
    return fclose(file) == 0;
}
