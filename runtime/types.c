// SPDX-License-Identifier: MIT
// Words of element types and targets.
#include <string.h>

#include "library.h"
#include "words.h"

static const char *const types[TESSERA_TYPE_COUNT] = {
    [TESSERA_TYPE_FP32] = "fp32",         [TESSERA_TYPE_FP16] = "fp16",         [TESSERA_TYPE_BF16] = "bf16",
    [TESSERA_TYPE_E4M3] = "e4m3",         [TESSERA_TYPE_E2M1] = "e2m1",         [TESSERA_TYPE_E5M2] = "e5m2",
    [TESSERA_TYPE_E4M3FNUZ] = "e4m3fnuz", [TESSERA_TYPE_E5M2FNUZ] = "e5m2fnuz", [TESSERA_TYPE_E8M0] = "e8m0",
    [TESSERA_TYPE_INT8] = "int8",         [TESSERA_TYPE_INT4] = "int4",         [TESSERA_TYPE_INT32] = "int32",
};
static const uint8_t type_bits[TESSERA_TYPE_COUNT] = {
    [TESSERA_TYPE_FP32] = 32, [TESSERA_TYPE_FP16] = 16, [TESSERA_TYPE_BF16] = 16,    [TESSERA_TYPE_E4M3] = 8,
    [TESSERA_TYPE_E2M1] = 4,  [TESSERA_TYPE_E5M2] = 8,  [TESSERA_TYPE_E4M3FNUZ] = 8, [TESSERA_TYPE_E5M2FNUZ] = 8,
    [TESSERA_TYPE_E8M0] = 8,  [TESSERA_TYPE_INT8] = 8,  [TESSERA_TYPE_INT4] = 4,     [TESSERA_TYPE_INT32] = 32,
};

tessera_status tessera_find_word(const char *what, const char *const *words, int count, const char *text, int *out) {
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

WORDS(type, "type", types, TESSERA_TYPE_COUNT)
WORDS(target, "target", tessera_target_words, TESSERA_TARGET_COUNT)

int tessera_type_bits(tessera_type value) {
    return (unsigned)value < (unsigned)TESSERA_TYPE_COUNT ? type_bits[value] : 0;
}
