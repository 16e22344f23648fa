// SPDX-License-Identifier: MIT
// Causal self-attention over a packed [b, s, 3, h, d] tensor, as PyTorch's fused projections give it: no copy, only
// strides. Shows what a caller of the C API does, whatever the device: open it, lend it memory, describe, check, ask
// what will run, run, wait.
//
// usage: integrate [DEVICE], such as cpu, hip:0, cuda:0 or sim:gfx942; else the first GPU with instances, else the CPU
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <tessera/fmha_fwd.h>

enum { BATCH = 2, SEQLEN = 300, HEADS = 4, HDIM = 64 };
enum { TOKEN = 3 * HEADS * HDIM }; // elements from one token to the next: q, k and v of every head
enum { QKV_COUNT = BATCH * SEQLEN * TOKEN, O_COUNT = BATCH * SEQLEN * HEADS * HDIM };

static float qkv[QKV_COUNT], o[O_COUNT]; // the host's

#define TRY(call)                                                                                                      \
    do                                                                                                                 \
        if ((call) != TESSERA_SUCCESS) return failed(#call);                                                           \
    while (0)

static int failed(const char *call) {
    fprintf(stderr, "%s: %s\n", call, tessera_last_error());
    return EXIT_FAILURE;
}

// Traits decide which instances may serve ...
static tessera_fmha_fwd_traits make_traits(void) {
    tessera_fmha_fwd_traits traits = TESSERA_FMHA_FWD_TRAITS_INIT;
    traits.hdim_q = traits.hdim_v = HDIM;
    traits.data_type = TESSERA_FMHA_FP32;
    traits.mask_type = TESSERA_MASK_TOP_LEFT;
    return traits;
}

// ... and args are what the launch needs. Pointers are the device's: a GPU reads none of malloc()'s memory.
static tessera_fmha_fwd_args make_args(const float *device_qkv, float *device_o) {
    tessera_fmha_fwd_args args = TESSERA_FMHA_FWD_ARGS_INIT;
    args.q_ptr = device_qkv;
    args.k_ptr = device_qkv + HEADS * HDIM;
    args.v_ptr = device_qkv + 2 * HEADS * HDIM;
    args.o_ptr = device_o;
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
    return args;
}

// What will run, and why not something else.
static int explain(const tessera_device *device, const tessera_fmha_fwd_traits *traits,
                   const tessera_fmha_fwd_args *args) {
    const tessera_device_facts *facts = tessera_device_get_facts(device);
    const tessera_fmha_fwd_instance *instance;
    TRY(tessera_fmha_fwd_select(facts, traits, args, &instance));
    printf("tessera %s on %s runs %s\n", tessera_version(), tessera_device_name(device),
           tessera_fmha_fwd_instance_name(instance));
    const size_t size = tessera_fmha_fwd_explain(facts, traits, args, TESSERA_EXPLAIN_REASONS, NULL, 0);
    char *text = malloc(size);
    if (!text) return EXIT_FAILURE;
    tessera_fmha_fwd_explain(facts, traits, args, TESSERA_EXPLAIN_REASONS, text, size);
    printf("%s", text);
    free(text);
    return EXIT_SUCCESS;
}

static int run(const tessera_device *device) {
    // Memory of the device. That of hipMalloc() or PyTorch would do just as well.
    void *device_qkv, *device_o;
    TRY(tessera_device_malloc(device, sizeof qkv, &device_qkv));
    TRY(tessera_device_malloc(device, sizeof o, &device_o));
    TRY(tessera_device_copy_to(device, device_qkv, qkv, sizeof qkv));

    const tessera_fmha_fwd_traits traits = make_traits();
    tessera_fmha_fwd_args args = make_args(device_qkv, device_o);
    TRY(tessera_fmha_fwd_check_on(device, &traits, &args));
    if (explain(device, &traits, &args) != EXIT_SUCCESS) return EXIT_FAILURE;

    // The library allocates nothing for a call: the workspace is the caller's too, and may be of 0 bytes.
    TRY(tessera_fmha_fwd_workspace_size(device, &traits, &args, &args.workspace_size));
    TRY(tessera_device_malloc(device, args.workspace_size, &args.workspace_ptr));

    // On a GPU the call returns when it is in the stream, here the default one, and copies wait for that. Who reads the
    // result otherwise waits with tessera_device_synchronize(), or for the stream with HIP's own functions.
    TRY(tessera_fmha_fwd(device, &traits, &args, NULL));
    TRY(tessera_device_copy_from(device, o, device_o, sizeof o));

    TRY(tessera_device_free(device, args.workspace_ptr));
    TRY(tessera_device_free(device, device_o));
    TRY(tessera_device_free(device, device_qkv));
    return EXIT_SUCCESS;
}

// The definition of one element of o, to compare with.
static double expected(int b, int h, int i, int column) {
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

static double greatest_error(void) {
    double worst = 0;
    for (int b = 0; b < BATCH; b++)
        for (int h = 0; h < HEADS; h++)
            for (int i = 0; i < SEQLEN; i += 23)
                for (int column = 0; column < HDIM; column += 7) {
                    const double got = o[(((size_t)b * SEQLEN + i) * HEADS + h) * HDIM + column];
                    const double error = fabs(got - expected(b, h, i, column));
                    if (error > worst || isnan(error)) worst = error; // which a NaN stays
                }
    return worst;
}

int main(int argc, char **argv) {
    for (size_t n = 0; n < QKV_COUNT; n++) qkv[n] = (float)rand() / (float)RAND_MAX - 0.5f;

    tessera_device *device;
    TRY(tessera_device_open(argc > 1 ? argv[1] : "auto", &device));
    const int status = run(device);
    tessera_device_close(device);
    if (status != EXIT_SUCCESS) return status;

    const double error = greatest_error();
    printf("greatest error %.2g: %s\n", error, error < 1e-5 ? "right" : "wrong");
    return error < 1e-5 ? EXIT_SUCCESS : EXIT_FAILURE;
}
