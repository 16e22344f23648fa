// SPDX-License-Identifier: MIT
// Prints a generated dispatch table, slice by slice and combination by combination, for test_table.py to compare.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tessera/kernel/fmha_fwd.h"

static void print_slices(const tessera_table *t) {
    const tessera_slice *slice = t->slices;
    for (int target = 0; target < TESSERA_TARGET_COUNT; target++)
        for (int value = 0; value < t->schema->traits[0].count; value++)
            for (uint32_t b = 0; b < t->bucket_count; b++, slice++)
                for (uint32_t i = slice->first; i < slice->first + slice->count; i++)
                    printf("slice %d %d %" PRIu32 " %s\n", target, value, t->buckets[b],
                           tessera_row(t, t->order[i])->name);
}

// Whether a trait is one of those whose values all instances serve. Their sets are printed instead of a line for each
// value, which would be eight times as many lines.
static bool is_everywhere(const char *name) {
    return !strcmp(name, "has_lse") || !strcmp(name, "skip_min_seqlen_q") || !strcmp(name, "has_sink");
}

// Prints a line for each combination of values of the traits from number `trait` on; `line` holds those before.
static void print_served(const tessera_table *t, const char *name, const tessera_served *s, uint32_t trait,
                         const char *line) {
    if (trait == t->schema->trait_count) {
        printf("served %s%s ", name, line);
        for (uint32_t i = 0; i < t->schema->size_count; i++)
            printf(" %" PRIu32 " %" PRIu32 " %" PRIu32, s->ranges[i].min, s->ranges[i].max, s->ranges[i].multiple);
        printf("\n");
        return;
    }
    const tessera_trait *const one = &t->schema->traits[trait];
    char longer[256];
    if (is_everywhere(one->name)) {
        snprintf(longer, sizeof longer, "%s %" PRIu64, line, tessera_set_of(s, one));
        print_served(t, name, s, trait + 1, longer);
        return;
    }
    for (int value = 0; value < one->count; value++) {
        snprintf(longer, sizeof longer, "%s %s", line, one->words[value]);
        if (tessera_set_of(s, one) >> value & 1) print_served(t, name, s, trait + 1, longer);
    }
}

int main(void) {
    const tessera_table *t = tessera_fmha_fwd_get_table();
    print_slices(t);
    for (uint32_t r = 0; r < t->row_count; r++) {
        const tessera_instance *const row = tessera_row(t, r);
        if (row->symbol) printf("kernel %s %s %" PRIu32 "\n", row->name, row->symbol, row->threads);
        for (uint32_t p = 0; p < row->served_count; p++) print_served(t, row->name, &row->served[p], 0, "");
    }
}
