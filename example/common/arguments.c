// SPDX-License-Identifier: MIT
#include "arguments.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const example_arguments *arguments;
    void *values;
    char *message;
    size_t size;
} reader;

int example_refuse(char *message, size_t size, const char *format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(message, size, format, values);
    va_end(values);
    return -1;
}

#define FAIL(...) example_refuse(r->message, r->size, __VA_ARGS__)

static int read_integer(const char *text, const char **end, int64_t least, int64_t greatest, int64_t *out) {
    char *stop;
    errno = 0;
    long long value = strtoll(text, &stop, 10);
    *end = stop;
    if (stop == text || *text == ' ' || errno || value < least || value > greatest) return -1;
    *out = value;
    return 0;
}

static int read_flag(const char *value) {
    if (!strcmp(value, "1") || !strcmp(value, "t") || !strcmp(value, "true")) return 1;
    if (!strcmp(value, "0") || !strcmp(value, "f") || !strcmp(value, "false")) return 0;
    return -1;
}

static example_list *list_of(void *values, const example_argument *a) {
    return a->list ? (example_list *)(void *)((char *)values + a->list) : NULL;
}

static void drop_list(void *values, const example_argument *a) {
    example_list *list = list_of(values, a);
    if (!list) return;
    free(list->values);
    *list = (example_list){NULL, 0};
}

// Integers with commas between them.
static int read_list(const reader *r, const example_argument *a, const char *value) {
    int32_t count = 1;
    for (const char *c = value; *c; c++) count += *c == ',';
    int32_t *numbers = malloc((size_t)count * sizeof *numbers);
    if (!numbers) return FAIL("-%s: no memory for %d values", a->name, count);
    *list_of(r->values, a) = (example_list){numbers, count};
    const char *text = value;
    for (int32_t n = 0; n < count; n++) {
        int64_t number;
        if (read_integer(text, &text, INT32_MIN, INT32_MAX, &number) || *text != (n + 1 < count ? ',' : '\0'))
            return FAIL("-%s=%s: 32-bit integers with commas between them", a->name, value);
        numbers[n] = (int32_t)number;
        text++;
    }
    return 0;
}

static int read_number(const reader *r, const example_argument *a, const char *value) {
    void *field = (char *)r->values + a->offset;
    const char *end;
    int64_t number = 0;
    const int is_unsigned = a->kind == EXAMPLE_UNSIGNED32;
    if (read_integer(value, &end, is_unsigned ? 0 : INT32_MIN, is_unsigned ? UINT32_MAX : INT32_MAX, &number) || *end) {
        if (a->kind == EXAMPLE_INTEGER_OR_LIST)
            return FAIL("-%s=%s: a 32-bit integer, or %s of them with commas between them", a->name, value,
                        r->arguments->list_length);
        return FAIL("-%s=%s: %s", a->name, value, is_unsigned ? "an integer from 0 to 2^32 - 1" : "a 32-bit integer");
    }
    if (is_unsigned)
        *(uint32_t *)field = (uint32_t)number;
    else
        *(int32_t *)field = (int32_t)number;
    if (a->kind == EXAMPLE_FIXED && number != strtoll(a->value, NULL, 10))
        return FAIL("-%s=%s: only %s, the default (%s)", a->name, value, a->value, a->help);
    return 0;
}

static int read_value(const reader *r, const example_argument *a, const char *value) {
    void *field = (char *)r->values + a->offset;
    char *stop;
    drop_list(r->values, a);
    if (a->kind == EXAMPLE_LIST && !*value) return 0;
    if (a->kind == EXAMPLE_LIST || (a->kind == EXAMPLE_INTEGER_OR_LIST && strchr(value, ',')))
        return read_list(r, a, value);
    if (!*value) return FAIL("-%s=: no value; -? says which there are", a->name);
    switch (a->kind) {
    case EXAMPLE_TEXT:
        *(const char **)field = value;
        return 0;
    case EXAMPLE_FLAG:
        if ((*(int32_t *)field = read_flag(value)) < 0) return FAIL("-%s=%s: 0 or 1", a->name, value);
        return 0;
    case EXAMPLE_REAL:
        *(float *)field = strtof(value, &stop);
        return *stop || stop == value ? FAIL("-%s=%s: a number", a->name, value) : 0;
    case EXAMPLE_UNSIGNED64:
        errno = 0;
        *(uint64_t *)field = strtoull(value, &stop, 10);
        if (*stop || *value < '0' || *value > '9' || errno)
            return FAIL("-%s=%s: an integer from 0 to 2^64 - 1", a->name, value);
        return 0;
    default:
        return read_number(r, a, value);
    }
}

static int read_argument(const reader *r, const char *text) {
    example_options *common = r->values;
    if (text[0] != '-') return FAIL("%s: arguments look like -name=value; -? lists them", text);
    if (!strcmp(text, "-?") || !strcmp(text, "-help") || !strcmp(text, "--help")) return common->help = 1, 0;
    size_t length = strcspn(text + 1, "=");
    for (int n = 0; n < r->arguments->count; n++) {
        const example_argument *a = &r->arguments->table[n];
        if (strlen(a->name) != length || strncmp(text + 1, a->name, length) != 0) continue;
        if (text[1 + length] != '=') return FAIL("-%s: a value is missing, as in -%s=%s", a->name, a->name, a->value);
        common->warmup_given |= !strcmp(a->name, "warmup");
        common->repeat_given |= !strcmp(a->name, "repeat");
        return read_value(r, a, text + 2 + length);
    }
    return FAIL("-%.*s: no such argument; -? lists them", (int)length, text + 1);
}

static int settle_common(const reader *r) {
    example_options *o = r->values;
    if (o->kname < 0 || o->kname > 2) return FAIL("-kname=%d: 0, 1 or 2", o->kname);
    if (o->explain < 0 || o->explain > 2) return FAIL("-explain=%d: 0, 1 or 2", o->explain);
    if (o->threads < 0) return FAIL("-threads=%d: 0 or more", o->threads);
    if (o->warmup < 0) return FAIL("-warmup=%d: 0 or more", o->warmup);
    if (o->repeat_given && o->repeat < 1) return FAIL("-repeat=%d: at least 1", o->repeat);
    o->time_limit_s = o->warmup_given || o->repeat_given ? 0 : 3;
    const int simulated = strncmp(o->device, "sim:", 4) == 0;
    if (o->profile && !simulated) return FAIL("-profile=1: only simulated devices have a profile, not %s", o->device);
    if (o->annotate && !strcmp(o->annotate, "0")) o->annotate = NULL;
    if (o->annotate && !simulated)
        return FAIL("-annotate=%s: only simulated devices have cycles, not %s", o->annotate, o->device);
    if (o->trace && !simulated)
        return FAIL("-trace=%s: only simulated devices have cycles, not %s", o->trace, o->device);
    if (o->sample && !simulated) return FAIL("-sample=1: only simulated devices take samples, not %s", o->device);
    if (o->sample && o->v) return FAIL("-sample=1: results are missing, so that it needs -v=0");
    if (simulated) {
        if (!o->warmup_given) o->warmup = 0;
        if (!o->repeat_given) o->repeat = 1;
    }
    return 0;
}

int example_read_arguments(const example_arguments *arguments, int argc, char *const *argv, void *values, char *message,
                           size_t size) {
    const reader reader = {arguments, values, message, size}, *r = &reader;
    memset(values, 0, arguments->bytes);
    for (int n = 0; n < arguments->count; n++)
        if (*arguments->table[n].value) read_value(r, &arguments->table[n], arguments->table[n].value);
    for (int n = 1; n < argc; n++)
        if (read_argument(r, argv[n])) return -1;
    if (((const example_options *)values)->help) return 0;
    if (settle_common(r)) return -1;
    return arguments->settle ? arguments->settle(values, message, size) : 0;
}

void example_free_arguments(const example_arguments *arguments, void *values) {
    for (int n = 0; n < arguments->count; n++) drop_list(values, &arguments->table[n]);
}

void example_print_help(const example_arguments *arguments, FILE *file) {
    fprintf(file, "%s Arguments look like -name=value:\n", arguments->does);
    for (int n = 0; n < arguments->count; n++) {
        const example_argument *a = &arguments->table[n];
        fprintf(file, "%*s-%s    ", 19 - (int)strlen(a->name), "", a->name);
        for (const char *c = a->help; *c; c++) {
            fputc(*c, file);
            if (*c == '\n') fprintf(file, "%24s", "");
        }
        fprintf(file, " (default: %s)\n", *a->value ? a->value : "none");
    }
    fputs("Exit codes: 0 all is well, 1 wrong arguments, 2 no kernel serves the problem, 3 wrong result, 4 device "
          "error, or the output cannot be written.\n",
          file);
}
