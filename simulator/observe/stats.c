// SPDX-License-Identifier: MIT
#include "stats.h"

#include <inttypes.h>

#include "code_object/module.h"
#include "machine/error.h"
#include "machine/launch.h"

static bool is_wanted(const struct sim_launch *launch) { return launch->sim->stats_path; }

static tessera_status write_line(struct sim_launch *launch, const tessera_sim_launch_stats *stats) {
    tessera_sim *const sim = launch->sim;
    if (launch->trouble.fault != TESSERA_SIM_FAULT_NONE) return TESSERA_SUCCESS;
    pthread_mutex_lock(&sim->lock);
    FILE *const file = fopen(sim->stats_path, "a");
    if (file)
        fprintf(file,
                "{\"kernel\": \"%s\", \"arch\": \"%s\", \"waves\": %" PRIu64 ", \"scalar\": %" PRIu64
                ", \"vector\": %" PRIu64 ", \"matrix\": %" PRIu64 ", \"lds\": %" PRIu64 ", \"memory\": %" PRIu64 "}\n",
                launch->kernel->info.name, tessera_sim_arch_names[sim->arch], stats->waves, stats->scalar,
                stats->vector, stats->matrix, stats->lds, stats->memory);
    const bool written = file && fclose(file) == 0;
    pthread_mutex_unlock(&sim->lock);
    if (written) return TESSERA_SUCCESS;
    return tessera_sim_fail(TESSERA_ERROR_INVALID_ARGUMENT, "stats=%s: cannot be written", sim->stats_path);
}

const struct sim_observer tessera_sim_statistics = {.wanted = is_wanted, .end = write_line};
