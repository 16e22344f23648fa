// SPDX-License-Identifier: MIT
// Finds the best instance for a call: of those that serve it, the one of least estimated cost, which the operation's
// cost function computes. explain.c says why others do not serve it.
#include "op/select.h"

// ---- requests

tessera_status tessera_read_facts(const tessera_table *table, const tessera_device_facts *caller,
                                  tessera_device_facts *facts) {
    memset(facts, 0, sizeof *facts);
    if (!table) return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "table is NULL");
    const tessera_status status = tessera_read_struct("facts", caller, facts, sizeof *facts);
    if (status == TESSERA_SUCCESS && facts->compute_units < 1)
        return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "compute_units is %d: 1 or more", facts->compute_units);
    return status;
}

static uint64_t alignment_of(const struct tessera_request *r) {
    struct tessera_start starts[TESSERA_MAX_STARTS];
    const int count = r->kernels->list_starts ? r->kernels->list_starts(r, starts) : 0;
    uint64_t bits = TESSERA_MAX_ALIGNMENT;
    for (int i = 0; i < count; i++)
        if (starts[i].matters) bits |= starts[i].value * (uint64_t)starts[i].bits / 8;
    return bits & -bits;
}

// The bits of all traits, summed up in registers: a word in memory would have each trait wait for the one before.
static void fill_sets(struct tessera_request *r) {
    const tessera_schema *const schema = r->table->schema;
    uint64_t sets[TESSERA_SET_WORDS] = {0};
    for (uint32_t i = 0; i < schema->trait_count; i++) {
        const tessera_trait *const trait = &schema->traits[i];
        const uint64_t bit = UINT64_C(1) << ((trait->bit + tessera_member(r->traits, trait->offset)) % 64);
        for (uint32_t word = 0; word < TESSERA_SET_WORDS; word++) sets[word] |= trait->word == word ? bit : 0;
    }
    memcpy(r->sets, sets, sizeof sets);
}

void tessera_ask(struct tessera_request *r, const tessera_device_facts *facts) {
    const tessera_schema *const schema = r->table->schema;
    fill_sets(r);
    for (uint32_t i = 0; i < TESSERA_MAX_SIZES; i++)
        r->sizes[i] = i < schema->size_count ? tessera_member(r->traits, schema->sizes[i].offset) : 0;
    r->targets = facts->targets;
    r->units = facts->compute_units;
    r->alignment = alignment_of(r);
    r->shape_bytes = r->kernels->describe ? r->kernels->describe(r->call, r->shape) : 0;
}

static bool holds(const tessera_served *s, const struct tessera_request *r, uint32_t size_count) {
    for (int i = 0; i < TESSERA_SET_WORDS; i++)
        if (r->sets[i] & ~s->sets[i]) return false;
    for (uint32_t i = 0; i < size_count; i++)
        if (!tessera_range_holds(&s->ranges[i], r->sizes[i])) return false;
    return true;
}

bool tessera_is_aligned(const tessera_instance *row, const struct tessera_request *r) {
    return !row->alignment || r->alignment % row->alignment == 0;
}

bool tessera_keeps_out(const tessera_instance *row, const struct tessera_request *r, struct tessera_text *why) {
    return r->kernels->keeps_out && r->kernels->keeps_out(row, r, why);
}

bool tessera_serves(const tessera_instance *row, const struct tessera_request *r) {
    const uint32_t size_count = r->table->schema->size_count;
    for (uint32_t i = 0; i < row->served_count; i++)
        if (holds(&row->served[i], r, size_count))
            return tessera_is_aligned(row, r) && !tessera_keeps_out(row, r, NULL);
    return false;
}

// ---- choosing

// The order of candidates: by cost; at equal costs the more capable target first, then the earlier row.
bool tessera_precedes(const tessera_instance *a, double cost_a, const tessera_instance *b, double cost_b) {
    if (cost_a != cost_b) return cost_a < cost_b;
    if (a->target != b->target) return a->target > b->target;
    return a < b;
}

static uint32_t bucket_of(const struct tessera_request *r) {
    uint32_t greatest = 0, bucket = 0;
    for (uint32_t i = 0; i < r->table->schema->size_count; i++)
        if (r->sizes[i] > greatest) greatest = r->sizes[i];
    while (bucket < r->table->bucket_count && r->table->buckets[bucket] < greatest) bucket++;
    return bucket;
}

const tessera_instance *tessera_best(const struct tessera_request *r) {
    const tessera_table *const table = r->table;
    const tessera_trait *const first = table->schema->traits;
    const uint32_t bucket = bucket_of(r), value = (uint32_t)__builtin_ctzll(r->sets[first->word] >> first->bit);
    const tessera_instance *best = NULL;
    double least = 0;
    if (r->wanted) return r->targets >> r->wanted->target & 1 && tessera_serves(r->wanted, r) ? r->wanted : NULL;
    for (uint32_t target = 0; bucket < table->bucket_count && target < TESSERA_TARGET_COUNT; target++) {
        if (!(r->targets >> target & 1)) continue;
        const tessera_slice slice = table->slices[(target * first->count + value) * table->bucket_count + bucket];
        for (uint32_t i = slice.first; i < slice.first + slice.count; i++) {
            const tessera_instance *const row = tessera_row(table, table->order[i]);
            if (!tessera_serves(row, r)) continue;
            const double cost = r->kernels->cost(row, r);
            if (best && !tessera_precedes(row, cost, best, least)) continue;
            best = row;
            least = cost;
        }
    }
    return best;
}

struct tessera_cut tessera_cut_by(const tessera_instance *row, const struct tessera_request *r) {
    return r->kernels->cut ? r->kernels->cut(row, r) : (struct tessera_cut){.parts = 1, .length = 1};
}
