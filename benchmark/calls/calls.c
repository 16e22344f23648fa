// SPDX-License-Identifier: MIT
// Times calls of operations through the C API, as answer.h says:
//
//   benchmark_calls -op=layernorm2d_fwd -m=1024 -n=4096 -prec_i=bf16 -threads=2
//
// with the words of calls.h, on the CPU. Tensors stay where they are from call to call.
#include "calls.h"

#include "tessera/device.h"

#define CALL(op) timed_call op##_call(const tessera_device *device, const problem *p);
CALLS
#undef CALL

static const struct {
    const char *name;
    make_call make;
} operations[] = {
#define CALL(op) {#op, op##_call},
    CALLS
#undef CALL
};

void must(tessera_status status) {
    if (status == TESSERA_SUCCESS) return;
    fprintf(stderr, "benchmark_calls: %s\n", tessera_last_error());
    exit(2);
}

// ---- tensors

// Bytes of a pattern of numbers in 0.5 .. 1, which differ from each other in their first bits.
enum { PATTERN = 4096 };

static void put(char *at, tessera_type type, uint32_t number) {
    const uint32_t fp32 = 0x3f000000 | (number & 0x7fffff);
    const uint16_t bf16 = (uint16_t)(0x3f00 | (number & 0x7f)), fp16 = (uint16_t)(0x3800 | (number & 0x3ff));
    if (type == TESSERA_TYPE_FP32) memcpy(at, &fp32, sizeof fp32);
    if (type == TESSERA_TYPE_BF16) memcpy(at, &bf16, sizeof bf16);
    if (type == TESSERA_TYPE_FP16) memcpy(at, &fp16, sizeof fp16);
}

static size_t bytes_of(tessera_type type, int64_t m, int64_t n) {
    return (size_t)m * (size_t)n * (size_t)tessera_type_bits(type) / 8;
}

void *output_of(tessera_type type, int64_t m, int64_t n) { return memory_of(bytes_of(type, m, n), 0); }

void *input_of(tessera_type type, int64_t m, int64_t n) {
    const size_t bytes = bytes_of(type, m, n), each = (size_t)tessera_type_bits(type) / 8;
    char pattern[PATTERN], *memory = memory_of(bytes, 0);
    uint32_t number = 1;
    for (size_t at = 0; at < sizeof pattern; at += each) {
        number = number * 1664525 + 1013904223;
        put(pattern + at, type, number >> 8);
    }
    for (size_t at = 0; at < bytes; at += sizeof pattern)
        memcpy(memory + at, pattern, bytes - at < sizeof pattern ? bytes - at : sizeof pattern);
    return memory;
}

// ---- the program

static problem read_problem(int argc, char **argv) {
    problem p = {
        .m = (int32_t)number_of(argc, argv, "m", 1),
        .n = (int32_t)number_of(argc, argv, "n", 4096),
        .save_x = (int32_t)number_of(argc, argv, "save_x", 1),
        .experts = (int32_t)number_of(argc, argv, "experts", 32),
        .topk = (int32_t)number_of(argc, argv, "topk", 5),
    };
    const char *prec_i = word_of(argc, argv, "prec_i", "fp16");
    must(tessera_type_from_string(prec_i, &p.prec_i));
    must(tessera_type_from_string(word_of(argc, argv, "prec_o", prec_i), &p.prec_o));
    must(tessera_fused_add_from_string(word_of(argc, argv, "fadd", "0"), &p.fused_add));
    must(tessera_fused_quant_from_string(word_of(argc, argv, "fquant", "0"), &p.fused_quant));
    return p;
}

int main(int argc, char **argv) {
    const char *op = word_of(argc, argv, "op", "");
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (strcmp(operations[i].name, op) != 0) continue;
        tessera_device *device;
        must(tessera_device_open(word_of(argc, argv, "device", "cpu"), &device));
        must(tessera_set_num_threads((int)number_of(argc, argv, "threads", 0)));
        const problem p = read_problem(argc, argv);
        const timed_call made = operations[i].make(device, &p);
        answer(made.instance, made.time, made.call);
        return 0;
    }
    fprintf(stderr, "benchmark_calls: -op='%s' is none of", op);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) fprintf(stderr, " %s", operations[i].name);
    fprintf(stderr, "\n");
    return 1;
}
