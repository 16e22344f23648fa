// SPDX-License-Identifier: MIT
#include "traffic.h"

#include <math.h>
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
static struct line_list list_stores(const struct sim_recording *recording) {
    struct line_list list = {malloc((recording->word_count + 1) * sizeof *list.lines), 0};
    if (!list.lines) return list;
    for_accesses(recording, true, add_lines, &list);
    qsort(list.lines, list.count, sizeof *list.lines, compare_lines);
    return list;
}

// ---- lines that several workgroups read

enum { FARTHEST = 16 };

struct load {
    uint64_t line;
    uint32_t word; // of code
};

struct load_list {
    struct load *loads; // in the order of lines
    size_t count;
};

// Of a word of code and a distance: lines of workgroups so far apart, and those that both read.
struct tally {
    uint32_t all, both;
};

static int compare_loads(const void *a, const void *b) { return compare_lines(a, b); } // a load begins with its line

static void add_loads(void *user, const struct sim_step *step, const uint64_t *lines, unsigned count) {
    struct load_list *list = user;
    for (unsigned i = 0; i < count; i++) list->loads[list->count++] = (struct load){lines[i], step->at / 4};
}

static struct load_list list_loads(const struct sim_recording *recording) {
    struct load_list list = {malloc((recording->word_count + 1) * sizeof *list.loads), 0};
    if (!list.loads) return list;
    for_accesses(recording, false, add_loads, &list);
    qsort(list.loads, list.count, sizeof *list.loads, compare_loads);
    return list;
}

static void count_both(const struct load_list *list, const struct load_list *other, uint32_t apart,
                       struct tally (*tallies)[FARTHEST + 1]) {
    size_t k = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct load *load = &list->loads[i];
        while (k < other->count && other->loads[k].line < load->line) k++;
        tallies[load->word][apart].all++;
        tallies[load->word][apart].both += k < other->count && other->loads[k].line == load->line;
    }
}

static double share_at(const struct tally *tallies, uint32_t apart) {
    return tallies[apart].all ? (double)tallies[apart].both / tallies[apart].all : 0;
}

// The least distance at which workgroups read the same, be it half as often as at another one; 0: none do.
static uint32_t find_stride(const struct tally *tallies) {
    double most = 0;
    uint32_t stride = 1;
    for (uint32_t apart = 1; apart <= FARTHEST; apart++) most = fmax(most, share_at(tallies, apart));
    while (most > 0 && share_at(tallies, stride) < most / 2) stride++;
    return most > 0 ? stride : 0;
}

// Of n workgroups in a row that read a line, a stride from one to the next, 1 - m / n have another one m strides
// further on, which says n for each m. There are no more in a row than the XCD has at that stride.
static double own_share(const struct tally *tallies, uint32_t of_die) {
    const uint32_t stride = find_stride(tallies);
    double sum = 0, weight = 0;
    for (uint32_t m = 1; stride && m * stride <= FARTHEST; m++) {
        const struct tally *tally = &tallies[m * stride];
        sum += tally->both * (1 - share_at(tallies, m * stride)) / m;
        weight += tally->both;
    }
    return weight > 0 ? fmin(1, fmax(sum / weight, (double)stride / of_die)) : 1;
}

static bool count_all(const struct sim_neighbour *neighbours, size_t count, struct tally (*tallies)[FARTHEST + 1]) {
    struct load_list *lists = calloc(count, sizeof *lists);
    bool done = lists;
    for (size_t i = 0; done && i < count; i++) {
        lists[i] = list_loads(neighbours[i].recording);
        done = lists[i].loads;
    }
    for (size_t i = 0; done && i < count; i++)
        for (size_t k = 0; k < i; k++) {
            const uint32_t apart = neighbours[i].place - neighbours[k].place;
            count_both(&lists[i], &lists[k], apart, tallies);
            count_both(&lists[k], &lists[i], apart, tallies);
        }
    for (size_t i = 0; lists && i < count; i++) free(lists[i].loads);
    free(lists);
    return done;
}

float *tessera_sim_own_shares(const struct sim_neighbour *neighbours, size_t count, size_t words, uint32_t of_die) {
    struct tally(*tallies)[FARTHEST + 1] = calloc(words, sizeof *tallies);
    float *own = malloc(words * sizeof *own);
    if (tallies && own && count_all(neighbours, count, tallies)) {
        for (size_t i = 0; i < words; i++) own[i] = (float)own_share(tallies[i], of_die);
    } else {
        free(own);
        own = NULL;
    }
    free(tallies);
    return own;
}

// ---- how many

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
    const struct line_list list = list_stores(recording);
    size_t count = 0;
    for (size_t i = 0; i < list.count; i++) count += i == 0 || list.lines[i] != list.lines[i - 1];
    free(list.lines);
    return count;
}
