// SPDX-License-Identifier: MIT
// The smoke program of one operation on rows: CK's shapes and some more, times its variants, which stand in its own
// file.
#include <string.h>

#include "program.h"

extern const example_program EXAMPLE_PROGRAM;
extern const char *const EXAMPLE_VARIANTS[];

// CK's, of its smoke scripts and tests, and a row that is alone, narrow, or wider than every kernel keeps in registers.
static const struct {
    int m, n, stride; // 0: the columns
} shapes[] = {
    {99, 13, 0},    {17, 16, 0},     {1, 100, 0},     {4, 128, 0},      {80, 127, 0},    {22, 255, 256},
    {7, 599, 0},    {19, 512, 0},    {33, 313, 1000}, {11, 510, 0},     {171, 676, 818}, {91, 636, 0},
    {12, 768, 800}, {100, 766, 812}, {31, 1024, 0},   {64, 1000, 1004}, {8, 1501, 0},    {3, 1826, 0},
    {5, 2040, 0},   {7, 2734, 0},    {1, 3182, 0},    {9, 4096, 0},     {3, 8192, 0},    {3, 9120, 0},
    {1, 10547, 0},  {3, 17134, 0},   {0, 64, 0},      {5, 1, 0},        {70, 3, 5},      {1, 65537, 0},
};

// Programs differ in the names of their arguments.
static void shape_arguments(int m, int n, int stride, char *text, size_t size) {
    const example_arguments *arguments = EXAMPLE_PROGRAM.arguments;
    size_t used =
        (size_t)snprintf(text, size, "-%s=%d -%s=%d", arguments->table[0].name, m, arguments->table[1].name, n);
    for (int i = 0; i < arguments->count && stride; i++)
        if (strstr(arguments->table[i].name, "stride"))
            used += (size_t)snprintf(text + used, size - used, " -%s=%d", arguments->table[i].name, stride);
}

static const char *type_argument(void) {
    const example_arguments *arguments = EXAMPLE_PROGRAM.arguments;
    for (int i = 0; i < arguments->count; i++)
        if (!strcmp(arguments->table[i].name, "prec_i")) return "prec_i";
    return "prec";
}

static void run_all(example_smoke *smoke) {
    for (size_t shape = 0; shape < sizeof shapes / sizeof *shapes; shape++)
        for (const char *const *variant = EXAMPLE_VARIANTS; *variant; variant++)
            EXAMPLE_EACH(prec, "fp16", "bf16", "fp32") {
                char text[160];
                shape_arguments(shapes[shape].m, shapes[shape].n, shapes[shape].stride, text, sizeof text);
                example_case(smoke, &EXAMPLE_PROGRAM, "%s -%s=%s %s", text, type_argument(), *prec, *variant);
            }
}

int main(int argc, char **argv) {
    char name[128];
    snprintf(name, sizeof name, "%s_smoke", EXAMPLE_PROGRAM.name);
    return example_smoke_main(name, run_all, argc, argv);
}
