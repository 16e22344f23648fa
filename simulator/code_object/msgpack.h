// SPDX-License-Identifier: MIT
// Reads MessagePack in place: the few kinds of values that code object metadata consists of.
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
    uint64_t number;  // the integer, or the number of a string's bytes, an array's elements or a map's pairs
    const char *text; // the string, without a final 0
};

// Reads the next value; of an array or a map only its head. False at the end, or where the bytes are malformed.
bool tessera_sim_msgpack_next(struct sim_msgpack *reader, struct sim_msgpack_value *value);
// Skips the next value, with everything inside it.
bool tessera_sim_msgpack_skip(struct sim_msgpack *reader);
bool tessera_sim_msgpack_is(const struct sim_msgpack_value *value, const char *text);
