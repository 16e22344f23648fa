// SPDX-License-Identifier: MIT
// Chooses the instance of a call, the one that the caller wants, else the best, and how it cuts the call's work; fails
// with the reason where none serves.
//
// Each thread remembers its last choices of the library's own tables, which never change, by all that decides them.
// Whatever else a call has is hidden from what chooses, so that what is remembered is what would be chosen anew.
#include "op/select.h"

// Returns false where none serves.
static bool choose_anew(const struct tessera_request *r, struct tessera_choice *out) {
    out->row = tessera_best(r);
    if (out->row) out->cut = tessera_cut_by(out->row, r);
    return out->row;
}

// ---- what a thread remembers

enum {
    KEY_OFFSET = offsetof(struct tessera_request, table),
    FIXED_WORDS = (offsetof(struct tessera_request, shape) - KEY_OFFSET) / 8,
    MOST_WORDS = FIXED_WORDS + TESSERA_SHAPE_WORDS,
    ENTRIES = 32 // some 8 KB of a thread
};
_Static_assert(sizeof(struct tessera_request) == KEY_OFFSET + MOST_WORDS * 8, "a key has no padding behind it");
_Static_assert(FIXED_WORDS * 8 == 2 * sizeof(void *) + 8 + 8 * TESSERA_SET_WORDS + 4 * TESSERA_MAX_SIZES + 8,
               "a key has no padding within");

struct entry {
    uint64_t key[MOST_WORDS]; // the first says the table, and so the key's length; NULL: nothing is remembered
    struct tessera_choice choice;
};
static _Thread_local struct entry entries[ENTRIES];

// Two lanes, since each multiplication waits for the one before.
static uint32_t slot_of(const uint64_t *key, uint32_t words) {
    const uint64_t odd = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t a = words, b = odd;
    for (uint32_t i = 0; i + 1 < words; i += 2) a = (a ^ key[i]) * odd, b = (b ^ key[i + 1]) * odd;
    if (words % 2) a = (a ^ key[words - 1]) * odd;
    return (uint32_t)(((a ^ b >> 31) * odd) >> 32) % ENTRIES;
}

// Finds or makes a choice of a request whose kernels describe calls.
static bool recall(const struct tessera_request *r, struct tessera_choice *out) {
    const uint64_t *const key = (const uint64_t *)(const void *)&r->table;
    const uint32_t words = FIXED_WORDS + r->shape_bytes / 8, slot = slot_of(key, words);
    struct entry *const newer = &entries[slot], *const older = &entries[slot ^ 1];
    const bool is_newer = memcmp(newer->key, key, words * 8) == 0;
    if (is_newer || memcmp(older->key, key, words * 8) == 0) {
        *out = (is_newer ? newer : older)->choice;
        return true;
    }
    struct tessera_request hidden = *r;
    hidden.traits = hidden.call = NULL;
    if (!choose_anew(&hidden, out)) return false;
    *older = *newer;
    memcpy(newer->key, key, words * 8);
    newer->choice = *out;
    return true;
}

// Whether all that decides lies in the key: neither the table nor the wanted instance is one that a caller may change.
static bool is_constant(const struct tessera_request *r) {
    const uintptr_t rows = (uintptr_t)r->table->rows, end = rows + (uintptr_t)r->table->row_bytes * r->table->row_count;
    const uintptr_t wanted = (uintptr_t)r->wanted;
    return r->table == r->kernels->get_table() && (!wanted || (wanted >= rows && wanted < end));
}

tessera_status tessera_choose(const struct tessera_request *r, struct tessera_choice *out) {
    const bool remembers = r->shape_bytes && is_constant(r);
    return (remembers ? recall : choose_anew)(r, out) ? TESSERA_SUCCESS : tessera_no_instance(r);
}
