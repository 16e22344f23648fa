// SPDX-License-Identifier: MIT
// Facts about the machine that this process runs on.
#ifndef TESSERA_RUNTIME_CPU_H
#define TESSERA_RUNTIME_CPU_H

#include "tessera/device.h"

uint32_t tessera_cpu_targets(void);                             // bit t: can run target t
void tessera_cpu_caches(int64_t *l1, int64_t *l2, int64_t *l3); // bytes
int tessera_cpu_count(void);                                    // the lesser of affinity and cgroup quota
int tessera_cgroup_cpus(const char *membership,
                        const char *hierarchy); // /proc/self/cgroup, /sys/fs/cgroup; 0: no limit

#endif
