// SPDX-License-Identifier: MIT
// What a simulated device's clock writes besides its sums: the files of -annotate and -trace. An annotation that is to
// be printed waits in a file, so that it does not come in the midst of the line.
#define _POSIX_C_SOURCE 200809L // mkstemp
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "problem.h"

static int is_printed(const example_problem *p) { return p->options->annotate && !strcmp(p->options->annotate, "1"); }

static example_outcome cannot_write(const char *name, const char *path, example_result *result) {
    return example_fail(result, EXAMPLE_WRONG_ARGUMENT, "-%s=%s: cannot be written: %s", name, path, strerror(errno));
}

// An annotation of launches before is gone; the first launch of a trace empties the file itself.
static example_outcome check_file(const char *name, const char *path, const char *mode, example_result *result) {
    FILE *file = path ? fopen(path, mode) : NULL;
    if (path && (!file || fclose(file) != 0)) return cannot_write(name, path, result);
    return EXAMPLE_OK;
}

static example_outcome make_temporary(example_problem *p, example_result *result) {
    const char *folder = getenv("TMPDIR"), *name = "/tessera_annotation_XXXXXX";
    if (!folder || !*folder) folder = "/tmp";
    const size_t size = strlen(folder) + strlen(name) + 1;
    char *path = malloc(size);
    if (!path) return example_fail(result, EXAMPLE_DEVICE_ERROR, "no memory");
    snprintf(path, size, "%s%s", folder, name);
    const int file = mkstemp(path);
    if (file >= 0) {
        close(file);
        p->annotation = path;
        return EXAMPLE_OK;
    }
    cannot_write("annotate", path, result);
    free(path);
    return result->outcome;
}

example_outcome example_begin_outputs(example_problem *p, example_result *result) {
    if (check_file("trace", p->options->trace, "a", result)) return result->outcome;
    if (is_printed(p)) return make_temporary(p, result);
    return check_file("annotate", p->options->annotate, "w", result);
}

tessera_status example_set_outputs(const example_problem *p) {
    const char *annotation = is_printed(p) ? p->annotation : p->options->annotate, *trace = p->options->trace;
    tessera_status status = TESSERA_SUCCESS;
    if (annotation) status = tessera_device_set_output(p->device, TESSERA_SIM_OUTPUT_ANNOTATION, annotation);
    if (trace && status == TESSERA_SUCCESS)
        status = tessera_device_set_output(p->device, TESSERA_SIM_OUTPUT_TIMELINE, trace);
    return status;
}

void example_end_outputs(example_problem *p) {
    if (p->annotation) unlink(p->annotation);
    free(p->annotation);
    p->annotation = NULL;
}

void example_print_annotation(example_problem *p) {
    FILE *file = p->annotation ? fopen(p->annotation, "r") : NULL;
    char text[4096];
    example_end_outputs(p); // now: printing may end the program
    if (!file) return;
    for (size_t count; (count = fread(text, 1, sizeof text, file)) > 0;) fwrite(text, 1, count, stdout);
    fclose(file);
}
