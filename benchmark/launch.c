// SPDX-License-Identifier: MIT
// What a call costs the host of a GPU, once its code is loaded:
//
//   benchmark_launch -device=cuda:0 [-s=128] [-s_k=128] [-h=1] [-h_k=1]
//
// It answers as answer.h says, by the milliseconds of one call of N bursts, each of so few calls that they never wait
// for the GPU. The call is one of fmha_fwd, a small one where nothing else is asked for.
#include "answer.h"

#include "tessera/fmha_fwd.h"

enum { BURST = 64, HDIM = 128 };

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

// Memory of bf16 rows.
static void *memory_on(const tessera_device *device, int32_t rows, int32_t heads) {
    const size_t bytes = (size_t)rows * (size_t)heads * HDIM * 2;
    void *memory;
    must(tessera_device_malloc(device, bytes, &memory));
    must(tessera_device_set(device, memory, 0, bytes));
    return memory;
}

// Heads lie beside one another.
static void fill(launch *l, int argc, char **argv) {
    tessera_fmha_fwd_args *const a = &l->args;
    l->traits = tessera_fmha_fwd_traits_init();
    *a = tessera_fmha_fwd_args_init();
    l->traits.hdim_q = l->traits.hdim_v = a->hdim_q = a->hdim_v = HDIM;
    l->traits.data_type = TESSERA_FMHA_BF16;
    a->batch = 1;
    a->nhead_q = (int32_t)number_of(argc, argv, "h", 1);
    a->nhead_k = (int32_t)number_of(argc, argv, "h_k", 1);
    a->seqlen_q = a->max_seqlen_q = (int32_t)number_of(argc, argv, "s", 128);
    a->seqlen_k = (int32_t)number_of(argc, argv, "s_k", 128);
    a->nhead_stride_q = a->nhead_stride_k = a->nhead_stride_v = a->nhead_stride_o = HDIM;
    a->stride_q = a->stride_o = (int64_t)a->nhead_q * HDIM;
    a->stride_k = a->stride_v = (int64_t)a->nhead_k * HDIM;
    a->scale_s = 0.1f;
    a->q_ptr = memory_on(l->device, a->seqlen_q, a->nhead_q);
    a->k_ptr = memory_on(l->device, a->seqlen_k, a->nhead_k);
    a->v_ptr = memory_on(l->device, a->seqlen_k, a->nhead_k);
    a->o_ptr = memory_on(l->device, a->seqlen_q, a->nhead_q);
    must(tessera_fmha_fwd_workspace_size(l->device, &l->traits, a, &a->workspace_size));
    if (a->workspace_size) must(tessera_device_malloc(l->device, a->workspace_size, &a->workspace_ptr));
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
    fill(&l, argc, argv);
    must(tessera_fmha_fwd_prepare(l.device, &l.traits, &l.args));
    must(tessera_fmha_fwd_select(tessera_device_get_facts(l.device), &l.traits, &l.args, &instance));
    time_bursts(&l, 4);
    answer(tessera_fmha_fwd_instance_name(instance), time_bursts, &l);
    return 0;
}
