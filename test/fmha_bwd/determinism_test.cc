// SPDX-License-Identifier: MIT
// Gradients have the same bytes with any number of threads and in every repetition, deterministic or not.
#include "case.h"

namespace {

const char *const shapes[] = {
    "-b=2 -h=4 -h_k=2 -s=150 -d=64 -mask=2",
    "-b=1 -h=1 -s=70 -s_k=1200 -d=32",
    "-b=1 -h=4 -h_k=2 -s=65 -s_k=700 -d=40 -mask=b -dkv_heads=k",
    "-mode=1 -b=3 -h=2 -s=1,70,130 -s_k=500,90,300 -d=32",
    "-mode=1 -b=2 -h=2 -s=64,33 -s_k=500,90 -d=32 -mask=t:50,20 -bias=e:1 -dbias=1",
    "-b=2 -h=3 -s=100 -d=32 -p_drop=0.3 -sink_grad=1",
};

class Threads : public testing::Test {
  protected:
    ~Threads() override { tessera_set_num_threads(0); }
};

TEST_F(Threads, TheirNumberChangesNothing) {
    for (const std::string &kind : kinds(cpus, {"fp32", "fp16", "bf16"}))
        for (const char *shape : shapes)
            for (const char *parts : {"-deterministic=0", "-deterministic=1"}) {
                if (!is_due()) continue;
                const std::string arguments = kind + " -init=nf " + shape + " " + parts;
                SCOPED_TRACE(command(fmha_bwd, arguments));
                Problem p(arguments);
                tessera_set_num_threads(1);
                p.launch();
                const std::vector<uint8_t> want = p.outputs();
                for (int threads : {1, 2, 3, 8}) {
                    tessera_set_num_threads(threads);
                    p.launch(threads == 3);
                    ASSERT_EQ(p.outputs(), want) << threads << " threads";
                }
            }
}

void backwards(void *, int64_t count, tessera_parallel_body body, void *context) {
    while (count-- > 0) body(context, count);
}

TEST_F(Threads, TheOrderOfTasksChangesNothing) {
    tessera_set_num_threads(6);
    for (const char *shape : shapes) {
        const std::string arguments = std::string("-prec=fp32 -init=nf -deterministic=1 ") + shape;
        SCOPED_TRACE(command(fmha_bwd, arguments));
        Problem p(arguments);
        p.launch();
        const std::vector<uint8_t> want = p.outputs();
        tessera_set_parallel_for(backwards, nullptr);
        p.launch();
        tessera_set_parallel_for(nullptr, nullptr);
        ASSERT_EQ(p.outputs(), want);
    }
}

} // namespace
