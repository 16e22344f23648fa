// SPDX-License-Identifier: MIT
// The suites on every CPU target that this machine runs.
#include "suites.h"
#include "tessera/kernel/fmha_bwd.h"

int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    for (const Suite &suite : suites(cpus)) register_suite(cpus, suite);
    register_absent_targets(cpus, tessera_fmha_bwd_get_table());
    return RUN_ALL_TESTS();
}
