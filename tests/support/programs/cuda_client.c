/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that uses CUDA, on a libcuda of our own: usage: cuda_client LIBRARY N. It opens the
 * library that CUDA_INJECTION64_PATH names where it begins to use CUDA, as NVIDIA's driver does,
 * launches N kernels and exits without waiting for them.
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

int main(int n_words, char **words)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = n_words == 3 ? dlopen(words[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    const fake_cupti *fake = library != NULL ? dlsym(library, "fake_cupti_face") : NULL;
    if (fake == NULL || (path != NULL && inject(path) != 1)) {
        return 1;
    }
    for (long i = 0; i < strtol(words[2], NULL, 10); i++) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        uint64_t now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
        const fake_work work = {.kind = CP_KIND_KERNEL,
                                .name = "_Z4fillPfi",
                                .start = now,
                                .end = now + 1000,
                                .context = 1,
                                .grid = {1, 1, 1},
                                .block = {1, 1, 1}};
        fake->call(&(fake_call){.name = "cudaLaunchKernel_v7000", .work = work});
    }
    return 0;
}
