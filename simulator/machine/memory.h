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
    uint8_t *undefined; // for each byte, the bits that nothing has set; NULL: all bits count as set
};

enum { SIM_FREED = 64 };

// The ranges that kernels may touch, sorted by address, and the latest ones that were freed.
struct sim_memory {
    pthread_rwlock_t lock;
    struct sim_range *ranges;
    size_t count, capacity;
    struct sim_range freed[SIM_FREED]; // owned ones, which go back to the host's allocator when their entry is needed
    size_t freed_count;                // how many were ever freed; the latest is at (freed_count - 1) % SIM_FREED
};

void tessera_sim_memory_open(struct sim_memory *memory);
void tessera_sim_memory_close(struct sim_memory *memory);
tessera_status tessera_sim_memory_add(struct sim_memory *memory, struct sim_range range);
// Removes a range of memory that its owner had registered; false where none starts at `base`.
bool tessera_sim_memory_remove(struct sim_memory *memory, uintptr_t base);
// The range that contains `address`; a range of 0 bytes where none does.
struct sim_range tessera_sim_memory_find(struct sim_memory *memory, uintptr_t address);
// Describes an address outside of all ranges by the nearest range. Returns whether it lies in a freed one.
bool tessera_sim_memory_describe(struct sim_memory *memory, uintptr_t address, char *text, size_t size);

static inline bool sim_in_range(const struct sim_range *range, uint64_t address, size_t bytes) {
    return address - range->base < range->bytes && bytes <= range->bytes - (address - range->base);
}
