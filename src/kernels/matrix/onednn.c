/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding oneDNN, see onednn.h. The library stays open: kernels may run in destructors.
 */
#include "kernels/matrix/onednn.h"

#include "base/shared_object.h"
#include "kernels/isa/isa.h"

#include <stdatomic.h>
#include <stddef.h>

static _Atomic(bool) refused;

void mt__onednn_allow(bool allowed)
{
    atomic_store_explicit(&refused, !allowed, memory_order_relaxed);
}

bool mt__onednn_bf16(void)
{
#if defined(__x86_64__)
    return mt__isa_level() == MT_ISA_V4 && __builtin_cpu_supports("avx512bf16") &&
           mt__onednn_here();
#else
    return false;
#endif
}

#if MT_HAVE_ONEDNN && DNNL_VERSION_MAJOR == 2

#    include <pthread.h>

static mt__onednn_table table;
static bool found;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int (*get_threads)(void);
static void (*set_threads)(int);

/* Its first product compiles the kernels of all products under a lock, which a child of a fork on
 * another thread would find locked. */
static void first_product(void)
{
    enum {
        SIDE = 16
    };
    float a[SIDE * SIDE] = {0};
    float c[SIDE * SIDE];
    mtb_hold_forks();
    (void)table.dnnl_sgemm('N', 'N', SIDE, SIDE, SIDE, 1.0F, a, SIDE, a, SIDE, 0.0F, c, SIDE);
    mtb_release_forks();
}

static void open_library(void)
{
    void *handle = mtb_open_shared("libdnnl.so.2");
    if (handle == NULL) {
        return;
    }
    bool all = true;
#    define X(name) all = mtb_find_symbol(handle, #    name, &table.name) && all;
    MT_ONEDNN_FUNCTIONS(X)
#    undef X
    /* Of the OpenMP library that oneDNN was built with; a build without one has neither. */
    bool openmp = mtb_find_symbol(handle, "omp_get_max_threads", &get_threads);
    openmp = mtb_find_symbol(handle, "omp_set_num_threads", &set_threads) && openmp;
    if (!openmp) {
        get_threads = NULL;
        set_threads = NULL;
    }
    found = all && table.dnnl_engine_create(&table.engine, dnnl_cpu, 0) == dnnl_success &&
            table.dnnl_stream_create(&table.stream, table.engine, dnnl_stream_default_flags) ==
                dnnl_success;
    if (found) {
        int threads = mt__onednn_enter();
        first_product();
        mt__onednn_leave(threads);
    }
}

const mt__onednn_table *mt__onednn(void)
{
    (void)pthread_once(&once, open_library);
    return found && !atomic_load_explicit(&refused, memory_order_relaxed) ? &table : NULL;
}

bool mt__onednn_here(void)
{
    return mt__onednn() != NULL;
}

int mt__onednn_enter(void)
{
    int threads = get_threads != NULL ? get_threads() : 1;
    if (threads != 1) {
        set_threads(1);
    }
    return threads;
}

void mt__onednn_leave(int threads)
{
    if (threads != 1) {
        set_threads(threads);
    }
}

#else

bool mt__onednn_here(void)
{
    return false;
}

#    if MT_HAVE_ONEDNN
const mt__onednn_table *mt__onednn(void)
{
    return NULL;
}

int mt__onednn_enter(void)
{
    return 1;
}

void mt__onednn_leave(int threads)
{
    (void)threads;
}
#    endif

#endif
