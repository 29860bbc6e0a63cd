/* SPDX-License-Identifier: Apache-2.0
 *
 * Definitions: what the sample defines, repetition, references, stacks that end.
 */
#include "harness/mt_test.h"
#include "mtprof/read/record_check.h"
#include "support/traces/trace_builder.h"

#include <mtprof/reader.h>

#include <stdio.h>
#include <string.h>

static uint64_t pair(uint64_t low, uint64_t high)
{
    return low | high << 32;
}

static mtprof_reader *open_finished(trace_builder *b, tb_memory *memory)
{
    mtprof_reader *reader = NULL;
    tb_finish(b, true);
    *memory = (tb_memory){.bytes = b->bytes, .size = b->size};
    mtprof_bytes bytes = tb_bytes(memory);
    REQUIRE_OK(mtprof_reader_open_bytes(&bytes, &reader));
    return reader;
}

/* The problems' offsets are these, in order, and no more. */
static void check_problems(const mtprof_reader *reader, size_t n, const uint64_t *offsets)
{
    mtprof_problem problem;
    for (uint32_t i = 0; i < n; i++) {
        if (!mtprof_reader_problem(reader, i, &problem)) {
            FAIL("only %u problems, expected %zu", i, n);
            return;
        }
        if (problem.offset != offsets[i]) {
            FAIL("problem %u at %llu, expected %llu: %s", i, (unsigned long long)problem.offset,
                 (unsigned long long)offsets[i], problem.message);
        }
    }
    if (mtprof_reader_problem(reader, (uint32_t)n, &problem)) {
        FAIL("one more problem at %llu: %s", (unsigned long long)problem.offset, problem.message);
    }
}

static void check_text(mtprof_text text, const char *expected)
{
    CHECK_EQ_STR(text.bytes, expected);
    CHECK_EQ_U64(text.length, strlen(expected));
}

TEST(the_sample)
{
    trace_builder b;
    tb_memory memory;
    tb_sample(&b, false);
    mtprof_reader *reader = open_finished(&b, &memory);
    check_problems(reader, 0, NULL);
    mtprof_text text = {"", 0};
    mtprof_text file = {"", 0};
    uint32_t line = 0;
    CHECK(mtprof_reader_string(reader, 1, &text));
    check_text(text, "aten::add");
    CHECK(!mtprof_reader_location(reader, 1, &file, &line));
    CHECK(mtprof_reader_string(reader, 3, &text));
    check_text(text, "forward!"); /* eight bytes: the zero byte after it is ours */
    CHECK(mtprof_reader_location(reader, 3, &file, &line));
    check_text(file, "model.py");
    CHECK_EQ_U64(line, 77);
    CHECK(mtprof_reader_string(reader, 6, &text));
    check_text(text, "");
    CHECK(!mtprof_reader_string(reader, 7, &text));
    CHECK(!mtprof_reader_string(reader, UINT32_MAX, &text));
    CHECK(!mtprof_reader_location(reader, 7, &file, &line));

    const uint64_t *words = NULL;
    uint32_t n = 0;
    REQUIRE(mtprof_reader_inputs(reader, 1, &words, &n));
    CHECK_EQ_U64(n, 14);
    CHECK_EQ_U64(words[1], 32);
    CHECK(!mtprof_reader_inputs(reader, 2, &words, &n));

    mtprof_frame frame;
    REQUIRE(mtprof_reader_frame(reader, 1, &frame));
    check_text(frame.function, "forward!");
    check_text(frame.file, "model.py");
    CHECK_EQ_U64(frame.line, 77);
    REQUIRE(mtprof_reader_frame(reader, 2, &frame));
    check_text(frame.file, "");
    CHECK_EQ_U64(frame.address, 0xFFFF0010);
    CHECK(!mtprof_reader_frame(reader, 3, &frame));

    uint32_t parent = 9;
    uint32_t node = 9;
    CHECK(mtprof_reader_stack(reader, 2, &parent, &node));
    CHECK_EQ_U64(parent, 1);
    CHECK_EQ_U64(node, 2);
    CHECK(mtprof_reader_stack(reader, 1, &parent, &node));
    CHECK_EQ_U64(parent, 0);
    CHECK(!mtprof_reader_stack(reader, 0, &parent, &node));

    mtprof_thread_info thread;
    CHECK_EQ_U64(mtprof_reader_thread_count(reader), 2);
    REQUIRE(mtprof_reader_thread(reader, 1, &thread));
    CHECK_EQ_U64(thread.number, 1);
    CHECK_EQ_U64(thread.os_id, 4242);
    CHECK_EQ_U64(thread.pthread_id, 0x7F00);
    check_text(thread.name, "main thread");
    REQUIRE(mtprof_reader_thread(reader, 2, &thread));
    check_text(thread.name, "");
    CHECK(!mtprof_reader_thread(reader, 3, &thread));

    CHECK(mtprof_reader_source(reader, 0, &text, &file));
    check_text(text, "aten::add");
    check_text(file, "float");
    CHECK(!mtprof_reader_source(reader, 1, &text, &file));
    mtprof_module_info module;
    REQUIRE(mtprof_reader_module(reader, 0, &module));
    CHECK_EQ_U64(module.start, 0x1000);
    CHECK_EQ_U64(module.end, 0x2000);
    CHECK_EQ_U64(module.file_offset, 64);
    check_text(module.path, "model.py");
    CHECK(!mtprof_reader_module(reader, 1, &module));
    mtprof_reader_close(reader);
    tb_fini(&b);
}

TEST(repetition)
{
    trace_builder b;
    tb_memory memory;
    uint64_t bad[6];
    tb_init(&b);
    b.chunk_bytes = 8192;
    tb_chunk(&b, MTPROF_STREAM_DEFINITIONS, 0);
    for (int round = 0; round < 2; round++) { /* identical: fine */
        tb_string(&b, 5, "name");
        tb_record(&b, MTPROF_REC_DEF_INPUTS, 0, 5, 2, (uint64_t[]){3, 4});
        tb_record(&b, MTPROF_REC_DEF_FRAME, 0, 5, 3, (uint64_t[]){pair(5, 5), 1, 2});
        tb_record(&b, MTPROF_REC_DEF_STACK, 0, 5, 1, (uint64_t[]){pair(0, 5)});
        tb_record(&b, MTPROF_REC_DEF_SOURCE, 0, 5, 1, (uint64_t[]){pair(5, 5)});
        tb_record(&b, MTPROF_REC_DEF_THREAD, 0, 5, 3, (uint64_t[]){1 + round, 2, 5});
    }
    bad[0] = tb_string(&b, 5, "namf");
    bad[1] = tb_record(&b, MTPROF_REC_DEF_INPUTS, 0, 5, 1, (uint64_t[]){3});
    bad[2] = tb_record(&b, MTPROF_REC_DEF_FRAME, 0, 5, 3, (uint64_t[]){pair(5, 5), 1, 3});
    bad[3] = tb_record(&b, MTPROF_REC_DEF_STACK, 0, 5, 1, (uint64_t[]){pair(0, 0)});
    bad[4] = tb_record(&b, MTPROF_REC_DEF_SOURCE, 0, 5, 1, (uint64_t[]){pair(0, 5)});
    bad[5] = tb_record(&b, MTPROF_REC_DEF_STRING, 1, 5, 3, (uint64_t[]){4, 0, 0x656D616E});
    mtprof_reader *reader = open_finished(&b, &memory);
    check_problems(reader, 6, bad);
    mtprof_text text;
    REQUIRE(mtprof_reader_string(reader, 5, &text));
    check_text(text, "name"); /* the first stays */
    mtprof_thread_info thread;
    REQUIRE(mtprof_reader_thread(reader, 5, &thread));
    CHECK_EQ_U64(thread.os_id, 2); /* the last counts */
    CHECK_EQ_U64(mtprof_reader_thread_count(reader), 1);
    mtprof_reader_close(reader);
    tb_fini(&b);
}

TEST(references_to_nothing)
{
    trace_builder b;
    tb_memory memory;
    uint64_t bad[7];
    tb_init(&b);
    tb_chunk(&b, MTPROF_STREAM_DEFINITIONS, 0);
    bad[0] = tb_record(&b, MTPROF_REC_DEF_STRING, 1, 1, 2, (uint64_t[]){0, pair(99, 3)});
    bad[1] = tb_record(&b, MTPROF_REC_DEF_FRAME, 0, 1, 3, (uint64_t[]){pair(98, 97), 1, 2});
    bad[2] = bad[1];
    bad[3] = tb_record(&b, MTPROF_REC_DEF_STACK, 0, 1, 1, (uint64_t[]){pair(0, 96)});
    bad[4] = tb_record(&b, MTPROF_REC_DEF_THREAD, 0, 1, 3, (uint64_t[]){1, 2, 95});
    bad[5] = tb_record(&b, MTPROF_REC_DEF_SOURCE, 0, 1, 1, (uint64_t[]){pair(0, 94)});
    bad[6] = tb_record(&b, MTPROF_REC_DEF_MODULE, 0, 0, 4, (uint64_t[]){0, 1, 2, 93});
    mtprof_reader *reader = open_finished(&b, &memory);
    check_problems(reader, 7, bad);
    mtprof_frame frame;
    mtprof_text file;
    uint32_t line;
    uint32_t parent;
    uint32_t node;
    REQUIRE(mtprof_reader_frame(reader, 1, &frame)); /* there, and empty */
    check_text(frame.function, "");
    CHECK(mtprof_reader_location(reader, 1, &file, &line));
    check_text(file, "");
    CHECK(mtprof_reader_stack(reader, 1, &parent, &node));
    CHECK(!mtprof_reader_frame(reader, node, &frame));
    mtprof_reader_close(reader);
    tb_fini(&b);
}

TEST(stacks_end)
{
    trace_builder b;
    tb_memory memory;
    uint64_t bad[4];
    tb_init(&b);
    tb_chunk(&b, MTPROF_STREAM_DEFINITIONS, 0);
    tb_record(&b, MTPROF_REC_DEF_FRAME, 0, 1, 3, (uint64_t[]){0, 1, 2});
    tb_record(&b, MTPROF_REC_DEF_STACK, 0, 10, 1, (uint64_t[]){pair(0, 1)});
    bad[0] = tb_record(&b, MTPROF_REC_DEF_STACK, 0, 1, 1, (uint64_t[]){pair(1, 1)}); /* itself */
    bad[1] = tb_record(&b, MTPROF_REC_DEF_STACK, 0, 2, 1, (uint64_t[]){pair(3, 1)}); /* a ring */
    tb_record(&b, MTPROF_REC_DEF_STACK, 0, 3, 1, (uint64_t[]){pair(2, 1)});
    bad[2] = tb_record(&b, MTPROF_REC_DEF_STACK, 0, 4, 1, (uint64_t[]){pair(9, 1)}); /* later */
    tb_record(&b, MTPROF_REC_DEF_STACK, 0, 9, 1, (uint64_t[]){pair(10, 1)});
    bad[3] = tb_record(&b, MTPROF_REC_DEF_STACK, 0, 5, 1, (uint64_t[]){pair(77, 1)}); /* never */
    tb_record(&b, MTPROF_REC_DEF_STACK, 0, 6, 1, (uint64_t[]){pair(5, 1)}); /* child of that */
    tb_record(&b, MTPROF_REC_DEF_STACK, 0, 7, 1, (uint64_t[]){pair(9, 1)});
    mtprof_reader *reader = open_finished(&b, &memory);
    check_problems(reader, 4, bad);
    const bool found[] = {false, false, false, false, false, false, false, true, false, true, true};
    for (uint32_t id = 0; id <= 10; id++) {
        uint32_t parent = 0;
        uint32_t frame = 0;
        if (mtprof_reader_stack(reader, id, &parent, &frame) != found[id]) {
            FAIL("node %u: found is %d", id, !found[id]);
        }
    }
    mtprof_reader_close(reader);
    tb_fini(&b);
}

/* A chain as deep as a chunk can make it, defined from the root, then upside down. */
TEST(deep_stacks)
{
    const uint32_t depth = 30000;
    for (int upside_down = 0; upside_down < 2; upside_down++) {
        trace_builder b;
        tb_memory memory;
        tb_init(&b);
        b.chunk_bytes = 1 << 20;
        tb_chunk(&b, MTPROF_STREAM_DEFINITIONS, 0);
        tb_record(&b, MTPROF_REC_DEF_FRAME, 0, 1, 3, (uint64_t[]){0, 1, 2});
        for (uint32_t i = 1; i <= depth; i++) {
            uint32_t id = upside_down ? depth + 1 - i : i;
            tb_record(&b, MTPROF_REC_DEF_STACK, 0, id, 1, (uint64_t[]){pair(id - 1, 1)});
        }
        mtprof_reader *reader = open_finished(&b, &memory);
        uint32_t id = depth;
        uint32_t frame = 0;
        uint32_t steps = 0;
        while (id != 0 && mtprof_reader_stack(reader, id, &id, &frame)) {
            steps++;
        }
        CHECK_EQ_U64(steps, upside_down ? 0 : depth);
        mtprof_reader_close(reader);
        tb_fini(&b);
    }
}

TEST(scattered_ids)
{
    trace_builder b;
    tb_memory memory;
    const uint32_t ids[] = {UINT32_MAX, 1, 0x80000001, 2, 17, 0x80000000, 4096};
    char name[16];
    tb_init(&b);
    tb_chunk(&b, MTPROF_STREAM_DEFINITIONS, 0);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        snprintf(name, sizeof name, "%u", ids[i]);
        tb_string(&b, ids[i], name);
    }
    mtprof_reader *reader = open_finished(&b, &memory);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        mtprof_text text;
        snprintf(name, sizeof name, "%u", ids[i]);
        REQUIRE(mtprof_reader_string(reader, ids[i], &text));
        check_text(text, name);
        CHECK(!mtprof_reader_string(reader, ids[i] - 100, &text));
    }
    mtprof_reader_close(reader);
    tb_fini(&b);
}

TEST(problems_are_bounded)
{
    trace_builder b;
    tb_memory memory;
    tb_init(&b);
    b.chunk_bytes = 1 << 20;
    tb_chunk(&b, MTPROF_STREAM_DEFINITIONS, 0);
    for (uint32_t i = 1; i <= 5000; i++) {
        tb_record(&b, MTPROF_REC_DEF_STACK, 0, i, 1, (uint64_t[]){pair(0, 7)}); /* no frame 7 */
    }
    mtprof_reader *reader = open_finished(&b, &memory);
    mtprof_problem problem;
    uint32_t n = 0;
    uint64_t before = 0;
    bool found = false;
    while (mtprof_reader_problem(reader, n, &problem)) {
        CHECK(problem.offset >= before);
        before = problem.offset;
        found = found || strstr(problem.message, "4001 more") != NULL;
        n++;
    }
    CHECK_EQ_U64(n, 1000);
    CHECK(found);
    mtprof_reader_close(reader);
    tb_fini(&b);
}

/* ---- input lists ----------------------------------------------------------------------------- */

#define LIST(...) \
    mtprof__input_list_check((const uint64_t[]){__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / 8)

TEST(input_lists)
{
    const uint64_t none = 0;
    const uint64_t tensor2 = 1 | 2 << 8;
    const uint64_t strided2 = tensor2 | 1 << 16;
    CHECK(mtprof__input_list_check(NULL, 0));
    CHECK(LIST(none));
    CHECK(LIST(3, 4, 5, 6));
    CHECK(LIST(tensor2, 10, 20));
    CHECK(!LIST(tensor2, 10));
    CHECK(LIST(strided2, 1, 2, 3, 4));
    CHECK(!LIST(strided2, 1, 2, 3));
    CHECK(LIST(pair(2, 0)));
    CHECK(LIST(pair(2, 2), 3, 3));
    CHECK(!LIST(pair(2, 3), 3, 3));
    CHECK(!LIST(pair(2, UINT32_MAX), 3));
    CHECK(LIST(pair(2, 2), pair(2, 1), 3, pair(2, 0), 3)); /* lists in a list, then a value */
    CHECK(LIST(pair(2, 1), pair(2, 1), pair(2, 1), tensor2, 1, 2));
    CHECK(!LIST(pair(2, 1), pair(2, 1), pair(2, 1)));
    CHECK(LIST(pair(7, 9), 3));
    CHECK(LIST(pair(7, 9), pair(2, 1), 3));
    CHECK(LIST(pair(2, 1), pair(7, 9), 3)); /* the keyword is not a value of its own */
    CHECK(!LIST(pair(7, 9)));
    CHECK(!LIST(3, pair(7, 9)));
    CHECK(!LIST(pair(7, 9), pair(7, 9), 3));
    CHECK(!LIST(8));
    CHECK(!LIST(255));
}

TEST(input_lists_nest_to_a_bound)
{
    uint64_t words[MTPROF__LIST_DEPTH + 2];
    for (size_t i = 0; i < MTPROF__LIST_DEPTH + 2; i++) {
        words[i] = pair(2, 1);
    }
    words[MTPROF__LIST_DEPTH] = 3;
    CHECK(mtprof__input_list_check(words, MTPROF__LIST_DEPTH + 1));
    words[MTPROF__LIST_DEPTH] = pair(2, 1);
    words[MTPROF__LIST_DEPTH + 1] = 3;
    CHECK(!mtprof__input_list_check(words, MTPROF__LIST_DEPTH + 2));
}
