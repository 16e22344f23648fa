// SPDX-License-Identifier: MIT
// Says in JSON what a device is, such as "cuda:0": for the records of scripts/test_gpu.sh. Ends with 4 where it cannot
// be opened.
#include <stdio.h>
#include <string.h>

#include "tessera/device.h"

// Keeps what the library says of the driver that it opened.
static void keep_driver(void *user, tessera_log_level level, const char *line) {
    static const char start[] = "driver: ";
    (void)level;
    if (strncmp(line, start, sizeof start - 1) == 0) snprintf(user, 256, "%s", line + sizeof start - 1);
}

static const char *target_of(const tessera_device_facts *facts) {
    for (int target = 0; target < TESSERA_TARGET_COUNT; target++)
        if (facts->targets >> target & 1) return tessera_target_string((tessera_target)target);
    return "";
}

int main(int argc, char **argv) {
    char driver[256] = "";
    tessera_device *device;
    if (argc != 2) {
        fprintf(stderr, "usage: gpu_device DEVICE\n");
        return 1;
    }
    tessera_set_log(keep_driver, driver, TESSERA_LOG_INFO);
    if (tessera_device_open(argv[1], &device) != TESSERA_SUCCESS) {
        fprintf(stderr, "%s\n", tessera_last_error());
        return 4;
    }
    const tessera_device_facts *facts = tessera_device_get_facts(device);
    printf("{\"device\": \"%s\", \"target\": \"%s\", \"compute_units\": %d, \"driver\": \"%s\"}\n",
           tessera_device_name(device), target_of(facts), facts->compute_units, driver);
    tessera_device_close(device);
    return 0;
}
