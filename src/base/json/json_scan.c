/* SPDX-License-Identifier: Apache-2.0
 */
#include "base/json/json_scan.h"

#include <string.h>

#if defined(__SSE2__)
#    include <emmintrin.h>
#endif

/* Position of the first quotation mark or backslash from p on. There is one (JSC1). */
static const char *find_mark(const char *p)
{
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i slash = _mm_set1_epi8('\\');
    for (;; p += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, slash));
        unsigned mask = (unsigned)_mm_movemask_epi8(hit);
        if (mask != 0) {
            return p + __builtin_ctz(mask);
        }
    }
#else
    while (*p != '"' && *p != '\\') {
        p++;
    }
    return p;
#endif
}

const char *mtb_string_end(const char *p, const char *end, uint8_t *escaped)
{
    for (;;) {
        p = find_mark(p);
        if (*p == '"' || p >= end) {
            return p < end ? p : end;
        }
        *escaped = 1;
        /* The byte after a backslash belongs to it, unless the text ends between them. */
        p += p + 1 < end ? 2 : 1;
    }
}

static int stopped(mtb_scan *scan, const char *p, const char *wanted)
{
    scan->at = p;
    scan->wanted = wanted;
    return p >= scan->end ? MTB_SCAN_MORE : MTB_SCAN_BAD;
}

/* Sets all fields: those that the type does not use are 0. */
MT_INLINE mtb_slice slice_of(uint8_t type, const char *from, const char *to)
{
    return (mtb_slice){.type = type, .bytes = from, .length = (uint32_t)(to - from)};
}

int mtb_scan_string(mtb_scan *scan, mtb_slice *out)
{
    const char *p = mtb_skip_space(scan->at);
    uint8_t escaped = 0;
    if (MT_UNLIKELY(p >= scan->end || *p != '"')) {
        return stopped(scan, p, "a string");
    }
    const char *last = mtb_string_end(p + 1, scan->end, &escaped);
    if (MT_UNLIKELY(last >= scan->end)) {
        return stopped(scan, last, "the end of a string");
    }
    *out = slice_of(MTB_SLICE_STRING, p + 1, last);
    out->escaped = escaped;
    scan->at = last + 1;
    return MTB_SCAN_OK;
}

static bool is_digit(char c)
{
    return (unsigned)(c - '0') < 10;
}

/* Numbers, and the literals NaN and Infinity, which are not JSON but some writers emit. */
static int scan_number(mtb_scan *scan, mtb_slice *out)
{
    const char *from = scan->at;
    const char *p = from + (*from == '-');
    const char *digits = p;
    uint64_t value = 0;
    while (is_digit(*p)) {
        value = value * 10 + (uint64_t)(*p - '0');
        p++;
    }
    uint8_t type = MTB_SLICE_INT;
    if (*p == '.' || *p == 'e' || *p == 'E' || p - digits > 18) {
        type = MTB_SLICE_REAL;
        while (is_digit(*p) || *p == '.' || *p == 'e' || *p == 'E' || *p == '+' || *p == '-') {
            p++;
        }
    } else if (p == digits) {
        static const char infinity[] = "Infinity";
        size_t left = (size_t)(scan->end - p);
        size_t n = left < sizeof infinity - 1 ? left : sizeof infinity - 1;
        if (memcmp(p, infinity, n) != 0) {
            return stopped(scan, p, "a value");
        }
        p += n;
        type = MTB_SLICE_REAL;
    }
    if (MT_UNLIKELY(p >= scan->end)) {
        return stopped(scan, p, "the end of a number");
    }
    *out = slice_of(type, from, p);
    if (MT_LIKELY(type == MTB_SLICE_INT)) { /* at most 18 digits, so the negative fits too */
        out->integer = *from == '-' ? -(int64_t)value : (int64_t)value;
    }
    scan->at = p;
    return MTB_SCAN_OK;
}

int mtb_scan_time(mtb_scan *scan, int64_t *out_ns, bool *known)
{
    const char *from = mtb_skip_space(scan->at);
    const char *p = from;
    uint64_t value = 0;
    while (is_digit(*p)) {
        value = value * 10 + (uint64_t)(*p - '0');
        p++;
    }
    if (p > from && p - from <= 15) { /* the common case: digits, a point, at most three digits */
        unsigned more = 0;
        p += *p == '.';
        for (; more < 3 && is_digit(*p); more++, p++) {
            value = value * 10 + (uint64_t)(*p - '0');
        }
        for (; more < 3; more++) {
            value *= 10;
        }
        if (!is_digit(*p) && *p != '.' && *p != 'e' && *p != 'E' && p < scan->end) {
            scan->at = p;
            *out_ns = (int64_t)value;
            *known = true;
            return MTB_SCAN_OK;
        }
    }
    mtb_slice slice;
    int status = mtb_scan_value(scan, &slice);
    *known = status == MTB_SCAN_OK && mtb_slice_thousandths(&slice, out_ns);
    return status;
}

static int scan_word(mtb_scan *scan, mtb_slice *out, const char *word, uint8_t type)
{
    size_t length = strlen(word);
    size_t left = (size_t)(scan->end - scan->at);
    if (memcmp(scan->at, word, left < length ? left : length) != 0) {
        return stopped(scan, scan->at, "a value");
    }
    if (left <= length) {
        return stopped(scan, scan->end, "the end of a value");
    }
    *out = slice_of(type, scan->at, scan->at + length);
    scan->at += length;
    return MTB_SCAN_OK;
}

/* The next quotation mark or bracket from p on. There is one (JSC1). */
static const char *find_bracket(const char *p)
{
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i fold = _mm_set1_epi8(0x20); /* maps '[' to '{' and ']' to '}' */
    const __m128i opening = _mm_set1_epi8('{');
    const __m128i closing = _mm_set1_epi8('}');
    for (;; p += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i folded = _mm_or_si128(bytes, fold);
        __m128i hit = _mm_or_si128(
            _mm_cmpeq_epi8(bytes, quote),
            _mm_or_si128(_mm_cmpeq_epi8(folded, opening), _mm_cmpeq_epi8(folded, closing)));
        unsigned mask = (unsigned)_mm_movemask_epi8(hit);
        if (mask != 0) {
            return p + __builtin_ctz(mask);
        }
    }
#else
    while (*p != '"' && *p != '[' && *p != ']' && *p != '{' && *p != '}') {
        p++;
    }
    return p;
#endif
}

/* Steps over an array or object. Bit i of `kinds` says what level i is: 1 = object. */
static int scan_container(mtb_scan *scan, mtb_slice *out)
{
    uint64_t kinds[MTB_JSON_DEPTH / 64] = {*scan->at == '{'};
    unsigned depth = 1;
    const char *from = scan->at;
    uint8_t escaped = 0;
    const char *p = from + 1;
    for (; depth > 0; p++) {
        p = find_bracket(p);
        if (MT_UNLIKELY(p >= scan->end)) {
            return stopped(scan, scan->end, "a closing bracket");
        }
        if (*p == '"') {
            p = mtb_string_end(p + 1, scan->end, &escaped);
            if (MT_UNLIKELY(p >= scan->end)) {
                return stopped(scan, p, "the end of a string");
            }
        } else if (*p == '[' || *p == '{') {
            if (MT_UNLIKELY(depth == MTB_JSON_DEPTH)) {
                return stopped(scan, p, "less nesting (512 levels are read)");
            }
            uint64_t bit = (uint64_t)1 << depth % 64;
            kinds[depth / 64] = *p == '{' ? kinds[depth / 64] | bit : kinds[depth / 64] & ~bit;
            depth++;
        } else {
            depth--;
            char close = (kinds[depth / 64] >> depth % 64 & 1) != 0 ? '}' : ']';
            if (MT_UNLIKELY(*p != close)) {
                return stopped(scan, p, close == '}' ? "'}'" : "']'");
            }
        }
    }
    *out = slice_of(*from == '{' ? MTB_SLICE_OBJECT : MTB_SLICE_ARRAY, from, p);
    scan->at = p;
    return MTB_SCAN_OK;
}

int mtb_scan_value(mtb_scan *scan, mtb_slice *out)
{
    const char *p = mtb_skip_space(scan->at);
    scan->at = p;
    if (MT_UNLIKELY(p >= scan->end)) {
        return stopped(scan, p, "a value");
    }
    switch (*p) {
    case '"': return mtb_scan_string(scan, out);
    case '[':
    case '{': return scan_container(scan, out);
    case 't': return scan_word(scan, out, "true", MTB_SLICE_TRUE);
    case 'f': return scan_word(scan, out, "false", MTB_SLICE_FALSE);
    case 'n': return scan_word(scan, out, "null", MTB_SLICE_NULL);
    case 'N': return scan_word(scan, out, "NaN", MTB_SLICE_REAL);
    default: return scan_number(scan, out);
    }
}

bool mtb_walk_begin(mtb_walk *walk, const mtb_slice *container)
{
    if (container->type != MTB_SLICE_ARRAY && container->type != MTB_SLICE_OBJECT) {
        return false;
    }
    walk->scan =
        (mtb_scan){.at = container->bytes + 1, .end = container->bytes + container->length};
    walk->close = container->type == MTB_SLICE_OBJECT ? '}' : ']';
    return true;
}

bool mtb_walk_next(mtb_walk *walk, mtb_slice *key, mtb_slice *value)
{
    /* The sentinel (JSC1) is not at this end. The closing bracket replaces it: no scan inside goes
     * past it, because it was matched before. */
    mtb_scan *scan = &walk->scan;
    scan->at = mtb_skip_space(scan->at);
    if (scan->at < scan->end && *scan->at == ',') {
        scan->at = mtb_skip_space(scan->at + 1);
    }
    if (scan->at >= scan->end || *scan->at == walk->close) {
        return false;
    }
    if (walk->close == '}') {
        mtb_slice ignored;
        if (mtb_scan_string(scan, key != NULL ? key : &ignored) != MTB_SCAN_OK ||
            mtb_scan_expect(scan, ':', "':'") != MTB_SCAN_OK) {
            return false;
        }
    }
    return mtb_scan_value(scan, value) == MTB_SCAN_OK;
}
