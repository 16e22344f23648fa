// SPDX-License-Identifier: MIT
#include "gpu.h"

const char *const tessera_sim_arch_names[SIM_ARCHS] = {
    [SIM_GFX90A] = "gfx90a", [SIM_GFX942] = "gfx942", [SIM_GFX950] = "gfx950"};

const char *tessera_sim_arch(const tessera_sim *sim) { return tessera_sim_arch_names[sim->arch]; }

uint32_t tessera_sim_lds_limit(enum sim_arch arch) { return arch == SIM_GFX950 ? 160 * 1024 : 64 * 1024; }
