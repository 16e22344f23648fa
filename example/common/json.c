// SPDX-License-Identifier: MIT
#include "json.h"

// JSON has no infinity or NaN.
void example_put_number(FILE *file, const char *key, double value) {
    if (value - value == 0)
        fprintf(file, "  \"%s\": %.9g,\n", key, value);
    else
        fprintf(file, "  \"%s\": null,\n", key);
}

void example_put_integer(FILE *file, const char *key, int64_t value) {
    fprintf(file, "  \"%s\": %lld,\n", key, (long long)value);
}

void example_put_bool(FILE *file, const char *key, int value) {
    fprintf(file, "  \"%s\": %s,\n", key, value ? "true" : "false");
}

void example_put_text(FILE *file, const char *key, const char *value) {
    fprintf(file, "  \"%s\": \"", key);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            fprintf(file, "\\%c", *value);
        else if ((unsigned char)*value < ' ')
            fprintf(file, "\\u%04x", *value);
        else
            fputc(*value, file);
    }
    fputs("\",\n", file);
}
