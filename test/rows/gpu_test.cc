// SPDX-License-Identifier: MIT
// The suites over GPUs, which are simulated unless TESSERA_TEST_DEVICE names a real one.
#include <cstdio>

#include "suites.h"

int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    bool any = false;
    for (const Operation &op : operations()) {
        const Place on = gpus(op);
        Place valid = on, refused = on;
        valid.run = cpus(op).run;
        refused.run = [&op](const std::string &said) { expect_refused(op.tested, op.spelled(said)); };
        any |= !devices(on, op).empty();
        for (const Suite &suite : suites(on, op)) register_suite(on, suite);
        register_suite(valid, instances_suite(on, op));
        register_suite(valid, landed_suite(on, op));
        register_suite(refused, refused_suite(on, op));
    }
    if (!any) {
        std::printf("this build has no instances for the GPU, or no simulator\n");
        return 77;
    }
    const int status = RUN_ALL_TESTS();
    print_refused();
    return status;
}
