// SPDX-License-Identifier: MIT
#include "msgpack.h"

#include <string.h>

static bool take(struct sim_msgpack *reader, unsigned bytes, uint64_t *number) {
    if ((size_t)(reader->end - reader->at) < bytes) return false;
    *number = 0;
    while (bytes--) *number = *number << 8 | *reader->at++;
    return true;
}

static bool take_bytes(struct sim_msgpack *reader, struct sim_msgpack_value *value) {
    if ((uint64_t)(reader->end - reader->at) < value->number) return false;
    value->text = (const char *)reader->at;
    reader->at += value->number;
    return true;
}

// The head of a value: its kind, and the size of the number that follows it.
struct head {
    enum sim_msgpack_kind kind;
    uint8_t bytes;   // size of the number that follows
    uint8_t payload; // bytes to skip behind the number
};

static const struct head heads[32] = {
    // codes 0xc0 to 0xdf
    [0x04] = {SIM_MSGPACK_STRING, 1, 0},  [0x05] = {SIM_MSGPACK_STRING, 2, 0},  [0x06] = {SIM_MSGPACK_STRING, 4, 0},
    [0x0a] = {SIM_MSGPACK_OTHER, 4, 0},   [0x0b] = {SIM_MSGPACK_OTHER, 8, 0},   [0x0c] = {SIM_MSGPACK_INTEGER, 1, 0},
    [0x0d] = {SIM_MSGPACK_INTEGER, 2, 0}, [0x0e] = {SIM_MSGPACK_INTEGER, 4, 0}, [0x0f] = {SIM_MSGPACK_INTEGER, 8, 0},
    [0x10] = {SIM_MSGPACK_INTEGER, 1, 0}, [0x11] = {SIM_MSGPACK_INTEGER, 2, 0}, [0x12] = {SIM_MSGPACK_INTEGER, 4, 0},
    [0x13] = {SIM_MSGPACK_INTEGER, 8, 0}, [0x14] = {SIM_MSGPACK_OTHER, 0, 2},   [0x15] = {SIM_MSGPACK_OTHER, 0, 3},
    [0x16] = {SIM_MSGPACK_OTHER, 0, 5},   [0x17] = {SIM_MSGPACK_OTHER, 0, 9},   [0x18] = {SIM_MSGPACK_OTHER, 0, 17},
    [0x19] = {SIM_MSGPACK_STRING, 1, 0},  [0x1a] = {SIM_MSGPACK_STRING, 2, 0},  [0x1b] = {SIM_MSGPACK_STRING, 4, 0},
    [0x1c] = {SIM_MSGPACK_ARRAY, 2, 0},   [0x1d] = {SIM_MSGPACK_ARRAY, 4, 0},   [0x1e] = {SIM_MSGPACK_MAP, 2, 0},
    [0x1f] = {SIM_MSGPACK_MAP, 4, 0},
};

bool tessera_sim_msgpack_next(struct sim_msgpack *reader, struct sim_msgpack_value *value) {
    uint64_t first;
    *value = (struct sim_msgpack_value){0};
    if (!take(reader, 1, &first)) return false;
    if (first < 0x80 || first >= 0xe0) {
        value->kind = SIM_MSGPACK_INTEGER;
        value->number = (uint64_t)(int64_t)(int8_t)first;
    } else if (first < 0xa0) {
        value->kind = first < 0x90 ? SIM_MSGPACK_MAP : SIM_MSGPACK_ARRAY;
        value->number = first & 0xf;
    } else if (first < 0xc0) {
        value->kind = SIM_MSGPACK_STRING;
        value->number = first & 0x1f;
    } else {
        const struct head head = heads[first & 0x1f];
        value->kind = head.kind;
        if (!take(reader, head.bytes, &value->number)) return false;
        if ((size_t)(reader->end - reader->at) < head.payload) return false;
        reader->at += head.payload;
    }
    return value->kind != SIM_MSGPACK_STRING || take_bytes(reader, value);
}

bool tessera_sim_msgpack_skip(struct sim_msgpack *reader) {
    for (uint64_t left = 1; left > 0; left--) {
        struct sim_msgpack_value value;
        if (!tessera_sim_msgpack_next(reader, &value)) return false;
        if (value.kind == SIM_MSGPACK_ARRAY) left += value.number;
        if (value.kind == SIM_MSGPACK_MAP) left += 2 * value.number;
    }
    return true;
}

bool tessera_sim_msgpack_is(const struct sim_msgpack_value *value, const char *text) {
    return value->kind == SIM_MSGPACK_STRING && value->number == strlen(text) &&
           memcmp(value->text, text, value->number) == 0;
}
