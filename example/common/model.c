// SPDX-License-Identifier: MIT
#include "model.h"

static const char *const causes[TESSERA_SIM_CAUSE_COUNT] = {"mfma",   "valu",    "transcendental", "lds",
                                                            "memory", "barrier", "issue",          "idle"};
static const char *const levels[TESSERA_SIM_LEVEL_COUNT] = {"l1", "l2", "infinity_cache", "hbm"};

static double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

void example_print_model(const example_result *result, int in_microseconds) {
    const tessera_sim_timing *t = &result->modelled;
    const double scale = in_microseconds ? 1e3 : 1;
    printf(", simulated in %.2f s of this machine", result->time_ms / 1e3);
    printf(", modelled %.0f cycles, %.3f %s +-%.0f %%", t->cycles, t->ms * scale, in_microseconds ? "us" : "ms",
           percent(t->ms_band, t->ms));
    if (!in_microseconds) printf(", %.2f TFlops", result->tflops);
    printf(", %.2f GB/s", result->gbps);
}

void example_print_profile(const example_result *result) {
    const tessera_sim_timing *t = &result->modelled;
    printf("modelled at %.0f MHz, sampling error %.1f %%, launches %llu\n", t->clock_mhz, 100 * t->sampling_error,
           (unsigned long long)t->launches);
    fputs("cycles of a SIMD:", stdout);
    for (int i = 0; i < TESSERA_SIM_CAUSE_COUNT; i++)
        printf("%s %s %.1f %%", i ? "," : "", causes[i], 100 * t->share[i]);
    puts("");
    if (t->matrix > 0) printf("cycles an MFMA: %.2f\n", t->cycles_a_matrix);
    printf("VALU busy: %.1f %%\n", 100 * t->valu_busy);
    printf("waves a SIMD: %.2f\n", t->waves_a_simd);
    printf("LDS: %.0f cycles, of these %.1f %% for bank conflicts\n", t->lds_cycles,
           percent(t->lds_conflicts, t->lds_cycles));
    fputs("MB by level:", stdout);
    for (int i = 0; i < TESSERA_SIM_LEVEL_COUNT; i++) printf("%s %s %.3f", i ? "," : "", levels[i], t->bytes[i] / 1e6);
    puts("");
}

static void put_numbers(FILE *file, const char *name, const char *const *names, const double *numbers, int count) {
    fprintf(file, ", \"%s\": {", name);
    for (int i = 0; i < count; i++) fprintf(file, "%s\"%s\": %.6g", i ? ", " : "", names[i], numbers[i]);
    fputs("}", file);
}

void example_put_model(FILE *file, const example_result *result) {
    const tessera_sim_timing *t = &result->modelled;
    fprintf(file, "  \"simulation\": {\"host_seconds\": %.9g, \"modelled\": {", result->time_ms / 1e3);
    fprintf(file, "\"cycles\": %.9g, \"time\": %.9g, \"band\": %.9g, \"mhz\": %.6g", t->cycles, t->ms, t->ms_band,
            t->clock_mhz);
    fprintf(file, ", \"tflops\": %.9g, \"gb/s\": %.9g, \"sampling_error\": %.4g", result->tflops, result->gbps,
            t->sampling_error);
    fprintf(file, ", \"mfma\": %.9g, \"cycles_a_mfma\": %.6g, \"waves_a_simd\": %.4g", t->matrix, t->cycles_a_matrix,
            t->waves_a_simd);
    fprintf(file, ", \"lds_cycles\": %.9g, \"lds_conflicts\": %.9g", t->lds_cycles, t->lds_conflicts);
    put_numbers(file, "shares", causes, t->share, TESSERA_SIM_CAUSE_COUNT);
    put_numbers(file, "bytes", levels, t->bytes, TESSERA_SIM_LEVEL_COUNT);
    fputs("}}\n", file);
}
