// SPDX-License-Identifier: MIT
#include "access.h"

static struct sim_range find(struct sim_wave *wave, uintptr_t address) {
    const struct sim_launch *launch = wave->group->launch;
    const struct sim_range scratch = {.base = (uintptr_t)wave->scratch,
                                      .bytes = (size_t)SIM_LANES * launch->lane_scratch_bytes,
                                      .undefined = wave->scratch_undefined};
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
    if (!wave->access) return host;
    return wave->access(wave, lane, host, undefined ? undefined + (address - wave->range.base) : NULL, bytes);
}

uint8_t *tessera_sim_lds(struct sim_wave *wave, int lane, uint32_t address, uint32_t bytes) {
    struct sim_group *group = wave->group;
    if (address < group->lds_bytes && bytes <= group->lds_bytes - address) {
        uint8_t *host = group->lds + address, *undefined = group->lds_undefined;
        return wave->access ? wave->access(wave, lane, host, undefined ? undefined + address : NULL, bytes) : host;
    }
    tessera_sim_trouble(wave, TESSERA_SIM_FAULT_OUT_OF_BOUNDS, lane, address,
                        "LDS address %u, %u bytes, but the workgroup has %u", address, bytes, group->lds_bytes);
    return NULL;
}
