// SPDX-License-Identifier: MIT
// How long a call is estimated to take with an instance, where the operation has no formula of its own: what takes
// longest of computing and of moving bytes, and what each task takes beside. Of n tasks the busiest of u compute units
// has rounds = ceil(n / u), a share of rounds / n of the whole, so that
//
//   cost = max(share * macs / macs_per_cycle, share * bytes / unit_bytes, bytes / device_bytes) + rounds * tile_cycles
//
// The first and the last rate are the instance's; bytes a cycle are those of the target's page (codegen/targets.py).
#include "integers.h"
#include "library.h"
#include "op/select.h"

static double greater(double a, double b) { return a > b ? a : b; }

double tessera_roofline(const tessera_instance *row, const struct tessera_request *r, struct tessera_work work) {
    const tessera_rates *const rates = &tessera_target_rates[row->target];
    const int64_t tasks = tessera_max(work.tasks, 1), rounds = tessera_ceil_div(tasks, r->units);
    const double share = (double)rounds / (double)tasks;
    const double computing = share * work.macs / (double)row->macs_per_cycle;
    const double moving = greater(share * work.bytes / rates->unit_bytes, work.bytes / rates->device_bytes);
    return greater(computing, moving) + (double)rounds * (double)row->tile_cycles;
}
