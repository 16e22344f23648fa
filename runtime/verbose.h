// SPDX-License-Identifier: MIT
// TESSERA_VERBOSE: log lines for people who run a program that they cannot change. See tessera/status.h.
#ifndef TESSERA_RUNTIME_VERBOSE_H
#define TESSERA_RUNTIME_VERBOSE_H

#include "internal.h"

// The level: 0: nothing is printed; 1: calls and errors; 2: also why instances were chosen. The first call reads the
// environment.
int tessera_verbose(void);

// Prints a line, to which the newline is added, to the file of TESSERA_VERBOSE_FILE or stderr, whatever the level.
void tessera_verbose_line(const char *format, ...) TESSERA_PRINTF(1, 2);

#endif
