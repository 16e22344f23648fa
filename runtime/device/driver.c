// SPDX-License-Identifier: MIT
// Kinds of drivers. All devices of a kind share one driver.
#define _POSIX_C_SOURCE 200809L // strdup
#include "device/driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/driver_cuda.h"
#include "device/driver_hip.h"
#include "guard.h"

const struct tessera_driver_kind *const tessera_driver_kinds[] = {&tessera_driver_hip, &tessera_driver_cuda,
                                                                  &tessera_driver_sim, NULL};
enum { KINDS = sizeof tessera_driver_kinds / sizeof *tessera_driver_kinds - 1 };

// A copy of a host's table, since the original may not last.
struct table {
    tessera_driver_entry *entries;
    size_t count;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // guards `opened`
static struct {
    struct tessera_driver *driver; // NULL: not open
    struct table table;
} opened[KINDS];

static int number_of(const struct tessera_driver_kind *kind) {
    int i = 0;
    while (tessera_driver_kinds[i] != kind) i++;
    return i;
}

static tessera_status make_of(const struct tessera_driver_kind *kind, const struct tessera_driver_source *source,
                              const char *name, struct tessera_driver **out) {
    struct tessera_driver *const driver = calloc(1, kind->bytes);
    if (!driver) return tessera_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for a driver of %zu bytes", kind->bytes);
    driver->calls = kind->calls;
    memcpy(driver->origin, source->origin, sizeof driver->origin);
    const tessera_status status = kind->start ? kind->start(name, source, driver) : TESSERA_SUCCESS;
    if (status == TESSERA_SUCCESS)
        *out = driver;
    else
        free(driver);
    return status;
}

static tessera_status make(const struct tessera_driver_kind *kind, const struct table *table, const char *name,
                           struct tessera_driver **out) {
    struct tessera_driver_source source = {.entries = table->entries, .count = table->count};
    if (table->count)
        snprintf(source.origin, sizeof source.origin, "the table of tessera_set_driver()");
    else
        TRY(kind->find(name, &source));
    return make_of(kind, &source, name, out);
}

static tessera_status open_locked(const struct tessera_driver_kind *kind, const char *name,
                                  struct tessera_driver **out) {
    const int i = number_of(kind);
    if (!opened[i].driver) {
        TRY(make(kind, &opened[i].table, name, &opened[i].driver));
        atomic_init(&opened[i].driver->users, 1); // this list itself
    }
    *out = opened[i].driver;
    atomic_fetch_add(&(*out)->users, 1);
    return TESSERA_SUCCESS;
}

tessera_status tessera_driver_open(const struct tessera_driver_kind *kind, const char *name,
                                   struct tessera_driver **out) {
    pthread_mutex_lock(&mutex);
    const tessera_status status = open_locked(kind, name, out);
    pthread_mutex_unlock(&mutex);
    return status;
}

void tessera_driver_close(struct tessera_driver *driver) {
    if (driver && atomic_fetch_sub(&driver->users, 1) == 1) free(driver);
}

// ---- a host's table

static void free_table(struct table *table) {
    for (size_t i = 0; i < table->count; i++) free((char *)(size_t)table->entries[i].name);
    free(table->entries);
    *table = (struct table){NULL, 0};
}

static tessera_status copy_table(const tessera_driver_entry *entries, size_t count, struct table *out) {
    *out = (struct table){calloc(count, sizeof *entries), 0};
    if (count && !out->entries) return tessera_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for %zu entries", count);
    for (; out->count < count; out->count++) {
        tessera_driver_entry *const entry = &out->entries[out->count];
        *entry = (tessera_driver_entry){strdup(entries[out->count].name), entries[out->count].function};
        if (!entry->name) {
            free_table(out);
            return tessera_fail(TESSERA_ERROR_OUT_OF_MEMORY, "no memory for %zu entries", count);
        }
    }
    return TESSERA_SUCCESS;
}

// Returns the number of the kind that a host names, or -1 with the words of all kinds.
static int find_kind(const char *word, struct tessera_text *words) {
    for (int i = 0; i < KINDS; i++) {
        if (tessera_driver_kinds[i]->is_simulated) continue;
        if (word && strcmp(word, tessera_driver_kinds[i]->word) == 0) return i;
        tessera_text_add(words, "%s\"%s\"", words->used ? ", " : "", tessera_driver_kinds[i]->word);
    }
    return -1;
}

tessera_status tessera_set_driver(const char *kind, const tessera_driver_entry *entries, size_t count) {
    char list[64];
    struct tessera_text words = {list, sizeof list, 0};
    const int number = find_kind(kind, &words);
    GUARD(kind, "kind is NULL: %s", list);
    GUARD(number >= 0, "kind is \"%s\": %s", kind, list);
    GUARD(entries || !count, "entries is NULL: %zu of them", count);
    for (size_t i = 0; i < count; i++) {
        GUARD(entries[i].name, "entries[%zu].name is NULL", i);
        GUARD(entries[i].function, "entries[%zu].function, which is %s, is NULL", i, entries[i].name);
    }
    struct table table;
    TRY(copy_table(entries, count, &table));
    pthread_mutex_lock(&mutex);
    free_table(&opened[number].table);
    opened[number].table = table;
    tessera_driver_close(opened[number].driver);
    opened[number].driver = NULL;
    pthread_mutex_unlock(&mutex);
    return TESSERA_SUCCESS;
}
