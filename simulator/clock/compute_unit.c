// SPDX-License-Identifier: MIT
#include "compute_unit.h"

#include <stdlib.h>
#include <string.h>

#include "in_flight.h"
#include "reasons.h"

enum { QUEUE = 64 }; // at least the longest queue

// A wave in its place on a SIMD.
struct place {
    const struct sim_recording *group; // NULL: empty
    const struct sim_step *step, *end;
    size_t group_index;
    uint32_t wave; // of the group
    unsigned simd;
    unsigned priority;
    uint64_t age;           // how many waves began before
    uint64_t began, issued; // when it began, and issued its last instruction
    uint64_t next;          // before which it issues nothing
    uint8_t next_reason;    // enum sim_reason
    bool at_barrier;
    uint32_t block;       // of code, in which its last instruction began
    uint64_t fetched;     // when the block behind that one has arrived
    uint64_t matrix_done; // when its last matrix instruction leaves the pipe
    uint64_t memory_done; // when its last memory operation is done: they come in order
    struct sim_in_flight memory, lgkm;
};

// What keeps an instruction from issuing.
struct bound {
    uint64_t cycle;
    uint8_t reason; // enum sim_reason
};

struct simd {
    uint64_t port;            // when the VALU port is free
    uint8_t port_cause;       // for what it is held
    uint64_t pipe;            // when the matrix pipe is free
    uint64_t unit[SIM_UNITS]; // when each unit takes another instruction
    uint64_t seen;            // the cycles before are accounted for
    unsigned waves;
};

struct unit {
    const struct sim_parameters *page;
    const struct sim_recording *const *groups;
    size_t group_count;
    bool refilled, stopped;
    double *stays;
    struct place *places;
    unsigned place_count;
    struct simd simds[SIM_SIMDS];
    uint64_t lds_begun, lds_free;                  // when LDS began its last request, and is free
    uint64_t pair_free[SIM_SIMDS / 2];             // when its way to each pair of SIMDs is
    uint64_t l1_free, begun[QUEUE], stored[QUEUE]; // when L1 began the latest accesses, and the latest stores
    unsigned memory_count, store_count;
    uint64_t begun_waves;
    struct sim_caches caches;
    struct sim_replay *replay;
};

// ---- what an instruction waits for

static void bind(struct bound *bound, uint64_t cycle, enum sim_reason reason) {
    if (cycle <= bound->cycle) return;
    bound->cycle = cycle;
    bound->reason = (uint8_t)reason;
}

static void bind_wait(struct bound *bound, const struct place *place, uint32_t imm) {
    const unsigned vmcnt = (imm & 15) | (imm >> 14 & 3) << 4, lgkmcnt = imm >> 8 & 15;
    bind(bound, sim_in_flight_until(&place->memory, vmcnt), SIM_REASON_VMCNT);
    bind(bound, sim_in_flight_until(&place->lgkm, lgkmcnt), SIM_REASON_LGKMCNT);
}

// The queue before L1 takes a request when the one that many places before has begun.
static uint64_t queue_free(const uint64_t *begun, unsigned count, unsigned size) {
    return count < size ? 0 : begun[(count - size) % QUEUE];
}

static void bind_memory(struct bound *bound, const struct unit *unit, const struct place *place, bool store) {
    const struct sim_parameters *page = unit->page;
    bind(bound, sim_in_flight_until(&place->memory, page->vm_most - 1), SIM_REASON_MEMORY_QUEUE);
    bind(bound, queue_free(unit->begun, unit->memory_count, page->memory_queue), SIM_REASON_MEMORY_QUEUE);
    if (store) bind(bound, queue_free(unit->stored, unit->store_count, page->store_queue), SIM_REASON_MEMORY_QUEUE);
}

static void bind_lds(struct bound *bound, const struct unit *unit, const struct place *place) {
    const struct sim_parameters *page = unit->page;
    bind(bound, sim_in_flight_until(&place->lgkm, page->lgkm_most - 1), SIM_REASON_LDS_QUEUE);
    if (unit->lds_free > page->lds_queue) bind(bound, unit->lds_free - page->lds_queue, SIM_REASON_LDS_QUEUE);
    const uint64_t way = unit->pair_free[place->simd / 2];
    if (way > page->lds_queue) bind(bound, way - page->lds_queue, SIM_REASON_LDS_QUEUE);
}

static uint32_t first_block(const struct sim_parameters *page, const struct sim_step *step) {
    return step->at / page->fetch_bytes;
}

static uint32_t last_block(const struct sim_parameters *page, const struct sim_step *step) {
    return (step->at + step->code->size - 1) / page->fetch_bytes;
}

// Whether an instruction steers its wave, and needs no unit.
static bool is_internal(const struct sim_code *code) { return code->kind >= SIM_KIND_WAIT; }

// When the wave's next instruction can issue, as far as is known now.
static struct bound find_bound(const struct unit *unit, const struct place *place) {
    const struct sim_code *code = place->step->code;
    const struct simd *simd = &unit->simds[place->simd];
    struct bound bound = {place->next, place->next_reason};
    if (last_block(unit->page, place->step) > place->block) bind(&bound, place->fetched, SIM_REASON_FETCH);
    if (!is_internal(code)) bind(&bound, simd->unit[code->effects.unit], SIM_REASON_OTHER);
    switch (code->kind) {
    case SIM_KIND_PACKED:
        if (place->matrix_done) bind(&bound, place->matrix_done + unit->page->packed_drain, SIM_REASON_DRAIN);
        // fall through
    case SIM_KIND_VALU:
    case SIM_KIND_MULTIPLY:
    case SIM_KIND_CONVERT:
    case SIM_KIND_TRANSCENDENTAL:
        bind(&bound, simd->port, SIM_REASON_PORT);
        break;
    case SIM_KIND_MATRIX:
        bind(&bound, simd->port, SIM_REASON_PORT);
        bind(&bound, simd->pipe, SIM_REASON_PIPE);
        break;
    case SIM_KIND_LDS:
        bind_lds(&bound, unit, place);
        break;
    case SIM_KIND_SCALAR_MEMORY:
        bind(&bound, sim_in_flight_until(&place->lgkm, unit->page->lgkm_most - 1), SIM_REASON_LDS_QUEUE);
        break;
    case SIM_KIND_LOAD:
    case SIM_KIND_STORE:
        bind_memory(&bound, unit, place, code->kind == SIM_KIND_STORE);
        break;
    case SIM_KIND_WAIT:
        bind_wait(&bound, place, (uint32_t)code->inst.imm & 0xffff);
        break;
    default:
        break;
    }
    return bound;
}

// ---- what an instruction does

static uint32_t port_cycles(const struct sim_parameters *page, enum sim_kind kind) {
    return kind == SIM_KIND_TRANSCENDENTAL ? page->transcendental
           : kind == SIM_KIND_MULTIPLY     ? page->multiply
           : kind == SIM_KIND_CONVERT      ? page->convert
                                           : page->valu;
}

static void run_valu(struct unit *unit, struct place *place, uint64_t now) {
    const enum sim_kind kind = (enum sim_kind)place->step->code->kind;
    struct simd *simd = &unit->simds[place->simd];
    simd->port = now + port_cycles(unit->page, kind);
    unit->replay->valu_cycles += simd->port - now;
    simd->port_cause = kind == SIM_KIND_TRANSCENDENTAL ? TESSERA_SIM_CAUSE_TRANSCENDENTAL : TESSERA_SIM_CAUSE_VALU;
    if (kind == SIM_KIND_PACKED && simd->pipe > now) simd->pipe += unit->page->packed_stall;
}

static void run_matrix(struct unit *unit, struct place *place, uint64_t now) {
    struct simd *simd = &unit->simds[place->simd];
    simd->port = now + unit->page->matrix_port;
    simd->port_cause = TESSERA_SIM_CAUSE_MATRIX;
    simd->pipe = place->matrix_done = now + (uint64_t)unit->page->pass * place->step->code->effects.passes;
}

static uint32_t lds_latency(const struct sim_parameters *page, unsigned bits, bool store) {
    if (bits > 64) return store ? page->lds_write_4 : page->lds_read_4;
    if (bits > 32) return store ? page->lds_write_2 : page->lds_read_2;
    return store ? page->lds_write : page->lds_read;
}

static void run_lds(struct unit *unit, struct place *place, uint64_t now) {
    const struct sim_parameters *page = unit->page;
    const struct sim_inst *inst = &place->step->code->inst;
    const bool store = inst->op[SIM_DST].kind == SIM_ABSENT, pair = inst->row->flags & SIM_FLAG_PAIR;
    const uint32_t phases = place->step->extra & 0xffff, conflicts = place->step->extra >> 16;
    const uint32_t bits = inst->op[store ? SIM_DATA : SIM_DST].bits;
    const uint32_t cycles = (bits > 64 && !pair ? phases * page->lds_wide / 100 : phases) + conflicts;
    uint64_t *way = &unit->pair_free[place->simd / 2];
    uint64_t start = unit->lds_free > now ? unit->lds_free : now;
    if (*way > start) start = *way;
    unit->lds_begun = start;
    unit->lds_free = start + cycles;
    *way = start + bits / 8 * SIM_LANES / page->lds_pair;
    unit->replay->lds_cycles += cycles;
    unit->replay->lds_conflicts += conflicts;
    sim_in_flight_add(&place->lgkm, now, start + conflicts + lds_latency(page, bits, store));
}

// Cycles for which L1 works on an access.
static uint32_t l1_cycles(const struct sim_parameters *page, const struct sim_lines *lines) {
    const uint32_t addresses = SIM_LANES / page->address, block = 1u << SIM_BLOCK_SHIFT;
    const uint32_t moved = lines->blocks * block / page->l1_bytes;
    return moved > addresses ? moved : addresses;
}

static void run_memory(struct unit *unit, struct place *place, uint64_t now) {
    const struct sim_step *step = place->step;
    const struct sim_lines lines = sim_lines_at(place->group, step->extra);
    const bool store = step->code->kind == SIM_KIND_STORE;
    const uint64_t start = unit->l1_free > now ? unit->l1_free : now;
    unit->l1_free = start + l1_cycles(unit->page, &lines);
    unit->begun[unit->memory_count++ % QUEUE] = start;
    if (store) unit->stored[unit->store_count++ % QUEUE] = unit->l1_free;
    const float *own = unit->caches.neighbours.own;
    uint64_t done = tessera_sim_caches_access(&unit->caches, start, place->group->words + step->extra + 1, lines.lines,
                                              (struct sim_access_kind){store, own ? own[step->at / 4] : 1});
    if (done < unit->l1_free) done = unit->l1_free;
    if (step->code->effects.to_lds) unit->lds_free += lines.bytes / (1u << SIM_LINE_SHIFT);
    if (done < place->memory_done) done = place->memory_done;
    place->memory_done = done;
    if (!store) unit->replay->loaded += lines.lines;
    sim_in_flight_add(&place->memory, now, done);
}

static void run_scalar_memory(struct unit *unit, struct place *place, uint64_t now) {
    const uint32_t at = place->step->extra;
    const uint64_t lines = at == SIM_NO_LINES ? 0 : place->group->words[at];
    const uint32_t latency = at == SIM_NO_LINES ? unit->page->scalar_memory
                                                : tessera_sim_caches_scalar(&unit->caches, lines >> 1, lines & 1);
    sim_in_flight_add(&place->lgkm, now, now + latency);
}

// Lets the waves of a workgroup go on when all that have not ended stand at the barrier.
static void pass_barrier(struct unit *unit, const struct sim_recording *group, size_t index, uint64_t now) {
    for (unsigned i = 0; i < unit->place_count; i++)
        if (unit->places[i].group == group && unit->places[i].group_index == index && !unit->places[i].at_barrier)
            return;
    for (unsigned i = 0; i < unit->place_count; i++) {
        struct place *place = &unit->places[i];
        if (place->group != group || place->group_index != index) continue;
        place->at_barrier = false;
        place->next = now + unit->page->barrier;
        place->next_reason = SIM_REASON_BARRIER;
    }
}

static bool is_taken(const struct place *place) {
    const struct sim_step *next = place->step + 1;
    return next < place->end && next->at != place->step->at + place->step->code->size;
}

// The cycles from this instruction of the wave to its next one, and why these.
static struct bound cycles_to_next(const struct unit *unit, const struct place *place) {
    const struct sim_parameters *page = unit->page;
    const struct sim_inst *inst = &place->step->code->inst;
    if (is_taken(place)) return (struct bound){page->branch, SIM_REASON_BRANCH};
    if (place->step->code->kind != SIM_KIND_SLEEP) return (struct bound){page->issue, SIM_REASON_ISSUE};
    const unsigned states =
        inst->row->op == SIM_OP_s_sleep ? ((unsigned)inst->imm & 127) * 16 : (unsigned)inst->imm & 15;
    return (struct bound){(uint64_t)page->wait_state * (states + 1), SIM_REASON_STATES};
}

// The first instruction of a block of code makes room for the next block. A taken branch comes with the target's block,
// and with that behind it where the instruction lies in both.
static void fetch(const struct unit *unit, struct place *place, uint64_t now) {
    const uint32_t block = first_block(unit->page, place->step);
    if (block != place->block) place->fetched = now + unit->page->fetch;
    place->block = is_taken(place) ? last_block(unit->page, place->step + 1) : block;
}

static void run_step(struct unit *unit, struct place *place, uint64_t now) {
    const struct sim_code *code = place->step->code;
    switch (code->kind) {
    case SIM_KIND_VALU:
    case SIM_KIND_PACKED:
    case SIM_KIND_MULTIPLY:
    case SIM_KIND_CONVERT:
    case SIM_KIND_TRANSCENDENTAL:
        run_valu(unit, place, now);
        break;
    case SIM_KIND_MATRIX:
        run_matrix(unit, place, now);
        break;
    case SIM_KIND_LDS:
        run_lds(unit, place, now);
        break;
    case SIM_KIND_SCALAR_MEMORY:
        run_scalar_memory(unit, place, now);
        break;
    case SIM_KIND_LOAD:
    case SIM_KIND_STORE:
        run_memory(unit, place, now);
        break;
    case SIM_KIND_PRIORITY:
        place->priority = (unsigned)code->inst.imm & 3;
        break;
    default:
        break;
    }
}

// ---- accounts

// Accounts for a SIMD's cycles up to `now`: first those of the matrix pipe, then those for which the port was held, and
// the rest to the cause that kept the instruction that issues now.
static void account(struct unit *unit, struct simd *simd, uint64_t now, tessera_sim_cause cause) {
    uint64_t *sums = unit->replay->cause;
    if (simd->pipe > simd->seen) {
        const uint64_t until = simd->pipe < now ? simd->pipe : now;
        sums[TESSERA_SIM_CAUSE_MATRIX] += until - simd->seen;
        simd->seen = until;
    }
    if (simd->port > simd->seen && simd->seen < now) {
        const uint64_t until = simd->port < now ? simd->port : now;
        sums[simd->port_cause] += until - simd->seen;
        simd->seen = until;
    }
    if (simd->seen < now) sums[cause] += now - simd->seen;
    if (simd->seen < now) simd->seen = now;
}

// ---- workgroups

static unsigned least_loaded(const struct unit *unit) {
    unsigned best = 0;
    for (unsigned i = 1; i < SIM_SIMDS; i++)
        if (unit->simds[i].waves < unit->simds[best].waves) best = i;
    return best;
}

static struct place *empty_place(const struct unit *unit) {
    for (unsigned i = 0; i < unit->place_count; i++)
        if (!unit->places[i].group) return &unit->places[i];
    return NULL;
}

static void begin_group(struct unit *unit, size_t index) {
    const struct sim_recording *group = unit->groups[index];
    for (uint32_t i = 0; i < group->wave_count; i++) {
        struct place *place = empty_place(unit);
        const struct sim_wave_recording *wave = &group->waves[i];
        if (!place || wave->count == 0) continue;
        *place = (struct place){.group = group,
                                .step = wave->steps,
                                .end = wave->steps + wave->count,
                                .group_index = index,
                                .wave = i,
                                .simd = least_loaded(unit),
                                .age = unit->begun_waves++,
                                .block = wave->steps->at / unit->page->fetch_bytes,
                                .fetched = unit->page->fetch,
                                .next_reason = SIM_REASON_START};
        unit->simds[place->simd].waves++;
    }
}

static bool is_present(const struct unit *unit, const struct sim_recording *group, size_t index) {
    for (unsigned i = 0; i < unit->place_count; i++)
        if (unit->places[i].group == group && unit->places[i].group_index == index) return true;
    return false;
}

static size_t all_steps(const struct sim_recording *group) {
    size_t sum = 0;
    for (uint32_t i = 0; i < group->wave_count; i++) sum += group->waves[i].count;
    return sum;
}

static size_t steps_left(const struct unit *unit, size_t index) {
    size_t sum = 0;
    for (unsigned i = 0; i < unit->place_count; i++) {
        const struct place *place = &unit->places[i];
        if (place->group && place->group_index == index) sum += (size_t)(place->end - place->step);
    }
    return sum;
}

// Ends the replay: of the steps until now each workgroup's share of the time was that of its steps.
static void stop(struct unit *unit, uint64_t now) {
    double executed = 0;
    unit->stopped = true;
    unit->replay->groups = 0;
    for (size_t i = 0; i < unit->group_count; i++) {
        const double all = (double)all_steps(unit->groups[i]), done = all - (double)steps_left(unit, i);
        executed += done;
        unit->replay->groups += done / all;
    }
    for (size_t i = 0; i < unit->group_count; i++)
        unit->stays[i] = (double)all_steps(unit->groups[i]) * (double)(unit->group_count * now) / executed;
    for (unsigned i = 0; i < unit->place_count; i++)
        if (unit->places[i].group) unit->replay->wave_cycles += now;
}

static void end_wave(struct unit *unit, struct place *place, uint64_t now) {
    const struct sim_recording *group = place->group;
    const size_t index = place->group_index;
    unit->replay->wave_cycles += now - place->began;
    place->group = NULL;
    unit->simds[place->simd].waves--;
    if (is_present(unit, group, index)) {
        pass_barrier(unit, group, index, now);
        return;
    }
    if (now > unit->replay->cycles) unit->replay->cycles = now;
    if (unit->refilled)
        stop(unit, now);
    else
        unit->stays[index] = (double)now;
}

// ---- the order of issue

static bool is_matrix(const struct place *place) { return place->step->code->kind == SIM_KIND_MATRIX; }

// Whether a wave goes before another one of its SIMD that can issue in the same cycle: by priority, then a matrix
// instruction before others, then the older wave.
static bool goes_before(const struct place *place, const struct place *other) {
    if (place->priority != other->priority) return place->priority > other->priority;
    const bool matrix = is_matrix(place), other_matrix = is_matrix(other);
    if (matrix != other_matrix) return matrix;
    return place->age < other->age;
}

// Each SIMD's wave whose instruction issues next: the earliest; NULL: none.
static void pick_waves(const struct unit *unit, struct place *best[SIM_SIMDS], struct bound bounds[SIM_SIMDS]) {
    for (unsigned i = 0; i < unit->place_count; i++) {
        struct place *place = &unit->places[i];
        if (!place->group || place->at_barrier) continue;
        struct place **on = &best[place->simd];
        struct bound *earliest = &bounds[place->simd];
        const struct bound bound = find_bound(unit, place);
        if (*on && bound.cycle > earliest->cycle) continue;
        if (*on && bound.cycle == earliest->cycle && !goes_before(place, *on)) continue;
        *on = place;
        *earliest = bound;
    }
}

// The wave whose instruction issues next. SIMDs take turns: of those that could in the same cycle it is that whose wave
// has issued its last instruction longest ago.
static struct place *pick(const struct unit *unit, struct bound *out) {
    struct place *waves[SIM_SIMDS] = {NULL}, *best = NULL;
    struct bound bounds[SIM_SIMDS];
    pick_waves(unit, waves, bounds);
    for (unsigned i = 0; i < SIM_SIMDS; i++) {
        if (!waves[i] || (best && bounds[i].cycle > out->cycle)) continue;
        if (best && bounds[i].cycle == out->cycle && waves[i]->issued >= best->issued) continue;
        best = waves[i];
        *out = bounds[i];
    }
    return best;
}

static void count(struct sim_profile *profile, const struct place *place, uint64_t now) {
    if (!profile) return;
    profile->issues[place->step->at / 4]++;
    profile->taken[place->step->at / 4] += is_taken(place);
    profile->cycles[place->step->at / 4] += now - place->issued;
}

// ---- the timeline

static void add_span(struct unit *unit, const struct place *place, uint64_t now, struct sim_span span) {
    const struct sim_step *step = span.track == SIM_TRACK_BARRIER ? place->step - 1 : place->step;
    span.code = step->code;
    span.at = step->at;
    span.issued = span.track == SIM_TRACK_BARRIER ? place->issued : now;
    span.group = (uint8_t)place->group_index;
    span.wave = (uint8_t)place->wave;
    span.simd = (uint8_t)place->simd;
    if (span.end > span.begin) tessera_sim_timeline_add(unit->replay->timeline, now, &span);
}

// Why the wave issued nothing since its last instruction.
static void note_wait(struct unit *unit, const struct place *place, struct bound bound) {
    const bool began = place->next_reason == SIM_REASON_START, barrier = place->next_reason == SIM_REASON_BARRIER;
    const uint64_t from = began || barrier ? place->issued : place->issued + unit->page->issue;
    add_span(unit, place, bound.cycle,
             (struct sim_span){.track = barrier ? SIM_TRACK_BARRIER : SIM_TRACK_WAIT,
                               .reason = place->next_reason,
                               .begin = from,
                               .end = place->next});
    add_span(
        unit, place, bound.cycle,
        (struct sim_span){.track = SIM_TRACK_WAIT, .reason = bound.reason, .begin = place->next, .end = bound.cycle});
}

// What an instruction that has issued keeps busy.
static void note_step(struct unit *unit, const struct place *place, uint64_t now) {
    const struct simd *simd = &unit->simds[place->simd];
    struct sim_span span = {.track = SIM_TRACK_SCALAR, .begin = now, .end = now + unit->page->issue};
    switch (place->step->code->effects.unit) {
    case SIM_UNIT_VALU:
        tessera_sim_timeline_stretch(unit->replay->timeline, place->simd, simd->pipe); // packed fp32 holds the pipe up
        span.track = SIM_TRACK_VALU, span.end = simd->port;
        break;
    case SIM_UNIT_MATRIX:
        span.track = SIM_TRACK_MATRIX, span.end = simd->pipe;
        break;
    case SIM_UNIT_LDS:
        span.track = SIM_TRACK_LDS, span.begin = unit->lds_begun, span.end = unit->lds_free;
        break;
    case SIM_UNIT_MEMORY:
    case SIM_UNIT_FLAT:
        span.track = SIM_TRACK_MEMORY, span.end = unit->l1_free;
        span.begin = unit->begun[(unit->memory_count - 1) % QUEUE];
        break;
    default:
        if (place->step->code->kind == SIM_KIND_BARRIER) return; // its span is known when it ends
    }
    add_span(unit, place, now, span);
}

// ---- one instruction

static void issue(struct unit *unit, struct place *place, struct bound bound) {
    const struct sim_code *code = place->step->code;
    struct simd *simd = &unit->simds[place->simd];
    const uint64_t now = bound.cycle;
    account(unit, simd, now, tessera_sim_reasons[bound.reason].cause);
    unit->replay->issued[code->kind]++;
    count(unit->replay->profile, place, now);
    if (unit->replay->timeline) note_wait(unit, place, bound);
    run_step(unit, place, now);
    if (unit->replay->timeline) note_step(unit, place, now);
    fetch(unit, place, now);
    const struct bound next = cycles_to_next(unit, place);
    simd->unit[code->effects.unit] = now + unit->page->issue;
    place->issued = now;
    place->next = now + next.cycle;
    place->next_reason = next.reason;
    place->step++;
    if (place->step == place->end) {
        end_wave(unit, place, place->next);
    } else if (code->kind == SIM_KIND_BARRIER) {
        place->at_barrier = true;
        pass_barrier(unit, place->group, place->group_index, now);
    }
}

static bool open_unit(struct unit *unit, const struct sim_parameters *page, const struct sim_neighbours *neighbours) {
    unit->place_count = SIM_SIMDS * page->waves;
    unit->places = calloc(unit->place_count, sizeof *unit->places);
    return tessera_sim_caches_open(&unit->caches, page, neighbours) && unit->places;
}

bool tessera_sim_replay(const struct sim_parameters *page, const struct sim_neighbours *neighbours,
                        const struct sim_recording *const *groups, size_t count, bool refilled,
                        struct sim_replay *replay, double *stays) {
    struct unit unit = {.page = page, .groups = groups, .group_count = count, .refilled = refilled, .stays = stays};
    struct bound bound = {0, SIM_REASON_START};
    struct place *place;
    const bool opened = open_unit(&unit, page, neighbours);
    unit.replay = replay;
    replay->groups = (double)count;
    for (size_t i = 0; opened && i < count; i++) begin_group(&unit, i);
    while (opened && !unit.stopped && (place = pick(&unit, &bound))) issue(&unit, place, bound);
    for (unsigned i = 0; i < SIM_SIMDS; i++) account(&unit, &unit.simds[i], replay->cycles, TESSERA_SIM_CAUSE_IDLE);
    memcpy(replay->bytes, unit.caches.bytes, sizeof replay->bytes);
    tessera_sim_caches_close(&unit.caches);
    free(unit.places);
    return opened;
}
