// SPDX-License-Identifier: MIT
// The end of a cluster, which waves of a workgroup go through together.
#ifndef TESSERA_DEVICE_COMMON_CDNA_CLUSTER_END_H
#define TESSERA_DEVICE_COMMON_CDNA_CLUSTER_END_H

#include "tessera/isa/cdna.h"

// A bare barrier.
INLINE void end_cluster(void) {
    one_after_the_other();
    meet();
    one_after_the_other();
}

#endif
