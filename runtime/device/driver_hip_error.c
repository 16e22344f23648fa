// SPDX-License-Identifier: MIT
// Error lines: the HIP runtime's text of an error, and what the simulator reports beside it.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "device/driver_hip.h"

// The simulator's last line, such as a fault's kernel and place. It becomes a part of the next error line only.
static struct {
    pthread_mutex_t mutex;
    char line[768];
    void (*listen)(void (*listener)(const char *line));
} heard = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void hear(const char *line) {
    pthread_mutex_lock(&heard.mutex);
    snprintf(heard.line, sizeof heard.line, "%s", line);
    pthread_mutex_unlock(&heard.mutex);
}

void tessera_hip_hear(const struct tessera_hip *hip) {
    if (!hip->tessera_hip_listen) return;
    heard.listen = hip->tessera_hip_listen;
    heard.listen(hear);
}

// The simulator may stay loaded when this library is unloaded.
__attribute__((destructor)) static void listen_no_more(void) {
    if (heard.listen) heard.listen(NULL);
}

tessera_status tessera_hip_fail(const struct tessera_hip *hip, const char *name, const char *call, int error) {
    const char *const word = hip->hipGetErrorName(error), *const text = hip->hipGetErrorString(error);
    char more[sizeof heard.line] = "";
    hip->hipGetLastError();
    if (hip->tessera_hip_listen) {
        pthread_mutex_lock(&heard.mutex);
        memcpy(more, heard.line, sizeof more);
        heard.line[0] = '\0';
        pthread_mutex_unlock(&heard.mutex);
    }
    return tessera_fail(TESSERA_ERROR_DEVICE, "%s: %s failed with %s (%d): %s%s%s", name, call, word ? word : "no name",
                        error, text ? text : "no text", *more ? "; " : "", more);
}
