// SPDX-License-Identifier: MIT
// Disassembles words of machine code, as `tessera_sim_disassemble gfx942 < words`.
//
// Input: hexadecimal words, one instruction on each line; words beyond the instruction's last are ignored.
// Output: one line for each instruction: `size text`, or `- error`.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/decode.h"

static void disassemble(enum sim_arch arch, char *line) {
    uint32_t words[4];
    size_t count = 0;
    for (char *end; count < 4; count++, line = end) {
        words[count] = (uint32_t)strtoul(line, &end, 16);
        if (end == line) break;
    }
    struct sim_inst inst;
    const enum sim_decode_error error = tessera_sim_decode(arch, words, count, &inst);
    if (error) {
        printf("- %s\n", tessera_sim_decode_error_name(error));
        return;
    }
    char text[256];
    tessera_sim_print(&inst, text, sizeof text);
    printf("%u %s\n", inst.size, text);
}

int main(int argc, char **argv) {
    static const char *const names[SIM_ARCHS] = {"gfx90a", "gfx942", "gfx950"};
    for (int arch = 0; argc == 2 && arch < SIM_ARCHS; arch++) {
        if (strcmp(argv[1], names[arch]) != 0) continue;
        char line[256];
        while (fgets(line, sizeof line, stdin)) disassemble((enum sim_arch)arch, line);
        return 0;
    }
    fprintf(stderr, "usage: tessera_sim_disassemble gfx90a|gfx942|gfx950 < words\n");
    return 2;
}
