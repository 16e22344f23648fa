// SPDX-License-Identifier: MIT
// tile_example_fmha_fwd: CK's example program of that name, over Tessera's C API.
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmha_fwd_arguments.h"

// One line, whatever characters the arguments that it repeats hold.
static int complain(fmha_fwd_outcome outcome, const char *message) {
    fflush(stdout);
    fputs("tile_example_fmha_fwd: ", stderr);
    for (const char *c = message; *c; c++) fputc(iscntrl((unsigned char)*c) ? '?' : *c, stderr);
    fputc('\n', stderr);
    return (int)outcome;
}

// Says so before the run when the file cannot be written after it; what is there already stays until then.
static int can_write(const char *path) {
    FILE *file = fopen(path, "a");
    return file && fclose(file) == 0;
}

static int cannot_write(const char *path) {
    char message[512];
    snprintf(message, sizeof message, "-jsonfile=%s: cannot be written: %s", path, strerror(errno));
    return complain(FMHA_FWD_WRONG_ARGUMENT, message);
}

static void explain(fmha_fwd_problem *problem, tessera_explain how) {
    const tessera_device_facts *facts = tessera_device_get_facts(fmha_fwd_problem_device(problem));
    const tessera_fmha_fwd_traits *traits = fmha_fwd_problem_traits(problem);
    const tessera_fmha_fwd_args *args = fmha_fwd_problem_args(problem);
    size_t size = tessera_fmha_fwd_explain(facts, traits, args, how, NULL, 0);
    char *text = malloc(size);
    if (!text) return;
    tessera_fmha_fwd_explain(facts, traits, args, how, text, size);
    fputs(text, stdout);
    free(text);
}

static void print_verdict(const fmha_fwd_arguments *arguments, const fmha_fwd_result *result) {
    if (result->verification == FMHA_FWD_NOT_VERIFIED) return;
    printf(", valid:%c", result->verification == FMHA_FWD_VALID ? 'y' : 'n');
    if (result->verification == FMHA_FWD_VALID && result->rows_checked < result->rows)
        printf(" (%lld of %lld rows checked)", (long long)result->rows_checked, (long long)result->rows);
    if (arguments->options.v == 2) fputs(" (by the CPU's fp64 reference, as -v=1)", stdout);
}

// The rest of the line; `result` is the one to exit with.
static fmha_fwd_outcome run(fmha_fwd_problem *problem, const fmha_fwd_arguments *arguments, fmha_fwd_result *result) {
    fmha_fwd_print_problem(problem, stdout);
    fflush(stdout);
    if (fmha_fwd_launch(problem, result) != FMHA_FWD_OK) {
        puts(result->outcome == FMHA_FWD_NO_INSTANCE ? ", not supported yet" : "");
        return result->outcome;
    }
    if (arguments->kname) printf(", %s", arguments->kname == 1 ? result->short_name : result->ck_name);
    if (result->simulated)
        printf(", simulated in %.2f s of this machine", result->time_ms / 1e3);
    else
        printf(", %.3f ms, %.2f TFlops, %.2f GB/s", result->time_ms, result->tflops, result->gbps);
    fflush(stdout);
    fmha_fwd_verify(problem, result);
    print_verdict(arguments, result);
    puts("");
    return result->outcome;
}

static int run_command(int argc, char **argv) {
    fmha_fwd_arguments arguments;
    char message[512];
    if (fmha_fwd_read_arguments(argc, argv, &arguments, message, sizeof message) != 0) {
        fmha_fwd_free_arguments(&arguments);
        return complain(FMHA_FWD_WRONG_ARGUMENT, message);
    }
    if (arguments.help) {
        fmha_fwd_print_help(stdout);
        return 0;
    }
    fmha_fwd_result result;
    fmha_fwd_problem *problem = NULL;
    int code;
    if (arguments.options.threads && tessera_set_num_threads(arguments.options.threads) != TESSERA_SUCCESS) {
        code = complain(FMHA_FWD_WRONG_ARGUMENT, tessera_last_error());
    } else if (arguments.pack && tessera_load_pack(arguments.pack) != TESSERA_SUCCESS) {
        code = complain(FMHA_FWD_WRONG_ARGUMENT, tessera_last_error());
    } else if (fmha_fwd_build(&arguments.options, &problem, &result) != FMHA_FWD_OK) {
        code = complain(result.outcome, result.message);
    } else if (arguments.json && !can_write(arguments.jsonfile)) {
        code = cannot_write(arguments.jsonfile);
    } else {
        if (arguments.explain) explain(problem, (tessera_explain)arguments.explain);
        code = (int)run(problem, &arguments, &result);
        if (code != FMHA_FWD_OK) complain(result.outcome, result.message);
        if (arguments.json && fmha_fwd_write_json(problem, &result, arguments.jsonfile) != 0)
            code = cannot_write(arguments.jsonfile);
    }
    fmha_fwd_destroy(problem);
    fmha_fwd_free_arguments(&arguments);
    return code;
}

int main(int argc, char **argv) { return fmha_fwd_exit_code("tile_example_fmha_fwd", run_command(argc, argv)); }
