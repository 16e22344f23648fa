// SPDX-License-Identifier: MIT
// A call's estimated time with an instance, where the operation has no formula of its own: the longest of computing,
// moving a compute unit's bytes and moving the device's bytes, plus a fixed time for each task. Of n tasks the busiest
// of u compute units has rounds = ceil(n / u), a share of rounds / n of the whole, so that
//
//   cost = max(share * macs / macs_per_cycle, share * bytes / unit_bytes, bytes / device_bytes) + rounds * tile_cycles
//
// macs_per_cycle and tile_cycles are the instance's; bytes per cycle stand on the target's page (codegen/targets.py).
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
