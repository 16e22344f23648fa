// SPDX-License-Identifier: MIT
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "gpu.h"

void tessera_sim_memory_open(struct sim_memory *memory) {
    *memory = (struct sim_memory){0};
    pthread_rwlock_init(&memory->lock, NULL);
}

static void release(struct sim_range *range) {
    if (range->owned) free((void *)range->base);
    free(range->undefined);
    *range = (struct sim_range){0};
}

void tessera_sim_memory_close(struct sim_memory *memory) {
    for (size_t i = 0; i < memory->count; i++) release(&memory->ranges[i]);
    for (size_t i = 0; i < SIM_FREED; i++) release(&memory->freed[i]);
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

// The caller holds the lock.
static bool take_out(struct sim_memory *memory, uintptr_t base, bool owned, struct sim_range *range) {
    const size_t index = find_index(memory, base);
    if (index >= memory->count || memory->ranges[index].base != base || memory->ranges[index].owned != owned)
        return false;
    *range = memory->ranges[index];
    memory->count--;
    memmove(&memory->ranges[index], &memory->ranges[index + 1], (memory->count - index) * sizeof memory->ranges[0]);
    return true;
}

bool tessera_sim_memory_remove(struct sim_memory *memory, uintptr_t base) {
    struct sim_range range;
    pthread_rwlock_wrlock(&memory->lock);
    const bool found = take_out(memory, base, false, &range);
    pthread_rwlock_unlock(&memory->lock);
    return found;
}

// Frees memory of tessera_sim_malloc(). `keep`: its addresses are not used again until SIM_FREED others were freed.
static bool free_owned(struct sim_memory *memory, uintptr_t base, bool keep) {
    struct sim_range range;
    pthread_rwlock_wrlock(&memory->lock);
    const bool found = take_out(memory, base, true, &range);
    if (found) {
        struct sim_range *freed = &memory->freed[memory->freed_count++ % SIM_FREED];
        struct sim_range place = range;
        place.undefined = NULL;
        place.owned = keep;
        range.owned = !keep;
        release(freed);
        release(&range);
        *freed = place;
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

// The distance of `address` from a range; negative if it lies before the range.
static int64_t distance(const struct sim_range *range, uintptr_t address) {
    return address < range->base ? (int64_t)(address - range->base) : (int64_t)(address - range->base - range->bytes);
}

// The caller holds the lock.
static const struct sim_range *find_freed(const struct sim_memory *memory, uintptr_t address) {
    for (size_t i = 1; i <= SIM_FREED && i <= memory->freed_count; i++) {
        const struct sim_range *range = &memory->freed[(memory->freed_count - i) % SIM_FREED];
        if (address - range->base < range->bytes) return range;
    }
    return NULL;
}

bool tessera_sim_memory_describe(struct sim_memory *memory, uintptr_t address, char *text, size_t size) {
    pthread_rwlock_rdlock(&memory->lock);
    const struct sim_range *freed = find_freed(memory, address), *nearest = freed;
    const size_t behind = find_index(memory, address);
    for (size_t i = behind - (behind > 0); i <= behind && i < memory->count && !freed; i++)
        if (!nearest || llabs(distance(&memory->ranges[i], address)) < llabs(distance(nearest, address)))
            nearest = &memory->ranges[i];
    if (!nearest) {
        snprintf(text, size, "and nothing is allocated");
    } else {
        const int64_t off = freed ? (int64_t)(address - freed->base) : distance(nearest, address);
        const char *side = freed ? "into" : off < 0 ? "before" : "behind";
        snprintf(text, size, "%lld bytes %s an allocation of %zu bytes at 0x%llx%s", llabs(off), side, nearest->bytes,
                 (unsigned long long)nearest->base, freed ? " that was freed" : "");
    }
    pthread_rwlock_unlock(&memory->lock);
    return freed;
}

void tessera_sim_mark_defined(tessera_sim *sim, const void *address, size_t bytes) {
    const uintptr_t first = (uintptr_t)address;
    pthread_rwlock_rdlock(&sim->memory.lock);
    for (size_t i = find_index(&sim->memory, first); i < sim->memory.count; i++) {
        const struct sim_range *range = &sim->memory.ranges[i];
        const uintptr_t from = first > range->base ? first : range->base;
        const uintptr_t to = first + bytes < range->base + range->bytes ? first + bytes : range->base + range->bytes;
        if (from >= to) break;
        if (range->undefined) memset(range->undefined + (from - range->base), 0, to - from);
    }
    pthread_rwlock_unlock(&sim->memory.lock);
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
    struct sim_range range = {.base = (uintptr_t)address, .bytes = bytes, .owned = true};
    if (sim->sanitize) range.undefined = malloc(bytes);
    if (!address || (sim->sanitize && !range.undefined)) {
        release(&range);
        return tessera_sim_fail(TESSERA_ERROR_OUT_OF_MEMORY, "bytes=%zu: no memory for so many", bytes);
    }
    memset(address, 0xcd, bytes);
    if (range.undefined) memset(range.undefined, 0xff, bytes);
    const tessera_status status = tessera_sim_memory_add(&sim->memory, range);
    if (status == TESSERA_SUCCESS)
        *out = address;
    else
        release(&range);
    return status;
}

tessera_status tessera_sim_free(tessera_sim *sim, void *address) {
    if (!address) return TESSERA_SUCCESS;
    if (!free_owned(&sim->memory, (uintptr_t)address, sim->sanitize))
        return tessera_sim_fail(TESSERA_ERROR_INVALID_ARGUMENT,
                                "address=%p: not what tessera_sim_malloc() returned, or freed before", address);
    return TESSERA_SUCCESS;
}

tessera_status tessera_sim_register(tessera_sim *sim, void *address, size_t bytes) {
    if (!address || bytes == 0)
        return tessera_sim_fail(TESSERA_ERROR_INVALID_ARGUMENT, "address=%p, bytes=%zu: neither may be 0", address,
                                bytes);
    return tessera_sim_memory_add(&sim->memory, (struct sim_range){.base = (uintptr_t)address, .bytes = bytes});
}

tessera_status tessera_sim_unregister(tessera_sim *sim, void *address) {
    if (!tessera_sim_memory_remove(&sim->memory, (uintptr_t)address))
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
