/* SPDX-License-Identifier: Apache-2.0
 *
 * LAPACK and the one routine of BLAS that product.c does not use, from the OpenBLAS that product.c
 * opens. Fortran passes everything by reference, so the routines of both precisions have the same
 * types here. Characters are followed by their lengths, at the end of the parameters: routines that
 * OpenBLAS has in C ignore them, those in Fortran may read them.
 */
#ifndef KERNELS_MATRIX_LAPACK_H
#define KERNELS_MATRIX_LAPACK_H

#include <mindtorch/dtype.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mt__lapack {
    void (*getrf)(const int *m, const int *n, void *a, const int *lda, int32_t *pivots, int *info);
    void (*getrs)(const char *trans, const int *n, const int *columns, const void *a,
                  const int *lda, const int32_t *pivots, void *b, const int *ldb, int *info,
                  size_t);
    void (*potrf)(const char *uplo, const int *n, void *a, const int *lda, int *info, size_t);
    void (*potrs)(const char *uplo, const int *n, const int *columns, const void *a, const int *lda,
                  void *b, const int *ldb, int *info, size_t);
    void (*potri)(const char *uplo, const int *n, void *a, const int *lda, int *info, size_t);
    void (*geqrf)(const int *m, const int *n, void *a, const int *lda, void *tau, void *work,
                  const int *lwork, int *info);
    void (*orgqr)(const int *m, const int *n, const int *k, void *a, const int *lda,
                  const void *tau, void *work, const int *lwork, int *info);
    void (*trsm)(const char *side, const char *uplo, const char *trans, const char *diag,
                 const int *m, const int *n, const void *alpha, const void *a, const int *lda,
                 void *b, const int *ldb, size_t, size_t, size_t, size_t);
    void (*syevd)(const char *job, const char *uplo, const int *n, void *a, const int *lda,
                  void *values, void *work, const int *lwork, int *iwork, const int *liwork,
                  int *info, size_t, size_t);
    void (*gesdd)(const char *job, const int *m, const int *n, void *a, const int *lda,
                  void *values, void *u, const int *ldu, void *vt, const int *ldvt, void *work,
                  const int *lwork, int *iwork, int *info, size_t);
    void (*gels)(const char *trans, const int *m, const int *n, const int *columns, void *a,
                 const int *lda, void *b, const int *ldb, void *work, const int *lwork, int *info,
                 size_t);
    void (*gelsy)(const int *m, const int *n, const int *columns, void *a, const int *lda, void *b,
                  const int *ldb, int *jpvt, const void *rcond, int *rank, void *work,
                  const int *lwork, int *info);
    void (*gelsd)(const int *m, const int *n, const int *columns, void *a, const int *lda, void *b,
                  const int *ldb, void *values, const void *rcond, int *rank, void *work,
                  const int *lwork, int *iwork, int *info);
    void (*gelss)(const int *m, const int *n, const int *columns, void *a, const int *lda, void *b,
                  const int *ldb, void *values, const void *rcond, int *rank, void *work,
                  const int *lwork, int *info);
    void (*geev)(const char *left, const char *right, const int *n, void *a, const int *lda,
                 void *real, void *imaginary, void *vl, const int *ldvl, void *vr, const int *ldvr,
                 void *work, const int *lwork, int *info, size_t, size_t);
    /* cgeev and zgeev */
    void (*complex_geev)(const char *left, const char *right, const int *n, void *a, const int *lda,
                         void *values, void *vl, const int *ldvl, void *vr, const int *ldvr,
                         void *work, const int *lwork, void *rwork, int *info, size_t, size_t);
} mt__lapack;

/* The routines of float32 or float64, with OpenBLAS set to one thread; NULL: OpenBLAS, or one of
 * them, is not installed. */
const mt__lapack *mt__lapack_of(mt_dtype dtype);

#endif /* KERNELS_MATRIX_LAPACK_H */
