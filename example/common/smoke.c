// SPDX-License-Identifier: MIT
#include <fnmatch.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

enum { LINE = 512, WORDS = 64 };

struct example_smoke {
    const char *filter; // of fnmatch
    long from, count;   // of the cases that the filter keeps; count < 0: all
    long every;         // one of so many
    int list;
    const char *extra;                     // further arguments for every case
    long seen, passed, failed, not_served; // by the device's kernels, which the CPU's always do
};

// Splits a line at blanks in place.
static int split(char *line, char **words) {
    int count = 0;
    for (char *word = strtok(line, " "); word && count < WORDS; word = strtok(NULL, " ")) words[count++] = word;
    return count;
}

static example_outcome outcome_of(const example_program *program, const char *command, char *message, size_t size) {
    char line[LINE], *words[WORDS];
    snprintf(line, sizeof line, "smoke %s", command);
    const int count = split(line, words);
    void *arguments = malloc(program->arguments->bytes);
    example_result result = {0};
    if (!arguments) return EXAMPLE_DEVICE_ERROR;
    if (example_read_arguments(program->arguments, count, words, arguments, message, size))
        result.outcome = EXAMPLE_WRONG_ARGUMENT;
    else if (example_run(program, arguments, &result) != EXAMPLE_OK)
        snprintf(message, size, "%s", result.message);
    else if (result.verification != EXAMPLE_VALID)
        result.outcome = EXAMPLE_WRONG_RESULT;
    example_free_arguments(program->arguments, arguments);
    free(arguments);
    return result.outcome;
}

void example_case(example_smoke *s, const example_program *program, const char *format, ...) {
    char command[LINE - 128], whole[LINE - 8], named[LINE + 64], message[1024] = "";
    va_list values;
    va_start(values, format);
    vsnprintf(command, sizeof command, format, values);
    va_end(values);
    snprintf(whole, sizeof whole, "%s -warmup=0 -repeat=1 %s", command, s->extra);
    snprintf(named, sizeof named, "%s %s", program->name, whole);
    if (fnmatch(s->filter, whole, 0) != 0 && fnmatch(s->filter, named, 0) != 0) return;
    long number = s->seen++;
    if (number < s->from || (s->count >= 0 && number >= s->from + s->count)) return;
    if ((number - s->from) % s->every != 0) return;
    if (s->list) {
        printf("%ld: %s\n", number, named);
        return;
    }
    switch (outcome_of(program, whole, message, sizeof message)) {
    case EXAMPLE_OK:
        s->passed++;
        return;
    case EXAMPLE_NO_INSTANCE:
        s->not_served++;
        return;
    default:
        s->failed++;
        printf("%ld: %s\n    %s\n", number, named, message);
        fflush(stdout);
    }
}

static const char *value_of(const char *argument, const char *name) {
    size_t length = strlen(name);
    return strncmp(argument, name, length) == 0 ? argument + length : NULL;
}

// Opens the device that the arguments name, since a driver may take long to set up what it drops with the last device.
static tessera_device *hold_device(const char *extra) {
    tessera_device *device = NULL;
    char name[32];
    const char *const argument = strstr(extra, "-device=");
    if (argument && sscanf(argument, "-device=%31s", name) == 1) tessera_device_open(name, &device);
    return device;
}

static int run_all(void cases(example_smoke *), int argc, char **argv) {
    example_smoke s = {.filter = "*", .count = -1, .every = 1, .extra = ""};
    for (int n = 1; n < argc; n++) {
        const char *value;
        if ((value = value_of(argv[n], "-filter="))) {
            s.filter = value;
        } else if ((value = value_of(argv[n], "-from="))) {
            s.from = atol(value);
        } else if ((value = value_of(argv[n], "-count="))) {
            s.count = atol(value);
        } else if ((value = value_of(argv[n], "-every=")) && atol(value) > 0) {
            s.every = atol(value);
        } else if ((value = value_of(argv[n], "-extra="))) {
            s.extra = value;
        } else if (!strcmp(argv[n], "-list")) {
            s.list = 1;
        } else {
            fprintf(stderr,
                    "%s: the arguments are -filter='*-prec=bf16*' (of the command lines), -from=N, -count=N, -every=N "
                    "(of the cases that it keeps), -extra='-device=cpu:x86-64-v3' (for every case), -list\n",
                    argv[n]);
            return EXAMPLE_WRONG_ARGUMENT;
        }
    }
    tessera_device *device = hold_device(s.extra);
    cases(&s);
    tessera_device_close(device);
    if (s.list) return EXAMPLE_OK;
    if (s.seen == 0) {
        fprintf(stderr, "-filter=%s: no case of -list matches\n", s.filter);
        return EXAMPLE_WRONG_ARGUMENT;
    }
    printf("%ld passed, %ld failed", s.passed, s.failed);
    if (s.not_served) printf(", %ld not served", s.not_served);
    puts("");
    if (s.failed) return EXAMPLE_WRONG_RESULT;
    return s.not_served && !s.passed ? EXAMPLE_NO_INSTANCE : EXAMPLE_OK;
}

int example_smoke_main(const char *name, void cases(example_smoke *), int argc, char **argv) {
    return example_exit_code(name, run_all(cases, argc, argv));
}
