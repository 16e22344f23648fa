// SPDX-License-Identifier: MIT
// How long one selection takes in a table of 10,000 rows: four targets with instances as CK compiles them, a row for
// each dtype, head dim, mode, mask, bias, lse, dropout and tile. Prints
// the nanoseconds of a selection in the best of 400 rounds, which other programs disturb least.
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tessera/kernel/fmha_fwd.h"

enum {
    ROWS = 10000,
    TARGETS = 4,
    DTYPES = 3,
    HDIMS = 6,
    TILES = 3,
    TRAITS = 48,
    REQUESTS = 256,
    ROUNDS = 400,
    REPEATS = 10
};

static const tessera_target targets[TARGETS] = {TESSERA_TARGET_GFX90A, TESSERA_TARGET_GFX942, TESSERA_TARGET_GFX950,
                                                TESSERA_TARGET_SM_90A};
static const tessera_fmha_dtype dtypes[DTYPES] = {TESSERA_FMHA_FP16, TESSERA_FMHA_BF16, TESSERA_FMHA_FP8BF16};
static const uint32_t hdims[HDIMS] = {32, 64, 96, 128, 192, 256};
static const uint16_t tiles[TILES][2] = {{128, 128}, {64, 128}, {16, 64}};

static tessera_fmha_fwd_instance rows[ROWS];
static tessera_served served[DTYPES][HDIMS][TRAITS];
static tessera_slice slices[TESSERA_TARGET_COUNT * TESSERA_FMHA_DTYPE_COUNT * HDIMS];
static uint32_t order[ROWS];

static void hold(tessera_served *served, const tessera_schema *schema, const char *name, uint64_t values) {
    for (uint32_t i = 0; i < schema->trait_count; i++) {
        const tessera_trait *const trait = &schema->traits[i];
        const uint64_t all = (UINT64_C(1) << trait->count) - 1;
        if (strcmp(name, trait->name) != 0) continue;
        served->sets[trait->word] = (served->sets[trait->word] & ~(all << trait->bit)) | (values & all) << trait->bit;
    }
}

// What one instance serves. Bits of `traits`: mask, group mode, lse, dropout; the rest is the bias.
static tessera_served make_served(const tessera_schema *schema, int dtype, int hdim, unsigned traits) {
    const uint32_t least = hdim ? hdims[hdim - 1] + 1 : 1;
    tessera_served s = {.ranges = {{least, hdims[hdim], 8}, {1, hdims[hdim], 8}}};
    for (uint32_t i = 0; i < schema->trait_count; i++) hold(&s, schema, schema->traits[i].name, UINT64_MAX);
    hold(&s, schema, "data_type", 1u << dtypes[dtype]);
    hold(&s, schema, "mask_type", traits & 1 ? 0xe : 1);
    hold(&s, schema, "bias_type", 1u << traits / 16);
    hold(&s, schema, "is_group_mode", traits & 2 ? 2 : 1);
    hold(&s, schema, "has_lse", traits & 4 ? 2 : 1);
    hold(&s, schema, "has_dropout", traits & 8 ? 2 : 1);
    return s;
}

static tessera_fmha_fwd_instance make_row(int target, int tile, const tessera_served *products) {
    return (tessera_fmha_fwd_instance){
        .base = {.name = "row",
                 .target = targets[target],
                 .served = products,
                 .served_count = 1,
                 .macs_per_cycle = 1000.0f - 100.0f * (float)tile,
                 .tile_cycles = 500},
        .tile = {.bm0 = tiles[tile][0], .bn0 = tiles[tile][1], .wm0 = 16, .wn0 = 16},
    };
}

// As the generator makes it: a slice is a stretch of `order`, rows that serve the same share their products.
static tessera_table make_table(void) {
    const tessera_schema *const schema = tessera_fmha_fwd_get_table()->schema;
    uint32_t count = 0;
    for (int t = 0; t < TARGETS; t++)
        for (int d = 0; d < DTYPES; d++)
            for (int h = 0; h < HDIMS; h++) {
                const uint32_t first = count;
                for (unsigned traits = 0; traits < TRAITS; traits++)
                    for (int tile = 0; tile < TILES && count < ROWS; tile++, count++) {
                        served[d][h][traits] = make_served(schema, d, h, traits);
                        rows[count] = make_row(t, tile, &served[d][h][traits]);
                        order[count] = count;
                    }
                slices[(targets[t] * TESSERA_FMHA_DTYPE_COUNT + dtypes[d]) * HDIMS + h] =
                    (tessera_slice){first, count - first};
            }
    return (tessera_table){schema, rows, sizeof rows[0], count, hdims, HDIMS, slices, order, 0};
}

static double now(void) { // nanoseconds
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static void select_or_exit(const tessera_table *table, const tessera_device_facts *facts,
                           const tessera_fmha_fwd_traits *traits, const tessera_fmha_fwd_args *args) {
    const tessera_fmha_fwd_instance *instance;
    if (tessera_fmha_fwd_table_select(table, facts, traits, args, &instance) == TESSERA_SUCCESS) return;
    fprintf(stderr, "%s\n", tessera_last_error());
    exit(1);
}

int main(void) {
    const tessera_table table = make_table();
    tessera_fmha_fwd_traits traits[REQUESTS];
    tessera_fmha_fwd_args args[REQUESTS];
    tessera_device_facts facts[REQUESTS];
    srand(11939);
    for (int r = 0; r < REQUESTS; r++) {
        traits[r] = (tessera_fmha_fwd_traits)TESSERA_FMHA_FWD_TRAITS_INIT;
        args[r] = tessera_fmha_fwd_args_init();
        traits[r].hdim_q = traits[r].hdim_v = args[r].hdim_q = args[r].hdim_v = 8 * (1 + rand() % 32);
        traits[r].data_type = dtypes[rand() % DTYPES];
        traits[r].is_group_mode = rand() % 2;
        traits[r].mask_type = args[r].mask_type = (tessera_mask)(rand() % 3);
        traits[r].bias_type = (tessera_bias)(rand() % 3);
        traits[r].has_lse = rand() % 2;
        traits[r].has_dropout = rand() % 2;
        args[r].batch = 1 + rand() % 8;
        args[r].nhead_k = 1 + rand() % 8;
        args[r].nhead_q = args[r].nhead_k * (1 + rand() % 4);
        args[r].seqlen_q = args[r].max_seqlen_q = 1 + rand() % 4096;
        args[r].seqlen_k = 1 + rand() % 4096;
        facts[r] = (tessera_device_facts){
            .struct_size = sizeof facts[r], .targets = 1u << targets[rand() % (TARGETS - 1)], .compute_units = 304};
    }

    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        const double start = now();
        for (int i = 0; i < REPEATS; i++)
            for (int r = 0; r < REQUESTS; r++) select_or_exit(&table, &facts[r], &traits[r], &args[r]);
        const double each = (now() - start) / (REPEATS * REQUESTS);
        if (each < best) best = each;
    }
    printf("%.0f ns a selection, %u rows, %u in a slice\n", best, table.row_count,
           table.slices[(targets[0] * TESSERA_FMHA_DTYPE_COUNT + dtypes[0]) * HDIMS].count);
    return 0;
}
