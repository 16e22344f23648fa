// SPDX-License-Identifier: MIT
// Graphs: nodes of work, and the nodes that each waits for.
#include <stdlib.h>
#include <string.h>

#include "state.h"

hipError_t tessera_hip_graph_open(struct hip_device *device, struct hip_graph **out) {
    struct hip_graph *graph = calloc(1, sizeof *graph);
    if (!graph || !tessera_hip_handle_add(graph, HIP_GRAPH)) {
        free(graph);
        return hipErrorOutOfMemory;
    }
    graph->device = device;
    *out = graph;
    return hipSuccess;
}

void tessera_hip_graph_close(struct hip_graph *graph) {
    if (!graph) return;
    for (size_t i = 0; i < graph->count; i++) {
        tessera_hip_handle_remove(graph->nodes[i]);
        tessera_hip_release(&graph->nodes[i]->work);
        free(graph->nodes[i]->after);
        free(graph->nodes[i]);
    }
    tessera_hip_handle_remove(graph);
    free(graph->nodes);
    free(graph);
}

static bool make_room(struct hip_graph *graph) {
    if (graph->count < graph->capacity) return true;
    const size_t capacity = graph->capacity ? 2 * graph->capacity : 16;
    struct hip_graph_node **nodes = realloc(graph->nodes, capacity * sizeof *nodes);
    if (!nodes) return false;
    graph->nodes = nodes;
    graph->capacity = capacity;
    return true;
}

hipError_t tessera_hip_graph_add(struct hip_graph *graph, struct hip_work *work, const size_t *after,
                                 size_t after_count, size_t *index) {
    struct hip_graph_node *node = calloc(1, sizeof *node);
    size_t *before = malloc((after_count + 1) * sizeof *before);
    if (!node || !before || !make_room(graph) || !tessera_hip_handle_add(node, HIP_NODE)) {
        free(node);
        free(before);
        tessera_hip_release(work);
        return hipErrorOutOfMemory;
    }
    if (after_count) memcpy(before, after, after_count * sizeof *before);
    *node = (struct hip_graph_node){.work = *work, .graph = graph, .after = before, .after_count = after_count};
    *index = graph->count;
    graph->nodes[graph->count++] = node;
    return hipSuccess;
}

static bool copy_work(struct hip_work *copy, const struct hip_work *work) {
    *copy = *work;
    if (work->kind != HIP_KERNEL) return true;
    copy->kernel.kernarg = malloc(work->kernel.kernarg_bytes + 1);
    if (!copy->kernel.kernarg) return false;
    if (work->kernel.kernarg_bytes) memcpy(copy->kernel.kernarg, work->kernel.kernarg, work->kernel.kernarg_bytes);
    return true;
}

hipError_t tessera_hip_graph_copy(const struct hip_graph *graph, struct hip_graph **out) {
    struct hip_graph *copy;
    hipError_t error = tessera_hip_graph_open(graph->device, &copy);
    if (error != hipSuccess) return error;
    for (size_t i = 0; error == hipSuccess && i < graph->count; i++) {
        const struct hip_graph_node *node = graph->nodes[i];
        struct hip_work work;
        size_t index;
        error = copy_work(&work, &node->work)
                    ? tessera_hip_graph_add(copy, &work, node->after, node->after_count, &index)
                    : hipErrorOutOfMemory;
    }
    if (error == hipSuccess)
        *out = copy;
    else
        tessera_hip_graph_close(copy);
    return error;
}
