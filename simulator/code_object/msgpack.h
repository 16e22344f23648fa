// SPDX-License-Identifier: MIT
// Reading MessagePack in place: the few kinds that code object metadata is made of.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_msgpack {
    const uint8_t *at, *end;
};

enum sim_msgpack_kind {
    SIM_MSGPACK_OTHER,
    SIM_MSGPACK_INTEGER,
    SIM_MSGPACK_STRING,
    SIM_MSGPACK_ARRAY,
    SIM_MSGPACK_MAP
};

struct sim_msgpack_value {
    enum sim_msgpack_kind kind;
    uint64_t number;  // the integer; bytes of a string; elements of an array; pairs of a map
    const char *text; // of a string, without a final 0
};

// Takes the next value; of an array or map only its head. False at the end, or where the bytes make no sense.
bool tessera_sim_msgpack_next(struct sim_msgpack *reader, struct sim_msgpack_value *value);
// Passes over the next value with all that it holds.
bool tessera_sim_msgpack_skip(struct sim_msgpack *reader);
bool tessera_sim_msgpack_is(const struct sim_msgpack_value *value, const char *text);
