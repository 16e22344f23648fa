// SPDX-License-Identifier: MIT
#pragma once

#include "decode/decode.h"

// Notes that an instruction is about to run for the first time at its place.
void tessera_sim_note_ran(const struct sim_inst *inst);
