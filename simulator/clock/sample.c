// SPDX-License-Identifier: MIT
#include "sample.h"

#include <math.h>
#include <stdlib.h>

#include "code_object/module.h"

enum { AXES = 3 };

// ---- occupancy

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

// Registers are given out by eight, LDS by 512 bytes, on gfx950 by 1280.
static uint32_t resident_groups(const struct sim_launch *launch, const struct sim_parameters *page) {
    enum { SIMDS = 4, KILOBYTE = 1024 };
    const uint32_t granule = launch->sim->arch == SIM_GFX950 ? 1280 : 512;
    const uint32_t registers = 8 * ((launch->kernel->descriptor.compute_pgm_rsrc1 & 63) + 1);
    const uint32_t waves = SIMDS * smaller(page->waves, page->registers / registers);
    const uint32_t lds = (launch->lds_bytes + granule - 1) / granule * granule;
    uint32_t groups = waves / launch->waves_per_group;
    if (lds) groups = smaller(groups, page->lds_kilobytes * KILOBYTE / lds);
    const uint64_t there = (launch->group_count + page->units - 1) / page->units;
    if (groups > there) groups = (uint32_t)there;
    return groups == 0 ? 1 : smaller(groups, SIM_MOST_RESIDENT);
}

// ---- choosing

// Where workgroups of several heads take turns, the next one of the same head is so many later.
const uint8_t tessera_sim_neighbours[SIM_NEIGHBOURS] = {1, 2, 3, 4, 5, 8, 16};

static void split(const struct sim_launch *launch, uint64_t number, uint32_t id[AXES]) {
    id[0] = (uint32_t)(number % launch->groups[0]);
    id[1] = (uint32_t)(number / launch->groups[0] % launch->groups[1]);
    id[2] = (uint32_t)(number / launch->groups[0] / launch->groups[1]);
}

// Point `i` lies in the i-th part of each axis in an order of that axis's own, so that few points cover all axes.
static uint64_t place_point(const struct sim_launch *launch, uint32_t i) {
    static const uint8_t order[AXES][SIM_MOST_POINTS] = {
        {0, 1, 2, 3, 4, 5, 6, 7}, {3, 6, 1, 4, 7, 2, 5, 0}, {5, 2, 7, 0, 3, 6, 1, 4}};
    uint64_t at[AXES];
    for (int axis = 0; axis < AXES; axis++)
        at[axis] = (2 * order[axis][i] + UINT64_C(1)) * launch->groups[axis] / (2 * SIM_MOST_POINTS);
    return at[0] + launch->groups[0] * (at[1] + launch->groups[1] * at[2]);
}

// A unit gets its workgroups as many apart as there are units.
static void add_residents(const struct sim_launch *launch, const struct sim_parameters *page, struct sim_point *point,
                          uint32_t resident) {
    for (point->count = 1; point->count < resident; point->count++) {
        const uint64_t apart = (uint64_t)page->units * point->count;
        point->numbers[point->count] = (point->numbers[0] + apart) % launch->group_count;
    }
}

struct sim_sample tessera_sim_sample(const struct sim_launch *launch, const struct sim_parameters *page) {
    struct sim_sample sample = {.resident = resident_groups(launch, page)};
    const bool all = launch->group_count <= SIM_MOST_POINTS;
    sample.count = all ? (uint32_t)launch->group_count : SIM_MOST_POINTS;
    for (uint32_t i = 0; i < sample.count; i++) {
        sample.points[i].numbers[0] = all ? i : place_point(launch, i);
        add_residents(launch, page, &sample.points[i], sample.resident);
    }
    const uint64_t first = sample.points[0].numbers[0];
    for (int i = 0; i < SIM_NEIGHBOURS; i++) {
        const uint64_t beside = first + (uint64_t)page->dies * tessera_sim_neighbours[i];
        sample.neighbours[i] = beside < launch->group_count ? beside : first;
    }
    return sample;
}

bool tessera_sim_is_sampled(const struct sim_sample *sample, uint64_t number) {
    for (uint32_t i = 0; i < sample->count; i++)
        for (uint32_t k = 0; k < sample->points[i].count; k++)
            if (sample->points[i].numbers[k] == number) return true;
    for (int i = 0; i < SIM_NEIGHBOURS; i++)
        if (sample->neighbours[i] == number) return true;
    return false;
}

// ---- estimating: a workgroup's cycles are linear in its place on the axis on which they depend most, as with causal
// masks, or the mean where they depend on none

struct line {
    int axis;
    double at_zero, slope, deviation;
};

struct timed_list {
    const struct sim_launch *launch;
    const struct sim_timed *timed;
    size_t count;
};

static double place_on(const struct sim_launch *launch, uint64_t number, int axis) {
    uint32_t id[AXES];
    split(launch, number, id);
    return id[axis];
}

static struct line fit_axis(const struct timed_list *list, int axis) {
    const double n = (double)list->count;
    double x = 0, y = 0, xx = 0, xy = 0, yy = 0;
    for (size_t i = 0; i < list->count; i++) {
        const double at = place_on(list->launch, list->timed[i].number, axis), cycles = list->timed[i].cycles;
        x += at;
        y += cycles;
        xx += at * at;
        xy += at * cycles;
        yy += cycles * cycles;
    }
    const double spread = xx - x * x / n, slope = spread > 0 ? (xy - x * y / n) / spread : 0;
    const double rest = yy - y * y / n - slope * slope * spread;
    return (struct line){axis, (y - slope * x) / n, slope, sqrt(rest > 0 ? rest / n : 0)};
}

// A slope is believed where it leaves less than half of the deviation.
static struct line fit(const struct timed_list *list) {
    const double n = (double)list->count;
    struct line flat = {0, 0, 0, 0};
    for (size_t i = 0; i < list->count; i++) flat.at_zero += list->timed[i].cycles / n;
    for (size_t i = 0; i < list->count; i++)
        flat.deviation += (list->timed[i].cycles - flat.at_zero) * (list->timed[i].cycles - flat.at_zero) / n;
    flat.deviation = sqrt(flat.deviation);
    struct line best = flat;
    for (int axis = 0; axis < AXES; axis++) {
        const struct line line = fit_axis(list, axis);
        if (line.deviation < best.deviation && line.deviation < flat.deviation / 2) best = line;
    }
    return best;
}

static double on_line(const struct timed_list *list, const struct line *line, uint64_t number) {
    return line->at_zero + line->slope * place_on(list->launch, number, line->axis);
}

// Workgroups deviate from the line as those that were timed do, in turn, so that the slowest of many is slower than the
// mean.
static double cycles_of(const struct timed_list *list, const struct line *line, uint64_t number) {
    const struct sim_timed *like = &list->timed[number % list->count];
    const double cycles = on_line(list, line, number) + like->cycles - on_line(list, line, like->number);
    return cycles > 0 ? cycles : 0;
}

// Puts a value at the top of a heap, and brings that into order.
static void sink(double *heap, size_t count, double value) {
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= count) break;
        if (child + 1 < count && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= value) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = value;
}

// Workgroups go in order to the place that is free first.
struct sim_estimate tessera_sim_estimate(const struct sim_launch *launch, const struct sim_parameters *page,
                                         uint32_t resident, const struct sim_timed *timed, size_t count) {
    const struct timed_list list = {launch, timed, count};
    const struct line line = fit(&list);
    const size_t places = (size_t)page->units * resident;
    double *free_at = calloc(places, sizeof *free_at), last = 0, sum = 0;
    if (!free_at) return (struct sim_estimate){0, 0};
    for (uint64_t number = 0; number < launch->group_count; number++) {
        const double more = cycles_of(&list, &line, number), end = free_at[0] + more;
        sink(free_at, places, end);
        if (end > last) last = end;
        sum += more;
    }
    free(free_at);
    const double mean = sum / (double)launch->group_count;
    const bool whole = count >= launch->group_count;
    const double error = mean > 0 && !whole ? line.deviation / sqrt((double)count) / mean : 0;
    return (struct sim_estimate){floor(last) + page->launch_cycles, error};
}
