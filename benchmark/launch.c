// SPDX-License-Identifier: MIT
// What a call costs the host of a GPU, once its code is loaded:
//
//   benchmark_launch -device=cuda:0
//
// It answers as answer.h says, by the milliseconds of one call of N bursts, each of so few calls that they never wait
// for the GPU. The call is a small one of fmha_fwd.
#include "answer.h"

#include "tessera/fmha_fwd.h"

enum { BURST = 64, ROWS = 128, HDIM = 128 };

typedef struct launch {
    tessera_device *device;
    tessera_fmha_fwd_traits traits;
    tessera_fmha_fwd_args args;
} launch;

static void must(tessera_status status) {
    if (status == TESSERA_SUCCESS) return;
    fprintf(stderr, "benchmark_launch: %s\n", tessera_last_error());
    exit(2);
}

static void *memory_on(const tessera_device *device, size_t bytes) {
    void *memory;
    must(tessera_device_malloc(device, bytes, &memory));
    must(tessera_device_set(device, memory, 0, bytes));
    return memory;
}

static void fill(launch *l) {
    const size_t bytes = (size_t)ROWS * HDIM * 2;
    l->traits = tessera_fmha_fwd_traits_init();
    l->args = tessera_fmha_fwd_args_init();
    l->traits.hdim_q = l->traits.hdim_v = l->args.hdim_q = l->args.hdim_v = HDIM;
    l->traits.data_type = TESSERA_FMHA_BF16;
    l->args.batch = l->args.nhead_q = l->args.nhead_k = 1;
    l->args.seqlen_q = l->args.seqlen_k = l->args.max_seqlen_q = ROWS;
    l->args.stride_q = l->args.stride_k = l->args.stride_v = l->args.stride_o = HDIM;
    l->args.scale_s = 0.1f;
    l->args.q_ptr = memory_on(l->device, bytes);
    l->args.k_ptr = memory_on(l->device, bytes);
    l->args.v_ptr = memory_on(l->device, bytes);
    l->args.o_ptr = memory_on(l->device, bytes);
    must(tessera_fmha_fwd_workspace_size(l->device, &l->traits, &l->args, &l->args.workspace_size));
    if (l->args.workspace_size) l->args.workspace_ptr = memory_on(l->device, l->args.workspace_size);
}

static double burst(const launch *l) {
    const double begin = now();
    for (int i = 0; i < BURST; i++) must(tessera_fmha_fwd(l->device, &l->traits, &l->args, NULL));
    const double took = (now() - begin) / BURST * 1e3;
    must(tessera_device_synchronize(l->device));
    return took;
}

static double time_bursts(void *context, long count) {
    double *const took = memory_of((size_t)count * sizeof *took, 0);
    for (long i = 0; i < count; i++) took[i] = burst(context);
    qsort(took, (size_t)count, sizeof *took, compare_doubles);
    const double median = took[count / 2];
    free(took);
    return median;
}

int main(int argc, char **argv) {
    static launch l;
    const tessera_fmha_fwd_instance *instance;
    must(tessera_device_open(word_of(argc, argv, "device", "cuda:0"), &l.device));
    fill(&l);
    must(tessera_fmha_fwd_prepare(l.device, &l.traits, &l.args));
    must(tessera_fmha_fwd_select(tessera_device_get_facts(l.device), &l.traits, &l.args, &instance));
    time_bursts(&l, 4);
    answer(tessera_fmha_fwd_instance_name(instance), time_bursts, &l);
    return 0;
}
