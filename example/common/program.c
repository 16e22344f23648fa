// SPDX-License-Identifier: MIT
// A program: one command line, CK's line, CK's JSON.
#include "program.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "model.h"

// One line, whatever characters the arguments that it repeats hold.
static int complain(const example_program *program, example_outcome outcome, const char *message) {
    fflush(stdout);
    fprintf(stderr, "%s: ", program->name);
    for (const char *c = message; *c; c++) fputc(iscntrl((unsigned char)*c) ? '?' : *c, stderr);
    fputc('\n', stderr);
    return (int)outcome;
}

// ---- JSON

// Says so before the run when the file cannot be written after it; what is there already stays until then.
static int can_write(const char *path) {
    FILE *file = fopen(path, "a");
    return file && fclose(file) == 0;
}

static int cannot_write(const example_program *program, const char *path) {
    char message[512];
    snprintf(message, sizeof message, "-jsonfile=%s: cannot be written: %s", path, strerror(errno));
    return complain(program, EXAMPLE_WRONG_ARGUMENT, message);
}

static void put_result(FILE *file, const example_problem *p, const example_result *r) {
    static const char *const verdicts[] = {"skipped", "pass", "fail"};
    example_put_text(file, "kernel", r->short_name);
    example_put_text(file, "ck_name", r->ck_name);
    example_put_text(file, "verification", verdicts[r->verification]);
    example_put_integer(file, "rows", r->rows);
    example_put_integer(file, "rows_verified", r->rows_checked);
    if (r->verification != EXAMPLE_NOT_VERIFIED) p->program->put_error(p, file);
    example_put_text(file, "message", r->message);
    example_put_integer(file, "runs", r->runs);
    if (r->simulated)
        example_put_model(file, r);
    else
        fprintf(file, "  \"perf\": {\"time\": %.9g, \"tflops\": %.9g, \"gb/s\": %.9g}\n", r->time_ms, r->tflops,
                r->gbps);
}

// The arguments that are the program's own, all of which are integers, real numbers or texts.
static void put_arguments(const example_problem *p, FILE *file) {
    const example_arguments *const arguments = p->program->arguments;
    for (int n = 0; n < arguments->count; n++) {
        const example_argument *const a = &arguments->table[n];
        const void *const value = (const char *)p->options + a->offset;
        if (a->offset < sizeof(example_options)) continue;
        if (a->kind == EXAMPLE_TEXT)
            example_put_text(file, a->name, *(const char *const *)value);
        else if (a->kind == EXAMPLE_REAL)
            example_put_number(file, a->name, (double)*(const float *)value);
        else
            example_put_integer(file, a->name, *(const int32_t *)value);
    }
}

// Returns 0, or -1 with errno set.
static int write_json(const example_problem *p, const example_result *result) {
    FILE *file = fopen(p->options->jsonfile, "w");
    if (!file) return -1;
    fputs("{\n", file);
    example_put_text(file, "name", p->program->calls->operation);
    if (p->program->put_json)
        p->program->put_json(p, file);
    else
        put_arguments(p, file);
    example_put_text(file, "device", tessera_device_name(p->device));
    put_result(file, p, result);
    fputs("}\n", file);
    int failed = ferror(file), error = errno;
    if (fclose(file) != 0) return -1;
    errno = error;
    return failed ? -1 : 0;
}

// ---- the line

static void explain(const example_problem *p) {
    const example_calls *calls = p->program->calls;
    const tessera_device_facts *facts = tessera_device_get_facts(p->device);
    const tessera_explain how = (tessera_explain)p->options->explain;
    size_t size = calls->explain(facts, p->traits, p->args, how, NULL, 0);
    char *text = malloc(size);
    if (!text) return;
    calls->explain(facts, p->traits, p->args, how, text, size);
    fputs(text, stdout);
    free(text);
}

static void print_time(const example_problem *p, const example_result *result) {
    if (p->options->kname == 1 && p->program->print_kernels)
        p->program->print_kernels(p, stdout);
    else if (p->options->kname)
        printf(", %s", p->options->kname == 1 ? result->short_name : result->ck_name);
    if (result->simulated)
        example_print_model(result, p->program->in_microseconds);
    else if (p->program->in_microseconds)
        printf(", %.3f us, %.2f GB/s", result->time_ms * 1e3, result->gbps);
    else
        printf(", %.3f ms, %.2f TFlops, %.2f GB/s", result->time_ms, result->tflops, result->gbps);
}

static void print_verdict(const example_problem *p, const example_result *result) {
    if (result->verification == EXAMPLE_NOT_VERIFIED) return;
    printf(", valid:%c", result->verification == EXAMPLE_VALID ? 'y' : 'n');
    if (result->verification == EXAMPLE_VALID && result->rows_checked < result->rows)
        printf(" (%lld of %lld rows checked)", (long long)result->rows_checked, (long long)result->rows);
    if (p->options->v == 2) fputs(" (by the CPU's fp64 reference, as -v=1)", stdout);
}

static example_outcome run_problem(example_problem *p, example_result *result) {
    p->program->print(p, stdout);
    fflush(stdout);
    if (example_launch(p, result) != EXAMPLE_OK) {
        puts(result->outcome == EXAMPLE_NO_INSTANCE ? p->program->not_supported : "");
        return result->outcome;
    }
    print_time(p, result);
    fflush(stdout);
    example_verify(p, result);
    print_verdict(p, result);
    puts("");
    if (p->options->profile) example_print_profile(result);
    example_print_annotation(p);
    return result->outcome;
}

// ---- main

static int run_arguments(const example_program *program, const example_options *options) {
    example_result result;
    example_problem *problem = NULL;
    int code;
    if ((options->threads && tessera_set_num_threads(options->threads) != TESSERA_SUCCESS) ||
        (options->pack && tessera_load_pack(options->pack) != TESSERA_SUCCESS))
        return complain(program, EXAMPLE_WRONG_ARGUMENT, tessera_last_error());
    if (example_build(program, options, &problem, &result) != EXAMPLE_OK)
        return complain(program, result.outcome, result.message);
    if (options->json && !can_write(options->jsonfile)) {
        code = cannot_write(program, options->jsonfile);
    } else {
        if (options->explain) explain(problem);
        code = (int)run_problem(problem, &result);
        if (code != EXAMPLE_OK) complain(program, result.outcome, result.message);
        if (options->json && write_json(problem, &result) != 0) code = cannot_write(program, options->jsonfile);
    }
    example_destroy(problem);
    return code;
}

static int run_command(const example_program *program, int argc, char **argv) {
    char message[512];
    example_options *options = malloc(program->arguments->bytes); // the program's own arguments stand behind
    int code;
    if (!options) return complain(program, EXAMPLE_DEVICE_ERROR, "no memory");
    if (example_read_arguments(program->arguments, argc, argv, options, message, sizeof message) != 0)
        code = complain(program, EXAMPLE_WRONG_ARGUMENT, message);
    else if (options->help)
        code = (example_print_help(program->arguments, stdout), EXAMPLE_OK);
    else
        code = run_arguments(program, options);
    example_free_arguments(program->arguments, options);
    free(options);
    return code;
}

int example_exit_code(const char *program, int outcome) {
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return outcome;
    fprintf(stderr, "%s: standard output cannot be written: %s\n", program, strerror(errno ? errno : EIO));
    return outcome ? outcome : EXAMPLE_DEVICE_ERROR;
}

int example_main(const example_program *program, int argc, char **argv) {
    return example_exit_code(program->name, run_command(program, argc, argv));
}
