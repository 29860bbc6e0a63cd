/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops of Fourier transforms, see fft_loops.h and fft_body.def.
 */
#include "kernels/isa/signal/fft_loops.h"

#include "base/compiler.h"
#include "kernels/isa/isa.h"

#include <math.h>
#include <string.h>

#if defined(__AVX512F__)
#    define VECTOR_BYTES 64
#elif defined(__AVX2__)
#    define VECTOR_BYTES 32
#else
#    define VECTOR_BYTES 16
#endif

/* Cosine and sine of 2 pi j k / radix, by radix (3 5 7 11 13), j and k. */
typedef struct unit_roots {
    double cosine[MT_FFT_LARGEST_RADIX];
    double sine[MT_FFT_LARGEST_RADIX];
} unit_roots;

static const unit_roots roots3 = {{1, -0.5, -0.5},
                                  {0, 0.86602540378443864676, -0.86602540378443864676}};
static const unit_roots roots5 = {{1, 0.30901699437494742410, -0.80901699437494742410,
                                   -0.80901699437494742410, 0.30901699437494742410},
                                  {0, 0.95105651629515357212, 0.58778525229247312917,
                                   -0.58778525229247312917, -0.95105651629515357212}};
static const unit_roots roots7 = {
    {1, 0.62348980185873353053, -0.22252093395631440429, -0.90096886790241912624,
     -0.90096886790241912624, -0.22252093395631440429, 0.62348980185873353053},
    {0, 0.78183148246802980871, 0.97492791218182360702, 0.43388373911755812048,
     -0.43388373911755812048, -0.97492791218182360702, -0.78183148246802980871}};
static const unit_roots roots11 = {
    {1, 0.84125353283118120551, 0.41541501300188643508, -0.14231483827328514358,
     -0.65486073394528510061, -0.95949297361449736865, -0.95949297361449736865,
     -0.65486073394528510061, -0.14231483827328514358, 0.41541501300188643508,
     0.84125353283118120551},
    {0, 0.54064081745559755543, 0.90963199535451833011, 0.98982144188093268422,
     0.75574957435425826890, 0.28173255684142967104, -0.28173255684142967104,
     -0.75574957435425826890, -0.98982144188093268422, -0.90963199535451833011,
     -0.54064081745559755543}};
static const unit_roots roots13 = {
    {1, 0.88545602565320991051, 0.56806474673115581187, 0.12053668025532304764,
     -0.35460488704253562142, -0.74851074817110108128, -0.97094181742605201180,
     -0.97094181742605201180, -0.74851074817110108128, -0.35460488704253562142,
     0.12053668025532304764, 0.56806474673115581187, 0.88545602565320991051},
    {0, 0.46472317204376856203, 0.82298386589365635224, 0.99270887409805397272,
     0.93501624268541483342, 0.66312265824079519305, 0.23931566428755776665,
     -0.23931566428755776665, -0.66312265824079519305, -0.93501624268541483342,
     -0.99270887409805397272, -0.82298386589365635224, -0.46472317204376856203}};

#define T       float
#define T_BYTES 4
#define MASK    int32_t
#define NAME(x) x##_f32
#include "kernels/isa/signal/fft_body.def"
#undef T
#undef T_BYTES
#undef MASK
#undef NAME

#define T       double
#define T_BYTES 8
#define MASK    int64_t
#define NAME(x) x##_f64
#include "kernels/isa/signal/fft_body.def"
#undef T
#undef T_BYTES
#undef MASK
#undef NAME

#define LOOPS(type)                                                                               \
    {                                                                                             \
        .load = load_##type, .store = store_##type, .transform = transform_##type,                \
        .turn = turn_##type, .multiply = multiply_##type, .unpack = unpack_##type,                \
        .pack = pack_##type, .mirror = mirror_##type, .line = line_##type, .twist = twist_##type, \
    }

const mt__fft_loops MT_ISA(mt__fft_loops)[2] = {LOOPS(f32), LOOPS(f64)};
