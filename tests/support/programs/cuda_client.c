/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that uses CUDA, on a libcuda of our own: usage: cuda_client LIBRARY N [REPLAYS]. It
 * opens the library that CUDA_INJECTION64_PATH names where it begins to use CUDA, as NVIDIA's
 * driver does, launches N kernels and a graph of four, and exits without waiting for them.
 */
#include "sources/cupti/cupti_abi.h"
#include "support/fake_cupti.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int inject(const char *path)
{
    int (*initialize)(void) = NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library != NULL ? dlsym(library, "InitializeInjection") : NULL;
    if (symbol == NULL) {
        fprintf(stderr, "cuda_client: %s\n", dlerror());
        return 0;
    }
    memcpy(&initialize, &symbol, sizeof initialize);
    return initialize();
}

static uint64_t read_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static fake_work kernel(const char *name, uint64_t start, uint32_t stream, uint64_t graph_node)
{
    return (fake_work){.kind = CP_KIND_KERNEL,
                       .name = name,
                       .start = start,
                       .end = start + 1000,
                       .stream = stream,
                       .context = 1,
                       .grid = {1, 1, 1},
                       .block = {1, 1, 1},
                       .graph_node = graph_node};
}

/* A graph whose second and third node depend on the first, and the fourth on both. */
static void replay(const fake_cupti *fake, long replays)
{
    static const uint64_t edges[][2] = {{1, 2}, {1, 3}, {2, 4}, {3, 4}};
    static char graph;
    void *const arguments[3] = {NULL, &graph, NULL};
    uint64_t kept = 0;
    uint64_t at = read_clock();
    fake->settings->edges = edges;
    fake->settings->n_edges = 4;
    const fake_call make = {.name = "cudaGraphInstantiate_v12000", .arguments = arguments};
    uint32_t id = fake->enter(&make, &kept);
    for (uint64_t i = 1; i <= 4; i++) {
        fake->node(CP_RESOURCE_NODE_CLONED, 100 + i, i);
    }
    fake->leave(&make, id, &kept);
    for (long i = 0; i < replays; i++) {
        const fake_call launch = {.name = "cudaGraphLaunch_v10000"};
        id = fake->enter(&launch, &kept);
        for (uint64_t n = 1; n <= 4; n++, at += 1000) {
            fake_work work = kernel("node", at, 1 + (uint32_t)(n % 3), 100 + n);
            fake->record(&work, id);
        }
        fake->leave(&launch, id, &kept);
    }
}

int main(int n_words, char **words)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = n_words >= 3 ? dlopen(words[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    const fake_cupti *fake = library != NULL ? dlsym(library, "fake_cupti_face") : NULL;
    if (fake == NULL || (path != NULL && inject(path) != 1)) {
        return 1;
    }
    for (long i = 0; i < strtol(words[2], NULL, 10); i++) {
        const fake_work work = kernel("_Z4fillPfi", read_clock(), 0, 0);
        fake->call(&(fake_call){
            .name = "cudaLaunchKernel_v7000", .inner = "cuLaunchKernel", .work = work});
    }
    if (n_words > 3) {
        replay(fake, strtol(words[3], NULL, 10));
    }
    return 0;
}
