// SPDX-License-Identifier: MIT
// The set of live handles, so that the use of a stale or foreign handle is an error and not a crash.
#include <stdlib.h>

#include "state.h"

struct slot {
    uintptr_t handle; // 0: slot never used; 1: handle removed
    enum hip_kind kind;
};

enum { REMOVED = 1, FIRST_CAPACITY = 256 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot *slots;
static size_t capacity, used; // `used` includes slots of removed handles

static size_t home(uintptr_t handle, size_t of) {
    return (size_t)((uint64_t)(handle >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (of - 1);
}

// The slot of a handle; NULL where it has none.
static struct slot *find(uintptr_t handle) {
    if (!capacity) return NULL;
    for (size_t i = home(handle, capacity); slots[i].handle; i = (i + 1) & (capacity - 1))
        if (slots[i].handle == handle) return &slots[i];
    return NULL;
}

static void put(struct slot *into, size_t of, struct slot slot) {
    size_t i = home(slot.handle, of);
    while (into[i].handle) i = (i + 1) & (of - 1);
    into[i] = slot;
}

static bool grow(void) {
    size_t live = 0;
    for (size_t i = 0; i < capacity; i++) live += slots[i].handle > REMOVED;
    const size_t wanted = live * 4 < FIRST_CAPACITY ? FIRST_CAPACITY : capacity * (live * 4 > capacity ? 2 : 1);
    struct slot *grown = calloc(wanted, sizeof *grown);
    if (!grown) return false;
    for (size_t i = 0; i < capacity; i++)
        if (slots[i].handle > REMOVED) put(grown, wanted, slots[i]);
    free(slots);
    slots = grown;
    capacity = wanted;
    used = live;
    return true;
}

bool tessera_hip_handle_add(const void *handle, enum hip_kind kind) {
    pthread_mutex_lock(&lock);
    const bool room = 2 * (used + 1) < capacity || grow();
    if (room) {
        put(slots, capacity, (struct slot){(uintptr_t)handle, kind});
        used++;
    }
    pthread_mutex_unlock(&lock);
    return room;
}

bool tessera_hip_handle_is(const void *handle, enum hip_kind kind) {
    if ((uintptr_t)handle <= REMOVED) return false;
    pthread_mutex_lock(&lock);
    const struct slot *slot = find((uintptr_t)handle);
    const bool is = slot && slot->kind == kind;
    pthread_mutex_unlock(&lock);
    return is;
}

void tessera_hip_handle_remove(const void *handle) {
    pthread_mutex_lock(&lock);
    struct slot *slot = find((uintptr_t)handle);
    if (slot) slot->handle = REMOVED;
    pthread_mutex_unlock(&lock);
}
