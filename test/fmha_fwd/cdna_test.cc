// SPDX-License-Identifier: MIT
// The suites on simulated AMD GPUs, with the data types, head dims, orders of v and scales that the linked table serves
// on each. A problem without an instance must be refused with a reason; the suite Landed lists problems that must be
// served.
#include <cstdio>

#include "suites.h"

namespace {

// ---- every instance, whatever the ranking says

Suite instances_suite(const Place &on) {
    return {"Instances",
            {instances(on, precs, times(vlayouts, kernel_hdims)),
             {"-b=1 -h=2 -h_k=1 -s=150 -s_k=200 -mask=b", "-b=2 -h=1 -s=33 -s_k=129 -bias=e"}},
            {{"-lse=1 -init=nf"}}};
}

// ---- problems that must be served, whatever the covers are: every trait with every data type of the build

struct Landed {
    const char *target;
    Axis precs;
};
const Landed landed[] = {
    {"gfx90a", {"fp32", "fp16", "bf16"}},
    {"gfx942", {"fp32", "fp16", "bf16", "fp8", "fp8bf16", "fp8fp32", "fp8 -qscale=pt", "fp8bf16 -qscale=bs"}},
    {"gfx950", precs},
};
// clang-format off
const Axis traits{"-d=32", "-d=64", "-d=96 -d_v=128", "-d=192 -d_v=128", "-d=256", "-mode=1", "-mask=t", "-mask=b:9,9", "-bias=e", "-bias=a",
                  "-logits_soft_cap=5", "-lse=1", "-p_drop=0.2", "-init_sink=1", "-mode=1 -min_seqlen_q=64", "-iperm=0 -operm=0"};
// clang-format on

// The suite for targets that this build has instances for.
Suite landed_suite(const Axis &devices) {
    Axis kinds;
    for (const Landed &one : landed)
        for (const std::string &prec : one.precs)
            for (const std::string &device : devices)
                if (device.find(one.target) != std::string::npos) kinds.push_back(device + " -prec=" + prec);
    return {"Landed", {kinds, {"-b=1 -h=2 -s=64 -d=128"}, traits}, {}};
}

// ---- refused with a reason: there is no instance, and nothing runs

const Axis refusals{"-d=100", "-d=264", "-d=64 -d_v=260"};

} // namespace

int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    const Axis devices = kinds(simulated_gpus, {"bf16"});
    if (devices.empty()) {
        std::printf("this build has no GPU instances or no simulator\n");
        return 77;
    }
    Place valid = simulated_gpus, refused = simulated_gpus;
    valid.run = cpus.run;
    refused.run = [](const std::string &arguments) { expect_refused(fmha_fwd, arguments); };
    for (const Suite &suite : suites(simulated_gpus)) register_suite(simulated_gpus, suite);
    register_suite(simulated_gpus, instances_suite(simulated_gpus));
    register_suite(valid, landed_suite(devices));
    register_suite(refused, {"Refused", {devices, {"-b=1 -h=2 -s=64 -d=64"}, refusals}, {}});
    const int status = RUN_ALL_TESTS();
    std::printf("%d problems of the covers have no instance in this build and were refused by name\n", count_refused());
    return status;
}
