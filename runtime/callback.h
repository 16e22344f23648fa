// SPDX-License-Identifier: MIT
// A function and its user pointer that one thread may replace while others read them.
#ifndef TESSERA_RUNTIME_CALLBACK_H
#define TESSERA_RUNTIME_CALLBACK_H

#include <stdatomic.h>
#include <stdbool.h>

typedef void (*tessera_any_function)(void);
struct tessera_callback {
    atomic_uint version; // odd while being replaced
    _Atomic(tessera_any_function) function;
    _Atomic(void *) user;
};
void tessera_callback_set(struct tessera_callback *callback, tessera_any_function function, void *user);
// Returns false where no function is set, or while another thread is replacing it.
bool tessera_callback_get(struct tessera_callback *callback, tessera_any_function *function, void **user);

#endif
