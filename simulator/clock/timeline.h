// SPDX-License-Identifier: MIT
// What each wave of a unit does in each cycle: spans in tracks, as a trace for Perfetto.
#pragma once

#include "machine/launch.h"
#include "reasons.h"

// Spans of a wave in the same track do not overlap.
enum sim_track {
    SIM_TRACK_MATRIX,  // its instruction is in the matrix pipe
    SIM_TRACK_VALU,    // holds the VALU port
    SIM_TRACK_SCALAR,  // issues
    SIM_TRACK_LDS,     // is what LDS works on
    SIM_TRACK_MEMORY,  // is what L1 works on
    SIM_TRACK_WAIT,    // cannot issue
    SIM_TRACK_BARRIER, // the wave stands at a barrier
    SIM_TRACKS
};

struct sim_span {
    const struct sim_code *code;
    uint64_t issued; // in which cycle
    uint64_t begin, end;
    uint32_t at;               // the instruction's place: bytes from the start of the module's code
    uint8_t track;             // enum sim_track
    uint8_t reason;            // enum sim_reason, of SIM_TRACK_WAIT
    uint8_t group, wave, simd; // the group's place in its point of the sample
};

struct sim_timeline {
    struct sim_span *spans;
    size_t count, capacity;
    bool failed;      // no memory
    uint64_t cut;     // the cycle from which on there are none; 0: there are all
    size_t matrix[4]; // of each SIMD: the index of its last matrix instruction, plus 1
    uint64_t cycles;  // until the last workgroup ended
};

// Adds a span of an instruction that issues in the cycle `now`, which never decreases. Only so many are kept as
// browsers show.
void tessera_sim_timeline_add(struct sim_timeline *timeline, uint64_t now, const struct sim_span *span);
// The last matrix instruction of a SIMD stays in the pipe until `end`.
void tessera_sim_timeline_stretch(struct sim_timeline *timeline, unsigned simd, uint64_t end);

struct sim_point;

// Writes the trace of a launch's first point to a file, behind those of the `before` launches in it, whose number is
// `before`. False where the file cannot be written.
bool tessera_sim_timeline_write(const char *path, uint32_t before, const struct sim_launch *launch,
                                const struct sim_point *point, const struct sim_timeline *timeline);
