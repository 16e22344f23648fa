// SPDX-License-Identifier: MIT
// What all attention operations share: the words of their enumerations, how tensors are stored, and dropout's bound.
#include "ops/attention.h"

#include <math.h>

#include "words.h"

static const char *const dtypes[TESSERA_FMHA_DTYPE_COUNT] = {
    [TESSERA_FMHA_FP32] = "fp32",   [TESSERA_FMHA_FP16] = "fp16",       [TESSERA_FMHA_BF16] = "bf16",
    [TESSERA_FMHA_FP8] = "fp8",     [TESSERA_FMHA_FP8BF16] = "fp8bf16", [TESSERA_FMHA_FP8FP32] = "fp8fp32",
    [TESSERA_FMHA_MXFP8] = "mxfp8", [TESSERA_FMHA_MXFP4] = "mxfp4",
};
static const char *const masks[TESSERA_MASK_COUNT] = {
    [TESSERA_MASK_NONE] = "no",
    [TESSERA_MASK_TOP_LEFT] = "top_left",
    [TESSERA_MASK_BOTTOM_RIGHT] = "bottom_right",
    [TESSERA_MASK_GENERIC] = "generic",
};
static const char *const biases[TESSERA_BIAS_COUNT] = {
    [TESSERA_BIAS_NONE] = "no",
    [TESSERA_BIAS_ELEMENTWISE] = "bias",
    [TESSERA_BIAS_ALIBI] = "alibi",
};
static const char *const qscales[TESSERA_QSCALE_COUNT] = {
    [TESSERA_QSCALE_NONE] = "no",       [TESSERA_QSCALE_PER_TENSOR] = "pt", [TESSERA_QSCALE_BLOCK] = "bs",
    [TESSERA_QSCALE_KV_BLOCK] = "kvbs", [TESSERA_QSCALE_MX] = "mx",         [TESSERA_QSCALE_TOKEN_HEAD] = "th",
};
static const char *const ropes[TESSERA_ROPE_COUNT] = {
    [TESSERA_ROPE_NONE] = "no",
    [TESSERA_ROPE_INTERLEAVED] = "inter",
    [TESSERA_ROPE_HALF] = "half",
};
static const char *const layouts[TESSERA_KV_LAYOUT_COUNT] = {
    [TESSERA_KV_VECTORIZED] = "vectorized",
    [TESSERA_KV_LINEAR] = "linear",
    [TESSERA_KV_VLLM] = "vllm",
};
static const char *const lookups[TESSERA_KV_LOOKUP_COUNT] = {
    [TESSERA_KV_SGLANG_1D] = "sglang",
    [TESSERA_KV_VLLM_2D] = "vllm",
};
static const char *const cache_dtypes[TESSERA_KV_CACHE_DTYPE_COUNT] = {
    [TESSERA_KV_AUTO] = "auto",
    [TESSERA_KV_FP8_E4M3] = "fp8_e4m3",
    [TESSERA_KV_INT8] = "int8",
    [TESSERA_KV_TURBO4] = "turbo4",
};
WORDS(fmha_dtype, "dtype", dtypes, TESSERA_FMHA_DTYPE_COUNT)
WORDS(mask, "mask", masks, TESSERA_MASK_COUNT)
WORDS(bias, "bias", biases, TESSERA_BIAS_COUNT)
WORDS(qscale, "qscale", qscales, TESSERA_QSCALE_COUNT)
WORDS(rope, "rope", ropes, TESSERA_ROPE_COUNT)
WORDS(kv_layout, "layout", layouts, TESSERA_KV_LAYOUT_COUNT)
WORDS(kv_lookup, "lookup table", lookups, TESSERA_KV_LOOKUP_COUNT)
WORDS(kv_cache_dtype, "type of a cache", cache_dtypes, TESSERA_KV_CACHE_DTYPE_COUNT)

const struct tessera_attention_storages tessera_attention_storages[TESSERA_FMHA_DTYPE_COUNT] = {
    [TESSERA_FMHA_FP32] = {TESSERA_TYPE_FP32, TESSERA_TYPE_FP32, TESSERA_TYPE_FP32},
    [TESSERA_FMHA_FP16] = {TESSERA_TYPE_FP16, TESSERA_TYPE_FP16, TESSERA_TYPE_FP16},
    [TESSERA_FMHA_BF16] = {TESSERA_TYPE_BF16, TESSERA_TYPE_BF16, TESSERA_TYPE_BF16},
    [TESSERA_FMHA_FP8] = {TESSERA_TYPE_E4M3, TESSERA_TYPE_E4M3, TESSERA_TYPE_FP32},
    [TESSERA_FMHA_FP8BF16] = {TESSERA_TYPE_E4M3, TESSERA_TYPE_BF16, TESSERA_TYPE_FP32},
    [TESSERA_FMHA_FP8FP32] = {TESSERA_TYPE_E4M3, TESSERA_TYPE_FP32, TESSERA_TYPE_FP32},
    [TESSERA_FMHA_MXFP8] = {TESSERA_TYPE_E4M3, TESSERA_TYPE_FP32, TESSERA_TYPE_FP32},
    [TESSERA_FMHA_MXFP4] = {TESSERA_TYPE_E2M1, TESSERA_TYPE_FP32, TESSERA_TYPE_FP32},
};

uint32_t tessera_attention_keep_below(float keep) { return (uint32_t)floorf(255.0f * keep); }
