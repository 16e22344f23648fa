// SPDX-License-Identifier: MIT
// Whether a wave may touch an address.
#include "internal.h"

static struct sim_range find(struct sim_wave *wave, uintptr_t address) {
    const struct sim_launch *launch = wave->group->launch;
    const struct sim_range scratch = {.base = (uintptr_t)wave->scratch,
                                      .bytes = (size_t)SIM_LANES * launch->lane_scratch_bytes};
    if (address - scratch.base < scratch.bytes) return scratch;
    return tessera_sim_memory_find(&launch->sim->memory, address);
}

bool tessera_sim_may_touch(struct sim_wave *wave, int lane, uint64_t address, size_t bytes, bool store) {
    if (!sim_in_range(&wave->range, address, bytes)) {
        const struct sim_range range = find(wave, (uintptr_t)address);
        if (!sim_in_range(&range, address, bytes)) {
            const char *verb = store ? "stores to" : "loads from";
            if (range.bytes)
                tessera_sim_trouble(wave, TESSERA_SIM_FAULT_OUT_OF_BOUNDS, lane, address,
                                    "%s 0x%llx, %zu bytes, across the end of %zu bytes at 0x%llx", verb,
                                    (unsigned long long)address, bytes, range.bytes, (unsigned long long)range.base);
            else
                tessera_sim_trouble(wave, TESSERA_SIM_FAULT_OUT_OF_BOUNDS, lane, address,
                                    "%s 0x%llx, %zu bytes, which no allocation holds", verb,
                                    (unsigned long long)address, bytes);
            return false;
        }
        wave->range = range;
    }
    if (store && wave->range.read_only) {
        tessera_sim_trouble(wave, TESSERA_SIM_FAULT_READ_ONLY, lane, address, "stores to 0x%llx, code or constants",
                            (unsigned long long)address);
        return false;
    }
    return true;
}
