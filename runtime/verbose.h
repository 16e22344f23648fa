// SPDX-License-Identifier: MIT
// TESSERA_VERBOSE: lines for who runs a program that he cannot change. See tessera/status.h.
#ifndef TESSERA_RUNTIME_VERBOSE_H
#define TESSERA_RUNTIME_VERBOSE_H

#include "internal.h"

// 0: nothing is printed; 1: calls and errors; 2: also why instances were chosen. The first call reads the environment.
int tessera_verbose(void);

// Prints a line without its newline where TESSERA_VERBOSE_FILE says, whatever the level.
void tessera_verbose_line(const char *format, ...) TESSERA_PRINTF(1, 2);

#endif
