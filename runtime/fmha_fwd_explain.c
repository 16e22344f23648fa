// SPDX-License-Identifier: MIT
// Why instances do not serve a call, and what would have to change.
#include <string.h>

#include "fmha_fwd_select.h"

typedef tessera_fmha_fwd_instance instance_t;
typedef tessera_fmha_fwd_served served_t;
typedef struct tessera_fmha_fwd_request request_t;
typedef struct tessera_text text_t;

// ---- what is served of each trait

typedef const char *word_of(int value);
static const char *dtype_word(int v) { return tessera_dtype_string((tessera_dtype)v); }
static const char *mask_word(int v) { return tessera_mask_string((tessera_mask)v); }
static const char *bias_word(int v) { return tessera_bias_string((tessera_bias)v); }
static const char *qscale_word(int v) { return tessera_qscale_string((tessera_qscale)v); }
static const char *number_word(int v) { return v == 0 ? "0" : v == 1 ? "1" : NULL; }
static const char *target_word(int v) { return tessera_target_string((tessera_target)v); }

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

// What may keep an instance out, the gravest first. Bit n of a set of reasons is reason n.
enum { TARGET, FIRST_FIELD, DATA_TYPE = FIRST_FIELD, HDIM_Q = FIRST_FIELD + sizeof fields / sizeof *fields };
enum { HDIM_V = HDIM_Q + 1, ALIGNMENT, REASONS };

static unsigned set_at(const served_t *served, const struct field *field) {
    uint8_t narrow;
    uint16_t wide;
    memcpy(&narrow, (const char *)served + field->offset, 1);
    if (field->bytes == 1) return narrow;
    memcpy(&wide, (const char *)served + field->offset, 2);
    return wide;
}

struct hdims {
    const char *name;
    uint16_t asked, min, max, multiple;
};

static struct hdims hdims_of(int reason, const served_t *s, const request_t *r) {
    if (reason == HDIM_Q)
        return (struct hdims){"hdim_q", r->one.hdim_q_max, s->hdim_q_min, s->hdim_q_max, s->hdim_q_multiple};
    return (struct hdims){"hdim_v", r->one.hdim_v_max, s->hdim_v_min, s->hdim_v_max, s->hdim_v_multiple};
}

// The least that is served of those not below what is asked for; 0: there is none.
static int64_t next_hdim(const struct hdims *h) {
    const int64_t next = tessera_round_up(tessera_max(h->asked, h->min), h->multiple);
    return next <= h->max ? next : 0;
}

static bool holds(int reason, const served_t *s, const request_t *r) {
    if (reason < HDIM_Q)
        return set_at(s, &fields[reason - FIRST_FIELD]) & set_at(&r->one, &fields[reason - FIRST_FIELD]);
    const struct hdims h = hdims_of(reason, s, r);
    return tessera_fmha_fwd_hdim_fits(h.asked, h.min, h.max, h.multiple);
}

static uint32_t misfits_of(const served_t *s, const request_t *r) {
    uint32_t misfits = 0;
    for (int reason = FIRST_FIELD; reason < ALIGNMENT; reason++)
        if (!holds(reason, s, r)) misfits |= 1u << reason;
    return misfits;
}

static int count(uint32_t reasons) {
    int n = 0;
    for (; reasons; reasons &= reasons - 1) n++;
    return n;
}

// What both serve of each trait by itself.
static void unite(served_t *all, const served_t *s) {
    for (size_t byte = 0; byte < TESSERA_FMHA_FWD_SET_BYTES; byte++)
        ((uint8_t *)all)[byte] |= ((const uint8_t *)s)[byte];
    if (s->hdim_q_min < all->hdim_q_min) all->hdim_q_min = s->hdim_q_min;
    if (s->hdim_v_min < all->hdim_v_min) all->hdim_v_min = s->hdim_v_min;
    if (s->hdim_q_max > all->hdim_q_max) all->hdim_q_max = s->hdim_q_max;
    if (s->hdim_v_max > all->hdim_v_max) all->hdim_v_max = s->hdim_v_max;
    if (s->hdim_q_multiple < all->hdim_q_multiple) all->hdim_q_multiple = s->hdim_q_multiple;
    if (s->hdim_v_multiple < all->hdim_v_multiple) all->hdim_v_multiple = s->hdim_v_multiple;
}

// ---- why an instance does not serve a call

static bool is_here(const instance_t *row, const request_t *r) { return r->targets >> row->target & 1; }

struct verdict {
    const instance_t *row;
    uint32_t reasons; // none: it serves
    served_t served;  // by which they are judged: all that it serves of each trait, or where that holds the call the
                      // product of fewest misfits
};

static served_t nearest_product(const instance_t *row, const request_t *r) {
    const served_t *nearest = row->served;
    for (uint32_t i = 1; i < row->served_count; i++)
        if (count(misfits_of(&row->served[i], r)) < count(misfits_of(nearest, r))) nearest = &row->served[i];
    return *nearest;
}

static struct verdict judge(const instance_t *row, const request_t *r) {
    struct verdict v = {.row = row, .served = row->served[0]};
    for (uint32_t i = 1; i < row->served_count; i++) unite(&v.served, &row->served[i]);
    if (!misfits_of(&v.served, r)) v.served = nearest_product(row, r);
    v.reasons = misfits_of(&v.served, r);
    if (!tessera_fmha_fwd_is_aligned(r->call, row->alignment)) v.reasons |= 1u << ALIGNMENT;
    if (!is_here(row, r)) v.reasons |= 1u << TARGET;
    return v;
}

// The words of a set; `last` stands before the last of several.
static void add_set(text_t *out, unsigned set, word_of *word, const char *last) {
    const char *between = "";
    for (int v = 0; set >> v; v++) {
        if (!(set >> v & 1) || !word(v)) continue;
        tessera_text_add(out, "%s%s", between, word(v));
        const unsigned rest = set >> v >> 1;
        between = rest & (rest - 1) ? ", " : last;
    }
}

// The multiple that a start must be and is not; 0: it is well.
static uint32_t missed_multiple(const instance_t *row, const struct tessera_fmha_fwd_start *start) {
    const uint32_t multiple = row->alignment * 8 / (uint32_t)start->bits;
    return start->matters && start->value % multiple ? multiple : 0;
}

static void add_misaligned(text_t *out, const struct verdict *v, const request_t *r, const char *serves) {
    struct tessera_fmha_fwd_start starts[TESSERA_FMHA_FWD_STARTS];
    const char *between = "";
    tessera_fmha_fwd_list_starts(r->call, starts);
    for (int i = 0; i < TESSERA_FMHA_FWD_STARTS; i++) {
        const uint32_t multiple = missed_multiple(v->row, &starts[i]);
        if (!multiple) continue;
        const bool is_pointer = i % 4 == 0;
        tessera_text_add(out, is_pointer ? "%s%s %#llx (%s multiples of %u)" : "%s%s %llu (%s multiples of %u)",
                         between, starts[i].name, (unsigned long long)starts[i].value, serves, multiple);
        between = "; ";
    }
}

// One reason of a verdict: what the call asks for, and what is served.
static void add_reason(text_t *out, int reason, const struct verdict *v, const request_t *r, const char *serves) {
    if (reason == TARGET) {
        tessera_text_add(out, "target %s (not this device's)", target_word((int)v->row->target));
    } else if (reason < HDIM_Q) {
        const struct field *const field = &fields[reason - FIRST_FIELD];
        tessera_text_add(out, "%s ", field->trait);
        add_set(out, set_at(&r->one, field), field->word, "");
        tessera_text_add(out, " (%s ", serves);
        add_set(out, set_at(&v->served, field), field->word, ", ");
        tessera_text_add(out, ")");
    } else if (reason < ALIGNMENT) {
        const struct hdims h = hdims_of(reason, &v->served, r);
        tessera_text_add(out, "%s %d (%s %d", h.name, h.asked, serves, h.min);
        if (h.max > h.min) tessera_text_add(out, " to %d", h.max);
        if (h.multiple > 1) tessera_text_add(out, ", multiples of %d", h.multiple);
        tessera_text_add(out, ")");
    } else {
        add_misaligned(out, v, r, serves);
    }
}

static void add_reasons(text_t *out, const struct verdict *v, const request_t *r) {
    const char *between = "";
    for (int reason = 0; reason < REASONS; reason++) {
        if (!(v->reasons >> reason & 1)) continue;
        tessera_text_add(out, "%s", between);
        add_reason(out, reason, v, r, "serves");
        between = "; ";
    }
}

// ---- what would have to change

static void add_alignments(text_t *out, const struct verdict *v, const request_t *r) {
    struct tessera_fmha_fwd_start starts[TESSERA_FMHA_FWD_STARTS];
    const char *between = "";
    tessera_fmha_fwd_list_starts(r->call, starts);
    for (int i = 0; i < TESSERA_FMHA_FWD_STARTS; i++) {
        const uint32_t multiple = missed_multiple(v->row, &starts[i]);
        if (!multiple) continue;
        tessera_text_add(out, "%s%s to a multiple of %u", between, starts[i].name, multiple);
        between = ", ";
    }
}

static void add_change(text_t *out, int reason, const struct verdict *v, const request_t *r) {
    if (reason < HDIM_Q) {
        const struct field *const field = &fields[reason - FIRST_FIELD];
        tessera_text_add(out, "%s to ", field->trait);
        add_set(out, set_at(&v->served, field), field->word, " or ");
    } else if (reason < ALIGNMENT) {
        const struct hdims h = hdims_of(reason, &v->served, r);
        if (next_hdim(&h))
            tessera_text_add(out, "%s to %d (filled up with zeros)", h.name, (int)next_hdim(&h));
        else
            tessera_text_add(out, "%s to at most %d", h.name, h.max);
    } else {
        add_alignments(out, v, r);
    }
}

// Of the instances that are kept out by one and the same trait, any value will do that any of them serves.
static void unite_alike(const tessera_fmha_fwd_table *table, const request_t *r, struct verdict *v) {
    if (count(v->reasons) != 1 || v->reasons >> HDIM_Q) return;
    for (uint32_t i = 0; i < table->row_count; i++) {
        const struct verdict other = judge(&table->rows[i], r);
        if (other.reasons == v->reasons) unite(&v->served, &other.served);
    }
}

// Where the call runs as it is. A GPU's user is told of the CPU, and a CPU's of its targets.
static void add_elsewhere(text_t *out, const tessera_fmha_fwd_table *table, const request_t *r) {
    unsigned targets = 0, cpus = 0;
    for (uint32_t i = 0; i < table->row_count; i++) {
        const instance_t *const row = &table->rows[i];
        if (!tessera_fmha_fwd_is_gpu(row)) cpus |= 1u << row->target;
        if (tessera_fmha_fwd_serves(row, r)) targets |= 1u << row->target;
    }
    if (!targets) return;
    tessera_text_add(out, "; as it is it runs on ");
    if (targets & cpus && !(r->targets & cpus)) {
        tessera_text_add(out, targets & ~cpus ? "cpu, " : "cpu");
        targets &= ~cpus;
    }
    add_set(out, targets, target_word, ", ");
}

static void add_changes(text_t *out, const tessera_fmha_fwd_table *table, const request_t *r, struct verdict v) {
    const char *between = ": change ";
    unite_alike(table, r, &v);
    for (int reason = FIRST_FIELD; reason < REASONS; reason++) {
        if (!(v.reasons >> reason & 1)) continue;
        tessera_text_add(out, "%s", between);
        add_change(out, reason, &v, r);
        between = ", ";
    }
    add_elsewhere(out, table, r);
}

// ---- the nearest instance

// Orders verdicts: the device's own come first, of these the data type's own, then those of fewest reasons, then those
// whose head dims are nearest, where greater ones, to be filled with zeros, are nearer than any smaller.
static int64_t distance_of(const struct verdict *v, const request_t *r) {
    int64_t hdims = 0;
    for (int reason = HDIM_Q; reason <= HDIM_V; reason++) {
        const struct hdims h = hdims_of(reason, &v->served, r);
        if (v->reasons >> reason & 1) hdims += next_hdim(&h) ? next_hdim(&h) - h.asked : 1024 + h.asked - h.max;
    }
    return (int64_t)(v->reasons >> TARGET & 1) << 48 | (int64_t)(v->reasons >> DATA_TYPE & 1) << 40 |
           (int64_t)count(v->reasons) << 32 | hdims;
}

static struct verdict nearest_of(const tessera_fmha_fwd_table *table, const request_t *r) {
    struct verdict nearest = judge(&table->rows[0], r);
    for (uint32_t i = 1; i < table->row_count; i++) {
        const struct verdict v = judge(&table->rows[i], r);
        if (distance_of(&v, r) < distance_of(&nearest, r)) nearest = v;
    }
    return nearest;
}

static void add_no_instance(text_t *out, const tessera_fmha_fwd_table *table, const request_t *r) {
    tessera_text_add(out, "no instance serves this call");
    if (table->row_count == 0) {
        tessera_text_add(out, ": this build has none");
        return;
    }
    struct verdict nearest = nearest_of(table, r);
    if (nearest.reasons >> HDIM_Q & 3) nearest.reasons &= ~(1u << ALIGNMENT); // other head dims have other strides
    if (nearest.reasons >> TARGET & 1) {
        tessera_text_add(out, ": this build has none for ");
        add_set(out, r->targets, target_word, ", ");
        return;
    }
    tessera_text_add(out, "; nearest is %s, kept out by ", nearest.row->name);
    add_reasons(out, &nearest, r);
    add_changes(out, table, r, nearest);
}

tessera_status tessera_fmha_fwd_no_instance(const tessera_fmha_fwd_table *table, const request_t *r) {
    char text[1024];
    text_t out = {text, sizeof text, 0};
    add_no_instance(&out, table, r);
    return tessera_fail(TESSERA_ERROR_NO_INSTANCE, "%s", text);
}

tessera_status tessera_fmha_fwd_take(const instance_t *row, const request_t *r, const instance_t **out) {
    const struct verdict v = judge(row, r);
    char why[512];
    text_t text = {why, sizeof why, 0};
    if (v.reasons) {
        add_reasons(&text, &v, r);
        return tessera_fail(TESSERA_ERROR_NO_INSTANCE, "%s does not serve this call: %s", row->name, why);
    }
    *out = row;
    return TESSERA_SUCCESS;
}

// ---- everything about a call

// The candidate behind `after`, of cost after_cost; the first one behind NULL, and NULL behind the last.
static const instance_t *next_candidate(const tessera_fmha_fwd_table *table, const request_t *r,
                                        const instance_t *after, double after_cost, double *cost) {
    const instance_t *next = NULL;
    for (uint32_t i = 0; i < table->row_count; i++) {
        const instance_t *const row = &table->rows[i];
        if (!is_here(row, r) || !tessera_fmha_fwd_serves(row, r)) continue;
        const double this_cost = tessera_fmha_fwd_cost(row, r);
        if (after && !tessera_fmha_fwd_precedes(after, after_cost, row, this_cost)) continue;
        if (next && !tessera_fmha_fwd_precedes(row, this_cost, next, *cost)) continue;
        next = row;
        *cost = this_cost;
    }
    return next;
}

// Returns how many there are.
static int add_candidates(text_t *out, const tessera_fmha_fwd_table *table, const request_t *r, int width) {
    const instance_t *chosen = r->call->args.instance;
    double cost = 0;
    int n = 0;
    for (const instance_t *row = NULL; (row = next_candidate(table, r, row, cost, &cost)); n++) {
        if (!chosen) chosen = row;
        tessera_text_add(out, "%c %-*s  cost %.4g cycles\n", row == chosen ? '*' : ' ', width, row->name, cost);
    }
    return n;
}

static void add_all_others(text_t *out, const tessera_fmha_fwd_table *table, const request_t *r, int width) {
    for (uint32_t i = 0; i < table->row_count; i++) {
        const struct verdict v = judge(&table->rows[i], r);
        if (!v.reasons) continue;
        tessera_text_add(out, "- %-*s  no: ", width, v.row->name);
        add_reasons(out, &v, r);
        tessera_text_add(out, "\n");
    }
}

// A line for each reason that is the gravest of some instance.
static void add_reasons_of_others(text_t *out, const tessera_fmha_fwd_table *table, const request_t *r) {
    for (int reason = REASONS - 1; reason >= 0; reason--) {
        struct verdict all = {NULL, 0, {0}};
        unsigned n = 0, targets = 0;
        for (uint32_t i = 0; i < table->row_count; i++) {
            const struct verdict v = judge(&table->rows[i], r);
            if (!(v.reasons >> reason & 1) || v.reasons & ((1u << reason) - 1)) continue;
            if (n++ == 0) all = v;
            unite(&all.served, &v.served);
            targets |= 1u << v.row->target;
        }
        if (n == 0) continue;
        tessera_text_add(out, "- %u ", n);
        if (reason == TARGET) {
            tessera_text_add(out, "for other devices (");
            add_set(out, targets, target_word, ", ");
            tessera_text_add(out, ")\n");
        } else {
            tessera_text_add(out, "kept out by ");
            add_reason(out, reason, &all, r, n == 1 ? "it serves" : "they serve");
            tessera_text_add(out, "\n");
        }
    }
}

static int width_of(const tessera_fmha_fwd_table *table, const request_t *r, bool all) {
    int64_t width = 0;
    for (uint32_t i = 0; i < table->row_count; i++)
        if (all || !judge(&table->rows[i], r).reasons) width = tessera_max(width, (int64_t)strlen(table->rows[i].name));
    return (int)width;
}

size_t tessera_fmha_fwd_table_explain(const tessera_fmha_fwd_table *table, const tessera_device_facts *facts,
                                      const tessera_fmha_fwd_traits *traits, const tessera_fmha_fwd_args *args,
                                      tessera_explain how, char *text, size_t size) {
    tessera_device_facts whole;
    struct tessera_fmha_fwd_call call;
    text_t out = {text, size, 0};
    tessera_text_add(&out, "%s", "");
    if (tessera_fmha_fwd_read_request(table, facts, traits, args, &whole, &call) != TESSERA_SUCCESS) {
        tessera_text_add(&out, "%s\n", tessera_last_error());
        return out.used + 1;
    }
    const request_t r = tessera_fmha_fwd_ask(&whole, &call);
    const bool all = how == TESSERA_EXPLAIN_INSTANCES;
    const int width = width_of(table, &r, all);
    if (add_candidates(&out, table, &r, width) == 0) {
        add_no_instance(&out, table, &r);
        tessera_text_add(&out, "\n");
    }
    if (all)
        add_all_others(&out, table, &r, width);
    else
        add_reasons_of_others(&out, table, &r);
    return out.used + 1;
}

size_t tessera_fmha_fwd_explain(const tessera_device_facts *facts, const tessera_fmha_fwd_traits *traits,
                                const tessera_fmha_fwd_args *args, tessera_explain how, char *text, size_t size) {
    return tessera_fmha_fwd_table_explain(tessera_fmha_fwd_get_table(), facts, traits, args, how, text, size);
}
