// SPDX-License-Identifier: MIT
// A function and its user pointer behind a version number: readers take no lock, and a reader that meets a writer sees
// no function. All accesses are sequentially consistent, so equal versions before and after mean an unbroken pair.
#include "callback.h"

void tessera_callback_set(struct tessera_callback *callback, tessera_any_function function, void *user) {
    unsigned version = atomic_load(&callback->version);
    do version &= ~1u;
    while (!atomic_compare_exchange_weak(&callback->version, &version, version + 1));
    atomic_store(&callback->function, function);
    atomic_store(&callback->user, user);
    atomic_store(&callback->version, version + 2);
}

bool tessera_callback_get(struct tessera_callback *callback, tessera_any_function *function, void **user) {
    const unsigned version = atomic_load(&callback->version);
    *function = atomic_load(&callback->function);
    *user = atomic_load(&callback->user);
    return *function && !(version & 1) && atomic_load(&callback->version) == version;
}
