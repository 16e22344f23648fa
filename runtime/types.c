// SPDX-License-Identifier: MIT
// Words for kinds and targets.
#include <string.h>

#include "internal.h"

static const char *const dtypes[TESSERA_DTYPE_COUNT] = {
    [TESSERA_FP32] = "fp32",       [TESSERA_FP16] = "fp16",       [TESSERA_BF16] = "bf16",   [TESSERA_FP8] = "fp8",
    [TESSERA_FP8BF16] = "fp8bf16", [TESSERA_FP8FP32] = "fp8fp32", [TESSERA_MXFP8] = "mxfp8", [TESSERA_MXFP4] = "mxfp4",
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
    [TESSERA_QSCALE_KV_BLOCK] = "kvbs", [TESSERA_QSCALE_MX] = "mx",
};
static const char *const targets[TESSERA_TARGET_COUNT] = {
    [TESSERA_TARGET_PORTABLE] = "portable",
    [TESSERA_TARGET_X86_64_V2] = "x86-64-v2",
    [TESSERA_TARGET_X86_64_V3] = "x86-64-v3",
    [TESSERA_TARGET_X86_64_V4] = "x86-64-v4",
    [TESSERA_TARGET_X86_64_V4_BF16] = "x86-64-v4-bf16",
    [TESSERA_TARGET_ARMV8_A] = "armv8-a",
    [TESSERA_TARGET_GFX90A] = "gfx90a",
    [TESSERA_TARGET_GFX942] = "gfx942",
    [TESSERA_TARGET_GFX950] = "gfx950",
    [TESSERA_TARGET_SM_90A] = "sm_90a",
    [TESSERA_TARGET_X86_64_V4_AMX] = "x86-64-v4-amx",
};

static tessera_status find(const char *what, const char *const *words, int count, const char *text, int *out) {
    if (!text) return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "the text of a %s is NULL", what);
    char list[256];
    struct tessera_text all = {list, sizeof list, 0};
    for (int i = 0; i < count; i++) {
        if (strcmp(text, words[i]) == 0) {
            *out = i;
            return TESSERA_SUCCESS;
        }
        tessera_text_add(&all, "%s%s", i ? ", " : "", words[i]);
    }
    return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "%s \"%s\" is unknown: %s", what, text, list);
}

#define WORDS(kind, words, count)                                                                                      \
    tessera_status tessera_##kind##_from_string(const char *text, tessera_##kind *out) {                               \
        int value;                                                                                                     \
        if (!out) return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "out of a " #kind " is NULL");                   \
        const tessera_status status = find(#kind, words, count, text, &value);                                         \
        if (status == TESSERA_SUCCESS) *out = (tessera_##kind)value;                                                   \
        return status;                                                                                                 \
    }                                                                                                                  \
    const char *tessera_##kind##_string(tessera_##kind value) {                                                        \
        return (unsigned)value < (unsigned)(count) ? (words)[value] : NULL;                                            \
    }

WORDS(dtype, dtypes, TESSERA_DTYPE_COUNT)
WORDS(mask, masks, TESSERA_MASK_COUNT)
WORDS(bias, biases, TESSERA_BIAS_COUNT)
WORDS(qscale, qscales, TESSERA_QSCALE_COUNT)
WORDS(target, targets, TESSERA_TARGET_COUNT)
