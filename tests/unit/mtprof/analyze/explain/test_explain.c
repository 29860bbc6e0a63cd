/* SPDX-License-Identifier: Apache-2.0
 *
 * Explanations: exact numbers, what bad input gets, outputs of bounded size, hostile names and
 * traces, and memory that is refused. Which cause is found: test_explain_faults.c.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "support/traces/random_trace.h"
#include "support/traces/timed_trace.h"

#include <mtprof/explain.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    US = 1000,
    MS = 1000 * 1000,
    MIB = 1 << 20
};

typedef struct printed {
    char *text;
    size_t n;
    int error;
} printed;

static int print(void *context, const void *bytes, size_t length)
{
    printed *p = context;
    if (p->error != 0) {
        return p->error;
    }
    p->text = realloc(p->text, p->n + length + 1);
    REQUIRE(p->text != NULL);
    memcpy(p->text + p->n, bytes, length);
    p->n += length;
    p->text[p->n] = '\0';
    return 0;
}

static mtprof_status print_with(const mtprof_explain *e, const mtprof_explain_write_options *o,
                                printed *p)
{
    const mtprof_output output = {.struct_size = sizeof output, .context = p, .write = print};
    p->n = 0;
    return mtprof_explain_write(e, o, &output);
}

/* A program with five causes, on a device. */
static void bad_program(timed_trace *t, const char *loader, const char *op)
{
    tt_init(t);
    for (int step = 0; step < 8; step++) {
        tt_step(t);
        tt_span(t, 0, MTPROF_KIND_SCOPE, loader, 2 * MS);
        tt_span(t, 0, MTPROF_KIND_OP, "aten::sort", 2 * MS);
        tt_begin(t, 0, MTPROF_KIND_OP, "aten::zeros");
        tt_alloc(t, 0x1000 + (uint64_t)step, 4 * MIB);
        tt_end(t, 0);
        for (int i = 0; i < 20; i++) {
            uint64_t key = tt_launch(t, 0, op, 100 * US);
            tt_kernel(t, key, 0, "gemm", 20 * US);
        }
        tt_pass(t, 0, 3 * MS);
        tt_read(t, 0, "aten::item", 500 * US);
    }
}

static mtprof_explain *explain_new(mtprof_model *model)
{
    mtprof_explain *e = NULL;
    REQUIRE_OK(mtprof_explain_new(model, NULL, &e));
    return e;
}

TEST(numbers_are_exact)
{
    timed_trace t;
    mtprof_explain_facts facts = {.struct_size = sizeof facts};
    tt_init(&t);
    for (int step = 0; step < 4; step++) {
        tt_step(&t);
        tt_span(&t, 0, MTPROF_KIND_SCOPE, "next_batch", 3 * MS); /* device idle */
        uint64_t key = tt_launch(&t, 0, "aten::mm", 10 * US);
        tt_kernel(&t, key, 0, "gemm", 5 * MS);
        tt_pass(&t, 0, 1 * MS);
        tt_read(&t, 0, "aten::item", 200 * US);
        tt_pass(&t, 0, 300 * US);
    }
    mtprof_model *model = tt_model(&t);
    mtprof_explain *e = explain_new(model);
    REQUIRE_OK(mtprof_explain_get_facts(e, &facts));
    CHECK_EQ_U64(facts.steps, 4);
    CHECK_EQ_U64(facts.has_device, 1);
    CHECK_EQ_U64(facts.kernels, 4);
    CHECK_EQ_I64(facts.median_step_ns, 8510 * US);
    CHECK_EQ_I64(facts.wall_ns, 4 * 8510 * US);
    CHECK_EQ_I64(facts.busy_ns, 4 * 5 * MS);
    CHECK_EQ_I64(mtprof_explain_part_ns(e, MTPROF_EXPLAIN_ALL, MTPROF_PART_COMPUTE), 20 * MS);
    CHECK_EQ_I64(mtprof_explain_part_ns(e, MTPROF_EXPLAIN_ALL, MTPROF_PART_DATA), 12 * MS);
    CHECK_EQ_I64(mtprof_explain_part_ns(e, 0, MTPROF_PART_LAUNCH), 10 * US);
    /* the host waits for 4 ms and 200 us, and the device is idle for 500 us from there on, less
     * what the loader takes of the next step */
    CHECK_EQ_I64(mtprof_explain_part_ns(e, 0, MTPROF_PART_SYNC), 500 * US);
    CHECK_EQ_I64(mtprof_explain_part_ns(e, 0, MTPROF_PART_PYTHON), 0);
    mtprof_explain_finding finding = {.struct_size = sizeof finding};
    REQUIRE_OK(mtprof_explain_get_finding(e, 0, &finding));
    CHECK_EQ_STR(finding.id, "data-wait");
    CHECK_EQ_I64(finding.gain_ns, 12 * MS);
    CHECK_NEAR_F64(finding.share, 12.0 / 34.04, 1e-9);
    mtprof_explain_evidence evidence = {.struct_size = sizeof evidence};
    REQUIRE_OK(mtprof_explain_get_evidence(e, 0, 0, &evidence));
    CHECK_EQ_U64(evidence.kind, MTPROF_EVIDENCE_OP);
    CHECK_EQ_U64(evidence.count, 4);
    CHECK_EQ_I64(evidence.ns, 12 * MS);
    CHECK_EQ_STR(evidence.name.bytes, "next_batch");
    CHECK(evidence.event != MTPROF_NO_EVENT);
    mtprof_explain_free(e);
    mtprof_model_free(model);
    tt_fini(&t);
}

/* A wait costs no more than it took: what the host does after it would have come anyway. */
TEST(a_short_wait_is_not_blamed_for_what_follows)
{
    timed_trace t;
    tt_init(&t);
    for (int step = 0; step < 4; step++) {
        tt_step(&t);
        uint64_t key = tt_launch(&t, 0, "aten::mm", 10 * US);
        tt_kernel(&t, key, 0, "gemm", 1 * MS);
        tt_pass(&t, 0, 990 * US); /* the device is done 10 us after the wait begins */
        tt_read(&t, 0, "aten::item", 0);
        tt_pass(&t, 0, 5 * MS);
    }
    mtprof_model *model = tt_model(&t);
    mtprof_explain *e = explain_new(model);
    CHECK_EQ_I64(mtprof_explain_part_ns(e, 1, MTPROF_PART_SYNC), 10 * US);
    CHECK_EQ_I64(mtprof_explain_part_ns(e, 1, MTPROF_PART_PYTHON), 4990 * US);
    mtprof_explain_free(e);
    mtprof_model_free(model);
    tt_fini(&t);
}

TEST(one_step_is_explained_alone)
{
    timed_trace t;
    mtprof_explain *e = NULL;
    mtprof_explain_options o = {.struct_size = sizeof o, .step_given = 1, .step = 3};
    mtprof_explain_facts facts = {.struct_size = sizeof facts};
    bad_program(&t, "next_batch", "aten::mm");
    mtprof_model *model = tt_model(&t);
    REQUIRE_OK(mtprof_explain_new(model, &o, &e));
    REQUIRE_OK(mtprof_explain_get_facts(e, &facts));
    CHECK_EQ_U64(facts.steps, 1);
    CHECK_EQ_I64(mtprof_explain_part_ns(e, 0, MTPROF_PART_DATA), 2 * MS);
    mtprof_explain_free(e);
    o.step = 8;
    CHECK_EQ_I64(mtprof_explain_new(model, &o, &e), MTPROF_EINVAL);
    CHECK_EQ_PTR(e, NULL);
    CHECK_EQ_STR(mtprof_last_error()->message, "explain: there is no step 8; the trace has 0 to 7");
    mtprof_model_free(model);
    tt_fini(&t);
}

TEST(bad_input_is_refused_by_name)
{
    timed_trace t;
    mtprof_explain *e = NULL;
    mtprof_explain_options no_size = {.struct_size = 0};
    mtprof_explain_facts facts = {.struct_size = 0};
    mtprof_explain_finding finding = {.struct_size = sizeof finding};
    mtprof_explain_evidence evidence = {.struct_size = sizeof evidence};
    mtprof_explain_step step = {.struct_size = sizeof step};
    printed p = {.text = NULL};
    mtprof_explain_write_options o = {.struct_size = sizeof o, .format = 4};
    CHECK_EQ_I64(mtprof_explain_new(NULL, NULL, &e), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_explain_new(NULL, NULL, NULL), MTPROF_EINVAL);
    tt_init(&t);
    mtprof_model *model = tt_model(&t); /* no events at all */
    CHECK_EQ_I64(mtprof_explain_new(model, &no_size, &e), MTPROF_EINVAL);
    CHECK_EQ_PTR(e, NULL);
    e = explain_new(model);
    CHECK_EQ_I64(mtprof_explain_get_facts(e, &facts), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_explain_get_finding(e, 0, &finding), MTPROF_EINVAL);
    CHECK_EQ_STR(mtprof_last_error()->message, "explain finding: 0, expected less than 0");
    CHECK_EQ_I64(mtprof_explain_get_evidence(e, 0, 0, &evidence), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_explain_get_step(e, 7, &step), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_explain_part_ns(e, 7, 0), 0);
    CHECK_EQ_I64(mtprof_explain_part_ns(e, MTPROF_EXPLAIN_ALL, 99), 0);
    CHECK_EQ_I64(print_with(e, &o, &p), MTPROF_EINVAL);
    CHECK_EQ_STR(mtprof_last_error()->message, "explain_write: format 4, expected 0 to 3");
    o = (mtprof_explain_write_options){.struct_size = sizeof o, .width = 10};
    CHECK_EQ_I64(print_with(e, &o, &p), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_explain_write(e, NULL, NULL), MTPROF_EINVAL);
    CHECK_EQ_I64(print_with(NULL, NULL, &p), MTPROF_EINVAL);
    REQUIRE_OK(print_with(e, NULL, &p));
    CHECK(strstr(p.text, "too little to explain") != NULL);
    p.error = ENOSPC;
    CHECK_EQ_I64(print_with(e, NULL, &p), MTPROF_ENOSPC);
    p.error = EPIPE;
    CHECK_EQ_I64(print_with(e, NULL, &p), MTPROF_EIO);
    CHECK_EQ_STR(mtprof_cause_id(MTPROF_CAUSE_COUNT), "unknown");
    CHECK_EQ_STR(mtprof_part_name(MTPROF_PART_COUNT), "unknown");
    CHECK_EQ_STR(mtprof_evidence_kind_name(99), "unknown");
    mtprof_explain_free(e);
    mtprof_explain_free(NULL);
    mtprof_model_free(model);
    tt_fini(&t);
    free(p.text);
}

/* No byte past the caller's struct is written. */
TEST(older_callers_get_what_they_know)
{
    timed_trace t;
    struct {
        mtprof_explain_finding finding;
        char guard[8];
    } small;
    bad_program(&t, "next_batch", "aten::mm");
    mtprof_model *model = tt_model(&t);
    mtprof_explain *e = explain_new(model);
    memset(&small, 0x5A, sizeof small);
    small.finding.struct_size = offsetof(mtprof_explain_finding, title);
    REQUIRE_OK(mtprof_explain_get_finding(e, 0, &small.finding));
    const unsigned char *bytes = (const unsigned char *)&small;
    for (size_t i = offsetof(mtprof_explain_finding, title); i < sizeof small; i++) {
        CHECK(bytes[i] == 0x5A);
    }
    mtprof_explain_free(e);
    mtprof_model_free(model);
    tt_fini(&t);
}

static size_t longest_line(const char *text)
{
    size_t longest = 0;
    for (size_t n; *text != '\0'; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        size_t columns = 0;
        for (size_t i = 0; i < n; i++) {
            columns += ((unsigned char)text[i] & 0xC0) != 0x80;
        }
        longest = columns > longest ? columns : longest;
    }
    return longest;
}

TEST(outputs_keep_their_size)
{
    timed_trace t;
    printed p = {.text = NULL};
    bad_program(&t, "next_batch", "aten::mm");
    mtprof_model *model = tt_model(&t);
    mtprof_explain *e = explain_new(model);
    for (uint32_t format = 0; format <= MTPROF_EXPLAIN_HTML; format++) {
        mtprof_explain_write_options o = {
            .struct_size = sizeof o, .format = format, .max_bytes = UINT64_MAX};
        REQUIRE_OK(print_with(e, &o, &p));
        size_t whole = p.n;
        CHECK(strstr(p.text, "data-wait") != NULL && strstr(p.text, "memory-growth") != NULL);
        CHECK(strstr(p.text, format == MTPROF_EXPLAIN_JSON ? "\"findings\": 0, \"evidence\": 0"
                                                           : "Left out") != NULL ||
              format != MTPROF_EXPLAIN_JSON);
        o.max_bytes = 0;
        REQUIRE_OK(print_with(e, &o, &p));
        CHECK(p.n <= (format == MTPROF_EXPLAIN_HTML ? 65536 : 4096));
        uint64_t short_bytes = format == MTPROF_EXPLAIN_HTML ? 5000 : 1500; /* its chart stays */
        o.max_bytes = short_bytes;
        REQUIRE_OK(print_with(e, &o, &p));
        CHECK(p.n <= short_bytes && p.n < whole);
        CHECK(strstr(p.text, format == MTPROF_EXPLAIN_JSON ? "\"left_out\"" : "Left out") != NULL);
        o.max_bytes = 1; /* one finding, whatever it takes */
        REQUIRE_OK(print_with(e, &o, &p));
        CHECK(strstr(p.text, "data-wait") == NULL || p.n < short_bytes);
        o.max_bytes = UINT64_MAX;
        o.findings = 2;
        REQUIRE_OK(print_with(e, &o, &p));
        CHECK(p.n < whole);
    }
    mtprof_explain_write_options o = {.struct_size = sizeof o, .max_bytes = UINT64_MAX};
    REQUIRE_OK(print_with(e, &o, &p));
    CHECK(longest_line(p.text) <= 80);
    o.width = 60;
    REQUIRE_OK(print_with(e, &o, &p));
    CHECK(longest_line(p.text) <= 60);
    mtprof_explain_free(e);
    mtprof_model_free(model);
    tt_fini(&t);
    free(p.text);
}

/* Names are any bytes: controls, half characters, what Markdown, HTML and JSON give a meaning. */
TEST(hostile_names_are_inert)
{
    static const char evil[] =
        "load_batch\x1b[31m\x01\xff<script>alert(1)</script>`*_[a](b)\"\\\n# x";
    timed_trace t;
    printed p = {.text = NULL};
    char *large = malloc(1000 + 1);
    REQUIRE(large != NULL);
    memset(large, 'x', 1000);
    memcpy(large, "aten::", 6);
    large[1000] = '\0';
    bad_program(&t, evil, large);
    mtprof_model *model = tt_model(&t);
    mtprof_explain *e = explain_new(model);
    for (uint32_t format = 0; format <= MTPROF_EXPLAIN_HTML; format++) {
        const mtprof_explain_write_options o = {
            .struct_size = sizeof o, .format = format, .max_bytes = UINT64_MAX};
        REQUIRE_OK(print_with(e, &o, &p));
        for (size_t i = 0; i < p.n; i++) {
            CHECK((unsigned char)p.text[i] >= ' ' || p.text[i] == '\n');
            CHECK((unsigned char)p.text[i] != 0xff);
        }
        CHECK(strstr(p.text, "load_batch") != NULL || format == MTPROF_EXPLAIN_MARKDOWN);
        CHECK(strstr(p.text, "<script>") == NULL || format < MTPROF_EXPLAIN_MARKDOWN);
        CHECK(strstr(p.text, "…") != NULL);
        CHECK(longest_line(p.text) <= 80 || format != MTPROF_EXPLAIN_TEXT);
    }
    mtprof_explain_free(e);
    mtprof_model_free(model);
    tt_fini(&t);
    free(p.text);
    free(large);
}

static void explain_random(uint64_t seed, bool hostile)
{
    rt_trace trace;
    const rt_options options = {.seed = seed, .steps = 400, .hostile = hostile, .any_bytes = true};
    mtprof_reader *reader = NULL;
    mtprof_model *model = NULL;
    mtprof_explain_facts facts = {.struct_size = sizeof facts};
    printed p = {.text = NULL};
    rt_make(&trace, &options);
    tb_memory memory = {.bytes = trace.bytes, .size = trace.size};
    mtprof_bytes bytes = tb_bytes(&memory);
    REQUIRE_OK(mtprof_reader_open_bytes(&bytes, &reader));
    REQUIRE_OK(mtprof_model_take_reader(reader, NULL, &model));
    mtprof_explain *e = explain_new(model);
    REQUIRE_OK(mtprof_explain_get_facts(e, &facts));
    int64_t sum = 0;
    for (uint32_t i = 0; i < MTPROF_PART_COUNT; i++) {
        CHECK(mtprof_explain_part_ns(e, MTPROF_EXPLAIN_ALL, i) >= 0);
        sum += mtprof_explain_part_ns(e, MTPROF_EXPLAIN_ALL, i);
    }
    CHECK_EQ_I64(sum, facts.wall_ns);
    REQUIRE_OK(print_with(e, NULL, &p));
    CHECK(p.n <= 4096);
    free(p.text);
    mtprof_explain_free(e);
    mtprof_model_free(model);
    rt_free(&trace);
}

TEST(random_traces_keep_the_sums)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        explain_random(mt_test_seed() + seed, seed % 2 == 0);
    }
}

TEST(refused_memory_is_said)
{
    timed_trace t;
    int status = MTPROF_ENOMEM;
    uint64_t n = 0;
    bad_program(&t, "next_batch", "aten::mm");
    mtprof_model *model = tt_model(&t);
    mtprof_explain_free(explain_new(model)); /* the model's own columns are there then */
    while (status != MTPROF_OK && n < 10000) {
        mtprof_explain *e = (mtprof_explain *)&t;
        printed p = {.text = NULL};
        (void)mtb_fail_nth(++n, true);
        status = mtprof_explain_new(model, NULL, &e);
        CHECK((status == MTPROF_OK) == (e != NULL));
        if (status == MTPROF_OK) {
            status = print_with(e, NULL, &p);
        }
        (void)mtb_fail_nth(0, false);
        if (status != MTPROF_OK) {
            CHECK_EQ_I64(status, MTPROF_ENOMEM);
        }
        mtprof_explain_free(e);
        free(p.text);
    }
    CHECK_OK(status);
    CHECK(n > 20);
    mtprof_model_free(model);
    tt_fini(&t);
}
