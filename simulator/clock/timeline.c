// SPDX-License-Identifier: MIT
#include "timeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "code_object/module.h"
#include "kinds.h"
#include "sample.h"

enum {
    MOST_SPANS = 1 << 17,
    FIRST_SPANS = 1 << 12,
    MOST_WAVES = 16, // of a workgroup
};

static const char *const track_names[SIM_TRACKS] = {"MFMA", "VALU", "scalar", "LDS", "memory", "wait", "barrier"};

// ---- recording

static bool has_room(struct sim_timeline *timeline) {
    if (timeline->count < timeline->capacity) return true;
    const size_t more = timeline->capacity ? 2 * timeline->capacity : FIRST_SPANS;
    struct sim_span *spans = realloc(timeline->spans, more * sizeof *spans);
    timeline->failed = !spans;
    if (!spans) return false;
    timeline->spans = spans;
    timeline->capacity = more;
    return true;
}

void tessera_sim_timeline_add(struct sim_timeline *timeline, uint64_t now, const struct sim_span *span) {
    if (timeline->cut || timeline->failed) return;
    if (timeline->count == MOST_SPANS) {
        timeline->cut = now;
        return;
    }
    if (!has_room(timeline)) return;
    timeline->spans[timeline->count++] = *span;
    if (span->track == SIM_TRACK_MATRIX) timeline->matrix[span->simd] = timeline->count;
}

void tessera_sim_timeline_stretch(struct sim_timeline *timeline, unsigned simd, uint64_t end) {
    if (timeline->matrix[simd] && !timeline->cut) timeline->spans[timeline->matrix[simd] - 1].end = end;
}

// ---- the file

struct writer {
    FILE *file;
    const struct sim_launch *launch;
    const struct sim_point *point;
    const struct sim_timeline *timeline;
    uint32_t first_process;
    uint64_t end; // no span is longer
};

static uint32_t process_of(const struct writer *to, unsigned group) { return to->first_process + group; }

static uint32_t thread_of(const struct writer *to, const struct sim_span *span, unsigned track) {
    return (process_of(to, span->group) * MOST_WAVES + span->wave) * SIM_TRACKS + track;
}

static void write_process(const struct writer *to, unsigned group) {
    const uint64_t number = to->point->numbers[group];
    const uint32_t *groups = to->launch->groups;
    const uint32_t process = process_of(to, group);
    const char *arch = tessera_sim_arch_names[to->launch->sim->arch];
    fprintf(to->file, "{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"name\":\"process_name\",\"args\":{\"name\":\"%s, workgroup ",
            process, to->launch->kernel->info.name);
    fprintf(to->file, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\"}},\n", number % groups[0], number / groups[0] % groups[1],
            number / groups[0] / groups[1]);
    fprintf(to->file, "{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"name\":\"process_labels\",\"args\":{\"labels\":", process);
    fprintf(to->file, "\"%s, modelled; 1 us is a cycle; cycles 0 to %" PRIu64 " of %" PRIu64 "\",", arch, to->end,
            to->timeline->cycles);
    fprintf(to->file, "\"arch\":\"%s\",\"kernel\":\"%s\",\"until\":%" PRIu64 ",\"cycles\":%" PRIu64 "}},\n", arch,
            to->launch->kernel->info.name, to->end, to->timeline->cycles);
}

static void write_threads(const struct writer *to, const struct sim_span *span) {
    const uint32_t process = process_of(to, span->group);
    for (unsigned track = 0; track < SIM_TRACKS; track++) {
        const uint32_t thread = thread_of(to, span, track);
        fprintf(to->file, "{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"name\":\"thread_name\",", process,
                thread);
        fprintf(to->file, "\"args\":{\"name\":\"wave %u %s\",\"wave\":%u,\"simd\":%u,\"track\":\"%s\"}},\n", span->wave,
                track_names[track], span->wave, span->simd, track_names[track]);
        fprintf(to->file, "{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"name\":\"thread_sort_index\",",
                process, thread);
        fprintf(to->file, "\"args\":{\"sort_index\":%" PRIu32 "}},\n", thread);
    }
}

static void write_names(const struct writer *to) {
    uint32_t named[SIM_MOST_RESIDENT] = {0}; // waves, as bits
    for (unsigned group = 0; group < to->point->count; group++) write_process(to, group);
    for (size_t i = 0; i < to->timeline->count; i++) {
        const struct sim_span *span = &to->timeline->spans[i];
        if (!(named[span->group] >> span->wave & 1)) write_threads(to, span);
        named[span->group] |= 1u << span->wave;
    }
}

static void write_span(const struct writer *to, const struct sim_span *span) {
    char text[128];
    const uint64_t end = span->end < to->end ? span->end : to->end;
    const bool waits = span->track == SIM_TRACK_WAIT;
    if (span->begin >= end) return;
    tessera_sim_print(&span->code->inst, text, sizeof text);
    fprintf(to->file, "{\"ph\":\"X\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"ts\":%" PRIu64 ",\"dur\":%" PRIu64,
            process_of(to, span->group), thread_of(to, span, span->track), span->begin, end - span->begin);
    fprintf(to->file, ",\"cat\":\"%c\",\"name\":\"%s\"", tessera_sim_letter(span->code),
            waits ? tessera_sim_reasons[span->reason].name : span->code->inst.row->mnemonic);
    fprintf(to->file, ",\"args\":{\"at\":\"+0x%" PRIx32 "\",\"issued\":%" PRIu64 ",\"text\":\"%s\"}},\n", span->at,
            span->issued, text);
}

// Behind the last event, since JSON allows no comma there.
static const char trailer[] = "{\"ph\":\"M\",\"pid\":0,\"name\":\"trace_end\",\"args\":{}}\n]\n";

static FILE *open_file(const char *path, uint32_t before) {
    FILE *file = fopen(path, before ? "r+" : "w");
    if (!file) return NULL;
    if (!before) fputs("[\n", file);
    if (!before || fseek(file, -(long)(sizeof trailer - 1), SEEK_END) == 0) return file;
    fclose(file);
    return NULL;
}

bool tessera_sim_timeline_write(const char *path, uint32_t before, const struct sim_launch *launch,
                                const struct sim_point *point, const struct sim_timeline *timeline) {
    const struct writer to = {
        .file = open_file(path, before),
        .launch = launch,
        .point = point,
        .timeline = timeline,
        .first_process = before * SIM_MOST_RESIDENT + 1,
        .end = timeline->cut ? timeline->cut : timeline->cycles,
    };
    if (!to.file) return false;
    write_names(&to);
    for (size_t i = 0; i < timeline->count; i++) write_span(&to, &timeline->spans[i]);
    fputs(trailer, to.file);
    return fclose(to.file) == 0;
}
