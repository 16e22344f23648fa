// SPDX-License-Identifier: MIT
// Prints, for each s_nop, the rule of check/hazards.c that asks for it:
// `tessera_sim_padding gfx942 [PLACE...] < words`.
//
// Input: the hexadecimal words of a kernel's code. Output: a line for each run of s_nops before another instruction,
// with fields separated by tabs: the place of the first s_nop, the wait states of the s_nops, the states that some path
// would lack without them, the place of the earlier instruction of the rule, `line` or `branch` (the path between
// the two), `needed` or `spare`, the rule, and the reason why it is spare. 0 lacking states: no rule asks for the
// s_nops. Then a line for each instruction that comes too early on some path in spite of s_nops, with `short` in place
// of `needed`.
//
// Paths follow branches, as LLVM's recognizer does: each instruction takes one state, a matrix instruction too. Those
// at the places named, in bytes, take none, as inline assembly takes none for LLVM.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/hazards.h"
#include "execute/effects.h"
#include "execute/fetch.h"

enum { MOST_WORDS = 1 << 18, FARTHEST = 20 };

struct place {
    struct sim_code *code;
    uint32_t at;          // index of its first word
    uint32_t from, froms; // in `edges`: branches that lead here
    uint32_t seen;        // the latest search that came here, and the states that it had counted
    unsigned seen_states;
    bool uncounted;
};

struct edge {
    uint32_t from, to; // places
};

struct program {
    uint32_t words[MOST_WORDS], place_of[MOST_WORDS];
    struct place places[MOST_WORDS];
    struct edge edges[MOST_WORDS];
    uint32_t word_count, place_count, edge_count, searches;
    struct sim_wave wave;
};

// One search: what it looks for, and the longest wait found so far.
struct search {
    struct program *program;
    const struct place *second;
    struct finding {
        unsigned missing;
        const struct place *first;
        bool branch;
        struct sim_wait wait;
    } needed, spare;
};

static bool begins(const struct place *place, const char *prefix) {
    return strncmp(place->code->inst.row->mnemonic, prefix, strlen(prefix)) == 0;
}

static bool is_nop(const struct place *place) { return place->code->inst.row->op == SIM_OP_s_nop; }

static unsigned states_of(const struct place *place) {
    return place->uncounted ? 0 : tessera_sim_states_of(&place->code->inst);
}

static bool falls_through(const struct place *place) {
    return !begins(place, "s_branch") && !begins(place, "s_endpgm") && !begins(place, "s_setpc");
}

// ---- the program

static void decode(struct program *program, enum sim_arch arch) {
    for (uint32_t at = 0; at < program->word_count;) {
        enum sim_decode_error error;
        struct sim_code *code = tessera_sim_make_code(arch, program->words + at, program->word_count - at, &error);
        if (!code) break; // padding behind the end
        tessera_sim_find_hazards(&code->inst, &code->effects);
        program->place_of[at] = program->place_count;
        program->places[program->place_count++] = (struct place){.code = code, .at = at};
        at += code->size / 4u;
    }
}

static int by_target(const void *a, const void *b) {
    const struct edge *left = a, *right = b;
    return (left->to > right->to) - (left->to < right->to);
}

static void find_edges(struct program *program) {
    for (uint32_t i = 0; i < program->place_count; i++) {
        const struct place *place = &program->places[i];
        if (!begins(place, "s_branch") && !begins(place, "s_cbranch")) continue;
        const int64_t to = (int64_t)place->at + 1 + place->code->inst.imm;
        if (to < 0 || to >= program->word_count) continue;
        const uint32_t target = program->place_of[to];
        if (program->places[target].at == to) program->edges[program->edge_count++] = (struct edge){i, target};
    }
    qsort(program->edges, program->edge_count, sizeof *program->edges, by_target);
    for (uint32_t i = program->edge_count; i-- > 0;) {
        struct place *to = &program->places[program->edges[i].to];
        to->from = i;
        to->froms++;
    }
}

// ---- searches

static void consider(struct search *search, const struct place *first, unsigned states, bool branch, bool dgemm) {
    const struct sim_pair pair = {first->code, search->second->code, states, dgemm};
    struct sim_wait wait = {0};
    while (tessera_sim_find_wait(&search->program->wave, &pair, &wait)) {
        struct finding *found = wait.spare ? &search->spare : &search->needed;
        if (wait.states - states > found->missing) *found = (struct finding){wait.states - states, first, branch, wait};
    }
}

// Searches backwards from `place`, without `place` itself; `states` wait states have been counted so far.
static void go_back(struct search *search, const struct place *place, unsigned states, bool branch, bool dgemm);

static void visit(struct search *search, struct place *place, unsigned states, bool branch, bool dgemm) {
    if (place->seen == search->program->searches && place->seen_states <= states) return;
    place->seen = search->program->searches;
    place->seen_states = states;
    consider(search, place, states, branch, dgemm);
    states += states_of(place);
    if (states < FARTHEST) go_back(search, place, states, branch, dgemm || begins(place, "v_mfma_f64"));
}

static void go_back(struct search *search, const struct place *place, unsigned states, bool branch, bool dgemm) {
    struct program *program = search->program;
    const uint32_t index = (uint32_t)(place - program->places);
    if (index > 0 && falls_through(place - 1))
        visit(search, &program->places[index - 1], states, branch || begins(place - 1, "s_cbranch"), dgemm);
    for (uint32_t i = place->from; i < place->from + place->froms; i++)
        visit(search, &program->places[program->edges[i].from], states, true, dgemm);
}

static struct search look(struct program *program, const struct place *second, const struct place *from) {
    struct search search = {.program = program, .second = second};
    program->searches++;
    go_back(&search, from, 0, false, false);
    return search;
}

// ---- output

static void print(const struct place *place, unsigned states, const struct finding *found, const char *kind) {
    printf("%u\t%u\t%u\t%u\t%s\t%s\t%s\t%s\n", 4 * place->at, states, found->missing,
           found->first ? 4 * found->first->at : 0, found->branch ? "branch" : "line", kind,
           found->first ? found->wait.text : "", found->first && found->wait.spare ? found->wait.spare : "");
}

// Examines the s_nops before an instruction, and looks for the rule that asks for them.
static void examine(struct program *program, const struct place *second) {
    const struct place *run = second;
    unsigned states = 0;
    while (run > program->places && is_nop(run - 1) && run->froms == 0) states += states_of(--run);
    const struct search without = look(program, second, run);
    const bool needed = without.needed.missing >= without.spare.missing;
    if (states) print(run, states, needed ? &without.needed : &without.spare, needed ? "needed" : "spare");
    const struct search with = states ? look(program, second, second) : without;
    if (with.needed.missing) print(second, 0, &with.needed, "short");
}

int main(int argc, char **argv) {
    static const char *const names[SIM_ARCHS] = {"gfx90a", "gfx942", "gfx950"};
    static struct program program;
    for (int arch = 0; argc >= 2 && arch < SIM_ARCHS; arch++) {
        if (strcmp(argv[1], names[arch]) != 0) continue;
        while (program.word_count < MOST_WORDS && scanf("%x", &program.words[program.word_count]) == 1)
            program.word_count++;
        program.wave.first_agpr = SIM_VGPRS; // where AGPRs start does not matter here
        decode(&program, (enum sim_arch)arch);
        find_edges(&program);
        for (int i = 2; i < argc; i++) {
            const unsigned long at = strtoul(argv[i], NULL, 10) / 4;
            if (at < program.word_count) program.places[program.place_of[at]].uncounted = true;
        }
        for (uint32_t i = 0; i < program.place_count; i++)
            if (!is_nop(&program.places[i])) examine(&program, &program.places[i]);
        for (uint32_t i = 0; i < program.place_count; i++) free(program.places[i].code);
        return 0;
    }
    fprintf(stderr, "usage: tessera_sim_padding gfx90a|gfx942|gfx950 [PLACE...] < words\n");
    return 2;
}
