// SPDX-License-Identifier: MIT
// TESSERA_VERBOSE. The environment is read once. Each line is a single write to a file in append mode, so that lines
// of several threads and processes do not mix. The file stays open: calls may run until the process has ended.
#define _POSIX_C_SOURCE 200809L // O_CLOEXEC
#include "verbose.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_int level = -1; // not read yet
static int file = STDERR_FILENO;

void tessera_verbose_line(const char *format, ...) {
    char line[2048] = "tessera: ";
    const size_t prefix = strlen(line), room = sizeof line - prefix - 1; // for the newline
    va_list values;
    va_start(values, format);
    vsnprintf(line + prefix, room, format, values);
    va_end(values);
    const size_t length = strlen(line);
    line[length] = '\n';
    if (write(file, line, length + 1) < 0) return; // there is no place left to report this
}

static void open_file(const char *path) {
    const int opened = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (opened < 0)
        tessera_verbose_line("TESSERA_VERBOSE_FILE=%s cannot be opened: %s", path, strerror(errno));
    else
        file = opened;
}

static void read_environment(void) {
    const char *const text = getenv("TESSERA_VERBOSE"), *const path = getenv("TESSERA_VERBOSE_FILE");
    int asked = 0;
    if (text && strlen(text) == 1 && *text >= '0' && *text <= '2')
        asked = *text - '0';
    else if (text && *text)
        tessera_verbose_line("TESSERA_VERBOSE=%s: 0, 1 or 2", text);
    if (asked && path && *path) open_file(path);
    atomic_store(&level, asked);
}

int tessera_verbose(void) {
    const int known = atomic_load(&level);
    if (known >= 0) return known;
    pthread_once(&once, read_environment);
    return atomic_load(&level);
}
