// SPDX-License-Identifier: MIT
// Texts that say why instances do not serve a call and what would have to change, made from the operation's schema.
#define _POSIX_C_SOURCE 200809L // strtok_r
#include <stdlib.h>

#include "integers.h"
#include "library.h"
#include "op/select.h"
#include "verbose.h"

typedef tessera_instance instance_t;
typedef tessera_served served_t;
typedef struct tessera_request request_t;
typedef struct tessera_text text_t;

// ---- reasons that may keep an instance out

// Reasons are numbered, the gravest first: the target, each trait, each size, the alignment, what
// the operation's keeps_out says. Bit n of a set of reasons is reason n.
enum { TARGET, FIRST_TRAIT };

static const tessera_schema *schema_of(const request_t *r) { return r->table->schema; }
static int first_size(const request_t *r) { return FIRST_TRAIT + (int)schema_of(r)->trait_count; }
static int alignment_of(const request_t *r) { return first_size(r) + (int)schema_of(r)->size_count; }
static int last_of(const request_t *r) { return alignment_of(r) + 1; }

static const tessera_trait *trait_of(int reason, const request_t *r) {
    return &schema_of(r)->traits[reason - FIRST_TRAIT];
}

static bool has(uint64_t reasons, int reason) { return reasons >> reason & 1; }
static bool has_size(uint64_t reasons, const request_t *r) {
    return reasons >> first_size(r) & ((UINT64_C(1) << schema_of(r)->size_count) - 1);
}

// The least size of a range that is not below the one asked for; 0: there is none.
static int64_t next_size(const tessera_range *range, uint32_t asked) {
    const int64_t next = tessera_round_up(tessera_max(asked, range->min), range->multiple);
    return next <= range->max ? next : 0;
}

static uint64_t misfits_of(const served_t *s, const request_t *r) {
    uint64_t misfits = 0;
    for (int reason = FIRST_TRAIT; reason < first_size(r); reason++) {
        const tessera_trait *const trait = trait_of(reason, r);
        const uint32_t asked = tessera_member(r->traits, trait->offset);
        if (!(tessera_set_of(s, trait) >> asked & 1)) misfits |= UINT64_C(1) << reason;
    }
    for (uint32_t i = 0; i < schema_of(r)->size_count; i++)
        if (!tessera_range_holds(&s->ranges[i], r->sizes[i])) misfits |= UINT64_C(1) << (first_size(r) + (int)i);
    return misfits;
}

static int count(uint64_t reasons) {
    int n = 0;
    for (; reasons; reasons &= reasons - 1) n++;
    return n;
}

// Extends *all to what either serves, for each trait and size by itself.
static void unite(served_t *all, const served_t *s) {
    for (int word = 0; word < TESSERA_SET_WORDS; word++) all->sets[word] |= s->sets[word];
    for (int i = 0; i < TESSERA_MAX_SIZES; i++) {
        tessera_range *const range = &all->ranges[i];
        if (s->ranges[i].min < range->min) range->min = s->ranges[i].min;
        if (s->ranges[i].max > range->max) range->max = s->ranges[i].max;
        if (s->ranges[i].multiple < range->multiple) range->multiple = s->ranges[i].multiple;
    }
}

// ---- why an instance does not serve a call

static bool is_here(const instance_t *row, const request_t *r) { return r->targets >> row->target & 1; }

struct verdict {
    const instance_t *row;
    uint64_t reasons; // none: it serves the call
    served_t served; // what the reasons refer to: all that the row serves of each trait by itself, or, where that holds
                     // the call, the one of its products with fewest misfits
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
    if (!tessera_is_aligned(row, r)) v.reasons |= UINT64_C(1) << alignment_of(r);
    if (!is_here(row, r)) v.reasons |= UINT64_C(1) << TARGET;
    if (!v.reasons && tessera_keeps_out(row, r, NULL)) v.reasons = UINT64_C(1) << last_of(r);
    return v;
}

// Adds the words of a set; `last` separates the last two.
static void add_set(text_t *out, uint64_t set, const char *const *words, const char *last) {
    const char *between = "";
    for (int v = 0; set; v++, set >>= 1) {
        if (!(set & 1)) continue;
        const uint64_t rest = set >> 1;
        tessera_text_add(out, "%s%s", between, words[v]);
        between = rest & (rest - 1) ? ", " : last;
    }
}

static void add_targets(text_t *out, uint32_t targets) {
    const char *words[TESSERA_TARGET_COUNT];
    for (int v = 0; v < TESSERA_TARGET_COUNT; v++) words[v] = tessera_target_string((tessera_target)v);
    add_set(out, targets & ((1u << TESSERA_TARGET_COUNT) - 1), words, ", ");
}

// The number that a start must be a multiple of, if it is not; 0: it is aligned.
static uint32_t missed_multiple(const instance_t *row, const struct tessera_start *start) {
    const uint32_t multiple = row->alignment * 8 / (uint32_t)start->bits;
    return start->matters && start->value % multiple ? multiple : 0;
}

// Lists the starts of the call that are misaligned, and returns their number.
static int list_misaligned(const struct verdict *v, const request_t *r,
                           struct tessera_start starts[TESSERA_MAX_STARTS]) {
    const int all = r->kernels->list_starts(r, starts);
    int missed = 0;
    for (int i = 0; i < all; i++)
        if (missed_multiple(v->row, &starts[i])) starts[missed++] = starts[i];
    return missed;
}

static void add_misaligned(text_t *out, const struct verdict *v, const request_t *r, const char *serves) {
    struct tessera_start starts[TESSERA_MAX_STARTS];
    const int missed = list_misaligned(v, r, starts);
    for (int i = 0; i < missed; i++)
        tessera_text_add(out,
                         starts[i].is_pointer ? "%s%s %#llx (%s multiples of %u)" : "%s%s %llu (%s multiples of %u)",
                         i ? "; " : "", starts[i].name, (unsigned long long)starts[i].value, serves,
                         missed_multiple(v->row, &starts[i]));
}

// Adds one reason of a verdict: what the call asks for, and what is served.
static void add_reason(text_t *out, int reason, const struct verdict *v, const request_t *r, const char *serves) {
    if (reason == TARGET) {
        tessera_text_add(out, "target %s (not this device's)", tessera_target_string(v->row->target));
    } else if (reason < first_size(r)) {
        const tessera_trait *const trait = trait_of(reason, r);
        const uint32_t asked = tessera_member(r->traits, trait->offset);
        tessera_text_add(out, "%s %s (%s ", trait->name, trait->words[asked], serves);
        add_set(out, tessera_set_of(&v->served, trait), trait->words, ", ");
        tessera_text_add(out, ")");
    } else if (reason < alignment_of(r)) {
        const int number = reason - first_size(r);
        const tessera_range *const range = &v->served.ranges[number];
        tessera_text_add(out, "%s %u (%s %u", schema_of(r)->sizes[number].name, r->sizes[number], serves, range->min);
        if (range->max > range->min) tessera_text_add(out, " to %u", range->max);
        if (range->multiple > 1) tessera_text_add(out, ", multiples of %u", range->multiple);
        tessera_text_add(out, ")");
    } else if (reason == alignment_of(r)) {
        add_misaligned(out, v, r, serves);
    } else {
        tessera_keeps_out(v->row, r, out);
    }
}

static void add_reasons(text_t *out, const struct verdict *v, const request_t *r) {
    const char *between = "";
    for (int reason = 0; reason <= last_of(r); reason++) {
        if (!has(v->reasons, reason)) continue;
        tessera_text_add(out, "%s", between);
        add_reason(out, reason, v, r, "serves");
        between = "; ";
    }
}

// ---- what would have to change

static void add_alignments(text_t *out, const struct verdict *v, const request_t *r) {
    struct tessera_start starts[TESSERA_MAX_STARTS];
    const int missed = list_misaligned(v, r, starts);
    for (int i = 0; i < missed; i++)
        tessera_text_add(out, "%s%s to a multiple of %u", i ? ", " : "", starts[i].name,
                         missed_multiple(v->row, &starts[i]));
}

static void add_change(text_t *out, int reason, const struct verdict *v, const request_t *r) {
    if (reason < first_size(r)) {
        const tessera_trait *const trait = trait_of(reason, r);
        tessera_text_add(out, "%s to ", trait->name);
        add_set(out, tessera_set_of(&v->served, trait), trait->words, " or ");
    } else if (reason < alignment_of(r)) {
        const int number = reason - first_size(r);
        const tessera_size *const size = &schema_of(r)->sizes[number];
        const long long next = next_size(&v->served.ranges[number], r->sizes[number]);
        if (next)
            tessera_text_add(out, "%s to %lld%s", size->name, next, size->fills ? " (filled up with zeros)" : "");
        else
            tessera_text_add(out, "%s to at most %u", size->name, v->served.ranges[number].max);
    } else if (reason == alignment_of(r)) {
        add_alignments(out, v, r);
    } else {
        tessera_text_add(out, "that");
    }
}

// If a single trait keeps the instance out, adds its values that are served by other instances which it alone keeps
// out.
static void unite_alike(const request_t *r, struct verdict *v) {
    if (count(v->reasons) != 1 || v->reasons >> first_size(r)) return;
    for (uint32_t i = 0; i < r->table->row_count; i++) {
        const struct verdict other = judge(tessera_row(r->table, i), r);
        if (other.reasons == v->reasons) unite(&v->served, &other.served);
    }
}

// Adds the devices on which the call runs unchanged. A user of a GPU reads "cpu", a user of the CPU its targets.
static void add_elsewhere(text_t *out, const request_t *r) {
    unsigned targets = 0, cpus = 0;
    for (uint32_t i = 0; i < r->table->row_count; i++) {
        const instance_t *const row = tessera_row(r->table, i);
        if (strcmp(tessera_target_kinds[row->target], "cpu") == 0) cpus |= 1u << row->target;
        if (tessera_serves(row, r)) targets |= 1u << row->target;
    }
    if (!targets) return;
    tessera_text_add(out, "; as it is it runs on ");
    if (targets & cpus && !(r->targets & cpus)) {
        tessera_text_add(out, targets & ~cpus ? "cpu, " : "cpu");
        targets &= ~cpus;
    }
    add_targets(out, targets);
}

static void add_changes(text_t *out, const request_t *r, struct verdict v) {
    const char *between = ": change ";
    unite_alike(r, &v);
    for (int reason = FIRST_TRAIT; reason <= last_of(r); reason++) {
        if (!has(v.reasons, reason)) continue;
        tessera_text_add(out, "%s", between);
        add_change(out, reason, &v, r);
        between = ", ";
    }
    add_elsewhere(out, r);
}

// ---- the nearest instance

// Orders verdicts: rows of the device's targets first, then those that serve the first trait, then those of fewest
// reasons, then those whose sizes are nearest, where any greater size is nearer than a smaller one.
static int64_t distance_of(const struct verdict *v, const request_t *r) {
    const int64_t smaller = INT64_C(1) << 32;
    int64_t sizes = 0;
    for (uint32_t i = 0; i < schema_of(r)->size_count; i++) {
        const int64_t next = next_size(&v->served.ranges[i], r->sizes[i]), asked = r->sizes[i];
        if (!has(v->reasons, first_size(r) + (int)i)) continue;
        sizes += next ? next - asked : smaller + asked - v->served.ranges[i].max;
    }
    return (int64_t)has(v->reasons, TARGET) << 56 | (int64_t)has(v->reasons, FIRST_TRAIT) << 48 |
           (int64_t)count(v->reasons) << 40 | sizes;
}

static struct verdict nearest_of(const request_t *r) {
    struct verdict nearest = judge(tessera_row(r->table, 0), r);
    for (uint32_t i = 1; i < r->table->row_count; i++) {
        const struct verdict v = judge(tessera_row(r->table, i), r);
        if (distance_of(&v, r) < distance_of(&nearest, r)) nearest = v;
    }
    return nearest;
}

static void add_no_instance(text_t *out, const request_t *r) {
    tessera_text_add(out, "no instance serves this call");
    if (r->table->row_count == 0) {
        tessera_text_add(out, ": this build has none");
        return;
    }
    struct verdict nearest = nearest_of(r);
    if (has_size(nearest.reasons, r)) // other sizes have other strides
        nearest.reasons &= ~(UINT64_C(1) << alignment_of(r));
    if (has(nearest.reasons, TARGET)) {
        tessera_text_add(out, ": this build has none for ");
        add_targets(out, r->targets);
        return;
    }
    tessera_text_add(out, "; nearest is %s, kept out by ", nearest.row->name);
    add_reasons(out, &nearest, r);
    add_changes(out, r, nearest);
}

static tessera_status refuse_wanted(const request_t *r) {
    const struct verdict v = judge(r->wanted, r);
    char why[512];
    text_t text = {why, sizeof why, 0};
    add_reasons(&text, &v, r);
    return tessera_fail(TESSERA_ERROR_NO_INSTANCE, "%s does not serve this call: %s", r->wanted->name, why);
}

tessera_status tessera_no_instance(const request_t *r) {
    char text[1024];
    text_t out = {text, sizeof text, 0};
    if (r->wanted) return refuse_wanted(r);
    add_no_instance(&out, r);
    return tessera_fail(TESSERA_ERROR_NO_INSTANCE, "%s", text);
}

// ---- everything about a call

// The candidate that follows `after`, whose cost is after_cost. NULL is followed by the first and the last by NULL.
static const instance_t *next_candidate(const request_t *r, const instance_t *after, double after_cost, double *cost) {
    const instance_t *next = NULL;
    for (uint32_t i = 0; i < r->table->row_count; i++) {
        const instance_t *const row = tessera_row(r->table, i);
        if (!is_here(row, r) || !tessera_serves(row, r)) continue;
        const double this_cost = r->kernels->cost(row, r);
        if (after && !tessera_precedes(after, after_cost, row, this_cost)) continue;
        if (next && !tessera_precedes(row, this_cost, next, *cost)) continue;
        next = row;
        *cost = this_cost;
    }
    return next;
}

// The instance of the work that the chosen one leaves to a second launch.
static void add_other(text_t *out, const request_t *r, const instance_t *chosen) {
    const struct tessera_cut cut = tessera_cut_by(chosen, r);
    if (cut.rest) tessera_text_add(out, "+ %s  in a second launch\n", cut.other->name);
}

// Returns the number of candidates.
static int add_candidates(text_t *out, const request_t *r, int width) {
    const instance_t *chosen = r->wanted;
    double cost = 0;
    int n = 0;
    for (const instance_t *row = NULL; (row = next_candidate(r, row, cost, &cost)); n++) {
        if (!chosen) chosen = row;
        tessera_text_add(out, "%c %-*s  cost %.4g cycles\n", row == chosen ? '*' : ' ', width, row->name, cost);
        if (row == chosen) add_other(out, r, row);
    }
    return n;
}

static void add_all_others(text_t *out, const request_t *r, int width) {
    for (uint32_t i = 0; i < r->table->row_count; i++) {
        const struct verdict v = judge(tessera_row(r->table, i), r);
        if (!v.reasons) continue;
        tessera_text_add(out, "- %-*s  no: ", width, v.row->name);
        add_reasons(out, &v, r);
        tessera_text_add(out, "\n");
    }
}

// Adds a line for each reason that is the gravest one of some instance.
static void add_reasons_of_others(text_t *out, const request_t *r) {
    for (int reason = last_of(r); reason >= 0; reason--) {
        struct verdict all = {.row = NULL};
        unsigned n = 0, targets = 0;
        for (uint32_t i = 0; i < r->table->row_count; i++) {
            const struct verdict v = judge(tessera_row(r->table, i), r);
            if (!has(v.reasons, reason) || v.reasons & ((UINT64_C(1) << reason) - 1)) continue;
            if (n++ == 0) all = v;
            unite(&all.served, &v.served);
            targets |= 1u << v.row->target;
        }
        if (n == 0) continue;
        tessera_text_add(out, "- %u ", n);
        if (reason == TARGET) {
            tessera_text_add(out, "for other devices (");
            add_targets(out, targets);
            tessera_text_add(out, ")\n");
        } else {
            tessera_text_add(out, "kept out by ");
            add_reason(out, reason, &all, r, n == 1 ? "it serves" : "they serve");
            tessera_text_add(out, "\n");
        }
    }
}

static int width_of(const request_t *r, bool all) {
    int64_t width = 0;
    for (uint32_t i = 0; i < r->table->row_count; i++)
        if (all || !judge(tessera_row(r->table, i), r).reasons)
            width = tessera_max(width, (int64_t)strlen(tessera_row(r->table, i)->name));
    return (int)width;
}

void tessera_add_explanation(text_t *out, const request_t *r, bool all) {
    const int width = width_of(r, all);
    if (add_candidates(out, r, width) == 0) {
        add_no_instance(out, r);
        tessera_text_add(out, "\n");
    }
    if (all)
        add_all_others(out, r, width);
    else
        add_reasons_of_others(out, r);
}

void tessera_tell_reasons(const request_t *r) {
    text_t measured = {NULL, 0, 0};
    tessera_add_explanation(&measured, r, false);
    char *const text = malloc(measured.used + 1), *rest = text;
    if (!text) return;
    text_t out = {text, measured.used + 1, 0};
    tessera_add_explanation(&out, r, false);
    for (const char *line; (line = strtok_r(rest, "\n", &rest));) tessera_verbose_line("why %s", line);
    free(text);
}
