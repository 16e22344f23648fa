// SPDX-License-Identifier: MIT
// What the programs do with a problem: main and the smoke matrices.
#ifndef EXAMPLE_PROGRAM_H
#define EXAMPLE_PROGRAM_H

#include "problem.h"

// Runs a command line, prints CK's line and returns the exit code.
int example_main(const example_program *program, int argc, char **argv);

// The exit code of a program that is done: `outcome`, unless that is 0 and what it printed did not arrive.
int example_exit_code(const char *program, int outcome);

// Runs problems in one process. Each is a command line of a program; one that fails is printed so that it can be
// repeated. `cases` calls example_case for each of all.
typedef struct example_smoke example_smoke;
int example_smoke_main(const char *name, void cases(example_smoke *smoke), int argc, char **argv);
__attribute__((format(printf, 3, 4))) void example_case(example_smoke *smoke, const example_program *program,
                                                        const char *format, ...);

// CK's matrix of appendkv, for the programs that append.
void example_smoke_of_appendkv(example_smoke *smoke, const example_program *program);

// A loop over texts.
#define EXAMPLE_EACH(name, ...) for (const char *const *name = (const char *const[]){__VA_ARGS__, NULL}; *name; name++)

#endif
