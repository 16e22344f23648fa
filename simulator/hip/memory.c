// SPDX-License-Identifier: MIT
// Where an address lies, and the memory of the host that devices may touch.
#include <stdlib.h>
#include <string.h>

#include "state.h"

// ---- memory of the host that every device may touch

struct shared {
    struct hip_place place;
    bool owned; // allocated here: freed when it is taken back
    struct shared *next;
};

static struct shared *all_shared;
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;

static bool find_shared(const void *address, struct hip_place *out) {
    bool found = false;
    pthread_mutex_lock(&shared_lock);
    for (const struct shared *at = all_shared; at && !found; at = at->next)
        if ((uintptr_t)address - (uintptr_t)at->place.base < at->place.bytes) {
            *out = at->place;
            found = true;
        }
    pthread_mutex_unlock(&shared_lock);
    return found;
}

static void unlend(void *base, int devices) {
    for (int i = 0; i < devices; i++) tessera_sim_unregister(tessera_hip_device(i)->sim, base);
}

hipError_t tessera_hip_lend(struct hip_place place, bool owned) {
    struct shared *kept = malloc(sizeof *kept);
    if (!kept) return hipErrorOutOfMemory;
    for (int i = 0; i < tessera_hip_device_count(); i++)
        if (tessera_sim_register(tessera_hip_device(i)->sim, place.base, place.bytes) != TESSERA_SUCCESS) {
            unlend(place.base, i);
            free(kept);
            return hipErrorHostMemoryAlreadyRegistered;
        }
    pthread_mutex_lock(&shared_lock);
    *kept = (struct shared){place, owned, all_shared};
    all_shared = kept;
    pthread_mutex_unlock(&shared_lock);
    return hipSuccess;
}

bool tessera_hip_take_back(void *base, bool owned) {
    struct shared *found = NULL;
    pthread_mutex_lock(&shared_lock);
    for (struct shared **link = &all_shared; *link && !found; link = &(*link)->next)
        if ((*link)->place.base == base && (*link)->owned == owned) {
            found = *link;
            *link = found->next;
            break;
        }
    pthread_mutex_unlock(&shared_lock);
    if (!found) return false;
    unlend(base, tessera_hip_device_count());
    if (owned) free(base);
    free(found);
    return true;
}

hipError_t tessera_hip_shared_malloc(void **out, size_t bytes, hipMemoryType kind, unsigned flags) {
    enum { PAGE = 4096, POISON = 0xcd };
    if (bytes > SIZE_MAX - PAGE) return hipErrorOutOfMemory;
    char *base = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
    if (!base) return hipErrorOutOfMemory;
    memset(base, POISON, bytes);
    const hipError_t error =
        tessera_hip_lend((struct hip_place){kind, tessera_hip_current()->index, base, bytes, flags}, true);
    if (error == hipSuccess)
        *out = base;
    else
        free(base);
    return error;
}

// ---- where an address lies

struct hip_place tessera_hip_find(const void *address) {
    struct hip_place shared;
    if (find_shared(address, &shared)) return shared;
    for (int i = 0; i < tessera_hip_device_count(); i++) {
        void *base;
        size_t bytes;
        if (tessera_sim_find(tessera_hip_device(i)->sim, address, &base, &bytes))
            return (struct hip_place){hipMemoryTypeDevice, i, base, bytes, 0};
    }
    return (struct hip_place){.kind = hipMemoryTypeUnregistered, .device = hipInvalidDeviceId};
}

bool tessera_hip_fits(const void *address, size_t bytes) {
    const struct hip_place place = tessera_hip_find(address);
    return place.kind == hipMemoryTypeUnregistered ||
           bytes <= place.bytes - ((uintptr_t)address - (uintptr_t)place.base);
}
