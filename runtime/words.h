// SPDX-License-Identifier: MIT
// Conversion between the values of an enumeration and their words.
#ifndef TESSERA_RUNTIME_WORDS_H
#define TESSERA_RUNTIME_WORDS_H

#include "internal.h"

// Finds the index of `text` among the words; the error line lists them all.
tessera_status tessera_find_word(const char *what, const char *const *words, int count, const char *text, int *out);

// Defines tessera_KIND_from_string and tessera_KIND_string.
#define WORDS(kind, what, words, count)                                                                                \
    tessera_status tessera_##kind##_from_string(const char *text, tessera_##kind *out) {                               \
        int value;                                                                                                     \
        if (!out) return tessera_fail(TESSERA_ERROR_INVALID_ARGUMENT, "out of a " what " is NULL");                    \
        const tessera_status status = tessera_find_word(what, words, count, text, &value);                             \
        if (status == TESSERA_SUCCESS) *out = (tessera_##kind)value;                                                   \
        return status;                                                                                                 \
    }                                                                                                                  \
    const char *tessera_##kind##_string(tessera_##kind value) {                                                        \
        return (unsigned)value < (unsigned)(count) ? (words)[value] : NULL;                                            \
    }

#endif
