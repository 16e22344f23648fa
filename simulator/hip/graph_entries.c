// SPDX-License-Identifier: MIT
// Entry points of graphs. An executable graph is a copy of a graph, and runs node after node.
#include <stdlib.h>
#include <string.h>

#include "state.h"

struct hip_graph_exec {
    struct hip_graph *graph; // a copy of its own
};

// ---- graphs and their nodes

HIP_API hipError_t hipGraphCreate(hipGraph_t *out, unsigned flags) {
    HIP_ENTER();
    HIP_REQUIRE(out && flags == 0, hipErrorInvalidValue);
    return tessera_hip_result(tessera_hip_graph_open(tessera_hip_current(), out));
}

HIP_API hipError_t hipGraphDestroy(hipGraph_t graph) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_handle_is(graph, HIP_GRAPH), hipErrorInvalidValue);
    tessera_hip_graph_close(graph);
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipGraphClone(hipGraph_t *out, hipGraph_t graph) {
    HIP_ENTER();
    HIP_REQUIRE(out && tessera_hip_handle_is(graph, HIP_GRAPH), hipErrorInvalidValue);
    return tessera_hip_result(tessera_hip_graph_copy(graph, out));
}

// Adds a node by hand, which may depend only on nodes that the graph already has.
static hipError_t add_node(hipGraphNode_t *out, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
                           struct hip_work *work) {
    size_t *before = malloc((count + 1) * sizeof *before);
    hipError_t error = before ? hipSuccess : hipErrorOutOfMemory;
    for (size_t i = 0; error == hipSuccess && i < count; i++) {
        error = hipErrorInvalidValue;
        for (size_t k = 0; k < graph->count; k++)
            if (graph->nodes[k] == after[i]) {
                before[i] = k;
                error = hipSuccess;
            }
    }
    size_t index;
    if (error == hipSuccess) {
        error = tessera_hip_graph_add(graph, work, before, count, &index);
        if (error == hipSuccess) *out = graph->nodes[index];
    } else {
        tessera_hip_release(work);
    }
    free(before);
    return error;
}

#define REQUIRE_NODE_ARGUMENTS()                                                                                       \
    HIP_ENTER();                                                                                                       \
    HIP_REQUIRE(out &&tessera_hip_handle_is(graph, HIP_GRAPH) && (after || count == 0), hipErrorInvalidValue)

HIP_API hipError_t hipGraphAddEmptyNode(hipGraphNode_t *out, hipGraph_t graph, const hipGraphNode_t *after,
                                        size_t count) {
    REQUIRE_NODE_ARGUMENTS();
    struct hip_work work = {.kind = HIP_EMPTY};
    return tessera_hip_result(add_node(out, graph, after, count, &work));
}

HIP_API hipError_t hipGraphAddHostNode(hipGraphNode_t *out, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
                                       const hipHostNodeParams *host) {
    REQUIRE_NODE_ARGUMENTS();
    HIP_REQUIRE(host && host->fn, hipErrorInvalidValue);
    struct hip_work work = {.kind = HIP_HOST, .host = {host->fn, host->userData}};
    return tessera_hip_result(add_node(out, graph, after, count, &work));
}

static hipError_t make_kernel_node(struct hip_work *work, const hipKernelNodeParams *kernel) {
    if (!kernel || !kernel->func) return hipErrorInvalidValue;
    struct hip_function *function = (struct hip_function *)kernel->func;
    if (!tessera_hip_handle_is(function, HIP_FUNCTION)) {
        const hipError_t error = tessera_hip_symbol_function(kernel->func, &function);
        if (error != hipSuccess) return error;
    }
    const struct hip_launch launch = {
        .grid = {(uint64_t)kernel->gridDim.x * kernel->blockDim.x, (uint64_t)kernel->gridDim.y * kernel->blockDim.y,
                 (uint64_t)kernel->gridDim.z * kernel->blockDim.z},
        .block = {kernel->blockDim.x, kernel->blockDim.y, kernel->blockDim.z},
        .lds_bytes = kernel->sharedMemBytes,
        .params = kernel->kernelParams,
        .extra = kernel->extra,
    };
    return tessera_hip_make_kernel_work(function, &launch, work);
}

HIP_API hipError_t hipGraphAddKernelNode(hipGraphNode_t *out, hipGraph_t graph, const hipGraphNode_t *after,
                                         size_t count, const hipKernelNodeParams *kernel) {
    REQUIRE_NODE_ARGUMENTS();
    struct hip_work work;
    HIP_TRY(make_kernel_node(&work, kernel));
    return tessera_hip_result(add_node(out, graph, after, count, &work));
}

HIP_API hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t *out, hipGraph_t graph, const hipGraphNode_t *after,
                                           size_t count, void *to, const void *from, size_t bytes, int kind) {
    REQUIRE_NODE_ARGUMENTS();
    struct hip_work work;
    HIP_TRY(tessera_hip_make_copy(&work, to, from, bytes, kind));
    return tessera_hip_result(add_node(out, graph, after, count, &work));
}

HIP_API hipError_t hipGraphAddMemsetNode(hipGraphNode_t *out, hipGraph_t graph, const hipGraphNode_t *after,
                                         size_t count, const void *params) {
    REQUIRE_NODE_ARGUMENTS();
    HIP_REQUIRE(params, hipErrorInvalidValue);
    struct hip_memset_params_7 set;
    if (tessera_hip_major >= 7) {
        memcpy(&set, params, sizeof set);
    } else {
        struct hip_memset_params_6 old;
        memcpy(&old, params, sizeof old);
        set = (struct hip_memset_params_7){old.dst, old.pitch, old.value, old.elementSize, old.width, old.height};
    }
    HIP_REQUIRE(set.elementSize == 1 || set.elementSize == 2 || set.elementSize == 4, hipErrorInvalidValue);
    struct hip_work work;
    HIP_TRY(tessera_hip_make_set(&work, set.dst, set.pitch, set.value, set.elementSize, set.width * set.elementSize,
                                 set.height, 1));
    return tessera_hip_result(add_node(out, graph, after, count, &work));
}

HIP_API hipError_t hipGraphNodeGetType(hipGraphNode_t node, hipGraphNodeType *type) {
    static const hipGraphNodeType types[] = {
        [HIP_EMPTY] = hipGraphNodeTypeEmpty, [HIP_KERNEL] = hipGraphNodeTypeKernel, [HIP_COPY] = hipGraphNodeTypeMemcpy,
        [HIP_SET] = hipGraphNodeTypeMemset,  [HIP_HOST] = hipGraphNodeTypeHost,
    };
    HIP_ENTER();
    HIP_REQUIRE(type && tessera_hip_handle_is(node, HIP_NODE), hipErrorInvalidValue);
    *type = types[node->work.kind];
    return tessera_hip_result(hipSuccess);
}

// Without an array, counts the nodes. With one, fills it with as many as fit, and the rest of it with NULL.
static void list_nodes(hipGraph_t graph, hipGraphNode_t *nodes, size_t *count, bool roots_only) {
    size_t found = 0;
    for (size_t i = 0; i < graph->count; i++) {
        if (roots_only && graph->nodes[i]->after_count) continue;
        if (nodes && found < *count) nodes[found] = graph->nodes[i];
        found++;
    }
    for (size_t i = found; nodes && i < *count; i++) nodes[i] = NULL;
    if (!nodes || found < *count) *count = found;
}

HIP_API hipError_t hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t *nodes, size_t *count) {
    HIP_ENTER();
    HIP_REQUIRE(count && tessera_hip_handle_is(graph, HIP_GRAPH), hipErrorInvalidValue);
    list_nodes(graph, nodes, count, false);
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipGraphGetRootNodes(hipGraph_t graph, hipGraphNode_t *nodes, size_t *count) {
    HIP_ENTER();
    HIP_REQUIRE(count && tessera_hip_handle_is(graph, HIP_GRAPH), hipErrorInvalidValue);
    list_nodes(graph, nodes, count, true);
    return tessera_hip_result(hipSuccess);
}

// ---- instantiating

HIP_API hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t *out, hipGraph_t graph, unsigned long long flags) {
    enum { FREE_ON_LAUNCH = 1, UPLOAD = 2, DEVICE_LAUNCH = 4, USE_PRIORITY = 8 };
    HIP_ENTER();
    HIP_REQUIRE(out && tessera_hip_handle_is(graph, HIP_GRAPH), hipErrorInvalidValue);
    HIP_REQUIRE(flags <= (FREE_ON_LAUNCH | UPLOAD | DEVICE_LAUNCH | USE_PRIORITY), hipErrorInvalidValue);
    HIP_REQUIRE(!(flags & DEVICE_LAUNCH), hipErrorNotSupported);
    struct hip_graph_exec *exec = calloc(1, sizeof *exec);
    if (!exec || !tessera_hip_handle_add(exec, HIP_EXEC)) {
        free(exec);
        return tessera_hip_result(hipErrorOutOfMemory);
    }
    const hipError_t error = tessera_hip_graph_copy(graph, &exec->graph);
    if (error == hipSuccess) {
        *out = exec;
    } else {
        tessera_hip_handle_remove(exec);
        free(exec);
    }
    return tessera_hip_result(error);
}

HIP_API hipError_t hipGraphInstantiate(hipGraphExec_t *out, hipGraph_t graph, hipGraphNode_t *node, char *log,
                                       size_t log_bytes) {
    if (node) *node = NULL;
    if (log && log_bytes) *log = 0;
    return hipGraphInstantiateWithFlags(out, graph, 0);
}

HIP_API hipError_t hipGraphExecDestroy(hipGraphExec_t exec) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_handle_is(exec, HIP_EXEC), hipErrorInvalidValue);
    tessera_hip_handle_remove(exec);
    tessera_hip_graph_close(exec->graph);
    free(exec);
    return tessera_hip_result(hipSuccess);
}

// ---- changing

static void replace_work(struct hip_graph_node *node, const struct hip_work *work) {
    tessera_hip_release(&node->work);
    node->work = *work;
}

HIP_API hipError_t hipGraphKernelNodeSetParams(hipGraphNode_t node, const hipKernelNodeParams *kernel) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_handle_is(node, HIP_NODE) && node->work.kind == HIP_KERNEL, hipErrorInvalidValue);
    struct hip_work work;
    HIP_TRY(make_kernel_node(&work, kernel));
    replace_work(node, &work);
    return tessera_hip_result(hipSuccess);
}

// `node` belongs to the graph that `exec` was made from; its copy has the same index.
HIP_API hipError_t hipGraphExecKernelNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                                   const hipKernelNodeParams *kernel) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_handle_is(exec, HIP_EXEC) && tessera_hip_handle_is(node, HIP_NODE), hipErrorInvalidValue);
    size_t at = 0;
    while (at < node->graph->count && node->graph->nodes[at] != node) at++;
    HIP_REQUIRE(at < exec->graph->count && exec->graph->nodes[at]->work.kind == HIP_KERNEL, hipErrorInvalidValue);
    struct hip_work work;
    HIP_TRY(make_kernel_node(&work, kernel));
    replace_work(exec->graph->nodes[at], &work);
    return tessera_hip_result(hipSuccess);
}

enum update_result { UPDATED = 0, TOPOLOGY_CHANGED = 2, KIND_CHANGED = 3 };

static enum update_result compare_nodes(const struct hip_graph_node *a, const struct hip_graph_node *b) {
    if (a->work.kind != b->work.kind) return KIND_CHANGED;
    const bool same = a->after_count == b->after_count &&
                      (a->after_count == 0 || memcmp(a->after, b->after, a->after_count * sizeof *a->after) == 0);
    return same ? UPDATED : TOPOLOGY_CHANGED;
}

// Replaces the work of `exec` by that of a graph of the same shape.
HIP_API hipError_t hipGraphExecUpdate(hipGraphExec_t exec, hipGraph_t graph, hipGraphNode_t *node, int *result) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_handle_is(exec, HIP_EXEC) && tessera_hip_handle_is(graph, HIP_GRAPH) && node && result,
                hipErrorInvalidValue);
    *node = NULL;
    *result = exec->graph->count == graph->count ? UPDATED : TOPOLOGY_CHANGED;
    for (size_t i = 0; *result == UPDATED && i < graph->count; i++) {
        *result = compare_nodes(exec->graph->nodes[i], graph->nodes[i]);
        if (*result != UPDATED) *node = graph->nodes[i];
    }
    HIP_REQUIRE(*result == UPDATED, hipErrorGraphExecUpdateFailure);
    struct hip_graph *copy;
    HIP_TRY(tessera_hip_graph_copy(graph, &copy));
    tessera_hip_graph_close(exec->graph);
    exec->graph = copy;
    return tessera_hip_result(hipSuccess);
}

// ---- launching

HIP_API hipError_t hipGraphUpload(hipGraphExec_t exec, hipStream_t stream) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_handle_is(exec, HIP_EXEC) && tessera_hip_stream(stream), hipErrorInvalidValue);
    return tessera_hip_result(hipSuccess);
}

HIP_API hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t handle) {
    HIP_ENTER();
    HIP_REQUIRE(tessera_hip_handle_is(exec, HIP_EXEC), hipErrorInvalidValue);
    struct hip_stream *stream = tessera_hip_stream(handle);
    HIP_REQUIRE(stream, hipErrorContextIsDestroyed);
    HIP_REQUIRE(!tessera_hip_stream_capture(stream), hipErrorStreamCaptureUnsupported);
    if (tessera_hip_is_legacy(handle)) HIP_TRY(tessera_hip_implicit_call());
    for (size_t i = 0; i < exec->graph->count; i++)
        HIP_TRY(tessera_hip_run(exec->graph->device, &exec->graph->nodes[i]->work));
    return tessera_hip_result(hipSuccess);
}
