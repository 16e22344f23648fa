// SPDX-License-Identifier: MIT
// Whether a wave may touch an address, and where its bytes are.
#include "internal.h"

#include "shadow.h"

static struct sim_range find(struct sim_wave *wave, uintptr_t address) {
    const struct sim_launch *launch = wave->group->launch;
    const struct sim_range scratch = {.base = (uintptr_t)wave->scratch,
                                      .bytes = (size_t)SIM_LANES * launch->lane_scratch_bytes,
                                      .undefined = wave->checks ? tessera_sim_shadow_of_scratch(wave) : NULL};
    if (address - scratch.base < scratch.bytes) return scratch;
    return tessera_sim_memory_find(&launch->sim->memory, address);
}

static void out_of_bounds(struct sim_wave *wave, int lane, uint64_t address, size_t bytes,
                          const struct sim_range *range, const char *verb) {
    char place[128];
    if (range->bytes) {
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_OUT_OF_BOUNDS, lane, address,
                            "%s %zu bytes at 0x%llx, across the end of an allocation of %zu bytes at 0x%llx", verb,
                            bytes, (unsigned long long)address, range->bytes, (unsigned long long)range->base);
        return;
    }
    const bool freed =
        tessera_sim_memory_describe(&wave->group->launch->sim->memory, (uintptr_t)address, place, sizeof place);
    tessera_sim_trouble(wave, freed ? TESSERA_SIM_FAULT_USE_AFTER_FREE : TESSERA_SIM_FAULT_OUT_OF_BOUNDS, lane, address,
                        "%s %zu bytes at 0x%llx, %s", verb, bytes, (unsigned long long)address, place);
}

uint8_t *tessera_sim_touch(struct sim_wave *wave, int lane, uint64_t address, size_t bytes, bool store) {
    if (!sim_in_range(&wave->range, address, bytes)) {
        const struct sim_range range = find(wave, (uintptr_t)address);
        if (!sim_in_range(&range, address, bytes)) {
            out_of_bounds(wave, lane, address, bytes, &range, store ? "stores" : "loads");
            return NULL;
        }
        wave->range = range;
    }
    if (store && wave->range.read_only) {
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_READ_ONLY, lane, address, "stores to 0x%llx, code or constants",
                            (unsigned long long)address);
        return NULL;
    }
    uint8_t *host = (uint8_t *)(uintptr_t)address, *undefined = wave->range.undefined;
    if (!wave->checks) return host;
    return tessera_sim_note_access(wave, lane, host, undefined ? undefined + (address - wave->range.base) : NULL,
                                   bytes);
}
