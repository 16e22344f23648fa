// SPDX-License-Identifier: MIT
// Causal self-attention over a packed [b, s, 3, h, d] tensor, as PyTorch's fused projections give it: no copy, only
// strides. Shows what a caller of the C API does: describe, check, ask what will run, lend a workspace, run.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <tessera/fmha_fwd.h>

enum { BATCH = 2, SEQLEN = 300, HEADS = 4, HDIM = 64 };
enum { TOKEN = 3 * HEADS * HDIM }; // elements from one token to the next: q, k and v of every head

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, tessera_last_error());
    return EXIT_FAILURE;
}

// The definition of one element of o, to compare with.
static double expected(const float *qkv, int b, int h, int i, int column) {
    const float *sequence = qkv + (size_t)b * SEQLEN * TOKEN;
    const float *q = sequence + (size_t)i * TOKEN + h * HDIM;
    double sum = 0, weighted = 0;
    for (int j = 0; j <= i; j++) { // causal
        const float *k = sequence + (size_t)j * TOKEN + (HEADS + h) * HDIM;
        const float *v = sequence + (size_t)j * TOKEN + (2 * HEADS + h) * HDIM;
        double score = 0;
        for (int d = 0; d < HDIM; d++) score += (double)q[d] * k[d];
        const double p = exp(score / sqrt(HDIM));
        sum += p;
        weighted += p * v[column];
    }
    return weighted / sum;
}

int main(void) {
    const size_t qkv_count = (size_t)BATCH * SEQLEN * TOKEN, o_count = (size_t)BATCH * SEQLEN * HEADS * HDIM;
    float *qkv = malloc(qkv_count * sizeof *qkv), *o = malloc(o_count * sizeof *o);
    if (!qkv || !o) return EXIT_FAILURE;
    for (size_t n = 0; n < qkv_count; n++) qkv[n] = (float)rand() / (float)RAND_MAX - 0.5f;

    // Traits decide which instances may serve ...
    tessera_fmha_fwd_traits traits = TESSERA_FMHA_FWD_TRAITS_INIT;
    traits.hdim_q = traits.hdim_v = HDIM;
    traits.data_type = TESSERA_FP32;
    traits.mask_type = TESSERA_MASK_TOP_LEFT;

    // ... and args are what the launch needs.
    tessera_fmha_fwd_args args = TESSERA_FMHA_FWD_ARGS_INIT;
    args.q_ptr = qkv;
    args.k_ptr = qkv + HEADS * HDIM;
    args.v_ptr = qkv + 2 * HEADS * HDIM;
    args.o_ptr = o;
    args.batch = BATCH;
    args.seqlen_q = args.seqlen_k = args.max_seqlen_q = SEQLEN;
    args.nhead_q = args.nhead_k = HEADS;
    args.hdim_q = args.hdim_v = HDIM;
    args.scale_s = 1.0f / sqrtf(HDIM);
    args.mask_type = TESSERA_MASK_TOP_LEFT; // windows are -1 so far; causal is left unbounded, right 0
    args.window_size_right = 0;
    args.stride_q = args.stride_k = args.stride_v = TOKEN;
    args.nhead_stride_q = args.nhead_stride_k = args.nhead_stride_v = HDIM;
    args.batch_stride_q = args.batch_stride_k = args.batch_stride_v = (int64_t)SEQLEN * TOKEN;
    args.stride_o = HEADS * HDIM; // o is [b, s, h, d]
    args.nhead_stride_o = HDIM;
    args.batch_stride_o = (int64_t)SEQLEN * HEADS * HDIM;
    if (tessera_fmha_fwd_check(&traits, &args) != TESSERA_SUCCESS) return failed("tessera_fmha_fwd_check");

    tessera_device *device;
    if (tessera_device_open("auto", &device) != TESSERA_SUCCESS) return failed("tessera_device_open");

    // What will run, and why not something else.
    const tessera_device_facts *facts = tessera_device_get_facts(device);
    const tessera_fmha_fwd_instance *instance;
    if (tessera_fmha_fwd_select(facts, &traits, &args, &instance) != TESSERA_SUCCESS)
        return failed("tessera_fmha_fwd_select");
    printf("tessera %s on %s runs %s\n", tessera_version(), tessera_device_name(device),
           tessera_fmha_fwd_instance_name(instance));
    const size_t size = tessera_fmha_fwd_explain(facts, &traits, &args, NULL, 0);
    char *text = malloc(size);
    if (!text) return EXIT_FAILURE;
    tessera_fmha_fwd_explain(facts, &traits, &args, text, size);
    printf("%s", text);
    free(text);

    // The library allocates nothing for a call: memory is the caller's.
    if (tessera_fmha_fwd_workspace_size(device, &traits, &args, &args.workspace_size) != TESSERA_SUCCESS)
        return failed("tessera_fmha_fwd_workspace_size");
    args.workspace_size = (args.workspace_size + 63) / 64 * 64; // as aligned_alloc wants it
    args.workspace_ptr = args.workspace_size ? aligned_alloc(64, args.workspace_size) : NULL;
    if (tessera_fmha_fwd(device, &traits, &args, NULL) != TESSERA_SUCCESS) return failed("tessera_fmha_fwd");

    double worst = 0;
    for (int b = 0; b < BATCH; b++)
        for (int h = 0; h < HEADS; h++)
            for (int i = 0; i < SEQLEN; i += 23)
                for (int column = 0; column < HDIM; column += 7) {
                    const double got = o[(((size_t)b * SEQLEN + i) * HEADS + h) * HDIM + column];
                    worst = fmax(worst, fabs(got - expected(qkv, b, h, i, column)));
                }
    printf("greatest error %.2g: %s\n", worst, worst < 1e-5 ? "right" : "wrong");

    free(args.workspace_ptr);
    tessera_device_close(device);
    free(o);
    free(qkv);
    return worst < 1e-5 ? EXIT_SUCCESS : EXIT_FAILURE;
}
