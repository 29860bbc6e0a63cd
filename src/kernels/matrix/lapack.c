/* SPDX-License-Identifier: Apache-2.0
 *
 * See lapack.h.
 */
#include "kernels/matrix/lapack.h"

#include "kernels/matrix/product.h"

#include <pthread.h>

static struct {
    mt__lapack single, twice;
    bool here;
} lapack;

static pthread_once_t lapack_once = PTHREAD_ONCE_INIT;

#define MT_I_BOTH(name)                                               \
    (mt__openblas_find("s" #name "_", (void *)&lapack.single.name) && \
     mt__openblas_find("d" #name "_", (void *)&lapack.twice.name))

static void find_lapack(void)
{
    lapack.here = MT_I_BOTH(getrf) && MT_I_BOTH(getrs) && MT_I_BOTH(potrf) && MT_I_BOTH(potrs) &&
                  MT_I_BOTH(potri) && MT_I_BOTH(geqrf) && MT_I_BOTH(orgqr) && MT_I_BOTH(trsm) &&
                  MT_I_BOTH(syevd) && MT_I_BOTH(gesdd) && MT_I_BOTH(gels) && MT_I_BOTH(gelsy) &&
                  MT_I_BOTH(gelsd) && MT_I_BOTH(gelss) && MT_I_BOTH(geev) &&
                  mt__openblas_find("cgeev_", (void *)&lapack.single.complex_geev) &&
                  mt__openblas_find("zgeev_", (void *)&lapack.twice.complex_geev);
}

const mt__lapack *mt__lapack_of(mt_dtype dtype)
{
    if (!mt__openblas_here()) {
        return NULL;
    }
    (void)pthread_once(&lapack_once, find_lapack);
    if (!lapack.here) {
        return NULL;
    }
    mt__openblas_one_thread();
    return dtype == MT_DTYPE_F32 ? &lapack.single : &lapack.twice;
}
