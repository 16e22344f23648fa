// SPDX-License-Identifier: MIT
// Command lines: CK's arguments -name=value. A program has one table of them, which values, defaults and help come
// from.
#ifndef EXAMPLE_ARGUMENTS_H
#define EXAMPLE_ARGUMENTS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

// What every program takes. Its struct of arguments begins with this.
typedef struct example_options {
    int32_t v; // verification: 0 none
    int32_t help, json, explain;
    int32_t kname; // 1: short name, 2: CK's name
    int32_t warmup, repeat, warmup_given, repeat_given;
    int32_t threads;     // 0: tessera_num_threads()
    int32_t profile;     // print what modelled cycles go to
    int32_t sample;      // a simulated device executes only workgroups that its clock looks at
    uint32_t seed;       // 0: another one every time
    double time_limit_s; // timing stops after this; 0: warmup and repeat are met
    const char *jsonfile, *device;
    const char *instance; // short name; NULL: that of least estimated cost
    const char *pack;     // NULL: none
    const char *annotate; // where the disassembly with modelled cycles goes, "1": to stdout; NULL: nowhere
    const char *trace;    // where what waves do in each modelled cycle goes; NULL: nowhere
} example_options;

typedef enum example_kind {
    EXAMPLE_INTEGER,
    EXAMPLE_FLAG,
    EXAMPLE_UNSIGNED32,
    EXAMPLE_UNSIGNED64,
    EXAMPLE_REAL,
    EXAMPLE_TEXT,
    EXAMPLE_INTEGER_OR_LIST, // one value for all, or one for each
    EXAMPLE_LIST,
    EXAMPLE_FIXED // an integer that must keep its default
} example_kind;

typedef struct example_list {
    int32_t *values, count; // NULL, 0: none
} example_list;

typedef struct example_argument {
    const char *name;
    example_kind kind;
    size_t offset;     // of the value in the program's struct; not of LIST
    size_t list;       // of lists: offset of the example_list
    const char *value; // the default, as a user would write it
    const char *help;
} example_argument;

typedef struct example_arguments {
    const char *does; // "Runs one ..., times it and checks it."
    const example_argument *table;
    int count;
    size_t bytes;            // of the program's struct
    const char *list_length; // how many values lists have: the name of an argument
    // What the table does not say is checked and settled here. Returns 0, or -1 with the message. NULL: nothing is.
    int (*settle)(void *values, char *message, size_t size);
} example_arguments;

// Rows of the table that all programs have.
#define EXAMPLE_COMMON(member) offsetof(example_options, member), 0
#define EXAMPLE_KNAME(value)                                                                                           \
    {                                                                                                                  \
        "kname", EXAMPLE_INTEGER, EXAMPLE_COMMON(kname), value,                                                        \
            "print the kernel's 1: short name, 2: name as CK would make it"                                            \
    }
#define EXAMPLE_TIMING_AND_JSON(file)                                                                                  \
    {"warmup", EXAMPLE_INTEGER, EXAMPLE_COMMON(warmup), "5", "runs before timing"},                                    \
        {"repeat", EXAMPLE_INTEGER, EXAMPLE_COMMON(repeat), "20",                                                      \
         "timed runs, of which the mean is printed;\nwithout -warmup and -repeat timing stops after 3 s"},             \
        {"json", EXAMPLE_FLAG, EXAMPLE_COMMON(json), "0", "1: write the result as JSON"}, {                            \
        "jsonfile", EXAMPLE_TEXT, EXAMPLE_COMMON(jsonfile), file, "where to"                                           \
    }
#define EXAMPLE_DEVICE_AND_KERNEL                                                                                      \
    {"device", EXAMPLE_TEXT, EXAMPLE_COMMON(device), "auto",                                                           \
     "auto: the first GPU that there are kernels for, else the CPU; cpu; cpu:TARGET such as cpu:x86-64-v3 for its\n"   \
     "kernels alone; hip:N, cuda:N: a GPU of AMD, NVIDIA; sim:ARCH such as sim:gfx942: a simulated one, where a\n"     \
     "problem is run once unless -warmup or -repeat say otherwise"},                                                   \
        {"instance", EXAMPLE_TEXT, EXAMPLE_COMMON(instance), "",                                                       \
         "the kernel to take, by its short name; without it that of least estimated cost"},                            \
        {"pack", EXAMPLE_TEXT, EXAMPLE_COMMON(pack), "", "a file of code objects for tessera_load_pack()"},            \
        {"threads", EXAMPLE_INTEGER, EXAMPLE_COMMON(threads), "0",                                                     \
         "CPU threads; 0: affinity, quota and TESSERA_NUM_THREADS decide"},                                            \
        {"profile", EXAMPLE_FLAG, EXAMPLE_COMMON(profile), "0",                                                        \
         "1: of simulated devices, also print what the modelled cycles go to"},                                        \
        {"annotate", EXAMPLE_TEXT, EXAMPLE_COMMON(annotate), "",                                                       \
         "1: of simulated devices, also print the disassembly with the modelled cycles of each instruction, the\n"     \
         "lines of C, and of each loop what stands between its MFMAs; FILE: write that to a file"},                    \
        {"trace", EXAMPLE_TEXT, EXAMPLE_COMMON(trace), "",                                                             \
         "of simulated devices, a file for what waves do in each modelled cycle: JSON that Perfetto opens"},           \
        {"sample", EXAMPLE_FLAG, EXAMPLE_COMMON(sample), "0",                                                          \
         "1: a simulated device executes only the workgroups that its clock looks at; needs -v=0"},                    \
    {                                                                                                                  \
        "explain", EXAMPLE_INTEGER, EXAMPLE_COMMON(explain), "0",                                                      \
            "1: first list the kernels that can serve with their costs, the chosen one behind a *, and count for "     \
            "each reason\nthose that cannot; 2: and name each of these with all of its reasons"                        \
    }

// Reads argv[1 .. argc) into `values`. Returns 0, or -1 with one line in `message` that names argument, value and what
// is accepted. Texts are borrowed from argv; call example_free_arguments either way.
int example_read_arguments(const example_arguments *arguments, int argc, char *const *argv, void *values, char *message,
                           size_t size);
void example_free_arguments(const example_arguments *arguments, void *values);

// Prints every argument with its default and meaning.
void example_print_help(const example_arguments *arguments, FILE *file);

// Writes the message; returns -1.
__attribute__((format(printf, 3, 4))) int example_refuse(char *message, size_t size, const char *format, ...);

#ifdef __cplusplus
}
#endif
#endif
