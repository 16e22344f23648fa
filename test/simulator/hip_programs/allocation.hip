// SPDX-License-Identifier: MIT
// malloc and free in kernels: lists that one kernel makes, and another one walks and frees.
#include "check.h"

struct Node {
    int value;
    Node *next;
};

__global__ void make(Node **heads, int length) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    Node *head = nullptr;
    for (int k = 0; k < length; k++) {
        Node *node = (Node *)malloc(sizeof(Node));
        if (!node) break;
        node->value = i * k;
        node->next = head;
        head = node;
    }
    heads[i] = head;
}

__global__ void sum(Node **heads, int *sums) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int total = 0;
    for (Node *node = heads[i]; node;) {
        Node *next = node->next;
        total += node->value;
        free(node);
        node = next;
    }
    sums[i] = total;
}

int main() {
    const int n = 128, length = 5;
    Buffer<Node *> heads(n);
    Buffer<int> sums(n);
    for (int round = 0; round < 2; round++) {
        make<<<2, 64>>>(heads.data(), length);
        sum<<<2, 64>>>(heads.data(), sums.data());
        HIP(hipDeviceSynchronize());
        const std::vector<int> got = sums.fetch();
        for (int i = 0; i < n; i++) EXPECT(got[i] == i * length * (length - 1) / 2);
    }
    std::puts("ok");
}
