// SPDX-License-Identifier: MIT
// Observers follow launches while they run: checks, traces, counts and reports. A GPU has a list of them
// (tessera_sim.observers); the code that runs instructions calls their hooks and knows none of them by name.
#pragma once

#include "code.h"
#include "tessera/simulator.h"

struct sim_group;
struct sim_launch;

typedef void (*sim_group_hook)(struct sim_group *group);
typedef void (*sim_wave_hook)(struct sim_wave *wave);
typedef sim_execute sim_instruction_hook;
typedef bool (*sim_issue_hook)(struct sim_wave *wave, const struct sim_code *code);
typedef uint8_t *(*sim_access_hook)(struct sim_wave *wave, int lane, uint8_t *host, uint8_t *undefined, size_t bytes);

// The hooks of an observer; NULL where it has none. Hooks of one event are called in the order of the list.
struct sim_observer {
    // An instruction has been decoded. This happens once for all launches, whether they are observed or not.
    void (*decoded)(struct sim_code *code);

    // Whether the observer wants to see a launch; NULL: every launch. The hooks below are called for those launches
    // only.
    bool (*wanted)(const struct sim_launch *launch);
    tessera_status (*begin)(struct sim_launch *launch);
    tessera_status (*end)(struct sim_launch *launch, const tessera_sim_launch_stats *stats); // after a fault too

    // Allocates the observer's state for a host thread, whose workgroups use it one after another; false when out of
    // memory. Observers are closed in the reverse order.
    bool (*open)(struct sim_group *group);
    sim_group_hook close;

    sim_group_hook start;     // a workgroup starts, before its waves
    sim_wave_hook start_wave; // a wave starts; its registers are set
    sim_group_hook barrier;   // all waves of the workgroup stand at a barrier or have ended
    sim_group_hook finish;    // all waves of the workgroup have ended, or one has a fault

    // The hooks of an instruction, in this order:
    sim_instruction_hook next;     // the instruction is next in the program
    sim_issue_hook issue;          // it is issued; false: it does not execute now
    sim_execute execute;           // executes it in place of its own function; only one observer may have this hook
    sim_instruction_hook executed; // it has been executed
    sim_wave_hook passed;          // wave->pc is behind it
    // An instruction executes when it is issued, or later by tessera_sim_execute(), with the registers restored that it
    // had at its issue. In both cases wave->pc and wave->code are those of the instruction.

    // The instruction touches bytes of memory or LDS, which are within bounds; `undefined` are their undefined bits
    // (NULL: none). Returns where the instruction finds the bytes. Only one observer may have this hook.
    sim_access_hook access;
};

enum { SIM_MOST_OBSERVERS = 15 };

// The observers of one launch, and lists of those hooks that are called often. Each list ends with NULL.
struct sim_watch {
    const struct sim_observer *observers[SIM_MOST_OBSERVERS + 1];
    bool instructions; // whether there is any hook of instructions
    sim_execute execute;
    sim_instruction_hook next[SIM_MOST_OBSERVERS + 1], executed[SIM_MOST_OBSERVERS + 1];
    sim_issue_hook issue[SIM_MOST_OBSERVERS + 1];
    sim_wave_hook passed[SIM_MOST_OBSERVERS + 1];
    sim_access_hook access;
};

// Calls this hook of each observer of a launch that has it.
#define SIM_TELL(launch, hook, argument)                                                                               \
    for (const struct sim_observer *const *told = (launch)->watch.observers; *told; told++)                            \
        if ((*told)->hook) (*told)->hook(argument)

// Finds the GPU's observers that want to see the launch.
void tessera_sim_find_watch(struct sim_launch *launch);

// Executes an instruction now, and calls the hooks for it.
void tessera_sim_execute(struct sim_wave *wave, const struct sim_code *code);
