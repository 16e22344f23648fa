// SPDX-License-Identifier: MIT
// The registry of memory that kernels may touch. Addresses are the host's own.
#include "internal.h"

#include <stdlib.h>
#include <string.h>

void tessera_sim_memory_open(struct sim_memory *memory) {
    *memory = (struct sim_memory){0};
    pthread_rwlock_init(&memory->lock, NULL);
}

void tessera_sim_memory_close(struct sim_memory *memory) {
    for (size_t i = 0; i < memory->count; i++)
        if (memory->ranges[i].owned) free((void *)memory->ranges[i].base);
    free(memory->ranges);
    pthread_rwlock_destroy(&memory->lock);
}

// The first range that ends behind `address`; the caller holds the lock.
static size_t find_index(const struct sim_memory *memory, uintptr_t address) {
    size_t low = 0, high = memory->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct sim_range *range = &memory->ranges[middle];
        if (range->base + range->bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static tessera_status add_locked(struct sim_memory *memory, struct sim_range range) {
    const size_t index = find_index(memory, range.base);
    if (index < memory->count && memory->ranges[index].base < range.base + range.bytes)
        return tessera_sim_fail(
            TESSERA_ERROR_INVALID_ARGUMENT, "address=%p: %zu bytes overlap memory registered before at %p, %zu bytes",
            (void *)range.base, range.bytes, (void *)memory->ranges[index].base, memory->ranges[index].bytes);
    if (memory->count == memory->capacity) {
        const size_t capacity = memory->capacity ? 2 * memory->capacity : 64;
        struct sim_range *ranges = realloc(memory->ranges, capacity * sizeof *ranges);
        if (!ranges) return tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for the registry");
        memory->ranges = ranges;
        memory->capacity = capacity;
    }
    memmove(&memory->ranges[index + 1], &memory->ranges[index], (memory->count - index) * sizeof range);
    memory->ranges[index] = range;
    memory->count++;
    return TESSERA_SUCCESS;
}

tessera_status tessera_sim_memory_add(struct sim_memory *memory, struct sim_range range) {
    pthread_rwlock_wrlock(&memory->lock);
    const tessera_status status = add_locked(memory, range);
    pthread_rwlock_unlock(&memory->lock);
    return status;
}

bool tessera_sim_memory_remove(struct sim_memory *memory, uintptr_t base, bool owned) {
    pthread_rwlock_wrlock(&memory->lock);
    const size_t index = find_index(memory, base);
    const bool found =
        index < memory->count && memory->ranges[index].base == base && memory->ranges[index].owned == owned;
    if (found) {
        memory->count--;
        memmove(&memory->ranges[index], &memory->ranges[index + 1], (memory->count - index) * sizeof memory->ranges[0]);
    }
    pthread_rwlock_unlock(&memory->lock);
    return found;
}

struct sim_range tessera_sim_memory_find(struct sim_memory *memory, uintptr_t address) {
    struct sim_range range = {0};
    pthread_rwlock_rdlock(&memory->lock);
    const size_t index = find_index(memory, address);
    if (index < memory->count && memory->ranges[index].base <= address) range = memory->ranges[index];
    pthread_rwlock_unlock(&memory->lock);
    return range;
}

tessera_status tessera_sim_malloc(tessera_sim *sim, size_t bytes, void **out) {
    enum { ALIGNMENT = 256 };
    if (bytes == 0) {
        *out = NULL;
        return TESSERA_SUCCESS;
    }
    if (bytes > SIZE_MAX - ALIGNMENT)
        return tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "bytes=%zu: no memory for so many", bytes);
    void *address = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (!address) return tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "bytes=%zu: no memory for so many", bytes);
    memset(address, 0xcd, bytes);
    const tessera_status status = tessera_sim_memory_add(
        &sim->memory, (struct sim_range){.base = (uintptr_t)address, .bytes = bytes, .owned = true});
    if (status == TESSERA_SUCCESS)
        *out = address;
    else
        free(address);
    return status;
}

tessera_status tessera_sim_free(tessera_sim *sim, void *address) {
    if (!address) return TESSERA_SUCCESS;
    if (!tessera_sim_memory_remove(&sim->memory, (uintptr_t)address, true))
        return tessera_sim_fail(TESSERA_ERROR_INVALID_ARGUMENT,
                                "address=%p: not what tessera_sim_malloc() returned, or freed before", address);
    free(address);
    return TESSERA_SUCCESS;
}

tessera_status tessera_sim_register(tessera_sim *sim, void *address, size_t bytes) {
    if (!address || bytes == 0)
        return tessera_sim_fail(TESSERA_ERROR_INVALID_ARGUMENT, "address=%p, bytes=%zu: neither may be 0", address,
                                bytes);
    return tessera_sim_memory_add(&sim->memory, (struct sim_range){.base = (uintptr_t)address, .bytes = bytes});
}

tessera_status tessera_sim_unregister(tessera_sim *sim, void *address) {
    if (!tessera_sim_memory_remove(&sim->memory, (uintptr_t)address, false))
        return tessera_sim_fail(TESSERA_ERROR_INVALID_ARGUMENT, "address=%p: not registered", address);
    return TESSERA_SUCCESS;
}

bool tessera_sim_find(tessera_sim *sim, const void *address, void **base, size_t *bytes) {
    const struct sim_range range = tessera_sim_memory_find(&sim->memory, (uintptr_t)address);
    if (range.bytes == 0) return false;
    *base = (void *)range.base;
    *bytes = range.bytes;
    return true;
}
