// SPDX-License-Identifier: MIT
// Chooses the instance of a call: the one that the caller wants, else the best; fails with the reason where none
// serves.
#include "op/select.h"

tessera_status tessera_choose(const struct tessera_request *r, const tessera_instance **out) {
    if (r->wanted) return tessera_take(r, out);
    const tessera_instance *const best = tessera_best(r);
    if (!best) return tessera_no_instance(r);
    *out = best;
    return TESSERA_SUCCESS;
}
