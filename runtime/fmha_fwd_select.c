// SPDX-License-Identifier: MIT
// Which instance serves a call best, and why the others do not.
//
// Cost. An instance cuts the folded rows (seqlen_q * nhead_q / nhead_k of each sequence and key head) into tiles of
// bm0, and walks the keys of each in blocks of bn0. With rows rounded up to register tiles of wm0 and keys to wn0, a
// share of `rows * keys / (bm0 * bn0)` of a full block's cycles is paid for each block:
//
//   block  = bm0 * bn0 * (hdim_q + hdim_v) / macs_per_cycle + tile_cycles
//   total  = batch * nhead_k * rows * keys / (bm0 * bn0) * block
//   tasks  = batch * nhead_k * tiles, times the parts that the launcher cuts the keys of a tile into
//   cost   = total / tasks * ceil(tasks / compute_units)
//
// the last line being the time of the unit with most tasks: fewer and larger tiles lose where they leave units idle.
// A mask hides about the same share of every instance's keys, and is left out. Group mode knows the lengths only as
// the longest one: max_seqlen_q, and seqlen_k where it is given. What a call costs on a GPU: fmha_fwd_cost_cdna.c.
#include <string.h>

#include "fmha_fwd_internal.h"

typedef tessera_fmha_fwd_instance instance_t;
typedef tessera_fmha_fwd_served served_t;

// ---- what a call asks of an instance

// The sets of traits are the first bytes of tessera_fmha_fwd_served, so that two words hold them all.
enum { SET_BYTES = 15 };
_Static_assert(offsetof(served_t, mode) == 8 && offsetof(served_t, sink) == SET_BYTES - 1, "the sets are two words");

struct request {
    served_t one;     // each set with one bit: that of the call's trait; hdim_*_max hold the head dims
    uint64_t sets[2]; // those bits as words
    uint32_t targets;
    int32_t units;
    int64_t heads, rows, keys; // batch * nhead_k; of one sequence and key head
    int64_t queries;           // of one sequence
    double hdims;
    const struct tessera_fmha_fwd_call *call;
};

// What decides where rows of q, k, v and o begin.
struct start {
    const char *name;
    uint64_t value; // of a stride: elements
    int bits;       // of what the value counts
    bool matters;
};
enum { STARTS = 16 };

static void list_starts(const struct tessera_fmha_fwd_call *call, struct start starts[STARTS]) {
    const tessera_fmha_fwd_args *const a = &call->args;
    const bool batches = !call->traits.is_group_mode && a->batch > 1, batch_mode = !call->traits.is_group_mode;
    const bool rows_q = !batch_mode || a->seqlen_q > 1, rows_k = !batch_mode || a->seqlen_k > 1;
    const bool rows_v = call->traits.is_v_rowmajor ? rows_k : a->hdim_v > 1;
    const int in = tessera_fmha_fwd_bits(tessera_fmha_fwd_storages[call->traits.data_type].qkv);
    const int out = tessera_fmha_fwd_bits(tessera_fmha_fwd_storages[call->traits.data_type].o);
    int n = 0;
#define ADD(x, bits, rows, heads)                                                                                      \
    starts[n++] = (struct start){#x "_ptr", (uintptr_t)a->x##_ptr, 8, true};                                           \
    starts[n++] = (struct start){"stride_" #x, (uint64_t)a->stride_##x, bits, rows};                                   \
    starts[n++] = (struct start){"nhead_stride_" #x, (uint64_t)a->nhead_stride_##x, bits, heads > 1};                  \
    starts[n++] = (struct start){"batch_stride_" #x, (uint64_t)a->batch_stride_##x, bits, batches}
    ADD(q, in, rows_q, a->nhead_q);
    ADD(k, in, rows_k, a->nhead_k);
    ADD(v, in, rows_v, a->nhead_k);
    ADD(o, out, rows_q, a->nhead_q);
#undef ADD
}

static bool is_aligned(const struct tessera_fmha_fwd_call *call, uint32_t alignment) {
    if (!alignment) return true;
    struct start starts[STARTS];
    uint64_t bits = 0; // that any row's place in memory may have
    list_starts(call, starts);
    for (int i = 0; i < STARTS; i++)
        if (starts[i].matters) bits |= starts[i].value * (uint64_t)starts[i].bits / 8;
    return bits % alignment == 0;
}

static struct request make_request(const tessera_device_facts *facts, const struct tessera_fmha_fwd_call *call) {
    const tessera_fmha_fwd_traits *const t = &call->traits;
    const tessera_fmha_fwd_args *const a = &call->args;
    const int64_t longest_k = a->seqlen_k > 0 ? a->seqlen_k : a->max_seqlen_q;
    const int64_t queries = t->is_group_mode ? a->max_seqlen_q : a->seqlen_q;
    struct request r = {
        .one = {.data_type = (uint16_t)(1u << t->data_type),
                .mask = (uint16_t)(1u << t->mask_type),
                .bias = (uint16_t)(1u << t->bias_type),
                .qscale = (uint16_t)(1u << t->qscale_type),
                .mode = (uint8_t)(1u << t->is_group_mode),
                .v_rowmajor = (uint8_t)(1u << t->is_v_rowmajor),
                .soft_cap = (uint8_t)(1u << t->has_logits_soft_cap),
                .lse = (uint8_t)(1u << t->has_lse),
                .dropout = (uint8_t)(1u << t->has_dropout),
                .skip = (uint8_t)(1u << t->skip_min_seqlen_q),
                .sink = (uint8_t)(1u << t->has_sink),
                .hdim_q_max = (uint16_t)t->hdim_q,
                .hdim_v_max = (uint16_t)t->hdim_v},
        .targets = facts->targets,
        .units = facts->compute_units,
        .heads = (int64_t)a->batch * a->nhead_k,
        .rows = queries * (a->nhead_q / a->nhead_k),
        .keys = t->is_group_mode ? longest_k : a->seqlen_k,
        .queries = queries,
        .hdims = (double)t->hdim_q + t->hdim_v,
        .call = call,
    };
    memcpy(r.sets, &r.one, SET_BYTES);
    return r;
}

static bool hdim_fits(uint16_t hdim, uint16_t min, uint16_t max, uint16_t multiple) {
    return hdim >= min && hdim <= max && hdim % multiple == 0;
}

static bool holds(const served_t *s, const struct request *r) {
    uint64_t sets[2];
    memcpy(sets, s, sizeof sets);
    if ((r->sets[0] & ~sets[0]) | (r->sets[1] & ~sets[1])) return false;
    return hdim_fits(r->one.hdim_q_max, s->hdim_q_min, s->hdim_q_max, s->hdim_q_multiple) &&
           hdim_fits(r->one.hdim_v_max, s->hdim_v_min, s->hdim_v_max, s->hdim_v_multiple);
}

static bool serves(const instance_t *row, const struct request *r) {
    for (uint32_t i = 0; i < row->served_count; i++)
        if (holds(&row->served[i], r)) return is_aligned(r->call, row->alignment);
    return false;
}

static double cost_of(const instance_t *row, const struct request *r) {
    if (tessera_fmha_fwd_is_gpu(row)) return tessera_fmha_fwd_cdna_cost(row, r->call, r->queries, r->keys, r->units);
    const tessera_fmha_fwd_tile *const tile = &row->tile;
    const int64_t tiles = tessera_max(tessera_ceil_div(r->rows, tile->bm0), 1) * r->heads;
    const double rows = (double)(tessera_round_up(r->rows, tile->wm0) * r->heads);
    const double keys = (double)tessera_round_up(r->keys, tile->wn0);
    const double area = (double)tile->bm0 * tile->bn0;
    const double total =
        rows * keys / area * (area * r->hdims / (double)row->macs_per_cycle + (double)row->tile_cycles);
    const int64_t tasks = tiles * tessera_fmha_fwd_parts(r->keys, (double)r->keys * (double)tiles, r->units);
    return total / (double)tasks * (double)tessera_ceil_div(tasks, r->units);
}

// ---- why an instance does not serve a call

typedef const char *word_of(int value);
static const char *dtype_word(int v) { return tessera_dtype_string((tessera_dtype)v); }
static const char *mask_word(int v) { return tessera_mask_string((tessera_mask)v); }
static const char *bias_word(int v) { return tessera_bias_string((tessera_bias)v); }
static const char *qscale_word(int v) { return tessera_qscale_string((tessera_qscale)v); }
static const char *number_word(int v) { return v == 0 ? "0" : v == 1 ? "1" : NULL; }

// The sets of tessera_fmha_fwd_served by the names of their traits.
static const struct field {
    const char *trait;
    size_t offset, bytes;
    word_of *word;
} fields[] = {
#define FIELD(trait, member, word)                                                                                     \
    { trait, offsetof(served_t, member), sizeof(((served_t *)0)->member), word }
    FIELD("data_type", data_type, dtype_word),
    FIELD("mask_type", mask, mask_word),
    FIELD("bias_type", bias, bias_word),
    FIELD("qscale_type", qscale, qscale_word),
    FIELD("is_group_mode", mode, number_word),
    FIELD("is_v_rowmajor", v_rowmajor, number_word),
    FIELD("has_logits_soft_cap", soft_cap, number_word),
    FIELD("has_lse", lse, number_word),
    FIELD("has_dropout", dropout, number_word),
    FIELD("skip_min_seqlen_q", skip, number_word),
    FIELD("has_sink", sink, number_word),
#undef FIELD
};
enum { FIELDS = sizeof fields / sizeof *fields };

static unsigned set_at(const served_t *served, const struct field *field) {
    uint8_t narrow;
    uint16_t wide;
    memcpy(&narrow, (const char *)served + field->offset, 1);
    if (field->bytes == 1) return narrow;
    memcpy(&wide, (const char *)served + field->offset, 2);
    return wide;
}

static void add_set(struct tessera_text *out, unsigned set, word_of *word) {
    const char *between = "";
    for (int v = 0; v < 16; v++) {
        if (!(set >> v & 1) || !word(v)) continue;
        tessera_text_add(out, "%s%s", between, word(v));
        between = ", ";
    }
}

// Adds the fields of one product that do not hold the call; returns how many.
static int add_misfits(const served_t *s, const struct request *r, struct tessera_text *out) {
    int count = 0;
    for (int i = 0; i < FIELDS; i++) {
        const unsigned set = set_at(s, &fields[i]), one = set_at(&r->one, &fields[i]);
        if (set & one) continue;
        tessera_text_add(out, "%s%s ", count++ ? "; " : "", fields[i].trait);
        add_set(out, one, fields[i].word);
        tessera_text_add(out, " (serves ");
        add_set(out, set, fields[i].word);
        tessera_text_add(out, ")");
    }
    const struct {
        const char *name;
        uint16_t hdim, min, max, multiple;
    } hdims[] = {{"hdim_q", r->one.hdim_q_max, s->hdim_q_min, s->hdim_q_max, s->hdim_q_multiple},
                 {"hdim_v", r->one.hdim_v_max, s->hdim_v_min, s->hdim_v_max, s->hdim_v_multiple}};
    for (int i = 0; i < 2; i++) {
        if (hdim_fits(hdims[i].hdim, hdims[i].min, hdims[i].max, hdims[i].multiple)) continue;
        tessera_text_add(out, "%s%s %d (serves %d", count++ ? "; " : "", hdims[i].name, hdims[i].hdim, hdims[i].min);
        if (hdims[i].max > hdims[i].min) tessera_text_add(out, " to %d", hdims[i].max);
        if (hdims[i].multiple > 1) tessera_text_add(out, ", multiples of %d", hdims[i].multiple);
        tessera_text_add(out, ")");
    }
    return count;
}

// Adds what begins where the instance's kernel cannot read; returns how many.
static int add_misaligned(const instance_t *row, const struct request *r, const char *between,
                          struct tessera_text *out) {
    struct start starts[STARTS];
    int count = 0;
    if (is_aligned(r->call, row->alignment)) return 0;
    list_starts(r->call, starts);
    for (int i = 0; i < STARTS; i++) {
        const uint32_t multiple = row->alignment * 8 / (uint32_t)starts[i].bits;
        if (!starts[i].matters || starts[i].value % multiple == 0) continue;
        const bool is_pointer = i % 4 == 0;
        tessera_text_add(out, is_pointer ? "%s%s %#llx (serves multiples of %u)" : "%s%s %llu (serves multiples of %u)",
                         count++ ? "; " : between, starts[i].name, (unsigned long long)starts[i].value, multiple);
    }
    return count;
}

// The hull of an instance's products: what it serves of each trait by itself.
static served_t hull_of(const instance_t *row) {
    served_t hull = row->served[0];
    for (uint32_t i = 1; i < row->served_count; i++) {
        const served_t *const s = &row->served[i];
        for (size_t byte = 0; byte < SET_BYTES; byte++) ((uint8_t *)&hull)[byte] |= ((const uint8_t *)s)[byte];
        if (s->hdim_q_min < hull.hdim_q_min) hull.hdim_q_min = s->hdim_q_min;
        if (s->hdim_v_min < hull.hdim_v_min) hull.hdim_v_min = s->hdim_v_min;
        if (s->hdim_q_max > hull.hdim_q_max) hull.hdim_q_max = s->hdim_q_max;
        if (s->hdim_v_max > hull.hdim_v_max) hull.hdim_v_max = s->hdim_v_max;
        if (s->hdim_q_multiple < hull.hdim_q_multiple) hull.hdim_q_multiple = s->hdim_q_multiple;
        if (s->hdim_v_multiple < hull.hdim_v_multiple) hull.hdim_v_multiple = s->hdim_v_multiple;
    }
    return hull;
}

// What misses the call by fewest fields: the hull, or where that holds the call, a product.
static served_t nearest_of(const instance_t *row, const struct request *r, int *misfits) {
    struct tessera_text none = {NULL, 0, 0};
    served_t nearest = hull_of(row);
    *misfits = add_misfits(&nearest, r, &none);
    if (*misfits) return nearest;
    *misfits = INT32_MAX;
    for (uint32_t i = 0; i < row->served_count; i++) {
        const int of_this = add_misfits(&row->served[i], r, &none);
        if (of_this >= *misfits) continue;
        nearest = row->served[i];
        *misfits = of_this;
    }
    return nearest;
}

// The fields that keep an instance out; returns how many, with a foreign target counting for more than all others.
static int why_not(const instance_t *row, const struct request *r, char *text, size_t size) {
    struct tessera_text out = {text, size, 0};
    const bool here = r->targets >> row->target & 1;
    int misfits;
    const served_t nearest = nearest_of(row, r, &misfits);
    tessera_text_add(&out, "%s", "");
    if (!here) {
        tessera_text_add(&out, "target %s (not this device's)", tessera_target_string(row->target));
        if (misfits) tessera_text_add(&out, "; ");
    }
    if (misfits) add_misfits(&nearest, r, &out);
    misfits += add_misaligned(row, r, out.used ? "; " : "", &out);
    return misfits + (here ? 0 : 100);
}

static bool any_of_device(const tessera_fmha_fwd_table *table, const struct request *r) {
    for (uint32_t i = 0; i < table->row_count; i++)
        if (r->targets >> table->rows[i].target & 1) return true;
    return false;
}

static tessera_status none_of_device(const struct request *r) {
    char names[256] = "";
    struct tessera_text out = {names, sizeof names, 0};
    for (tessera_target target = 0; target < TESSERA_TARGET_COUNT; target++)
        if (r->targets >> target & 1)
            tessera_text_add(&out, "%s%s", out.used ? ", " : "", tessera_target_string(target));
    return tessera_fail(TESSERA_ERROR_NO_INSTANCE, "no instance serves this call: this build has none for %s", names);
}

static tessera_status no_instance(const tessera_fmha_fwd_table *table, const struct request *r) {
    const instance_t *nearest = NULL;
    int least = 0;
    char why[512];
    for (uint32_t i = 0; i < table->row_count; i++) {
        const int misfits = why_not(&table->rows[i], r, why, sizeof why);
        if (nearest && misfits >= least) continue;
        nearest = &table->rows[i];
        least = misfits;
    }
    if (!nearest) return tessera_fail(TESSERA_ERROR_NO_INSTANCE, "no instance serves this call: this build has none");
    if (!any_of_device(table, r)) return none_of_device(r);
    why_not(nearest, r, why, sizeof why);
    return tessera_fail(TESSERA_ERROR_NO_INSTANCE, "no instance serves this call; nearest is %s, kept out by %s",
                        nearest->name, why);
}

// The instance that the caller wants.
static tessera_status take(const instance_t *row, const struct request *r, const instance_t **out) {
    char why[512];
    if (why_not(row, r, why, sizeof why))
        return tessera_fail(TESSERA_ERROR_NO_INSTANCE, "%s does not serve this call: %s", row->name, why);
    *out = row;
    return TESSERA_SUCCESS;
}

// ---- choosing

// The order of candidates: by cost; of equals the more capable target, then the first row.
static bool precedes(const instance_t *a, double cost_a, const instance_t *b, double cost_b) {
    if (cost_a != cost_b) return cost_a < cost_b;
    if (a->target != b->target) return a->target > b->target;
    return a < b;
}

static const tessera_fmha_fwd_slice *slice_of(const tessera_fmha_fwd_table *table, uint32_t target, uint32_t dtype,
                                              uint32_t bucket) {
    return &table->slices[(target * TESSERA_DTYPE_COUNT + dtype) * table->bucket_count + bucket];
}

tessera_status tessera_fmha_fwd_choose(const tessera_fmha_fwd_table *table, const tessera_device_facts *facts,
                                       const struct tessera_fmha_fwd_call *call, const instance_t **out) {
    const struct request r = make_request(facts, call);
    if (call->args.instance) return take(call->args.instance, &r, out);
    const uint16_t hdim = (uint16_t)tessera_max(r.one.hdim_q_max, r.one.hdim_v_max);
    uint32_t bucket = 0;
    while (bucket < table->bucket_count && table->bucket_hdim[bucket] < hdim) bucket++;
    const instance_t *best = NULL;
    double least = 0;
    for (uint32_t target = 0; bucket < table->bucket_count && target < TESSERA_TARGET_COUNT; target++) {
        if (!(r.targets >> target & 1)) continue;
        const tessera_fmha_fwd_slice *const slice = slice_of(table, target, call->traits.data_type, bucket);
        for (uint32_t i = slice->first; i < slice->first + slice->count; i++) {
            const instance_t *const row = &table->rows[table->order[i]];
            if (!serves(row, &r)) continue;
            const double cost = cost_of(row, &r);
            if (best && !precedes(row, cost, best, least)) continue;
            best = row;
            least = cost;
        }
    }
    if (!best) return no_instance(table, &r);
    *out = best;
    return TESSERA_SUCCESS;
}

static tessera_status read(const tessera_fmha_fwd_table *table, const tessera_device_facts *caller,
                           const tessera_fmha_fwd_traits *traits, const tessera_fmha_fwd_args *args,
                           tessera_device_facts *facts, struct tessera_fmha_fwd_call *call) {
    memset(facts, 0, sizeof *facts);
    if (!table) return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "table is NULL");
    tessera_status status = tessera_read_struct("facts", caller, facts, sizeof *facts);
    if (status == TESSERA_SUCCESS && facts->compute_units < 1)
        status = tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "compute_units is %d: 1 or more", facts->compute_units);
    if (status == TESSERA_SUCCESS) status = tessera_fmha_fwd_read_sizes(traits, args, call);
    return status;
}

tessera_status tessera_fmha_fwd_table_select(const tessera_fmha_fwd_table *table, const tessera_device_facts *facts,
                                             const tessera_fmha_fwd_traits *traits, const tessera_fmha_fwd_args *args,
                                             const instance_t **out) {
    tessera_device_facts whole;
    struct tessera_fmha_fwd_call call;
    if (!out) return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "out is NULL");
    const tessera_status status = read(table, facts, traits, args, &whole, &call);
    return status == TESSERA_SUCCESS ? tessera_fmha_fwd_choose(table, &whole, &call, out) : status;
}

// The candidate behind `after`, of cost after_cost; the first one behind NULL, and NULL behind the last.
static const instance_t *next_candidate(const tessera_fmha_fwd_table *table, const struct request *r,
                                        const instance_t *after, double after_cost, double *cost) {
    const instance_t *next = NULL;
    for (uint32_t i = 0; i < table->row_count; i++) {
        const instance_t *const row = &table->rows[i];
        if (!(r->targets >> row->target & 1) || !serves(row, r)) continue;
        const double this_cost = cost_of(row, r);
        if (after && !precedes(after, after_cost, row, this_cost)) continue;
        if (next && !precedes(row, this_cost, next, *cost)) continue;
        next = row;
        *cost = this_cost;
    }
    return next;
}

size_t tessera_fmha_fwd_table_explain(const tessera_fmha_fwd_table *table, const tessera_device_facts *facts,
                                      const tessera_fmha_fwd_traits *traits, const tessera_fmha_fwd_args *args,
                                      char *text, size_t size) {
    tessera_device_facts whole;
    struct tessera_fmha_fwd_call call;
    struct tessera_text out = {text, size, 0};
    if (read(table, facts, traits, args, &whole, &call) != TESSERA_SUCCESS) {
        tessera_text_add(&out, "%s\n", tessera_last_error());
        return out.used + 1;
    }
    const struct request r = make_request(&whole, &call);
    int width = 0;
    for (uint32_t i = 0; i < table->row_count; i++)
        width = (int)tessera_max(width, (int64_t)strlen(table->rows[i].name));
    tessera_text_add(&out, "%s", "");
    double cost = 0;
    for (const instance_t *row = NULL; (row = next_candidate(table, &r, row, cost, &cost));)
        tessera_text_add(&out, "%-*s  cost %.4g cycles\n", width, row->name, cost);
    for (uint32_t i = 0; i < table->row_count; i++) {
        const instance_t *const row = &table->rows[i];
        char why[512];
        if (why_not(row, &r, why, sizeof why) > 0) tessera_text_add(&out, "%-*s  no: %s\n", width, row->name, why);
    }
    return out.used + 1;
}

tessera_status tessera_fmha_fwd_select(const tessera_device_facts *facts, const tessera_fmha_fwd_traits *traits,
                                       const tessera_fmha_fwd_args *args, const instance_t **out) {
    return tessera_fmha_fwd_table_select(tessera_fmha_fwd_get_table(), facts, traits, args, out);
}

size_t tessera_fmha_fwd_explain(const tessera_device_facts *facts, const tessera_fmha_fwd_traits *traits,
                                const tessera_fmha_fwd_args *args, char *text, size_t size) {
    return tessera_fmha_fwd_table_explain(tessera_fmha_fwd_get_table(), facts, traits, args, text, size);
}
