// SPDX-License-Identifier: MIT
// The registry of memory that kernels may touch. Addresses are the host's own.
#pragma once

#include <pthread.h>

#include "tessera/simulator.h"

struct sim_range {
    uintptr_t base;
    size_t bytes;
    bool read_only;
    bool owned;         // allocated by tessera_sim_malloc
    uint8_t *undefined; // a byte each: the bits that nothing has set; NULL: they count as set
};

enum { SIM_FREED = 64 };

// Ranges that kernels may touch, in order of their addresses, and the latest that were freed.
struct sim_memory {
    pthread_rwlock_t lock;
    struct sim_range *ranges;
    size_t count, capacity;
    struct sim_range freed[SIM_FREED]; // owned: kept from the host's allocator until its place is wanted
    size_t freed_count;                // in all; the latest is at (freed_count - 1) % SIM_FREED
};

void tessera_sim_memory_open(struct sim_memory *memory);
void tessera_sim_memory_close(struct sim_memory *memory);
tessera_status tessera_sim_memory_add(struct sim_memory *memory, struct sim_range range);
// Takes a range of memory that somebody lent out; false where none starts at `base`.
bool tessera_sim_memory_remove(struct sim_memory *memory, uintptr_t base);
// The range that holds `address`; one of 0 bytes where none does.
struct sim_range tessera_sim_memory_find(struct sim_memory *memory, uintptr_t address);
// Says where an address that no range holds lies, beside the nearest range; whether it was freed.
bool tessera_sim_memory_describe(struct sim_memory *memory, uintptr_t address, char *text, size_t size);

static inline bool sim_in_range(const struct sim_range *range, uint64_t address, size_t bytes) {
    return address - range->base < range->bytes && bytes <= range->bytes - (address - range->base);
}
