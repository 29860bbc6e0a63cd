/* SPDX-License-Identifier: Apache-2.0
 *
 * mtprof_check(): each rule is broken once and must be named, with its place; what is sound must
 * pass.
 */
#include "base/alloc.h"
#include "base/gzip.h"
#include "harness/mt_test.h"
#include "support/traces/trace_builder.h"

#include <mtprof/check.h>
#include <mtprof/model.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- helpers --------------------------------------------------------------------------------- */

typedef struct finding {
    char rule[40];
    char message[200];
    uint64_t offset, line, column;
    uint32_t severity;
} finding;

typedef struct findings {
    finding items[64];
    size_t n;
    size_t give_up_at; /* 0: never */
} findings;

static int take(void *user, const mtprof_finding *found)
{
    findings *all = user;
    if (all->n < 64) {
        finding *item = &all->items[all->n];
        snprintf(item->rule, sizeof item->rule, "%s", found->rule);
        snprintf(item->message, sizeof item->message, "%s", found->message);
        item->offset = found->offset;
        item->line = found->line;
        item->column = found->column;
        item->severity = found->severity;
    }
    all->n++;
    return all->give_up_at != 0 && all->n >= all->give_up_at;
}

static char path[512];

static void write_file(const void *bytes, size_t size)
{
    snprintf(path, sizeof path, "%s/file", mt_test_tmpdir());
    FILE *file = fopen(path, "wb");
    REQUIRE(file != NULL);
    REQUIRE_EQ_U64(fwrite(bytes, 1, size, file), size);
    REQUIRE_EQ_I64(fclose(file), 0);
}

static mtprof_check_summary check_bytes(const void *bytes, size_t size, findings *all)
{
    mtprof_check_options options = {
        .struct_size = sizeof options, .report = take, .user = all, .most_per_rule = 10};
    mtprof_check_summary summary = {.struct_size = sizeof summary};
    memset(all, 0, sizeof *all);
    write_file(bytes, size);
    REQUIRE_OK(mtprof_check(path, &options, &summary));
    return summary;
}

static mtprof_check_summary check_text(const char *text, findings *all)
{
    return check_bytes(text, strlen(text), all);
}

/* Exactly these rules, in any order, each at least once; "" for none. */
static void expect(const char *text, const char *rules)
{
    findings all;
    char seen[512] = "";
    check_text(text, &all);
    for (size_t i = 0; i < all.n && i < 64; i++) {
        if (strstr(seen, all.items[i].rule) == NULL) {
            snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s%s",
                     seen[0] != 0 ? " " : "", all.items[i].rule);
        }
    }
    if (strcmp(seen, rules) != 0) {
        FAIL("found \"%s\" (%s), expected \"%s\" in %s", seen,
             all.n > 0 ? all.items[0].message : "", rules, text);
    }
}

/* Events of a trace that is complete but for them. */
static void expect_events(const char *events, const char *rules)
{
    char text[4096];
    snprintf(text, sizeof text, "{\"schemaVersion\": 1, \"traceEvents\": [%s]}", events);
    expect(text, rules);
}

#define SPAN(ts, dur)                                                                \
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":2,\"ts\":" ts \
    ",\"dur\":" dur "}"
#define AT "\"pid\":1,\"tid\":2"

/* ---- JSON ------------------------------------------------------------------------------------ */

TEST(check_json_syntax)
{
    static const char *const bad[] = {
        "{\"traceEvents\": [}",
        "{\"traceEvents\": []",
        "{\"traceEvents\": [1,]}",
        "{\"traceEvents\": [] \"a\": 1}",
        "{\"traceEvents\": [], }",
        "{\"traceEvents\": []} x",
        "{traceEvents: []}",
        "{\"traceEvents\" []}",
        "{\"a\": 01, \"traceEvents\": []}",
        "{\"a\": 1., \"traceEvents\": []}",
        "{\"a\": .5, \"traceEvents\": []}",
        "{\"a\": +5, \"traceEvents\": []}",
        "{\"a\": 1e, \"traceEvents\": []}",
        "{\"a\": NaN, \"traceEvents\": []}",
        "{\"a\": tru, \"traceEvents\": []}",
        "{\"a\": \"\\x\", \"traceEvents\": []}",
        "{\"a\": \"\\u12g4\", \"traceEvents\": []}",
        "{\"a\": \"tab\tinside\", \"traceEvents\": []}",
        "{\"a\": \"\xff\", \"traceEvents\": []}",
        "{\"a\": \"\xc0\x80\", \"traceEvents\": []}",
        "{\"a\": \"\xed\xa0\x80\", \"traceEvents\": []}",
        "{\"a\": \"\xf4\x90\x80\x80\", \"traceEvents\": []}",
        "{\"a\": \"open",
        "[{\"ph\": \"X\"",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        findings all;
        check_text(bad[i], &all);
        bool found = false;
        for (size_t k = 0; k < all.n; k++) {
            found = found || strcmp(all.items[k].rule, "json.syntax") == 0;
        }
        if (!found) {
            FAIL("no json.syntax for %s", bad[i]);
        }
    }
    expect(
        "{\"a\": [-0.5e+3, 1E5, 0, -0, true, false, null, \"\\u00e9\\\"\\\\\\/\\b\\f\\n\\r\\t\", "
        "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \\ud83d\\ude00\", {}, [[]], {\"b\": {}}], "
        "\"traceEvents\": [" SPAN("1", "2") "]}\n",
        "");
    expect("{\"a\": \"\\ud83d\", \"b\": \"\\ude00\", \"traceEvents\": [" SPAN("1", "2") "]}",
           "json.surrogate");
    expect("{\"a\": 1, \"a\": 2, \"traceEvents\": [" SPAN("1", "2") "]}", "json.duplicate_key");
}

TEST(check_json_place)
{
    findings all;
    check_text("{\n  \"traceEvents\": [\n    {\"ph\": 'X'}\n]}", &all);
    REQUIRE_EQ_U64(all.n, 1);
    CHECK_EQ_STR(all.items[0].rule, "json.syntax");
    CHECK_EQ_U64(all.items[0].line, 3);
    CHECK_EQ_U64(all.items[0].column, 12);
    CHECK_EQ_U64(all.items[0].offset, 2 + 19 + 11);
    CHECK_EQ_U64(all.items[0].severity, MTPROF_CHECK_ERROR);
}

TEST(check_json_depth)
{
    char text[4096] = "{\"traceEvents\": [], \"a\": ";
    memset(text + strlen(text), '[', 2000);
    expect(text, "json.syntax");
}

/* A file larger than the parser's block: places and strings across its edges. */
TEST(check_json_blocks)
{
    size_t room = 1 << 20;
    char *text = malloc(room);
    REQUIRE(text != NULL);
    size_t n = (size_t)snprintf(text, room, "{\"traceEvents\": [");
    uint64_t count = 0;
    for (; n < room - 400; count++) {
        n += (size_t)snprintf(
            text + n, room - n,
            "%s\n{\"ph\":\"X\",\"name\":\"\xe2\x82\xac\\ud83d\\ude00%0*d\",\"pid\":1,\"tid\":2,"
            "\"ts\":%llu.125,\"dur\":0.5}",
            count == 0 ? "" : ",", (int)(count % 60) + 1, 7, (unsigned long long)count);
    }
    size_t good = n;
    n += (size_t)snprintf(text + n, room - n, "]}");
    findings all;
    mtprof_check_summary summary = check_bytes(text, n, &all);
    CHECK_EQ_U64(all.n, 0);
    CHECK_EQ_U64(summary.events, count);
    CHECK_EQ_U64(summary.spans, count);
    CHECK_EQ_U64(summary.text_bytes, n);
    text[good] = '}';
    check_bytes(text, n, &all);
    REQUIRE_EQ_U64(all.n, 1);
    CHECK_EQ_U64(all.items[0].offset, good);
    CHECK_EQ_U64(all.items[0].line, count + 1);
    free(text);
}

/* ---- Chrome ---------------------------------------------------------------------------------- */

TEST(check_chrome_shape)
{
    expect("{}", "chrome.trace_events");
    expect("{\"traceEvents\": {}}", "chrome.trace_events chrome.empty");
    expect("[]", "chrome.empty");
    expect("[" SPAN("1", "1") "]", "");
    expect_events("1, " SPAN("1", "1"), "chrome.event");
    expect_events("{\"ph\": \"?\"}, " SPAN("1", "1"), "chrome.phase");
    expect_events("{\"name\": \"?\"}, " SPAN("1", "1"), "chrome.phase");
}

TEST(check_chrome_fields)
{
    expect_events(
        "{\"ph\":\"X\",\"cat\":\"c\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"pid\":1}, " SPAN("1", "1"),
        "chrome.field");
    expect_events("{\"ph\":\"X\",\"cat\":\"c\",\"name\":7,\"ts\":1,\"dur\":1," AT
                  "}, " SPAN("1", "1"),
                  "chrome.field");
    expect_events("{\"ph\":\"X\",\"cat\":\"c\",\"name\":\"a\",\"ts\":\"1\",\"dur\":1," AT
                  "}, " SPAN("1", "1"),
                  "chrome.number");
    expect_events("{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1," AT "}", "chrome.category");
    expect_events("{\"ph\":\"X\",\"cat\":\"c\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"pid\":\"Spans\","
                  "\"tid\":\"x\"}",
                  "");
    expect_events(SPAN("1", "-1"), "chrome.duration");
    expect_events(SPAN("-1", "1"), "chrome.time_base");
    expect_events("{\"ph\":\"i\",\"s\":\"x\",\"name\":\"a\",\"ts\":1," AT "}, " SPAN("1", "1"),
                  "chrome.field");
    expect_events("{\"ph\":\"C\",\"name\":\"a\",\"ts\":1," AT "}, " SPAN("1", "1"), "chrome.field");
    expect_events("{\"ph\":\"M\",\"name\":\"process_name\"," AT ",\"args\":{}}, " SPAN("1", "1"),
                  "chrome.metadata");
    expect_events("{\"ph\":\"M\",\"name\":\"thread_sort_index\"," AT
                  ",\"args\":{\"sort_index\":\"1\"}}, " SPAN("1", "1"),
                  "chrome.metadata");
    expect_events("{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":9,\"tid\":9,\"args\":{\"name\":"
                  "\"x\"}}, " SPAN("1", "1"),
                  "chrome.unnamed_track");
}

#define ARGS(args) \
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"ts\":1,\"dur\":1," AT ",\"args\":{" args "}}"

TEST(check_chrome_args)
{
    expect_events(ARGS("\"External id\": 9007199254740991, \"Ev Idx\": 0, \"x\": \"y\""), "");
    expect_events(ARGS("\"External id\": \"7\""), "chrome.number");
    expect_events(ARGS("\"External id\": 9007199254740992"), "chrome.id");
    expect_events(ARGS("\"Ev Idx\": -1"), "chrome.id");
    expect_events(ARGS("\"Ev Idx\": 1.5"), "chrome.number");
    expect_events(ARGS("\"stream\": 7"), "chrome.host_stream");
    expect_events(ARGS("\"x\": 7, \"x\": 8"), "json.duplicate_key");
    expect_events("{\"ph\":\"X\",\"cat\":\"c\",\"name\":\"a\",\"ts\":1,\"dur\":1," AT
                  ",\"args\":[]}",
                  "chrome.field");
}

TEST(check_chrome_nesting)
{
    expect_events(SPAN("1", "10") "," SPAN("1", "5") "," SPAN("6.000", "5") "," SPAN("11", "1"),
                  "");
    expect_events(SPAN("1", "10") "," SPAN("11", "0") "," SPAN("1", "0"), "");
    expect_events(SPAN("6", "5.001") "," SPAN("1", "10"), "chrome.nesting");
    /* Device annotations are a nanosecond wider. */
    expect_events(
        "{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":\"a\",\"ts\":5.999,\"dur\":"
        "4.002," AT "},{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":\"a\",\"ts\":"
        "9.999,\"dur\":4.002," AT "}",
        "");
    /* Another track is none of its business. */
    expect_events(SPAN("1", "10") ",{\"ph\":\"X\",\"cat\":\"c\",\"name\":\"a\",\"ts\":6,\"dur\":10,"
                                  "\"pid\":1,\"tid\":\"2\"}",
                  "");
}

#define OF(cat, ts, dur, args)                                                    \
    "{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"a\",\"ts\":" ts ",\"dur\":" dur \
    ",\"args\":{" args "}," AT "}"
#define CALL(ts, dur, id, parent) \
    OF("python_function", ts, dur, "\"Python id\":" id ",\"Python parent id\":" parent)
#define OP(ts, dur, id, parent) \
    OF("cpu_op", ts, dur, "\"External id\":" id ",\"parent_id\":" parent)

TEST(check_chrome_parents)
{
    expect_events(CALL("1", "10", "1", "null") "," CALL("1", "10", "2", "1"), "");
    expect_events(CALL("1", "10", "2", "1") "," CALL("1", "10", "1", "null"), "chrome.parent");
    expect_events(CALL("1", "5", "2", "1") "," CALL("1", "10", "1", "null"), "");
    /* A caller is not around, or another is in between. */
    expect_events(
        CALL("1", "10", "1", "null") "," CALL("2", "5", "2", "1") "," CALL("3", "1", "3", "1"),
        "chrome.parent");
    expect_events(CALL("3", "1", "3", "7"), ""); /* it is in another part */
    expect_events(OP("1", "10", "1", "0") "," OP("1", "10", "2", "1"), "");
    expect_events(OP("1", "10", "2", "1") "," OP("1", "10", "1", "0"), "chrome.parent");
    expect_events(OP("1", "0", "2", "1") "," OP("1", "0", "1", "0"), "chrome.parent");
    expect_events(OP("1", "5", "2", "1") "," OP("1", "10", "1", "0"), "");
}

#define EDGE(ph, name, ts) "{\"ph\":\"" ph "\",\"name\":\"" name "\",\"ts\":" ts "," AT "}"

TEST(check_chrome_balance)
{
    expect_events(
        EDGE("B", "a", "1") "," EDGE("B", "b", "2") "," EDGE("E", "b", "3") "," EDGE("E", "a", "4"),
        "");
    expect_events(EDGE("B", "a", "1") "," EDGE("E", "b", "3"), "chrome.balance");
    expect_events(EDGE("B", "a", "1") "," SPAN("9", "1"), "chrome.balance");
    expect_events(EDGE("E", "a", "1") "," SPAN("9", "1"), "chrome.balance");
    expect_events(EDGE("B", "a", "5") "," EDGE("E", "a", "3"), "chrome.balance");
}

#define FLOW(ph, cat, id, ts) \
    "{\"ph\":\"" ph "\",\"cat\":\"" cat "\",\"name\":\"n\",\"id\":" id ",\"ts\":" ts "," AT "}"

TEST(check_chrome_flows)
{
    expect_events(SPAN("1", "1") "," SPAN("5", "1") "," FLOW("s", "ac2g", "1", "1") "," FLOW(
                      "f", "ac2g", "1", "5.000"),
                  "");
    expect_events(SPAN("1", "1") "," FLOW("f", "ac2g", "1", "1"), "chrome.flow");
    expect_events(SPAN("1", "1") "," FLOW("s", "ac2g", "1", "1"), "chrome.flow");
    expect_events(SPAN("1", "1") "," FLOW("s", "ac2g", "1", "1") "," FLOW("f", "fwdbwd", "1", "1"),
                  "chrome.flow");
    expect_events(SPAN("1", "4") "," FLOW("s", "ac2g", "1", "1") "," FLOW("f", "ac2g", "1", "2"),
                  "chrome.flow_binding");
    expect_events(SPAN("1", "4") "," FLOW("s", "mine", "1", "1") "," FLOW("f", "mine", "1", "2"),
                  "");
    expect_events(SPAN("1", "4") "," FLOW("s", "mine", "1", "1"), "chrome.flow_open");
    expect_events(SPAN("1", "4") "," FLOW("f", "mine", "1", "1"), "chrome.flow_open");
    expect_events(SPAN("1", "1") "," FLOW("s", "ac2g", "-3", "1"), "chrome.id");
}

TEST(check_chrome_parts)
{
    expect("{\"schemaVersion\": 1, \"mtprof_part\": 0, \"traceEvents\": [" SPAN("1", "1") "," FLOW(
               "s", "ac2g", "1", "1") "," FLOW("f", "ac2g", "2", "7") "]}",
           "chrome.flow_part");
}

TEST(check_chrome_top_level)
{
    expect("{\"schemaVersion\": 1, \"distributedInfo\": {\"backend\": \"x\", \"rank\": 3}, "
           "\"baseTimeNanoseconds\": 1790857026000000000, \"traceEvents\": [" SPAN("1", "1") "]}",
           "");
    expect("{\"distributedInfo\": {\"rank\":3}, \"traceEvents\": [" SPAN("1", "1") "]}",
           "chrome.rank");
    expect("{\"distributedInfo\": {\"rank\": \"3\"}, \"traceEvents\": [" SPAN("1", "1") "]}",
           "chrome.rank");
    expect("{\"distributedInfo\": {}, \"traceEvents\": [" SPAN("1", "1") "]}", "chrome.rank");
    expect("{\"traceEvents\": [" SPAN("1", "1") "], \"baseTimeNanoseconds\": 1790857026000000000}",
           "chrome.key_order");
    expect("{\"baseTimeNanoseconds\": 17, \"traceEvents\": [" SPAN("1", "1") "]}",
           "chrome.time_base");
    expect_events(SPAN("9007199254740.992", "1"), "chrome.time_base");
}

/* ---- files ----------------------------------------------------------------------------------- */

TEST(check_other_files)
{
    findings all;
    mtprof_check_summary summary = check_text("hello", &all);
    CHECK_EQ_U64(summary.format, MTPROF_CHECK_UNKNOWN);
    CHECK_EQ_U64(summary.errors, 1);
    CHECK_EQ_STR(all.items[0].rule, "file.format");
    summary = check_text("", &all);
    CHECK_EQ_U64(summary.errors, 1);
    /* The header that a killed process never wrote: a trace, as mtprof_model_open() sees it. */
    static const char hole[64];
    summary = check_bytes(hole, sizeof hole, &all);
    CHECK_EQ_U64(summary.format, MTPROF_CHECK_MTT);
    CHECK_EQ_STR(all.items[0].rule, "mtt.header");
    mtprof_model *model;
    CHECK_EQ_I64(mtprof_model_open(path, NULL, &model), MTPROF_EFORMAT);
    CHECK_EQ_I64(mtprof_check("/nonexistent/file", NULL, NULL), MTPROF_EIO);
    CHECK_EQ_I64(mtprof_check("/tmp", NULL, NULL), MTPROF_EIO);
    CHECK_EQ_I64(mtprof_check(NULL, NULL, NULL), MTPROF_EINVAL);
    mtprof_check_summary none = {.struct_size = 0};
    CHECK_EQ_I64(mtprof_check(path, NULL, &none), MTPROF_EINVAL);
}

typedef struct buffer {
    unsigned char bytes[8192];
    size_t n;
} buffer;

static int keep(void *context, const void *bytes, size_t length)
{
    buffer *b = context;
    if (b->n + length > sizeof b->bytes) {
        return ENOSPC;
    }
    memcpy(b->bytes + b->n, bytes, length);
    b->n += length;
    return 0;
}

TEST(check_gzip)
{
    static const char text[] = "{\"traceEvents\": [" SPAN("1", "1") "]}";
    buffer packed = {.n = 0};
    mtb_deflate *deflate = NULL;
    findings all;
    if (strcmp(mtb_gzip_library(), "none") == 0) {
        MT_SKIP("no gzip library is installed");
    }
    REQUIRE_EQ_I64(mtb_deflate_open(0, keep, &packed, &deflate), 0);
    REQUIRE_EQ_I64(mtb_deflate_write(deflate, text, sizeof text - 1), 0);
    REQUIRE_EQ_I64(mtb_deflate_finish(deflate), 0);
    mtb_deflate_close(deflate);
    mtprof_check_summary summary = check_bytes(packed.bytes, packed.n, &all);
    CHECK_EQ_U64(summary.errors, 0);
    CHECK_EQ_U64(summary.spans, 1);
    CHECK_EQ_U64(summary.gzipped, 1);
    CHECK_EQ_U64(summary.text_bytes, sizeof text - 1);
    CHECK_EQ_U64(summary.file_bytes, packed.n);
    summary = check_bytes(packed.bytes, packed.n - 9, &all);
    CHECK(summary.errors > 0);
    bool found = false;
    for (size_t i = 0; i < all.n; i++) {
        found = found || strcmp(all.items[i].rule, "file.gzip") == 0;
    }
    CHECK(found);
}

TEST(check_limits_and_callbacks)
{
    char text[256] = "[1";
    for (size_t i = 1; i < 100; i++) {
        text[2 * i] = ',';
        text[2 * i + 1] = '1';
    }
    text[200] = ']';
    findings all = {.n = 0};
    mtprof_check_options options = {.struct_size = sizeof options, .report = take, .user = &all};
    mtprof_check_summary summary = {.struct_size = sizeof summary};
    write_file(text, strlen(text));
    REQUIRE_OK(mtprof_check(path, &options, &summary));
    CHECK_EQ_U64(summary.errors, 100);
    REQUIRE_EQ_U64(all.n, 22); /* 20, the note that there are no spans, and the rest in one */
    CHECK_EQ_STR(all.items[21].message, "80 more like these");
    all = (findings){.give_up_at = 5};
    CHECK_EQ_I64(mtprof_check(path, &options, NULL), MTPROF_ECALLBACK);
    CHECK_EQ_U64(all.n, 5);
    /* An older caller's structs are shorter. */
    struct {
        uint32_t size, format;
        uint64_t errors, guard;
    } old = {.size = 16, .guard = 42};
    REQUIRE_OK(mtprof_check(path, NULL, (mtprof_check_summary *)(void *)&old));
    CHECK_EQ_U64(old.errors, 100);
    CHECK_EQ_U64(old.guard, 42);
}

TEST(check_without_memory)
{
    static const char text[] =
        "{\"traceEvents\": [" SPAN("1", "1") "," EDGE("B", "a", "5") "," EDGE(
            "E", "a", "6") "," FLOW("s", "ac2g", "1", "1") "," FLOW("f", "ac2g", "1", "5") "]}";
    write_file(text, sizeof text - 1);
    uint64_t n = 1;
    for (;; n++) {
        mtb_fail_nth(n, false);
        mtprof_status status = mtprof_check(path, NULL, NULL);
        mtb_fail_nth(0, false);
        if (status == MTPROF_OK) {
            break;
        }
        REQUIRE_EQ_I64(status, MTPROF_ENOMEM);
    }
    CHECK(n > 5);
}

/* ---- .mtt ------------------------------------------------------------------------------------ */

/* A window, a name, a thread with two begins and one end. */
static void small_trace(trace_builder *b)
{
    tb_init(b);
    tb_chunk(b, MTPROF_STREAM_DEFINITIONS, 0);
    tb_string(b, 1, "op");
    tb_record(b, MTPROF_REC_DEF_THREAD, 0, 1, 3, (uint64_t[]){4242, 1, 0});
    tb_chunk(b, MTPROF_STREAM_CONTROL, 0);
    tb_record(b, MTPROF_REC_WINDOW_OPEN, 0, 1, 3, (uint64_t[]){1100, 3, 0});
    tb_record(b, MTPROF_REC_WINDOW_CLOSE, 0, 1, 1, (uint64_t[]){9000});
    tb_chunk(b, MTPROF_STREAM_THREAD, 1);
    tb_record(b, MTPROF_REC_THREAD, 0, 1, 1, (uint64_t[]){1200});
    tb_record(b, MTPROF_REC_BEGIN, MTPROF_KIND_OP, 1, 1, (uint64_t[]){1300});
    tb_end(b, 1, 1400);
}

static void expect_trace(trace_builder *b, bool closed, const char *rules)
{
    findings all;
    char seen[512] = "";
    tb_finish(b, closed);
    check_bytes(b->bytes, b->size, &all);
    for (size_t i = 0; i < all.n; i++) {
        snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s%s", i > 0 ? " " : "",
                 all.items[i].rule);
    }
    if (strcmp(seen, rules) != 0) {
        FAIL("found \"%s\" (%s), expected \"%s\"", seen, all.n > 0 ? all.items[0].message : "",
             rules);
    }
    tb_fini(b);
}

TEST(check_mtt)
{
    trace_builder b;
    small_trace(&b);
    expect_trace(&b, true, "");
    small_trace(&b);
    expect_trace(&b, false, "mtt.not_closed");
    small_trace(&b);
    tb_record(&b, MTPROF_REC_BEGIN, MTPROF_KIND_OP, 9, 1, (uint64_t[]){1500});
    expect_trace(&b, true, "mtt.definition mtt.truncated");
    small_trace(&b);
    tb_end(&b, 1, 1500);
    expect_trace(&b, true, "mtt.end");
    small_trace(&b);
    tb_record(&b, MTPROF_REC_BEGIN, MTPROF_KIND_OP, 1, 1, (uint64_t[]){1250});
    tb_end(&b, 1, 1500);
    expect_trace(&b, true, "mtt.time");
    small_trace(&b);
    tb_record(&b, MTPROF_REC_EPOCH, 0, 5, 1, (uint64_t[]){1500});
    tb_record(&b, MTPROF_REC_BEGIN, MTPROF_KIND_OP, 1, 1, (uint64_t[]){1600});
    tb_end(&b, 1, 1700);
    expect_trace(&b, true, "mtt.epoch");
    small_trace(&b);
    tb_record(&b, MTPROF_REC_LAUNCH, 0, 1, 2, (uint64_t[]){1600, 1});
    expect_trace(&b, true, "mtt.unmatched");
    small_trace(&b);
    tb_record(&b, MTPROF_REC_END_X, 0, 0, 2, (uint64_t[]){1600, (uint64_t)7 << 40 | 3});
    expect_trace(&b, true, "mtt.end");
    small_trace(&b);
    tb_single(&b, MTPROF_REC_STACK, (uint64_t)9 << 24);
    expect_trace(&b, true, ""); /* after an end it belongs to nothing */
    small_trace(&b);
    tb_set64(&b, TB_AT_HEALTH + 8 * MTPROF_LOST_BUDGET, 12);
    expect_trace(&b, true, "mtt.lost");
    small_trace(&b);
    tb_set64(&b, TB_AT_HEALTH + 8 * MTPROF_HEALTH_CHUNKS, 12);
    expect_trace(&b, true, "mtt.problem");
}

TEST(check_mtt_damage)
{
    trace_builder b;
    findings all;
    small_trace(&b);
    tb_finish(&b, true);
    b.bytes[b.chunk + 64 + 3] ^= 1; /* a record: the checksum of its chunk fails */
    check_bytes(b.bytes, b.size, &all);
    REQUIRE_EQ_U64(all.n, 1);
    CHECK_EQ_STR(all.items[0].rule, "mtt.record");
    CHECK_EQ_U64(all.items[0].offset, b.chunk);
    b.bytes[50] ^= 1;
    mtprof_check_summary summary = check_bytes(b.bytes, b.size, &all);
    REQUIRE_EQ_U64(all.n, 1);
    CHECK_EQ_STR(all.items[0].rule, "mtt.header");
    CHECK_EQ_U64(summary.format, MTPROF_CHECK_MTT);
    tb_fini(&b);
}
