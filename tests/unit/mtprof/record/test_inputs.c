/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs of ops: every kind of value, any nesting, and what happens at the bounds. The lists are
 * written out again as text from what a reader gives, after docs/format.md 5.
 */
#include "base/compiler.h"
#include "harness/mt_test.h"
#include "mtprof/record/recording.h"
#include "support/traces/trace_view.h"

#include <mtprof/op.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static mtprof_site site = MTPROF_SITE_INIT("op", MTPROF_KIND_OP);
static mtprof_site other_site = MTPROF_SITE_INIT("other op", MTPROF_KIND_OP);

#define INPUT_WANTS (MTPROF_WANT_OPS | MTPROF_WANT_INPUTS | MTPROF_WANT_STRIDES)

static uint32_t id(const char *text)
{
    return mtprof_intern(text, strlen(text));
}

/* ---- values as text -------------------------------------------------------------------------- */

typedef struct list_text {
    const trace_view *view;
    const uint64_t *words, *scalars;
    uint32_t n_words, n_scalars, at, scalar;
    char text[2048];
    size_t length;
} list_text;

static void add(list_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(list_text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->text + t->length, sizeof t->text - t->length, format, args);
    va_end(args);
    t->length += (size_t)n;
    if (t->length >= sizeof t->text) {
        t->length = sizeof t->text - 1;
    }
}

static uint64_t next_word(list_text *t)
{
    REQUIRE(t->at < t->n_words);
    return t->words[t->at++];
}

static uint64_t next_scalar(list_text *t)
{
    REQUIRE(t->scalar < t->n_scalars);
    return t->scalars[t->scalar++];
}

static void add_dims(list_text *t, uint32_t n)
{
    add(t, "[");
    for (uint32_t i = 0; i < n; i++) {
        add(t, "%s%lld", i == 0 ? "" : ",", (long long)next_word(t));
    }
    add(t, "]");
}

static void add_value(list_text *t)
{
    uint64_t word = next_word(t);
    uint32_t high = (uint32_t)(word >> 32), dims = (uint32_t)(word >> 8 & 0xFF);
    double real;
    uint64_t bits;
    switch (word & 0xFF) {
    case MTPROF_INPUT_NONE: add(t, "none"); break;
    case MTPROF_INPUT_TENSOR:
        add(t, "%s", tv_string(t->view, high));
        add_dims(t, dims);
        if ((word >> 16 & 1) != 0) {
            add(t, "/");
            add_dims(t, dims);
        }
        break;
    case MTPROF_INPUT_LIST:
        add(t, "(");
        for (uint32_t i = 0; i < high; i++) {
            add(t, "%s", i == 0 ? "" : " ");
            add_value(t);
        }
        add(t, ")");
        break;
    case MTPROF_INPUT_INT: add(t, "%lld", (long long)next_scalar(t)); break;
    case MTPROF_INPUT_REAL:
        bits = next_scalar(t);
        memcpy(&real, &bits, sizeof real);
        add(t, "%g", real);
        break;
    case MTPROF_INPUT_BOOL: add(t, "%s", next_scalar(t) != 0 ? "true" : "false"); break;
    case MTPROF_INPUT_STRING: add(t, "'%s'", tv_string(t->view, next_scalar(t))); break;
    case MTPROF_INPUT_KEYWORD:
        add(t, "%s=", tv_string(t->view, high));
        add_value(t);
        break;
    default: FAIL("kind %llu of value", (unsigned long long)(word & 0xFF)); break;
    }
}

static list_text text_of(const trace_view *v, const tv_record *begin)
{
    list_text t = {.view = v};
    const tv_record *by_id = tv_payload(v, begin, MTPROF_REC_INPUTS, 0);
    const tv_record *in_full = tv_payload(v, begin, MTPROF_REC_INPUTS_INLINE, 0);
    const tv_record *scalars = tv_payload(v, begin, MTPROF_REC_SCALARS, 0);
    if (by_id != NULL) {
        REQUIRE(mtprof_reader_inputs(v->reader, by_id->r.arg, &t.words, &t.n_words));
    } else if (in_full != NULL) {
        t.words = in_full->r.words;
        t.n_words = in_full->r.n_words;
    } else {
        add(&t, "absent");
        return t;
    }
    if (scalars != NULL) {
        CHECK_EQ_U64(scalars->r.aux, scalars->r.n_words);
        t.scalars = scalars->r.words;
        t.n_scalars = scalars->r.n_words;
    }
    while (t.at < t.n_words) {
        add(&t, "%s", t.length == 0 ? "" : " ");
        add_value(&t);
    }
    CHECK_EQ_U64(t.scalar, t.n_scalars);
    return t;
}

/* Records one op with these inputs and compares what comes back. */
static void check_inputs(const mtprof_value *values, uint32_t count, const char *expected)
{
    mtprof_op op = {.struct_size = sizeof op, .inputs = values, .n_inputs = count};
    mtprof_session *s = tv_start(INPUT_WANTS);
    mtprof_end(mtprof_op_begin(&site, &op));
    mtprof_end(mtprof_begin(&other_site)); /* what follows is unharmed */
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(v->n_spans, 2);
    const tv_span *span = tv_span_named(v, "op");
    REQUIRE(span != NULL);
    list_text t = text_of(v, span->begin);
    CHECK_EQ_STR(t.text, expected);
    bool too_deep = strstr(expected, "((((((((((((((((none") != NULL;
    CHECK_EQ_U64(h.texts_cut, too_deep || (strcmp(expected, "absent") == 0 && count != 0));
    tv_free(v);
}

static mtprof_value tensor(const char *type, uint8_t n, const int64_t *sizes,
                           const int64_t *strides)
{
    return (mtprof_value){.kind = MTPROF_INPUT_TENSOR,
                          .n_dims = n,
                          .type = type != NULL ? id(type) : 0,
                          .of.sizes = sizes,
                          .strides = strides};
}

static mtprof_value integer(int64_t value)
{
    return (mtprof_value){.kind = MTPROF_INPUT_INT, .of.integer = value};
}

static mtprof_value list(const mtprof_value *items, uint32_t count)
{
    return (mtprof_value){.kind = MTPROF_INPUT_LIST, .type = count, .of.items = items};
}

static mtprof_value keyword(const char *name)
{
    return (mtprof_value){.kind = MTPROF_INPUT_KEYWORD, .type = id(name)};
}

static const int64_t three[] = {2, 3, 4};
static const int64_t steps[] = {12, 4, 1};

/* ---- kinds ----------------------------------------------------------------------------------- */

TEST(every_kind_of_value)
{
    const mtprof_value values[] = {
        tensor("float", 3, three, steps),
        tensor(NULL, 3, three, NULL),
        tensor("c10::Half", 0, NULL, NULL),
        integer(INT64_MIN),
        {.kind = MTPROF_INPUT_REAL, .of.real = -2.5},
        {.kind = MTPROF_INPUT_BOOL, .of.integer = 1},
        {.kind = MTPROF_INPUT_STRING, .of.text = id("mean")},
        {.kind = MTPROF_INPUT_NONE},
    };
    check_inputs(values, 8,
                 "float[2,3,4]/[12,4,1] [2,3,4] c10::Half[] -9223372036854775808 -2.5 true 'mean' "
                 "none");
}

/* The second op goes the fast way: its inputs are those of the first. */
TEST(texts_of_the_recording_are_kept_each_time)
{
    mtprof_session *s = tv_start(INPUT_WANTS);
    const mtprof_value value = {.kind = MTPROF_INPUT_STRING,
                                .of.text = mtprof_intern_here("trunc", 5)};
    mtprof_op op = {.struct_size = sizeof op, .inputs = &value, .n_inputs = 1};
    for (int i = 0; i < 3; i++) {
        mtprof_end(mtprof_op_begin(&site, &op));
    }
    CHECK_EQ_U64(mtprof_know_inputs(&value, 1).id, 0); /* its texts end with the recording */
    trace_view *v = tv_finish(s, NULL);
    for (uint64_t i = 0; i < 3; i++) {
        const tv_record *p = tv_nth(v, MTPROF_REC_SCALARS, i);
        REQUIRE(p != NULL);
        CHECK_EQ_STR(tv_string(v, p->r.words[0]), "trunc");
    }
    tv_free(v);
}

TEST(scalars_have_types_too)
{
    mtprof_value value = integer(1);
    value.type = id("Scalar");
    mtprof_op op = {.struct_size = sizeof op, .inputs = &value, .n_inputs = 1};
    mtprof_session *s = tv_start(INPUT_WANTS);
    mtprof_end(mtprof_op_begin(&site, &op));
    trace_view *v = tv_finish(s, NULL);
    const tv_record *p = tv_nth(v, MTPROF_REC_DEF_INPUTS, 0);
    REQUIRE(p != NULL);
    CHECK_EQ_STR(tv_string(v, p->r.words[0] >> 32), "Scalar");
    tv_free(v);
}

TEST(lists_in_lists)
{
    const mtprof_value innermost[] = {integer(1), integer(2)};
    const mtprof_value middle[] = {list(innermost, 2), list(NULL, 0), integer(3)};
    const mtprof_value tensors[] = {tensor("int", 1, three, NULL), tensor("int", 2, three, NULL)};
    const mtprof_value values[] = {list(middle, 3), integer(4), list(tensors, 2), integer(5)};
    check_inputs(values, 4, "((1 2) () 3) 4 (int[2] int[2,3]) 5");
}

TEST(keywords_name_the_value_behind_them)
{
    const mtprof_value dims[] = {integer(0), integer(1)};
    const mtprof_value inside[] = {keyword("a"), integer(8), integer(9)};
    const mtprof_value values[] = {
        integer(1),
        keyword("dim"),
        list(dims, 2),
        keyword("keepdim"),
        {.kind = MTPROF_INPUT_BOOL},
        keyword("out"),
        {.kind = MTPROF_INPUT_NONE},
        list(inside, 3),
        integer(2),
    };
    check_inputs(values, 9, "1 dim=(0 1) keepdim=false out=none (a=8 9) 2");
}

TEST(an_op_without_inputs_has_no_list)
{
    check_inputs(NULL, 0, "absent");
}

/* ---- what a careless host may hand over ------------------------------------------------------ */

TEST(a_keyword_without_a_value_harms_nothing)
{
    const mtprof_value alone[] = {keyword("k")};
    const mtprof_value twice[] = {integer(1), keyword("a"), keyword("b")};
    const mtprof_value inside[] = {integer(1), keyword("a")};
    const mtprof_value nested[] = {list(inside, 2), integer(2)};
    check_inputs(alone, 1, "none");
    check_inputs(twice, 3, "1 none none");
    check_inputs(nested, 2, "(1 none) 2");
}

TEST(values_that_cannot_be_shown_are_none)
{
    const mtprof_value values[] = {
        {.kind = 99},
        tensor("float", 3, NULL, steps),
        list(NULL, 4),
        {.kind = 8},
    };
    check_inputs(values, 4, "none none none none");
}

TEST(lists_deeper_than_16_are_none)
{
    mtprof_value at[20];
    at[19] = integer(1);
    for (int i = 18; i >= 0; i--) {
        at[i] = list(&at[i + 1], 1);
    }
    check_inputs(&at[3], 1, "((((((((((((((((1))))))))))))))))");
    check_inputs(&at[2], 1, "((((((((((((((((none))))))))))))))))");
    check_inputs(&at[0], 1, "((((((((((((((((none))))))))))))))))");
}

/* ---- bounds ---------------------------------------------------------------------------------- */

TEST(a_list_of_many_tensors_is_kept)
{
    static mtprof_value many[900];
    for (size_t i = 0; i < 900; i++) {
        many[i] = tensor("float", 3, three, NULL);
    }
    mtprof_value value = list(many, 900); /* 3,601 words */
    mtprof_op op = {.struct_size = sizeof op, .inputs = &value, .n_inputs = 1};
    mtprof_session *s = tv_start(INPUT_WANTS);
    mtprof_end(mtprof_op_begin(&site, &op));
    mtprof_end(mtprof_op_begin(&site, &op));
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.texts_cut, 0);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_DEF_INPUTS), 1);
    const tv_record *p = tv_nth(v, MTPROF_REC_DEF_INPUTS, 0);
    REQUIRE(p != NULL);
    CHECK_EQ_U64(p->r.n_words, 1 + 4 * 900);
    CHECK_EQ_U64(p->r.words[0], MTPROF_INPUT_LIST | (uint64_t)900 << 32);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_INPUTS), 2);
    tv_free(v);
}

TEST(many_scalars_come_back_or_are_counted_as_cut)
{
    static mtprof_value many[300];
    for (size_t i = 0; i < 300; i++) {
        many[i] = integer((int64_t)i);
    }
    for (uint32_t count = 250; count <= 300; count += 5) {
        mtprof_value value = list(many, count);
        mtprof_op op = {.struct_size = sizeof op, .inputs = &value, .n_inputs = 1};
        mtprof_session *s = tv_start(INPUT_WANTS);
        mtprof_end(mtprof_op_begin(&site, &op));
        mtprof_health h;
        trace_view *v = tv_finish(s, &h);
        const tv_record *p = tv_nth(v, MTPROF_REC_SCALARS, 0);
        if (p == NULL) {
            CHECK_EQ_U64(h.texts_cut, 1);
        } else {
            CHECK_EQ_U64(p->r.aux, count);
            REQUIRE_EQ_U64(p->r.n_words, count);
            CHECK_EQ_U64(p->r.words[count - 1], count - 1);
        }
        tv_free(v);
    }
}

/* What a fused optimizer with thousands of tensors is called with. */
TEST(the_longest_list_is_kept_and_a_longer_one_counted)
{
    enum {
        MOST = (MTPROF__INPUTS_MAX - 1) / 4 /* a word for the list, four for each tensor */
    };
    static mtprof_value many[MOST + 1];
    for (size_t i = 0; i < MT_COUNT(many); i++) {
        many[i] = tensor("float", 3, three, NULL);
    }
    for (uint32_t count = MOST; count <= MOST + 1; count++) {
        mtprof_value value = list(many, count);
        mtprof_op op = {.struct_size = sizeof op, .inputs = &value, .n_inputs = 1};
        mtprof_session *s = tv_start(INPUT_WANTS);
        mtprof_end(mtprof_op_begin(&site, &op));
        mtprof_health h;
        trace_view *v = tv_finish(s, &h);
        CHECK_EQ_U64(h.texts_cut, count > MOST);
        CHECK_EQ_U64(tv_count(v, MTPROF_REC_INPUTS), count == MOST);
        CHECK_EQ_U64(tv_count(v, MTPROF_REC_DEF_INPUTS), count == MOST);
        tv_free(v);
    }
}

/* ---- sharing --------------------------------------------------------------------------------- */

TEST(equal_lists_are_defined_once_whatever_their_scalars)
{
    mtprof_session *s = tv_start(INPUT_WANTS);
    for (int i = 0; i < 100; i++) {
        const mtprof_value values[] = {tensor("float", 3, three, steps), integer(i)};
        mtprof_op op = {.struct_size = sizeof op, .inputs = values, .n_inputs = 2};
        mtprof_end(mtprof_op_begin(i % 2 == 0 ? &site : &other_site, &op));
    }
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_DEF_INPUTS), 1);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_INPUTS), 100);
    for (size_t i = 0; i < 100; i++) {
        const tv_record *p = tv_nth(v, MTPROF_REC_SCALARS, i);
        REQUIRE(p != NULL);
        CHECK_EQ_U64(p->r.words[0], i);
    }
    tv_free(v);
}

TEST(lists_past_their_bound_are_stored_in_full)
{
    enum {
        LISTS = 65536 + 20
    };
    mtprof_session *s = tv_start(INPUT_WANTS);
    for (int64_t i = 0; i < LISTS; i++) {
        const int64_t size[] = {i};
        const mtprof_value value = tensor(NULL, 1, size, NULL);
        mtprof_op op = {.struct_size = sizeof op, .inputs = &value, .n_inputs = 1};
        mtprof_end(mtprof_op_begin(&site, &op));
    }
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.lost, 0);
    size_t in_full = tv_count(v, MTPROF_REC_INPUTS_INLINE);
    CHECK(in_full >= 20);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_INPUTS) + in_full, LISTS);
    for (size_t i = 0; i < v->count; i++) {
        const tv_record *p = &v->records[i];
        if (p->r.kind == MTPROF_REC_INPUTS_INLINE) {
            CHECK_EQ_U64(p->r.n_words, 2);
            CHECK_EQ_U64(p->r.words[0], MTPROF_INPUT_TENSOR | 1 << 8);
            CHECK(p->r.words[1] >= 64);
        }
    }
    tv_free(v);
}

/* ---- lists that are made known beforehand ---------------------------------------------------- */

static mtprof_inputs know(uint32_t float_type, const int64_t *sizes)
{
    const mtprof_value values[] = {
        {.kind = MTPROF_INPUT_TENSOR, .n_dims = 2, .type = float_type, .of.sizes = sizes},
        {.kind = MTPROF_INPUT_INT, .type = float_type, .of.integer = 0},
    };
    return mtprof_know_inputs(values, 2);
}

TEST(a_known_list_is_shown_with_the_calls_own_scalars)
{
    static mtprof_site known_site = MTPROF_SITE_INIT("known", MTPROF_KIND_OP);
    const int64_t sizes[] = {2, 3};
    mtprof_session *s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_INPUTS);
    uint32_t type = mtprof_intern("float", 5);
    mtprof_inputs known = know(type, sizes);
    CHECK(known.id != 0 && mtprof_inputs_are_known(known));
    CHECK_EQ_U64(know(type, sizes).id, known.id);
    CHECK(know(type, (const int64_t[]){2, 4}).id != known.id);
    uint64_t scalars[20] = {0};
    mtprof_op op = {.struct_size = sizeof op, .known = known, .scalars = scalars};
    for (uint32_t n = 1; n <= 20; n += 19) { /* the short way, and what does not fit there */
        scalars[0] = 40 + n;
        op.n_scalars = n;
        mtprof_end(mtprof_op_begin(&known_site, &op));
        mtprof_end(mtprof_op_begin(&known_site, &op));
    }
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.texts_cut, 0);
    REQUIRE_EQ_U64(v->n_spans, 4);
    for (uint32_t i = 0; i < 4; i++) {
        const tv_record *list = tv_payload(v, v->spans[i].begin, MTPROF_REC_INPUTS, 0);
        const tv_record *own = tv_payload(v, v->spans[i].begin, MTPROF_REC_SCALARS, 0);
        REQUIRE(list != NULL && own != NULL);
        CHECK_EQ_U64(list->r.arg, known.id);
    }
    tv_free(v);
}

TEST(what_another_recording_knew_is_left_out_and_counted)
{
    static mtprof_site stale_site = MTPROF_SITE_INIT("stale", MTPROF_KIND_OP);
    const int64_t sizes[] = {2, 3};
    CHECK_EQ_U64(know(1, sizes).id, 0); /* nothing records */
    mtprof_session *s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_INPUTS);
    uint32_t type = mtprof_intern("float", 5);
    mtprof_inputs known = know(type, sizes);
    tv_free(tv_finish(s, NULL));
    s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_INPUTS);
    CHECK(!mtprof_inputs_are_known(known));
    CHECK_EQ_U64(mtprof_know_inputs(NULL, 1).id, 0);
    mtprof_op op = {.struct_size = sizeof op, .known = known};
    mtprof_end(mtprof_op_begin(&stale_site, &op));
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.texts_cut, 1);
    REQUIRE_EQ_U64(v->n_spans, 1);
    CHECK(tv_payload(v, v->spans[0].begin, MTPROF_REC_INPUTS, 0) == NULL);
    tv_free(v);
    s = tv_start(MTPROF_WANT_OPS);
    CHECK_EQ_U64(know(type, sizes).id, 0); /* not wanted */
    tv_free(tv_finish(s, NULL));
}
