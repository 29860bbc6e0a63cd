/* SPDX-License-Identifier: Apache-2.0
 *
 * Call stacks: frames of the host's language, and native ones by frame pointers.
 */
#include "harness/mt_test.h"
#include "support/traces/trace_view.h"

#include <mtprof/op.h>

#include <dlfcn.h>
#include <string.h>

static mtprof_site site = MTPROF_SITE_INIT("op", MTPROF_KIND_OP);

static uint32_t frame(const char *function, uint32_t line)
{
    return mtprof_define_frame(function, strlen(function), "model.py", 8, line);
}

static mtprof_token begin_with(uint32_t stack)
{
    mtprof_op op = {.struct_size = sizeof op, .stack = stack};
    return mtprof_op_begin(&site, &op);
}

/* The stack of an op, innermost first; how many frames it has. */
static uint32_t stack_of(const trace_view *v, const tv_record *begin, mtprof_frame *frames,
                         uint32_t max)
{
    const tv_record *p = tv_payload(v, begin, MTPROF_REC_STACK, 0);
    uint32_t count = 0;
    uint32_t node = p != NULL ? p->r.arg : 0;
    while (node != 0 && count < max) {
        uint32_t id;
        REQUIRE(mtprof_reader_stack(v->reader, node, &node, &id));
        REQUIRE(mtprof_reader_frame(v->reader, id, &frames[count++]));
    }
    return count;
}

/* ---- host frames ----------------------------------------------------------------------------- */

TEST(a_stack_comes_back_frame_by_frame)
{
    mtprof_session *s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_STACKS);
    const uint32_t frames[] = {frame("main", 1), frame("forward", 2), frame("linear", 3)};
    mtprof_end(begin_with(mtprof_stack(frames, 3)));
    trace_view *v = tv_finish(s, NULL);
    mtprof_frame found[8];
    REQUIRE_EQ_U64(v->n_spans, 1);
    REQUIRE_EQ_U64(stack_of(v, v->spans[0].begin, found, 8), 3);
    CHECK_EQ_STR(found[0].function.bytes, "linear");
    CHECK_EQ_STR(found[1].function.bytes, "forward");
    CHECK_EQ_STR(found[2].function.bytes, "main");
    CHECK_EQ_STR(found[1].file.bytes, "model.py");
    CHECK_EQ_U64(found[1].line, 2);
    CHECK_EQ_U64(found[1].address, 0);
    tv_free(v);
}

TEST(stacks_that_share_their_outer_part_share_its_nodes)
{
    mtprof_session *s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_STACKS);
    uint32_t outer = mtprof_stack_push(mtprof_stack_push(0, frame("main", 1)), frame("loop", 2));
    uint32_t a = mtprof_stack_push(outer, frame("a", 3));
    uint32_t b = mtprof_stack_push(outer, frame("b", 4));
    CHECK(outer != 0 && a != 0 && b != 0 && a != b);
    const uint32_t same[] = {frame("main", 1), frame("loop", 2), frame("a", 3)};
    CHECK_EQ_U64(mtprof_stack(same, 3), a);
    CHECK_EQ_U64(mtprof_stack_push(outer, frame("a", 3)), a);
    CHECK(mtprof_stack_push(0, frame("a", 3)) != a); /* another place in the tree */
    mtprof_end(begin_with(a));
    mtprof_end(begin_with(b));
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_DEF_STACK), 5);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_DEF_FRAME), 4);
    tv_free(v);
}

TEST(equal_frames_have_equal_ids_for_the_whole_process)
{
    uint32_t f = frame("f", 1);
    CHECK(f != 0);
    CHECK_EQ_U64(frame("f", 1), f);
    CHECK(frame("f", 2) != f);
    CHECK(frame("g", 1) != f);
    CHECK(mtprof_define_frame("f", 1, "other.py", 8, 1) != f);
    for (int turn = 0; turn < 2; turn++) { /* each recording gets them again */
        mtprof_session *s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_STACKS);
        mtprof_end(begin_with(mtprof_stack(&f, 1)));
        trace_view *v = tv_finish(s, NULL);
        mtprof_frame found[2];
        REQUIRE_EQ_U64(v->n_spans, 1);
        REQUIRE_EQ_U64(stack_of(v, v->spans[0].begin, found, 2), 1);
        CHECK_EQ_STR(found[0].function.bytes, "f");
        tv_free(v);
    }
}

TEST(recursion_makes_a_stack_as_deep_as_it_is)
{
    enum {
        DEPTH = 200 /* also the hostile build has room for it */
    };
    uint32_t frames[DEPTH];
    mtprof_frame found[DEPTH + 1];
    mtprof_session *s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_STACKS);
    for (uint32_t i = 0; i < DEPTH; i++) {
        frames[i] = frame("again", 7);
    }
    mtprof_end(begin_with(mtprof_stack(frames, DEPTH)));
    trace_view *v = tv_finish(s, NULL);
    REQUIRE_EQ_U64(v->n_spans, 1);
    CHECK_EQ_U64(stack_of(v, v->spans[0].begin, found, DEPTH + 1), DEPTH);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_DEF_FRAME), 1);
    tv_free(v);
}

TEST(nothing_comes_of_stacks_that_nobody_wants)
{
    uint32_t f = frame("f", 1);
    CHECK_EQ_U64(mtprof_stack(&f, 1), 0);
    CHECK_EQ_U64(mtprof_stack_push(0, f), 0);
    CHECK_EQ_U64(mtprof_stack_native(0), 0);
    mtprof_session *s = tv_start(MTPROF_WANT_OPS);
    CHECK_EQ_U64(mtprof_stack(&f, 1), 0);
    CHECK_EQ_U64(mtprof_stack_native(0), 0);
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_DEF_STACK), 0);
    tv_free(v);
}

TEST(frames_and_nodes_that_do_not_exist_are_refused_and_counted)
{
    uint32_t f = frame("f", 1);
    mtprof_session *s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_STACKS);
    CHECK_EQ_U64(mtprof_stack_push(0, 0), 0);
    CHECK_EQ_U64(mtprof_stack_push(0, 1u << 30), 0);
    CHECK_EQ_U64(mtprof_stack_push(12345, f), 0);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.texts_cut, 3);
    tv_free(v);
}

/* ---- native stacks --------------------------------------------------------------------------- */

static __attribute__((noinline)) mtprof_token native_inner(void)
{
    mtprof_op op = {.struct_size = sizeof op};
    mtprof_token token = mtprof_op_begin(&site, &op);
    __asm__ volatile("" ::: "memory");
    return token;
}

static __attribute__((noinline)) mtprof_token native_outer(void)
{
    mtprof_token token = native_inner();
    __asm__ volatile("" ::: "memory");
    return token;
}

/* Whether an address lies in a function of ours; functions are small and near each other. */
static bool lies_in(uint64_t address, mtprof_token (*function)(void))
{
    uint64_t start = (uint64_t)(uintptr_t)function;
    return address > start && address < start + 768;
}

TEST(a_native_stack_leads_through_its_callers)
{
    mtprof_session *s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_NATIVE_STACKS);
    mtprof_end(native_outer());
    trace_view *v = tv_finish(s, NULL);
    mtprof_frame found[128];
    REQUIRE_EQ_U64(v->n_spans, 1);
    uint32_t count = stack_of(v, v->spans[0].begin, found, 128);
    REQUIRE(count >= 3);
    /* A compiler that does not inline mtprof_op_begin() adds its frame in front. */
    bool leads = false;
    for (uint32_t at = 0; at < 2; at++) {
        leads = leads || (lies_in(found[at].address, native_inner) &&
                          lies_in(found[at + 1].address, native_outer));
    }
    CHECK(leads);
    CHECK_EQ_U64(found[0].function.length, 0);
    CHECK_EQ_U64(found[0].line, 0);
    tv_free(v);
}

static uint32_t asked[2];

static __attribute__((noinline)) void ask_stack(void)
{
    asked[0] = mtprof_stack_native(0);
    asked[1] = mtprof_stack_native(1);
    __asm__ volatile("" ::: "memory");
}

TEST(the_innermost_frames_can_be_left_out)
{
    mtprof_session *s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_STACKS);
    ask_stack();
    mtprof_end(begin_with(asked[0]));
    mtprof_end(begin_with(asked[1]));
    trace_view *v = tv_finish(s, NULL);
    mtprof_frame whole[128], shorter[128];
    REQUIRE_EQ_U64(v->n_spans, 2);
    uint32_t n = stack_of(v, v->spans[0].begin, whole, 128);
    REQUIRE(n > 1);
    REQUIRE_EQ_U64(stack_of(v, v->spans[1].begin, shorter, 128), n - 1);
    for (uint32_t i = 1; i + 1 < n; i++) {
        CHECK_EQ_U64(shorter[i].address, whole[i + 1].address);
    }
    tv_free(v);
}

TEST(a_stack_of_the_host_goes_before_a_native_one)
{
    uint32_t f = frame("python", 5);
    mtprof_session *s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_STACKS | MTPROF_WANT_NATIVE_STACKS);
    mtprof_end(begin_with(mtprof_stack(&f, 1)));
    mtprof_end(begin_with(0));
    trace_view *v = tv_finish(s, NULL);
    mtprof_frame found[128];
    REQUIRE_EQ_U64(v->n_spans, 2);
    REQUIRE_EQ_U64(stack_of(v, v->spans[0].begin, found, 128), 1);
    CHECK_EQ_STR(found[0].function.bytes, "python");
    CHECK(stack_of(v, v->spans[1].begin, found, 128) > 1);
    CHECK(found[0].address != 0);
    tv_free(v);
}

TEST(native_addresses_lie_in_modules_that_the_trace_names)
{
    mtprof_session *s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_NATIVE_STACKS);
    mtprof_end(native_outer());
    trace_view *v = tv_finish(s, NULL);
    Dl_info here;
    REQUIRE(dladdr((void *)(uintptr_t)native_inner, &here) != 0);
    mtprof_frame found[128];
    REQUIRE_EQ_U64(v->n_spans, 1);
    uint32_t count = stack_of(v, v->spans[0].begin, found, 128);
    uint64_t address = count > 0 ? found[0].address : 0;
    bool known = false;
    mtprof_module_info module;
    for (uint32_t i = 0; mtprof_reader_module(v->reader, i, &module); i++) {
        CHECK(module.start < module.end);
        CHECK(module.path.length > 0 || module.start > address);
        if (module.start <= address && address < module.end) {
            known =
                strcmp(strrchr(module.path.bytes, '/') + 1, strrchr(mt_test_self(), '/') + 1) == 0;
        }
    }
    CHECK(known);
    tv_free(v);
}
