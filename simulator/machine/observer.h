// SPDX-License-Identifier: MIT
// Those who look on while launches run: checks, traces, counts, reports. A GPU has a list of them
// (tessera_sim.observers); what runs instructions calls their hooks and knows none by name.
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

// Hooks are NULL where an observer does not look. Those of one event are called in the order of the list.
struct sim_observer {
    // An instruction was decoded, once for all launches, whether they are observed or not.
    void (*decoded)(struct sim_code *code);

    // Whether a launch is observed; NULL: each one is. All that follows is for these.
    bool (*wanted)(const struct sim_launch *launch);
    tessera_status (*begin)(struct sim_launch *launch);
    tessera_status (*end)(struct sim_launch *launch, const tessera_sim_launch_stats *stats); // faulted ones too

    // What is kept for the workgroups of a host thread, one after another; false when out of memory. Closed from the
    // last to the first.
    bool (*open)(struct sim_group *group);
    sim_group_hook close;

    sim_group_hook start;     // a workgroup; its waves have yet to start
    sim_wave_hook start_wave; // its registers are set
    sim_group_hook barrier;   // all waves stand at a barrier or have ended
    sim_group_hook finish;    // all waves have ended, or one is at fault

    // An instruction passes in this order:
    sim_instruction_hook next;     // it is next in the program
    sim_issue_hook issue;          // it leaves the program; false: it does not execute now
    sim_execute execute;           // takes the place of its own function; of all observers only one may
    sim_instruction_hook executed; // it has done its work
    sim_wave_hook passed;          // wave->pc is behind it
    // It executes at its issue, or later (tessera_sim_execute()) with the registers back that it read then. wave->pc
    // and wave->code are its own in both cases.

    // It touches bytes of memory or LDS, within bounds, with their undefined bits (NULL: there are none); returns where
    // it finds them. Of all observers only one may.
    sim_access_hook access;
};

enum { SIM_MOST_OBSERVERS = 15 };

// The observers of one launch, and their hooks that are called often, each list up to NULL.
struct sim_watch {
    const struct sim_observer *observers[SIM_MOST_OBSERVERS + 1];
    bool instructions; // whether some hook is of instructions
    sim_execute execute;
    sim_instruction_hook next[SIM_MOST_OBSERVERS + 1], executed[SIM_MOST_OBSERVERS + 1];
    sim_issue_hook issue[SIM_MOST_OBSERVERS + 1];
    sim_wave_hook passed[SIM_MOST_OBSERVERS + 1];
    sim_access_hook access;
};

// Tells each observer of a launch, where it has this hook.
#define SIM_TELL(launch, hook, argument)                                                                               \
    for (const struct sim_observer *const *told = (launch)->watch.observers; *told; told++)                            \
        if ((*told)->hook) (*told)->hook(argument)

// Finds those of the GPU's observers that want to see the launch.
void tessera_sim_find_watch(struct sim_launch *launch);

// Executes an instruction now, in front of the launch's observers.
void tessera_sim_execute(struct sim_wave *wave, const struct sim_code *code);
