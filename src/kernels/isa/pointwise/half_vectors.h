/* SPDX-License-Identifier: Apache-2.0
 *
 * A register of floats from float16 and bfloat16 in memory, and back: what half.h does, several
 * at a time. There is nothing here where the processor does not convert float16 (MT_HALF_WIDTH is
 * not defined). Files of src/kernels/isa only.
 */
#ifndef KERNELS_ISA_POINTWISE_HALF_VECTORS_H
#define KERNELS_ISA_POINTWISE_HALF_VECTORS_H

#include "base/compiler.h"

#include <stdint.h>

#ifdef __F16C__
#    include <immintrin.h>

#    ifdef __AVX512F__
#        define MT_HALF_WIDTH 16
typedef __m512 mt__floats;

MT_INLINE mt__floats mt__floats_of(float x)
{
    return _mm512_set1_ps(x);
}

MT_INLINE mt__floats mt__load_f16(const uint16_t *in)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)in));
}

/* The processor keeps bits of a NaN; here a NaN is the quiet one with its sign. */
MT_INLINE void mt__store_f16(uint16_t *out, mt__floats x)
{
    __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    __m512i bits = _mm512_castps_si512(x); /* of a NaN: sign, exponent, the quiet bit */
    bits = _mm512_mask_and_epi32(bits, nan, bits, _mm512_set1_epi32((int32_t)0xff800000U));
    bits = _mm512_mask_or_epi32(bits, nan, bits, _mm512_set1_epi32(0x00400000));
    _mm256_storeu_si256((void *)out,
                        _mm512_cvtps_ph(_mm512_castsi512_ps(bits), _MM_FROUND_TO_NEAREST_INT));
}

MT_INLINE mt__floats mt__load_bf16(const uint16_t *in)
{
    __m512i words = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)in));
    return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
}

MT_INLINE void mt__store_bf16(uint16_t *out, mt__floats x)
{
    __m512i bits = _mm512_castps_si512(x);
    __m512i high = _mm512_srli_epi32(bits, 16);
    __m512i odd = _mm512_and_epi32(high, _mm512_set1_epi32(1));
    __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff));
    __m512i nan = _mm512_or_epi32(_mm512_and_epi32(high, _mm512_set1_epi32(0x8000)),
                                  _mm512_set1_epi32(0x7fc0));
    __m512i word = _mm512_mask_mov_epi32(_mm512_srli_epi32(up, 16),
                                         _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), nan);
    _mm256_storeu_si256((void *)out, _mm512_cvtepi32_epi16(word));
}

/* NaN stays. */
MT_INLINE mt__floats mt__floats_relu(mt__floats x)
{
    __mmask16 below = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
    return _mm512_mask_mov_ps(x, below, _mm512_setzero_ps());
}

#    else
#        define MT_HALF_WIDTH 8
typedef __m256 mt__floats;

MT_INLINE mt__floats mt__floats_of(float x)
{
    return _mm256_set1_ps(x);
}

MT_INLINE mt__floats mt__load_f16(const uint16_t *in)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const void *)in));
}

MT_INLINE void mt__store_f16(uint16_t *out, mt__floats x)
{
    __m256 sign = _mm256_and_ps(x, _mm256_set1_ps(-0.0F));
    __m256 quiet = _mm256_or_ps(sign, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)));
    x = _mm256_blendv_ps(x, quiet, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    _mm_storeu_si128((void *)out, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

MT_INLINE mt__floats mt__load_bf16(const uint16_t *in)
{
    __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)in));
    return _mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
}

MT_INLINE void mt__store_bf16(uint16_t *out, mt__floats x)
{
    __m256i bits = _mm256_castps_si256(x);
    __m256i high = _mm256_srli_epi32(bits, 16);
    __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32(0x7fff));
    __m256i nan = _mm256_or_si256(_mm256_and_si256(high, _mm256_set1_epi32(0x8000)),
                                  _mm256_set1_epi32(0x7fc0));
    __m256i word = _mm256_blendv_epi8(_mm256_srli_epi32(up, 16), nan,
                                      _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
    __m256i packed = _mm256_packus_epi32(word, word); /* in each half twice */
    packed = _mm256_permute4x64_epi64(packed, 0x8);
    _mm_storeu_si128((void *)out, _mm256_castsi256_si128(packed));
}

/* NaN stays. */
MT_INLINE mt__floats mt__floats_relu(mt__floats x)
{
    __m256 below = _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ);
    return _mm256_andnot_ps(below, x);
}
#    endif
#endif

#endif /* KERNELS_ISA_POINTWISE_HALF_VECTORS_H */
