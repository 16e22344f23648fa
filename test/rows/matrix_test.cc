// SPDX-License-Identifier: MIT
// The suites over every CPU target that this machine runs.
#include "suites.h"

int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    for (const Operation &op : operations()) {
        const Place on = cpus(op);
        for (const Suite &suite : suites(on, op)) register_suite(on, suite);
        register_suite(on, instances_suite(on, op));
        register_absent_targets(on, op.table());
    }
    return RUN_ALL_TESTS();
}
