// SPDX-License-Identifier: MIT
#include "traffic.h"

#include <stdlib.h>
#include <string.h>

#include "kinds.h"

// Calls `see` for each load's or store's lines.
typedef void (*see_lines)(void *user, const struct sim_step *step, const uint64_t *lines, unsigned count);

static void for_accesses(const struct sim_recording *recording, bool stores, see_lines see, void *user) {
    for (uint32_t i = 0; i < recording->wave_count; i++)
        for (size_t k = 0; k < recording->waves[i].count; k++) {
            const struct sim_step *step = &recording->waves[i].steps[k];
            if (step->code->kind != (stores ? SIM_KIND_STORE : SIM_KIND_LOAD)) continue;
            see(user, step, recording->words + step->extra + 1, sim_lines_at(recording, step->extra).lines);
        }
}

struct line_list {
    uint64_t *lines; // NULL: there is no memory
    size_t count;
};

static int compare_lines(const void *a, const void *b) {
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static void add_lines(void *user, const struct sim_step *step, const uint64_t *lines, unsigned count) {
    struct line_list *list = user;
    (void)step;
    memcpy(list->lines + list->count, lines, count * sizeof *lines);
    list->count += count;
}

// In order. The caller frees them.
static struct line_list list_lines(const struct sim_recording *recording, bool stores) {
    struct line_list list = {malloc((recording->word_count + 1) * sizeof *list.lines), 0};
    if (!list.lines) return list;
    for_accesses(recording, stores, add_lines, &list);
    qsort(list.lines, list.count, sizeof *list.lines, compare_lines);
    return list;
}

struct marking {
    struct line_list others;
    uint8_t *shared, apart;
};

static void mark_shared(void *user, const struct sim_step *step, const uint64_t *lines, unsigned count) {
    const struct marking *marking = user;
    const struct line_list *others = &marking->others;
    uint8_t *shared = &marking->shared[step->at / 4];
    if (count && !*shared && bsearch(lines, others->lines, others->count, sizeof *lines, compare_lines))
        *shared = marking->apart;
}

void tessera_sim_mark_shared(const struct sim_recording *recording, const struct sim_recording *other, uint8_t apart,
                             uint8_t *shared) {
    struct marking marking = {list_lines(other, false), shared, apart};
    if (!marking.others.lines) return;
    for_accesses(recording, false, mark_shared, &marking);
    free(marking.others.lines);
}

static void count_lines(void *user, const struct sim_step *step, const uint64_t *lines, unsigned count) {
    (void)step;
    (void)lines;
    *(size_t *)user += count;
}

size_t tessera_sim_loaded_lines(const struct sim_recording *recording) {
    size_t count = 0;
    for_accesses(recording, false, count_lines, &count);
    return count;
}

size_t tessera_sim_stored_lines(const struct sim_recording *recording) {
    const struct line_list list = list_lines(recording, true);
    size_t count = 0;
    for (size_t i = 0; i < list.count; i++) count += i == 0 || list.lines[i] != list.lines[i - 1];
    free(list.lines);
    return count;
}
