// SPDX-License-Identifier: MIT
// The main of every program; EXAMPLE_PROGRAM is what it runs.
#include "program.h"

extern const example_program EXAMPLE_PROGRAM;

int main(int argc, char **argv) { return example_main(&EXAMPLE_PROGRAM, argc, argv); }
