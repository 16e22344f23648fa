// SPDX-License-Identifier: MIT
// How a program of the benchmark is asked for times: it says in a line of JSON what it runs, and then answers each line
// with a number N by the milliseconds of a call: N are made after one, in up to 32 parts, and the median of the parts'
// means counts. Before a single call, which is long, there is none: the one that the program made to begin with has
// touched the memory.
#ifndef BENCHMARK_ANSWER_H
#define BENCHMARK_ANSWER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double now(void) { // seconds
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double milliseconds(void (*call)(void *), void *context, long count) {
    enum { PARTS = 32 };
    const long parts = count < PARTS ? count : PARTS, each = count / parts;
    double took[PARTS];
    if (count > 1) call(context);
    for (long part = 0; part < parts; part++) {
        const double begin = now();
        for (long i = 0; i < each; i++) call(context);
        took[part] = (now() - begin) / (double)each * 1e3;
    }
    qsort(took, (size_t)parts, sizeof *took, compare_doubles);
    return (took[parts / 2] + took[(parts - 1) / 2]) / 2;
}

// `time` makes so many calls and returns milliseconds(). Ends where the orders end.
static inline void answer(const char *what, double (*time)(void *, long), void *context) {
    char line[64];
    printf("{\"what\": \"%s\"}\n", what);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        const long count = strtol(line, NULL, 10);
        printf("{\"ms\": %.9g}\n", count > 0 ? time(context, count) : 0.0);
        fflush(stdout);
    }
}

// The value of `-name=value` in the command line, or else `otherwise`.
static inline const char *word_of(int argc, char **argv, const char *name, const char *otherwise) {
    const size_t length = strlen(name);
    for (int i = 1; i < argc; i++)
        if (argv[i][0] == '-' && strncmp(argv[i] + 1, name, length) == 0 && argv[i][1 + length] == '=')
            return argv[i] + length + 2;
    return otherwise;
}

static inline long long number_of(int argc, char **argv, const char *name, long long otherwise) {
    const char *word = word_of(argc, argv, name, NULL);
    return word ? strtoll(word, NULL, 10) : otherwise;
}

// Memory of its own for each tensor, that begins at a page and is written once.
static inline void *memory_of(size_t bytes, int byte) {
    const size_t page = 4096;
    void *memory = aligned_alloc(page, (bytes + page) / page * page);
    if (!memory) {
        fprintf(stderr, "no memory\n");
        exit(4);
    }
    return memset(memory, byte, (bytes + page) / page * page);
}

#endif
