/* SPDX-License-Identifier: Apache-2.0
 *
 * Payloads of ops: for each flag, with it the values come back exactly, without it there is no such
 * record (include/mtprof/op.h).
 */
#include "base/compiler.h"
#include "harness/mt_test.h"
#include "support/traces/trace_view.h"

#include <mtprof/op.h>

#include <stdlib.h>
#include <string.h>

static mtprof_site site = MTPROF_SITE_INIT("op", MTPROF_KIND_OP);

/* Everything at once: what is wanted decides what is kept. */
typedef struct full_op {
    mtprof_op op;
    mtprof_value inputs[2];
    int64_t sizes[2], strides[2];
    mtprof_tensor_ref tensors[2], outputs[1];
} full_op;

static void fill(full_op *f)
{
    memset(f, 0, sizeof *f);
    f->sizes[0] = 3;
    f->sizes[1] = -1;
    f->strides[0] = 1;
    f->strides[1] = INT64_MIN;
    f->inputs[0] = (mtprof_value){.kind = MTPROF_INPUT_TENSOR,
                                  .n_dims = 2,
                                  .type = mtprof_intern("float", 5),
                                  .of.sizes = f->sizes,
                                  .strides = f->strides};
    f->inputs[1] = (mtprof_value){.kind = MTPROF_INPUT_INT, .of.integer = -7};
    f->tensors[0] = (mtprof_tensor_ref){1, 2, -3, 4, 5, MTPROF_TENSOR_GRADIENT};
    f->tensors[1] = (mtprof_tensor_ref){UINT64_MAX, 7, INT64_MAX, UINT32_MAX, 1, 0};
    f->outputs[0] = (mtprof_tensor_ref){10, 20, 30, 40, 50, 0};
    f->op = (mtprof_op){
        .struct_size = sizeof f->op,
        .fields = MTPROF_OP_SEQUENCE | MTPROF_OP_FORWARD_THREAD | MTPROF_OP_OVERLOAD |
                  MTPROF_OP_RECORD_SCOPE | MTPROF_OP_FLOPS | MTPROF_OP_MODULE |
                  MTPROF_OP_CORRELATION | MTPROF_OP_MEMORY,
        .inputs = f->inputs,
        .n_inputs = 2,
        .tensors = f->tensors,
        .n_tensors = 2,
        .sequence = UINT64_MAX,
        .forward_thread = 17,
        .overload = mtprof_intern("Tensor", 6),
        .record_scope = 3,
        .flops = (uint64_t)1 << 63,
        .module = mtprof_intern("net.0.linear", 12),
        .correlation = 99,
        .memory_before = ((uint64_t)1 << 48) - 1,
        .memory_device = 1,
    };
}

/* One op under these wants, read back. */
static trace_view *record_one(uint64_t wants)
{
    full_op f;
    fill(&f);
    mtprof_session *s = tv_start(wants);
    uint32_t frame = mtprof_define_frame("f", 1, "f.py", 4, 10);
    f.op.stack = mtprof_stack(&frame, 1);
    mtprof_token token = mtprof_op_begin(&site, &f.op);
    CHECK(token != 0);
    mtprof_op_outputs(token, f.outputs, 1);
    mtprof_alloc(1, 0xABC0, 64, 1000, 2000);
    mtprof_out_of_memory(1, 4096, 1000, 2000);
    mtprof_op_end(token, 2, 77);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.lost, 0);
    CHECK_EQ_U64(h.texts_cut, 0);
    CHECK_EQ_U64(h.truncated, 0);
    CHECK_EQ_U64(h.begins, 1);
    CHECK_EQ_U64(h.others, (wants & MTPROF_WANT_ALLOCS) != 0 ? 2 : 0);
    return v;
}

enum {
    ALL_WANTS = 0x7FFF
};

/* Kinds that one flag alone brings in. */
static const struct flag_case {
    const char *what;
    uint64_t wants;
    uint8_t kinds[4];
} flag_cases[] = {
    {"inputs",
     MTPROF_WANT_INPUTS,
     {MTPROF_REC_INPUTS, MTPROF_REC_SCALARS, MTPROF_REC_DEF_INPUTS, 0}},
    {"tensors", MTPROF_WANT_TENSORS, {MTPROF_REC_TENSORS, 0, 0, 0}},
    {"stacks",
     MTPROF_WANT_STACKS,
     {MTPROF_REC_STACK, MTPROF_REC_DEF_STACK, MTPROF_REC_DEF_FRAME, 0}},
    {"memory", MTPROF_WANT_MEMORY, {MTPROF_REC_MEM_BEFORE, MTPROF_REC_MEM_AFTER, 0, 0}},
    {"allocs",
     MTPROF_WANT_ALLOCS,
     {MTPROF_REC_ALLOC, MTPROF_REC_RESERVED, MTPROF_REC_OUT_OF_MEMORY, 0}},
    {"flops", MTPROF_WANT_FLOPS, {MTPROF_REC_OPINFO, 0, 0, 0}},
    {"modules", MTPROF_WANT_MODULES, {MTPROF_REC_OPINFO, 0, 0, 0}},
    {"details", MTPROF_WANT_DETAILS, {MTPROF_REC_OPINFO, 0, 0, 0}},
    {"native stacks",
     MTPROF_WANT_NATIVE_STACKS,
     {MTPROF_REC_STACK, MTPROF_REC_DEF_STACK, MTPROF_REC_DEF_FRAME, MTPROF_REC_DEF_MODULE}},
};

static const uint8_t payload_kinds[] = {
    MTPROF_REC_META,       MTPROF_REC_NAME,         MTPROF_REC_INPUTS_INLINE, MTPROF_REC_SCALARS,
    MTPROF_REC_TENSORS,    MTPROF_REC_OPINFO,       MTPROF_REC_ATTACH,        MTPROF_REC_INPUTS,
    MTPROF_REC_STACK,      MTPROF_REC_MEM_BEFORE,   MTPROF_REC_MEM_AFTER,     MTPROF_REC_ALLOC,
    MTPROF_REC_RESERVED,   MTPROF_REC_DEF_INPUTS,   MTPROF_REC_DEF_FRAME,     MTPROF_REC_DEF_STACK,
    MTPROF_REC_DEF_MODULE, MTPROF_REC_OUT_OF_MEMORY};

static bool is_among(uint8_t kind, const uint8_t kinds[4])
{
    return memchr(kinds, kind, 4) != NULL;
}

TEST(without_a_flag_there_is_no_payload_at_all)
{
    trace_view *v = record_one(MTPROF_WANT_OPS);
    for (size_t i = 0; i < sizeof payload_kinds; i++) {
        if (tv_count(v, payload_kinds[i]) != 0) {
            FAIL("a record of kind 0x%02x was not wanted", payload_kinds[i]);
        }
    }
    const tv_record *begin = tv_nth(v, MTPROF_REC_BEGIN, 0);
    REQUIRE(begin != NULL);
    CHECK_EQ_U64(begin->r.aux, MTPROF_KIND_OP); /* no "payloads follow" */
    tv_free(v);
}

TEST(each_flag_brings_its_own_records_and_no_others)
{
    for (size_t i = 0; i < sizeof flag_cases / sizeof flag_cases[0]; i++) {
        const struct flag_case *c = &flag_cases[i];
        trace_view *v = record_one(MTPROF_WANT_OPS | c->wants);
        for (size_t k = 0; k < sizeof payload_kinds; k++) {
            bool wanted = is_among(payload_kinds[k], c->kinds);
            if ((tv_count(v, payload_kinds[k]) != 0) != wanted) {
                FAIL("%s: kind 0x%02x is %s", c->what, payload_kinds[k],
                     wanted ? "missing" : "there unasked");
            }
        }
        tv_free(v);
    }
}

TEST(each_flag_taken_away_takes_its_records_away)
{
    static const uint8_t opinfo_bits[] = {[5] = MTPROF_OP_FLOPS, [6] = MTPROF_OP_MODULE};
    for (size_t i = 0; i < sizeof flag_cases / sizeof flag_cases[0]; i++) {
        const struct flag_case *c = &flag_cases[i];
        uint64_t wants = ALL_WANTS & ~c->wants;
        if ((c->wants & (MTPROF_WANT_STACKS | MTPROF_WANT_NATIVE_STACKS)) != 0) {
            wants &= ~(uint64_t)(MTPROF_WANT_STACKS | MTPROF_WANT_NATIVE_STACKS);
        }
        trace_view *v = record_one(wants);
        const tv_record *info = tv_nth(v, MTPROF_REC_OPINFO, 0);
        if (c->kinds[0] == MTPROF_REC_OPINFO) {
            uint32_t gone = i < sizeof opinfo_bits ? opinfo_bits[i] : 0;
            gone = gone != 0 ? gone : 0x7Fu & ~(uint32_t)(MTPROF_OP_FLOPS | MTPROF_OP_MODULE);
            REQUIRE(info != NULL);
            CHECK_EQ_U64(info->r.aux, 0x7Fu & ~gone);
        } else {
            CHECK_EQ_U64(tv_count(v, c->kinds[0]), 0);
            REQUIRE(info != NULL);
            CHECK_EQ_U64(info->r.aux, 0x7F);
        }
        tv_free(v);
    }
}

TEST(every_value_comes_back_exactly)
{
    full_op f;
    fill(&f);
    trace_view *v = record_one(ALL_WANTS & ~(uint64_t)MTPROF_WANT_NATIVE_STACKS);
    const tv_record *begin = tv_event(v, MTPROF_REC_BEGIN, "op", 0);
    REQUIRE(begin != NULL);
    CHECK_EQ_U64(begin->r.aux, MTPROF_KIND_OP | MTPROF_FLAG_PAYLOAD);
    const tv_record *p = tv_payload(v, begin, MTPROF_REC_INPUTS, 0);
    const uint64_t *words = NULL;
    uint32_t n_words = 0;
    REQUIRE(p != NULL && mtprof_reader_inputs(v->reader, p->r.arg, &words, &n_words));
    const uint64_t list[] = {MTPROF_INPUT_TENSOR | 2 << 8 | 1 << 16 |
                                 (uint64_t)mtprof_intern("float", 5) << 32,
                             3,
                             (uint64_t)-1,
                             1,
                             (uint64_t)INT64_MIN,
                             MTPROF_INPUT_INT};
    REQUIRE_EQ_U64(n_words, 6);
    CHECK_EQ_MEM(words, list, sizeof list);
    p = tv_payload(v, begin, MTPROF_REC_SCALARS, 0);
    REQUIRE(p != NULL);
    CHECK_EQ_U64(p->r.aux, 1);
    CHECK_EQ_I64((int64_t)p->r.words[0], -7);

    p = tv_payload(v, begin, MTPROF_REC_TENSORS, 0);
    REQUIRE(p != NULL);
    CHECK_EQ_U64(p->r.aux, 0);
    REQUIRE_EQ_U64(p->r.n_words, 8);
    CHECK_EQ_MEM(p->r.words, f.tensors, sizeof f.tensors);
    p = tv_payload(v, begin, MTPROF_REC_TENSORS, 1);
    REQUIRE(p != NULL);
    CHECK_EQ_U64(p->r.aux, 1);
    REQUIRE_EQ_U64(p->r.n_words, 4);
    CHECK_EQ_MEM(p->r.words, f.outputs, sizeof f.outputs);

    p = tv_payload(v, begin, MTPROF_REC_OPINFO, 0);
    REQUIRE(p != NULL);
    CHECK_EQ_U64(p->r.aux, 0x7F);
    const uint64_t info[] = {f.op.sequence, 17, f.op.overload, 3, f.op.flops, f.op.module, 99};
    REQUIRE_EQ_U64(p->r.n_words, 7);
    CHECK_EQ_MEM(p->r.words, info, sizeof info);
    CHECK_EQ_STR(tv_string(v, p->r.words[2]), "Tensor");
    CHECK_EQ_STR(tv_string(v, p->r.words[5]), "net.0.linear");

    p = tv_payload(v, begin, MTPROF_REC_STACK, 0);
    uint32_t parent = 1, frame_id = 0;
    mtprof_frame frame;
    REQUIRE(p != NULL && mtprof_reader_stack(v->reader, p->r.arg, &parent, &frame_id));
    CHECK_EQ_U64(parent, 0);
    REQUIRE(mtprof_reader_frame(v->reader, frame_id, &frame));
    CHECK_EQ_STR(frame.function.bytes, "f");
    CHECK_EQ_STR(frame.file.bytes, "f.py");
    CHECK_EQ_U64(frame.line, 10);
    CHECK_EQ_U64(frame.address, 0);

    p = tv_payload(v, begin, MTPROF_REC_MEM_BEFORE, 0);
    REQUIRE(p != NULL);
    CHECK_EQ_U64(p->r.word >> 8 & 0xFF, 1);
    CHECK_EQ_U64(p->r.word >> 16, ((uint64_t)1 << 48) - 1);
    p = tv_payload(v, begin, MTPROF_REC_MEM_AFTER, 0);
    REQUIRE(p != NULL);
    CHECK_EQ_U64(p->r.word >> 8 & 0xFF, 2);
    CHECK_EQ_U64(p->r.word >> 16, 77);
    tv_free(v);
}

TEST(strides_are_a_flag_of_their_own)
{
    trace_view *v = record_one(MTPROF_WANT_OPS | MTPROF_WANT_INPUTS);
    const tv_record *p = tv_nth(v, MTPROF_REC_DEF_INPUTS, 0);
    REQUIRE(p != NULL);
    CHECK_EQ_U64(p->r.n_words, 4);
    CHECK_EQ_U64(p->r.words[0] >> 16 & 1, 0);
    tv_free(v);
    v = record_one(MTPROF_WANT_OPS | MTPROF_WANT_INPUTS | MTPROF_WANT_STRIDES);
    p = tv_nth(v, MTPROF_REC_DEF_INPUTS, 0);
    REQUIRE(p != NULL);
    CHECK_EQ_U64(p->r.n_words, 6);
    CHECK_EQ_U64(p->r.words[0] >> 16 & 1, 1);
    tv_free(v);
}

TEST(details_that_are_not_set_are_absent)
{
    for (uint32_t bit = 0; bit < 7; bit++) {
        full_op f;
        fill(&f);
        f.op.fields = 1u << bit;
        mtprof_session *s = tv_start(ALL_WANTS & ~(uint64_t)MTPROF_WANT_NATIVE_STACKS);
        mtprof_end(mtprof_op_begin(&site, &f.op));
        trace_view *v = tv_finish(s, NULL);
        const tv_record *p = tv_nth(v, MTPROF_REC_OPINFO, 0);
        REQUIRE(p != NULL);
        CHECK_EQ_U64(p->r.aux, 1u << bit);
        CHECK_EQ_U64(p->r.n_words, 1);
        CHECK_EQ_U64(tv_count(v, MTPROF_REC_MEM_BEFORE), 0);
        tv_free(v);
    }
}

TEST(an_op_without_payloads_is_a_plain_begin)
{
    mtprof_session *s = tv_start(ALL_WANTS & ~(uint64_t)MTPROF_WANT_NATIVE_STACKS);
    mtprof_op empty = {.struct_size = sizeof empty};
    mtprof_end(mtprof_op_begin(&site, &empty));
    mtprof_end(mtprof_op_begin(&site, NULL));
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(v->n_spans, 2);
    for (size_t i = 0; i < v->n_spans; i++) {
        CHECK_EQ_U64(v->spans[i].begin->r.kind, MTPROF_REC_BEGIN);
        CHECK_EQ_U64(v->spans[i].begin->r.aux, MTPROF_KIND_OP);
        CHECK_EQ_U64(v->spans[i].begin->r.n_words, 1); /* 16 bytes */
    }
    tv_free(v);
}

TEST(a_shorter_struct_of_an_older_program_works)
{
    full_op f;
    fill(&f);
    size_t old_size = offsetof(mtprof_op, flops);
    char *old = malloc(old_size); /* exactly: reading past it is an error that sanitizers see */
    REQUIRE(old != NULL);
    f.op.struct_size = (uint32_t)old_size;
    f.op.fields = MTPROF_OP_SEQUENCE | MTPROF_OP_MODULE;
    memcpy(old, &f.op, old_size);
    mtprof_session *s = tv_start(ALL_WANTS & ~(uint64_t)MTPROF_WANT_NATIVE_STACKS);
    mtprof_end(mtprof_op_begin(&site, (const mtprof_op *)(const void *)old));
    trace_view *v = tv_finish(s, NULL);
    const tv_record *p = tv_nth(v, MTPROF_REC_OPINFO, 0);
    REQUIRE(p != NULL);
    CHECK_EQ_U64(p->r.aux, MTPROF_OP_SEQUENCE | MTPROF_OP_MODULE);
    CHECK_EQ_U64(p->r.words[0], UINT64_MAX);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_STACK), 0);
    tv_free(v);
    free(old);
}

TEST(an_op_may_name_its_parent_and_still_have_payloads)
{
    full_op f;
    fill(&f);
    mtprof_session *s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_SCOPES | MTPROF_WANT_FLOPS);
    mtprof_token root = mtprof_begin_named("root", 4, 0);
    mtprof_token other = mtprof_begin_named("other", 5, 0);
    f.op.fields |= MTPROF_OP_PARENT;
    f.op.parent = root;
    mtprof_end(mtprof_op_begin(&site, &f.op));
    mtprof_end(other);
    mtprof_end(root);
    trace_view *v = tv_finish(s, NULL);
    const tv_span *span = tv_span_named(v, "op");
    REQUIRE(span != NULL);
    CHECK_EQ_STR(tv_parent_name(v, span), "root");
    CHECK(tv_payload(v, span->begin, MTPROF_REC_OPINFO, 0) != NULL);
    tv_free(v);
}

TEST(outputs_find_their_op_early_late_and_after_its_end)
{
    const mtprof_tensor_ref out[3] = {
        {.tensor = 1, .storage = 1}, {.tensor = 2, .storage = 2}, {.tensor = 3, .storage = 3}};
    mtprof_session *s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_TENSORS);
    mtprof_token a = mtprof_begin(&site);
    mtprof_op_outputs(a, &out[0], 1);
    mtprof_token b = mtprof_begin(&site);
    mtprof_end(b);
    mtprof_op_outputs(b, &out[1], 1);
    mtprof_op_outputs(a, &out[2], 1);
    mtprof_op_outputs(a, NULL, 1);
    mtprof_op_outputs(a, out, 0);
    mtprof_op_outputs(0, out, 1);
    mtprof_end(a);
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_TENSORS), 3);
    REQUIRE_EQ_U64(v->n_spans, 2);
    const tv_record *first = tv_payload(v, v->spans[0].begin, MTPROF_REC_TENSORS, 0);
    const tv_record *last = tv_payload(v, v->spans[0].begin, MTPROF_REC_TENSORS, 1);
    const tv_record *inner = tv_payload(v, v->spans[1].begin, MTPROF_REC_TENSORS, 0);
    REQUIRE(first != NULL && last != NULL && inner != NULL);
    CHECK_EQ_U64(first->r.words[0], 1);
    CHECK_EQ_U64(last->r.words[0], 3);
    CHECK_EQ_U64(inner->r.words[0], 2);
    tv_free(v);
}

/* As many TENSORS records as needed, each after the begin of its op or attached to it. */
static void check_tensors(const trace_view *v, const tv_record *begin, uint32_t outputs,
                          uint64_t first, uint64_t count)
{
    uint64_t seen = 0;
    const tv_record *p;
    for (uint32_t nth = 0; (p = tv_payload(v, begin, MTPROF_REC_TENSORS, nth)) != NULL; nth++) {
        for (uint32_t i = 0; p->r.aux == outputs && i < p->r.n_words; i += 4) {
            CHECK_EQ_U64(p->r.words[i], first + seen++);
        }
    }
    CHECK_EQ_U64(seen, count);
}

/* The node's number is known when the scope around it is open already. */
TEST(details_may_come_after_the_begin)
{
    static mtprof_site outer = MTPROF_SITE_INIT("outer", MTPROF_KIND_OP);
    mtprof_op later = {.struct_size = sizeof later,
                       .fields = MTPROF_OP_SEQUENCE | MTPROF_OP_FORWARD_THREAD | MTPROF_OP_FLOPS,
                       .sequence = 41,
                       .forward_thread = 3,
                       .flops = 9}; /* not wanted here */
    mtprof_op_details(5, &later);   /* nothing records */
    mtprof_session *s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_DETAILS);
    mtprof_token token = mtprof_begin(&outer);
    mtprof_token inside = mtprof_begin(&outer);
    mtprof_op_details(token, &later);
    mtprof_op_details(0, &later);
    mtprof_op_details(token, NULL);
    mtprof_end(inside);
    mtprof_end(token);
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_OPINFO), 1);
    const tv_record *attach = tv_nth(v, MTPROF_REC_ATTACH, 0);
    const tv_record *info = tv_nth(v, MTPROF_REC_OPINFO, 0);
    REQUIRE(attach != NULL && info != NULL);
    CHECK_EQ_U64(attach->r.words[0], mtprof_launch_key(token));
    CHECK_EQ_U64(info->r.aux, MTPROF_OP_SEQUENCE | MTPROF_OP_FORWARD_THREAD);
    CHECK_EQ_U64(info->r.words[0], 41);
    CHECK_EQ_U64(info->r.words[1], 3);
    tv_free(v);
}

TEST(all_tensors_of_an_op_are_kept_however_many)
{
    static const uint32_t counts[] = {1, 8, 9, 63, 64, 101, 1000, 5000};
    static mtprof_tensor_ref many[5000];
    for (uint64_t i = 0; i < MT_COUNT(many); i++) {
        many[i].tensor = i + 1;
    }
    mtprof_session *s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_TENSORS);
    for (size_t i = 0; i < MT_COUNT(counts); i++) {
        mtprof_op op = {.struct_size = sizeof op, .tensors = many, .n_tensors = counts[i]};
        mtprof_token token = mtprof_op_begin(&site, &op);
        mtprof_end(mtprof_begin(&site));
        mtprof_op_outputs(token, many + 1, counts[i] - 1);
        mtprof_end(token);
    }
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.texts_cut, 0);
    REQUIRE_EQ_U64(v->n_spans, 2 * MT_COUNT(counts));
    for (size_t i = 0; i < MT_COUNT(counts); i++) {
        check_tensors(v, v->spans[2 * i].begin, 0, 1, counts[i]);
        check_tensors(v, v->spans[2 * i].begin, 1, 2, counts[i] - 1);
        check_tensors(v, v->spans[2 * i + 1].begin, 0, 0, 0);
    }
    tv_free(v);
}

/* Scalars and tensors leave nothing of a batch; what follows them has room of its own. */
TEST(details_and_memory_find_room_behind_a_full_batch)
{
    static const int64_t sizes[] = {2};
    static const mtprof_value input = {.kind = MTPROF_INPUT_TENSOR, .n_dims = 1, .of.sizes = sizes};
    static mtprof_tensor_ref many[200];
    static uint64_t scalars[253];
    mtprof_session *s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_TENSORS | MTPROF_WANT_INPUTS |
                                 MTPROF_WANT_DETAILS | MTPROF_WANT_MEMORY);
    mtprof_op op = {.struct_size = sizeof op,
                    .fields = MTPROF_OP_SEQUENCE | MTPROF_OP_MEMORY,
                    .known = mtprof_know_inputs(&input, 1),
                    .scalars = scalars,
                    .tensors = many,
                    .n_tensors = MT_COUNT(many),
                    .sequence = 77,
                    .memory_before = 4096};
    for (op.n_scalars = 240; op.n_scalars <= MT_COUNT(scalars); op.n_scalars++) {
        mtprof_end(mtprof_op_begin(&site, &op));
    }
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.texts_cut, 0);
    REQUIRE_EQ_U64(v->n_spans, 14);
    for (size_t i = 0; i < v->n_spans; i++) {
        const tv_record *begin = v->spans[i].begin;
        const tv_record *info = tv_payload(v, begin, MTPROF_REC_OPINFO, 0);
        const tv_record *memory = tv_payload(v, begin, MTPROF_REC_MEM_BEFORE, 0);
        const tv_record *scalar = tv_payload(v, begin, MTPROF_REC_SCALARS, 0);
        REQUIRE(info != NULL && memory != NULL && scalar != NULL);
        CHECK_EQ_U64(info->r.words[0], 77);
        CHECK_EQ_U64(memory->r.word >> 16, 4096);
        CHECK_EQ_U64(scalar->r.aux, 240 + i);
    }
    tv_free(v);
}

TEST(tensors_and_inputs_that_could_not_be_told_are_counted)
{
    mtprof_op op = {.struct_size = sizeof op, .n_tensors = 3};
    mtprof_session *s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_TENSORS | MTPROF_WANT_INPUTS);
    mtprof_token token = mtprof_op_begin(&site, &op);
    mtprof_op_outputs(token, NULL, 3);
    mtprof_end(token);
    op.n_tensors = 0;
    op.n_inputs = 1;
    mtprof_end(mtprof_op_begin(&site, &op));
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.texts_cut, 3);
    CHECK_EQ_U64(h.begins, 2);
    tv_free(v);
}
