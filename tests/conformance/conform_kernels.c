/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: every kernel against the cpu backend, on the same bytes.
 *
 *   CK1  All tensors of a call are compared afterwards, inputs too, with the bytes between and
 *        around their elements: anything that a kernel writes outside its result is found.
 *   CK2  Results are filled with random numbers before, so that a kernel that does not write is
 *        found.
 *   CK3  A kernel without a case fails, and so does a code of a family without one.
 */
#include "conformance/conform.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_DIMS = 16,
    MAX_TENSORS = 64,
    MAX_NUMBERS = 16,
    LEAD = 3, /* elements before the first one: places are aligned to their type alone */
    GAP = 0xA9
};

typedef struct tensor {
    mt_array array; /* data is set for the device or the host before a call */
    int64_t sizes[MAX_DIMS], strides[MAX_DIMS];
    bool absent;
    int same_as;                /* number of the tensor whose memory it is, or -1 */
    size_t bytes;               /* of the block */
    unsigned char *host, *want; /* what the device gets; what the cpu makes of it */
    void *device;
} tensor;

typedef struct tried_case {
    const cf_case *of;
    char type;
    uint16_t code;
    uint32_t n_tensors, n_ints, n_scalars;
    tensor tensors[MAX_TENSORS];
    int64_t ints[MAX_NUMBERS];
    mt_scalar scalars[MAX_NUMBERS];
    uint64_t seed;
} tried_case;

/* ---- elements ---- */

static uint64_t draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005U + 1442695040888963407U;
    return *seed >> 33;
}

static int64_t numel_of(const mt_array *array)
{
    int64_t numel = 1;
    for (int32_t dim = 0; dim < array->n_dims; dim++) {
        numel *= array->sizes[dim];
    }
    return numel;
}

/* Of element number i, in elements. */
static int64_t place_of(const mt_array *array, int64_t i)
{
    int64_t place = 0;
    for (int32_t dim = array->n_dims - 1; dim >= 0; dim--) {
        place += i % array->sizes[dim] * array->strides[dim];
        i /= array->sizes[dim];
    }
    return place;
}

static size_t size_of(const mt_array *array)
{
    return mt_dtype_size((mt_dtype)array->dtype);
}

static void put(void *at, uint32_t dtype, double value)
{
    switch ((mt_dtype)dtype) {
    case MT_DTYPE_BOOL:
    case MT_DTYPE_U8: *(uint8_t *)at = (uint8_t)(int64_t)value; return;
    case MT_DTYPE_I32: *(int32_t *)at = (int32_t)value; return;
    case MT_DTYPE_I64: *(int64_t *)at = (int64_t)value; return;
    case MT_DTYPE_F32: *(float *)at = (float)value; return;
    case MT_DTYPE_F64: *(double *)at = value; return;
    default: return;
    }
}

static void put_random(void *at, uint32_t dtype, bool positive, uint64_t *seed)
{
    uint64_t random = draw(seed);
    double real = (double)(random % 4001) / 1000.0 - 2.0;
    switch ((mt_dtype)dtype) {
    case MT_DTYPE_BOOL: put(at, dtype, (double)(random & 1)); return;
    case MT_DTYPE_F16: /* below 1: no infinities */
        *(uint16_t *)at = (uint16_t)(random & (positive ? 0x3BFF : 0xBBFF));
        return;
    case MT_DTYPE_BF16: *(uint16_t *)at = (uint16_t)(random & (positive ? 0x3F7F : 0xBF7F)); return;
    case MT_DTYPE_C64: /* both parts are filled alike */
        put_random(at, MT_DTYPE_F32, positive, seed);
        put_random((float *)at + 1, MT_DTYPE_F32, positive, seed);
        return;
    case MT_DTYPE_C128:
        put_random(at, MT_DTYPE_F64, positive, seed);
        put_random((double *)at + 1, MT_DTYPE_F64, positive, seed);
        return;
    case MT_DTYPE_F32:
    case MT_DTYPE_F64: put(at, dtype, positive ? fabs(real) + 0.1 : real); return;
    default:
        put(at, dtype,
            positive || dtype == MT_DTYPE_U8 ? (double)(random % 5) : (double)(random % 9) - 4.0);
        return;
    }
}

/* ---- texts to calls ---- */

static uint32_t dtype_of(char letter)
{
    static const char letters[] = "?uilhgfd";
    if (letter == 'c' || letter == 'z') {
        return letter == 'c' ? MT_DTYPE_C64 : MT_DTYPE_C128;
    }
    const char *found = strchr(letters, letter);
    if (found == NULL || letter == '\0') {
        cf_stop("the table of cases has type '%c'", letter);
    }
    return (uint32_t)(found - letters); /* in the order of dtype.def */
}

static int64_t parse_number(const char **text)
{
    char *end;
    int64_t value = strtoll(*text, &end, 10);
    if (end == *text) {
        cf_stop("the table of cases has no number at \"%s\"", *text);
    }
    *text = end;
    return value;
}

static void parse_sizes(tensor *t, const char **text)
{
    int32_t n_dims = 0;
    (*text)++; /* [ */
    while (**text != ']') {
        if (n_dims == MAX_DIMS) {
            cf_stop("the table of cases has too many dimensions");
        }
        t->sizes[n_dims++] = parse_number(text);
        *text += **text == ',';
    }
    (*text)++;
    t->array.n_dims = n_dims;
}

/* Strides for a layout, and the block that holds it. */
static void lay_out(tensor *t, bool reversed, int64_t step, uint32_t repeated)
{
    int64_t stride = step;
    int64_t last = 0;
    for (int32_t i = 0; i < t->array.n_dims; i++) {
        int32_t dim = reversed ? i : t->array.n_dims - 1 - i;
        bool repeats = (repeated >> dim & 1) != 0;
        t->strides[dim] = repeats ? 0 : stride;
        last += repeats || t->sizes[dim] == 0 ? 0 : (t->sizes[dim] - 1) * stride;
        stride *= repeats || t->sizes[dim] == 0 ? 1 : t->sizes[dim];
    }
    t->bytes = (size_t)(last + 1 + 2 * LEAD) * size_of(&t->array);
}

typedef struct contents {
    bool positive;
    int64_t low, high; /* #: whole numbers in [low, high) */
    int64_t every;     /* %: one in so many is 1, the others 0 */
    int64_t cycle;     /* ~: 0 1 2 ... and again */
} contents;

static void fill_tensor(tensor *t, const contents *with, uint64_t *seed)
{
    unsigned char *first = t->host + LEAD * size_of(&t->array);
    for (int64_t i = 0; i < numel_of(&t->array); i++) {
        void *at = first + place_of(&t->array, i) * (int64_t)size_of(&t->array);
        if (with->high > with->low) {
            int64_t range = with->high - with->low;
            put(at, t->array.dtype, (double)(with->low + (int64_t)draw(seed) % range));
        } else if (with->every > 0) {
            put(at, t->array.dtype, i % with->every == 0 ? 1.0 : 0.0);
        } else if (with->cycle > 0) {
            put(at, t->array.dtype, (double)(i % with->cycle));
        } else {
            put_random(at, t->array.dtype, with->positive, seed);
        }
    }
}

/* One tensor: "-", "@0" or type[sizes] with t s bMASK + #LOW:HIGH %N ~N after it. */
static void parse_tensor(tried_case *c, const char **text)
{
    tensor *t = &c->tensors[c->n_tensors];
    contents with = {0};
    bool reversed = false;
    int64_t step = 1;
    uint32_t repeated = 0;
    memset(t, 0, sizeof *t);
    t->same_as = -1;
    if (**text == '-') {
        t->absent = true;
        t->array.n_dims = -1;
        (*text)++;
        return;
    }
    if (**text == '@') {
        (*text)++;
        int64_t other = parse_number(text);
        t->same_as = (int)other;
        t->array = c->tensors[other].array;
        return;
    }
    t->array.dtype = dtype_of(**text == 'x' ? c->type : **text);
    (*text)++;
    parse_sizes(t, text);
    for (; **text != ' ' && **text != '\0';) {
        char modifier = *(*text)++;
        reversed |= modifier == 't';
        step = modifier == 's' ? 2 : step;
        with.positive |= modifier == '+';
        if (modifier == 'b') {
            repeated = (uint32_t)parse_number(text);
        } else if (modifier == '#') {
            with.low = parse_number(text);
            (*text)++; /* : */
            with.high = parse_number(text);
        } else if (modifier == '%') {
            with.every = parse_number(text);
        } else if (modifier == '~') {
            with.cycle = parse_number(text);
        }
    }
    t->array.sizes = t->sizes;
    t->array.strides = t->strides;
    lay_out(t, reversed, step, repeated);
    t->host = cf_host(t->bytes);
    t->want = cf_host(t->bytes);
    memset(t->host, GAP, t->bytes);
    fill_tensor(t, &with, &c->seed);
    memcpy(t->want, t->host, t->bytes);
}

static void parse_scalar(mt_scalar *scalar, const char **text)
{
    char kind = *(*text)++;
    char *end = NULL;
    *scalar = (mt_scalar){.kind = MT_KIND_NONE};
    if (kind == 'r') {
        *scalar = mt_real(strtod(*text, &end));
        *text = end;
    } else if (kind == 'i') {
        *scalar = mt_int(parse_number(text));
    } else if (kind != 'n') {
        cf_stop("the table of cases has a number of kind '%c'", kind);
    }
}

static void parse_case(tried_case *c)
{
    for (const char *text = c->of->tensors; *text != '\0'; c->n_tensors++) {
        parse_tensor(c, &text);
        text += *text == ' ';
    }
    for (const char *text = c->of->ints; *text != '\0'; c->n_ints++) {
        c->ints[c->n_ints] = parse_number(&text);
        text += *text == ' ';
    }
    for (const char *text = c->of->scalars; *text != '\0'; c->n_scalars++) {
        parse_scalar(&c->scalars[c->n_scalars], &text);
        text += *text == ' ';
    }
}

/* ---- running ---- */

/* The call with data at `base(t)` of each tensor: the device's block or the oracle's. */
static mt_kernel_call make_call(tried_case *c, mt_array *arrays, bool on_device)
{
    for (uint32_t i = 0; i < c->n_tensors; i++) {
        const tensor *t = &c->tensors[i];
        const tensor *memory = t->same_as >= 0 ? &c->tensors[t->same_as] : t;
        arrays[i] = t->array;
        if (!t->absent) {
            char *base = on_device ? memory->device : (char *)memory->want;
            arrays[i].data = base + LEAD * size_of(&memory->array);
        }
    }
    return (mt_kernel_call){.struct_size = sizeof(mt_kernel_call),
                            .kernel = (uint16_t)c->of->kernel,
                            .code = c->code,
                            .n_tensors = c->n_tensors,
                            .n_ints = c->n_ints,
                            .n_scalars = c->n_scalars,
                            .tensors = arrays,
                            .ints = c->ints,
                            .scalars = c->scalars};
}

static bool is_owner(const tensor *t)
{
    return !t->absent && t->same_as < 0;
}

static bool is_near(const void *got, const void *want, uint32_t dtype)
{
    double a;
    double b;
    double tolerance;
    if (dtype == MT_DTYPE_C64) {
        return is_near(got, want, MT_DTYPE_F32) &&
               is_near((const float *)got + 1, (const float *)want + 1, MT_DTYPE_F32);
    }
    if (dtype == MT_DTYPE_C128) {
        return is_near(got, want, MT_DTYPE_F64) &&
               is_near((const double *)got + 1, (const double *)want + 1, MT_DTYPE_F64);
    }
    if (dtype == MT_DTYPE_F32) {
        a = (double)*(const float *)got;
        b = (double)*(const float *)want;
        tolerance = 1e-5;
    } else if (dtype == MT_DTYPE_F64) {
        a = *(const double *)got;
        b = *(const double *)want;
        tolerance = 1e-10;
    } else {
        return memcmp(got, want, mt_dtype_size((mt_dtype)dtype)) == 0;
    }
    if (isnan(a) || isnan(b)) {
        return isnan(a) && isnan(b);
    }
    return a == b || fabs(a - b) <= tolerance * (1.0 + fabs(b));
}

/* Which tensor, which element; then what lies between the elements. */
static void compare(const tried_case *c, uint32_t number, unsigned char *got)
{
    const tensor *t = &c->tensors[number];
    size_t size = size_of(&t->array);
    int64_t numel = numel_of(&t->array);
    if (memcmp(got, t->want, t->bytes) == 0) {
        return;
    }
    for (int64_t i = 0; i < numel; i++) {
        size_t at = (size_t)(LEAD + place_of(&t->array, i)) * size;
        bool equal = memcmp(got + at, t->want + at, size) == 0;
        if (!equal && (cf.strict || !is_near(got + at, t->want + at, t->array.dtype))) {
            cf_failed("%s code %u type %c \"%s\": tensor %u, element %lld",
                      mt_kernel_name(c->of->kernel), c->code, c->type, c->of->tensors, number,
                      (long long)i);
            return;
        }
    }
    for (int64_t i = 0; i < numel; i++) { /* what is left to compare is not an element */
        size_t at = (size_t)(LEAD + place_of(&t->array, i)) * size;
        memcpy(got + at, t->want + at, size);
    }
    CF_CHECK(memcmp(got, t->want, t->bytes) == 0,
             "%s code %u type %c \"%s\": tensor %u, bytes between or around its elements",
             mt_kernel_name(c->of->kernel), c->code, c->type, c->of->tensors, number);
}

static void try_case(const cf_case *of, char type, uint16_t code)
{
    static tried_case one; /* large, and checks run one after the other */
    tried_case *c = &one;
    mt_array arrays[MAX_TENSORS];
    memset(c, 0, sizeof *c);
    c->of = of;
    c->type = type;
    c->code = code;
    c->seed = 0x9E3779B97F4A7C15U + code;
    parse_case(c);
    for (uint32_t i = 0; i < c->n_tensors; i++) {
        tensor *t = &c->tensors[i];
        if (is_owner(t)) {
            t->device = cf_take(0, t->bytes);
            cf_write(0, t->device, t->host, t->bytes);
        }
    }
    mt_kernel_call call = make_call(c, arrays, false);
    int want = cf.cpu->kernels[of->kernel](cf.cpu->context, NULL, &call);
    if (want != MT_OK) {
        cf_stop("%s code %u type %c \"%s\": the cpu itself refuses: %.200s",
                mt_kernel_name(of->kernel), code, type, of->tensors, mt_last_error()->message);
    }
    call = make_call(c, arrays, true);
    CF_OK(cf_launch(cf_default_stream(0), &call));
    CF_OK(cf.backend->synchronize(cf.backend->context, 0));
    for (uint32_t i = 0; i < c->n_tensors; i++) {
        tensor *t = &c->tensors[i];
        if (is_owner(t)) {
            cf_read(0, t->host, t->device, t->bytes);
            compare(c, i, t->host);
            cf_give(0, t->device, t->bytes);
            free(t->host);
            free(t->want);
        }
    }
}

static uint32_t codes_of(mt_kernel kernel)
{
    switch (kernel) {
    case MT_KERNEL_UNARY: return MT_UNARY_COUNT;
    case MT_KERNEL_BINARY: return MT_BINARY_COUNT;
    case MT_KERNEL_TERNARY: return MT_TERNARY_COUNT;
    case MT_KERNEL_REDUCE: return MT_REDUCE_COUNT;
    case MT_KERNEL_RANDOM: return MT_RANDOM_COUNT;
    case MT_KERNEL_COMPLEX: return MT_COMPLEX_COUNT;
    default: return 1;
    }
}

void cf_check_kernel(mt_kernel kernel)
{
    bool tried[UINT8_MAX + 1] = {false}; /* by code */
    bool missing = (uint32_t)kernel >= cf.backend->n_kernels || cf.backend->kernels[kernel] == NULL;
    if (missing && cf.strict) {
        cf_stop("the backend does not have it");
    }
    if (missing) {
        cf_skip("the backend does not have it");
    }
    for (size_t i = 0; i < cf_case_count; i++) {
        const cf_case *of = &cf_cases[i];
        if (of->kernel != kernel) {
            continue;
        }
        for (uint16_t code = of->code; code <= of->last_code; code++) {
            tried[code & UINT8_MAX] = true;
            for (const char *type = of->types; *type != '\0'; type++) {
                try_case(of, *type, code);
            }
        }
    }
    for (uint32_t code = 0; code < codes_of(kernel); code++) {
        CF_CHECK(code <= UINT8_MAX && tried[code], "code %u has no case in conform_cases.c", code);
    }
}
