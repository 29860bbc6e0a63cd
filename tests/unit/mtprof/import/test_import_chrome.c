/* SPDX-License-Identifier: Apache-2.0
 *
 * Foreign traces entry by entry: phases, tracks, arguments, documents that are cut or wrong.
 */
#include "json_model.h"
#include "mtprof/model/events/event.h"

#include <mtprof/session.h>
#include <mtprof/status.h>
#include <mtprof/trace.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const mtprof__event *point_of(const mtprof_model *model, uint8_t kind, size_t number)
{
    for (size_t i = 0; i < model->n_points; i++) {
        if (model->points[i].kind == kind && number-- == 0) {
            return &model->points[i];
        }
    }
    FAIL("no such point of kind %u", kind);
    mt_test_leave();
}

static int64_t i64(const mtprof_model *model, uint32_t column, uint32_t i)
{
    REQUIRE(model->columns.extra[column] != NULL);
    return ((const int64_t *)model->columns.extra[column])[i];
}

static uint32_t u32(const mtprof_model *model, uint32_t column, uint32_t i)
{
    REQUIRE(model->columns.extra[column] != NULL);
    return ((const uint32_t *)model->columns.extra[column])[i];
}

/* ---- spans ----------------------------------------------------------------------------------- */

TEST(begin_and_end_make_spans)
{
    mtprof_model *model =
        import_text("[{\"ph\":\"B\",\"name\":\"a\",\"ts\":1,\"pid\":1,\"tid\":2},"
                    "{\"ph\":\"B\",\"name\":\"b\",\"ts\":2,\"pid\":1,\"tid\":2},"
                    "{\"ph\":\"B\",\"name\":\"other\",\"ts\":2.5,\"pid\":1,\"tid\":3},"
                    "{\"ph\":\"E\",\"ts\":4,\"pid\":1,\"tid\":2},"
                    "{\"ph\":\"E\",\"name\":\"a\",\"ts\":10,\"pid\":1,\"tid\":2},"
                    "{\"ph\":\"E\",\"ts\":11,\"pid\":1,\"tid\":2},"
                    "{\"ph\":\"B\",\"name\":\"back\",\"ts\":20,\"pid\":1,\"tid\":2},"
                    "{\"ph\":\"E\",\"ts\":19,\"pid\":1,\"tid\":2}]");
    const mtprof__columns *columns = &model->columns;
    uint32_t a = event_of(model, "a");
    uint32_t b = event_of(model, "b");
    uint32_t other = event_of(model, "other");
    uint32_t back = event_of(model, "back");
    CHECK_EQ_I64(columns->end_ns[a], 10000);
    CHECK_EQ_I64(columns->end_ns[b], 4000);
    CHECK_EQ_U64(columns->parent[b], a);
    CHECK_EQ_I64(columns->self_ns[a], 7000);
    CHECK_EQ_I64(columns->end_ns[other], 20000); /* never ended: at the end of the trace */
    CHECK((columns->flags[other] & MTPROF_EVENT_FLAG_TRUNCATED) != 0);
    CHECK((columns->flags[a] & MTPROF_EVENT_FLAG_TRUNCATED) == 0);
    CHECK_EQ_I64(columns->end_ns[back], 20000);
    mtprof_model_findings found = import_findings(model);
    CHECK_EQ_U64(found.ends_without_begin, 1);
    CHECK_EQ_U64(found.truncated, 1);
    CHECK_EQ_U64(found.clock_back, 1);
    mtprof_model_free(model);
}

TEST(asynchronous_spans_are_matched_by_id)
{
    mtprof_model *model = import_text(
        "[{\"ph\":\"b\",\"cat\":\"n\",\"id\":\"0x1\",\"name\":\"outer\",\"ts\":1,\"pid\":1,\"tid\":2},"
        "{\"ph\":\"b\",\"cat\":\"n\",\"id\":\"0x2\",\"name\":\"two\",\"ts\":2,\"pid\":1,\"tid\":2},"
        "{\"ph\":\"b\",\"cat\":\"n\",\"id\":\"0x1\",\"name\":\"inner\",\"ts\":3,\"pid\":1,\"tid\":2},"
        "{\"ph\":\"n\",\"cat\":\"n\",\"id\":\"0x1\",\"name\":\"mark\",\"ts\":3.5,\"pid\":1,\"tid\":2},"
        "{\"ph\":\"e\",\"cat\":\"n\",\"id\":\"0x1\",\"ts\":4,\"pid\":1,\"tid\":9},"
        "{\"ph\":\"e\",\"cat\":\"n\",\"id\":\"0x2\",\"ts\":5,\"pid\":1,\"tid\":2},"
        "{\"ph\":\"e\",\"cat\":\"n\",\"id\":\"0x1\",\"ts\":6,\"pid\":1,\"tid\":2},"
        "{\"ph\":\"e\",\"cat\":\"other\",\"id\":\"0x1\",\"ts\":7,\"pid\":1,\"tid\":2}]");
    const mtprof__columns *columns = &model->columns;
    CHECK_EQ_I64(columns->end_ns[event_of(model, "outer")], 6000);
    CHECK_EQ_I64(columns->end_ns[event_of(model, "inner")], 4000);
    CHECK_EQ_I64(columns->end_ns[event_of(model, "two")], 5000);
    for (uint32_t i = 0; i < columns->n; i++) {
        CHECK((columns->flags[i] & MTPROF_EVENT_FLAG_ASYNC) != 0);
        CHECK_EQ_I64(columns->self_ns[i], 0);
    }
    CHECK_EQ_U64(import_findings(model).ends_without_begin, 1);
    CHECK_EQ_I64(point_of(model, MTPROF_EVENT_KIND_INSTANT, 0)->start_ns, 3500);
    mtprof_model_free(model);
}

TEST(partial_overlap_takes_no_time)
{
    mtprof_model *model =
        import_text("[{\"ph\":\"X\",\"name\":\"around\",\"ts\":0,\"dur\":20,\"pid\":1,\"tid\":1},"
                    "{\"ph\":\"X\",\"name\":\"a\",\"ts\":0,\"dur\":10,\"pid\":1,\"tid\":1},"
                    "{\"ph\":\"X\",\"name\":\"b\",\"ts\":5,\"dur\":10,\"pid\":1,\"tid\":1},"
                    "{\"ph\":\"X\",\"name\":\"c\",\"ts\":6,\"dur\":2,\"pid\":1,\"tid\":1},"
                    "{\"ph\":\"X\",\"name\":\"d\",\"ts\":10,\"dur\":0,\"pid\":1,\"tid\":1}]");
    const mtprof__columns *columns = &model->columns;
    uint32_t a = event_of(model, "a");
    uint32_t b = event_of(model, "b");
    uint32_t c = event_of(model, "c");
    uint32_t d = event_of(model, "d");
    CHECK((columns->flags[b] & MTPROF_EVENT_FLAG_OVERLAP) != 0);
    CHECK_EQ_I64(columns->self_ns[b], 0);
    CHECK_EQ_U64(columns->parent[b], a);
    CHECK_EQ_U64(columns->parent[c], a);
    CHECK_EQ_I64(columns->self_ns[a], 8000);
    /* its end is outside (torch-contract 3.3.2) */
    CHECK_EQ_U64(columns->parent[d], event_of(model, "around"));
    CHECK_EQ_I64(columns->self_ns[event_of(model, "around")], 10000);
    CHECK_EQ_U64(import_findings(model).overlaps, 1);
    mtprof_model_free(model);
}

TEST(overheads_go_to_the_thread_that_ran)
{
    mtprof_model *model = import_text(
        "{\"traceEvents\": ["
        "{\"ph\":\"X\",\"cat\":\"overhead\",\"name\":\"o1\",\"ts\":6,\"dur\":2,\"pid\":-1,\"tid\":0},"
        "{\"ph\":\"X\",\"cat\":\"overhead\",\"name\":\"o2\",\"ts\":60,\"dur\":2,\"pid\":-1,\"tid\":0},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"late\",\"ts\":5,\"dur\":10,\"pid\":1,\"tid\":2},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"early\",\"ts\":0,\"dur\":50,\"pid\":1,\"tid\":1}"
        "]}");
    const mtprof__columns *columns = &model->columns;
    uint32_t o1 = event_of(model, "o1");
    uint32_t o2 = event_of(model, "o2");
    uint32_t late = event_of(model, "late");
    CHECK_EQ_U64(columns->parent[o1], late);
    CHECK_EQ_U64(columns->track[o1], columns->track[late]);
    CHECK_EQ_I64(columns->self_ns[late], 8000);
    CHECK_EQ_I64(columns->self_ns[event_of(model, "early")], 50000);
    mtprof_track own;
    REQUIRE(mtprof_model_track(model, columns->track[o2], &own));
    CHECK_EQ_I64(own.pid, -1); /* nothing ran */
    mtprof_model_free(model);
}

TEST(functions_take_no_time_from_ops)
{
    mtprof_model *model = import_text(
        "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op\",\"ts\":0,\"dur\":10,\"pid\":1,\"tid\":1},"
        "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"f\",\"ts\":1,\"dur\":8,\"pid\":1,\"tid\":1},"
        "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"g\",\"ts\":2,\"dur\":5,\"pid\":1,\"tid\":1},"
        "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"s\",\"ts\":2,\"dur\":5,\"pid\":1,\"tid\":1,"
        "\"args\":{\"sampled\":1}},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"in\",\"ts\":3,\"dur\":1,\"pid\":1,\"tid\":1}]");
    const mtprof__columns *columns = &model->columns;
    CHECK_EQ_U64(columns->n, 4); /* what an export rebuilt from stacks is not an event */
    CHECK_EQ_I64(columns->self_ns[event_of(model, "op")], 9000);
    CHECK_EQ_U64(columns->parent[event_of(model, "in")], event_of(model, "op"));
    CHECK_EQ_U64(columns->parent[event_of(model, "g")], event_of(model, "f"));
    CHECK_EQ_I64(columns->self_ns[event_of(model, "f")], 3000); /* model.h MDL2 */
    CHECK_EQ_I64(columns->self_ns[event_of(model, "g")], 4000);
    CHECK((columns->flags[event_of(model, "f")] & MTPROF_EVENT_FLAG_TOP) == 0);
    CHECK_EQ_U64(columns->parent[event_of(model, "f")], MTPROF_NO_EVENT);
    mtprof_model_free(model);
}

TEST(steps_by_time_and_by_argument)
{
    mtprof_model *model = import_text(
        "[{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#3\",\"ts\":10,\"dur\":10,"
        "\"pid\":1,\"tid\":1},"
        "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#4\",\"ts\":20,\"dur\":10,"
        "\"pid\":1,\"tid\":1},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"in3\",\"ts\":12,\"dur\":1,\"pid\":1,\"tid\":1},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"thread\",\"ts\":21,\"dur\":1,\"pid\":1,\"tid\":2,"
        "\"args\":{\"External id\": 5}},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"said\",\"ts\":22,\"dur\":1,\"pid\":1,\"tid\":2,"
        "\"args\":{\"step\": 9}},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"before\",\"ts\":2,\"dur\":1,\"pid\":1,\"tid\":2},"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":99,\"dur\":1,\"pid\":0,\"tid\":7,"
        "\"args\":{\"External id\": 5}},"
        "{\"ph\":\"X\",\"name\":\"ProfilerStep#x\",\"ts\":30,\"dur\":1,\"pid\":1,\"tid\":2}]");
    const mtprof__columns *columns = &model->columns;
    CHECK_EQ_U64(columns->kind[event_of(model, "ProfilerStep#3")], MTPROF_EVENT_KIND_STEP);
    CHECK_EQ_I64(columns->step[event_of(model, "ProfilerStep#3")], 3);
    CHECK_EQ_I64(columns->step[event_of(model, "in3")], 3);
    CHECK_EQ_I64(columns->step[event_of(model, "thread")], 4);
    CHECK_EQ_I64(columns->step[event_of(model, "said")], 9);
    CHECK_EQ_I64(columns->step[event_of(model, "before")], -1);
    CHECK_EQ_I64(columns->step[event_of(model, "k")], 4); /* of what launched it */
    CHECK_EQ_U64(columns->kind[event_of(model, "ProfilerStep#x")], MTPROF_EVENT_KIND_SCOPE);
    mtprof_model_free(model);
}

TEST(parents_by_id_win)
{
    mtprof_model *model = import_text(
        "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"p\",\"ts\":0,\"dur\":5,\"pid\":1,\"tid\":1,"
        "\"args\":{\"correlation_id\": 11}},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"far\",\"ts\":9,\"dur\":5,\"pid\":1,\"tid\":2,"
        "\"args\":{\"correlation_id\": 12, \"parent_id\": 11}},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"point\",\"ts\":5,\"dur\":0,\"pid\":1,\"tid\":1,"
        "\"args\":{\"correlation_id\": 13, \"parent_id\": 11}},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"none\",\"ts\":2,\"dur\":0,\"pid\":1,\"tid\":1,"
        "\"args\":{\"correlation_id\": 14, \"parent_id\": 0}},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"self\",\"ts\":30,\"dur\":1,\"pid\":1,\"tid\":1,"
        "\"args\":{\"correlation_id\": 15, \"parent_id\": 15}}]");
    const mtprof__columns *columns = &model->columns;
    uint32_t p = event_of(model, "p");
    CHECK_EQ_U64(columns->parent[event_of(model, "far")], p);
    CHECK((columns->flags[event_of(model, "far")] & MTPROF_EVENT_FLAG_FOREIGN_PARENT) != 0);
    CHECK_EQ_U64(columns->parent[event_of(model, "point")], p);
    CHECK_EQ_U64(columns->parent[event_of(model, "none")], MTPROF_NO_EVENT);
    CHECK((columns->flags[event_of(model, "none")] & MTPROF_EVENT_FLAG_TOP) != 0);
    CHECK_EQ_U64(columns->parent[event_of(model, "self")], MTPROF_NO_EVENT);
    mtprof_model_free(model);
}

/* ---- devices and memory ---------------------------------------------------------------------- */

TEST(device_work_is_tied_by_external_id)
{
    mtprof_model *model = import_text(
        "{\"traceEvents\":["
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":20,\"dur\":3,\"pid\":2,\"tid\":7,"
        "\"args\":{\"External id\":5,\"device\":2,\"stream\":7,\"correlation\":5,\"grid\":[1,2,3],"
        "\"warps per SM\":0.5,\"note\":\"a\\\"b\"}},"
        "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"m\",\"ts\":24,\"dur\":1,\"pid\":2,\"tid\":7,"
        "\"args\":{\"External id\":6,\"bytes\":160}},"
        "{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":\"a\",\"ts\":19.999,\"dur\":5.002,"
        "\"pid\":2,\"tid\":7,\"args\":{\"External id\":5}},"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"lost\",\"ts\":30,\"dur\":1,\"pid\":2,\"tid\":7,"
        "\"args\":{\"External id\":77}},"
        "{\"ph\":\"X\",\"cat\":\"privateuse1_runtime\",\"name\":\"launch\",\"ts\":2,\"dur\":1,"
        "\"pid\":1,\"tid\":1,\"args\":{\"External id\":5,\"correlation\":5,\"cbid\":9}},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op\",\"ts\":1,\"dur\":5,\"pid\":1,\"tid\":1,"
        "\"args\":{\"External id\":5}},"
        "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"scope\",\"ts\":0,\"dur\":9,\"pid\":1,"
        "\"tid\":1,\"args\":{\"External id\":6}}]}");
    const mtprof__columns *columns = &model->columns;
    uint32_t k = event_of(model, "k");
    uint32_t m = event_of(model, "m");
    uint32_t op = event_of(model, "op");
    mtprof_device device;
    REQUIRE(mtprof_model_device(model, columns->device[k], &device));
    CHECK_EQ_STR(device.type.bytes, "NPU");
    CHECK_EQ_I64(device.index, 2);
    CHECK_EQ_U64(u32(model, MTPROF_COLUMN_LINK, k), op);
    CHECK_EQ_U64(u32(model, MTPROF_COLUMN_LINK, event_of(model, "launch")), op);
    CHECK_EQ_U64(u32(model, MTPROF_COLUMN_LINK, m), event_of(model, "scope"));
    CHECK_EQ_I64(i64(model, MTPROF_COLUMN_BYTES, m), 160);
    CHECK_EQ_I64(columns->start_ns[event_of(model, "a")], 20000); /* torch-contract 5.3.3 undone */
    CHECK_EQ_I64(columns->end_ns[event_of(model, "a")], 25000);
    CHECK_EQ_U64(import_findings(model).orphans, 1);
    mtprof_column total;
    REQUIRE_OK(mtprof_model_get_column(model, MTPROF_COLUMN_DEVICE_NS, &total));
    CHECK_EQ_I64(((const int64_t *)total.data)[event_of(model, "scope")], 4000);
    uint32_t list = u32(model, MTPROF_COLUMN_METADATA, k);
    mtprof_metadatum item;
    REQUIRE(mtprof_model_event_metadata(model, list, 0, &item));
    CHECK_EQ_STR(item.key.bytes, "grid");
    CHECK_EQ_STR(item.text.bytes, "[1,2,3]");
    CHECK_EQ_U64(item.is_json, 1);
    REQUIRE(mtprof_model_event_metadata(model, list, 1, &item));
    CHECK_EQ_U64(item.type, MTPROF_META_REAL);
    REQUIRE(mtprof_model_event_metadata(model, list, 2, &item));
    CHECK_EQ_STR(item.text.bytes, "a\"b");
    CHECK(!mtprof_model_event_metadata(model, list, 3, &item));
    mtprof_model_free(model);
}

TEST(allocations_belong_to_their_own_thread)
{
    static const struct {
        const char *ts, *tid, *bytes, *more;
    } allocs[] = {
        {"3", "1", "64", ",\"Device Type\":0"},
        {"4", "1", "-24", ""},
        {"5", "1", "7", ",\"Device Type\":1"},
        {"5", "2", "100", ""},
        {"10", "1", "1", ""},
        {"10.001", "1", "1000", ""},
        {"50", "2", "5", ",\"correlation_id\":4"},
        {"3.5", "1", "10000", ",\"correlation_id\":0,\"step\":7"},
    };
    char text[4096] =
        "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op\",\"ts\":0,\"dur\":10,\"pid\":1,\"tid\":1,"
        "\"args\":{\"External id\": 3}},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"in\",\"ts\":2,\"dur\":2,\"pid\":1,\"tid\":1,"
        "\"args\":{\"External id\": 4}},"
        "{\"ph\":\"i\",\"name\":\"[OutOfMemory]\",\"ts\":6,\"pid\":1,\"tid\":1,\"args\":{\"Bytes\":9}}";
    for (size_t i = 0; i < sizeof allocs / sizeof allocs[0]; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used,
                 ",{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\","
                 "\"ts\":%s,\"pid\":1,\"tid\":%s,\"args\":{\"Bytes\":%s,\"Addr\":4096,"
                 "\"Total Allocated\":64,\"Device Id\":-1%s}}",
                 allocs[i].ts, allocs[i].tid, allocs[i].bytes, allocs[i].more);
    }
    strncat(text, "]", sizeof text - strlen(text) - 1);
    mtprof_model *model = import_text(text);
    const mtprof__columns *columns = &model->columns;
    uint32_t op = event_of(model, "op");
    uint32_t in = event_of(model, "in");
    CHECK_EQ_I64(i64(model, MTPROF_COLUMN_ALLOCATED_SELF_CPU, in), 64 - 24 + 5);
    CHECK_EQ_I64(i64(model, MTPROF_COLUMN_ALLOCATED_SELF_CPU, op), 1);
    CHECK_EQ_I64(i64(model, MTPROF_COLUMN_ALLOCATED_SELF_DEVICE, op), 7);
    int64_t strays = 0;
    int failures = 0;
    for (uint32_t i = 0; i < columns->n; i++) {
        if (columns->kind[i] == MTPROF_EVENT_KIND_MEMORY) {
            strays += i64(model, MTPROF_COLUMN_BYTES, i);
            CHECK_EQ_I64(i64(model, MTPROF_COLUMN_BYTES, i),
                         i64(model, MTPROF_COLUMN_ALLOCATED_SELF_CPU, i));
        }
        failures += columns->kind[i] == MTPROF_EVENT_KIND_OUT_OF_MEMORY;
    }
    CHECK_EQ_I64(strays, 11100);
    CHECK_EQ_I64(failures, 1);
    CHECK_EQ_U64(point_of(model, MTPROF_EVENT_KIND_ALLOC, 0)->owner, in + 1);
    CHECK_EQ_U64(point_of(model, MTPROF_EVENT_KIND_ALLOC, 7)->owner,
                 in + 1); /* the one that names it */
    CHECK_EQ_I64(point_of(model, MTPROF_EVENT_KIND_ALLOC, 0)->allocated, 64);
    CHECK_EQ_I64(point_of(model, MTPROF_EVENT_KIND_ALLOC, 0)->reserved_bytes, -1);
    mtprof_model_free(model);
}

/* ---- the other phases ------------------------------------------------------------------------ */

TEST(counters_flows_and_instants)
{
    mtprof_model *model = import_text(
        "[{\"ph\":\"C\",\"name\":\"one\",\"ts\":1,\"pid\":1,\"args\":{\"value\":5}},"
        "{\"ph\":\"C\",\"name\":\"two\",\"ts\":2,\"pid\":1,\"args\":{\"a\":1.5,\"step\":2,\"c\":\"x\"}},"
        "{\"ph\":\"s\",\"cat\":\"f\",\"name\":\"flow\",\"id\":\"0x10\",\"ts\":3,\"pid\":1,\"tid\":1},"
        "{\"ph\":\"t\",\"cat\":\"f\",\"name\":\"flow\",\"id\":16,\"ts\":4,\"pid\":1,\"tid\":1},"
        "{\"ph\":\"f\",\"cat\":\"f\",\"name\":\"flow\",\"id\":16,\"ts\":5,\"pid\":1,\"tid\":1},"
        "{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":1,\"ts\":3,\"pid\":1,\"tid\":1},"
        "{\"ph\":\"I\",\"name\":\"old\",\"ts\":6,\"pid\":1,\"tid\":1,\"args\":{\"k\":1}},"
        "{\"ph\":\"P\",\"name\":\"sample\",\"ts\":7,\"pid\":1,\"tid\":1},"
        "{\"ph\":\"N\",\"name\":\"object\",\"ts\":8,\"pid\":1,\"tid\":1},"
        "{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Record Window End\",\"ts\":9,\"pid\":\"\",\"tid\":\"\"},"
        "{\"ph\":\"X\",\"name\":\"no time\",\"pid\":1,\"tid\":1}, 5]");
    CHECK_EQ_U64(point_of(model, MTPROF_EVENT_KIND_COUNTER, 0)->value, 5);
    CHECK_EQ_STR(point_of(model, MTPROF_EVENT_KIND_COUNTER, 0)->name_text.bytes, "one");
    CHECK_EQ_STR(point_of(model, MTPROF_EVENT_KIND_COUNTER, 1)->name_text.bytes, "two step");
    CHECK_EQ_STR(point_of(model, MTPROF_EVENT_KIND_COUNTER, 2)->name_text.bytes, "two a");
    CHECK_EQ_U64(point_of(model, MTPROF_EVENT_KIND_COUNTER, 2)->phase, 1);
    for (unsigned i = 0; i < 3; i++) {
        const mtprof__event *flow = point_of(model, MTPROF_EVENT_KIND_FLOW, i);
        CHECK_EQ_U64(flow->value, 16);
        CHECK_EQ_U64(flow->phase, i);
    }
    CHECK_EQ_STR(point_of(model, MTPROF_EVENT_KIND_INSTANT, 0)->name_text.bytes, "old");
    CHECK_EQ_STR(point_of(model, MTPROF_EVENT_KIND_INSTANT, 1)->name_text.bytes, "sample");
    CHECK_EQ_U64(model->n_points, 3 + 3 + 2);
    CHECK_EQ_U64(import_findings(model).skipped, 4); /* "x", N, no time, 5 */
    mtprof_model_free(model);
}

TEST(threads_have_numbers_and_names)
{
    mtprof_model *model = import_text(
        "{\"traceEvents\":["
        "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":7,\"args\":{\"name\":\"prog\"}},"
        "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":7,\"tid\":71,\"args\":{\"name\":\"thread 71 (pt)\"}},"
        "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":7,\"tid\":72,\"args\":{\"name\":\"main\\u0021\"}},"
        "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":7,\"tid\":73,\"args\":{\"name\":\"unused\"}},"
        "{\"ph\":\"X\",\"name\":\"second\",\"ts\":5,\"dur\":1,\"pid\":7,\"tid\":71},"
        "{\"ph\":\"X\",\"name\":\"first\",\"ts\":1,\"dur\":1,\"pid\":\"7\",\"tid\":72},"
        "{\"ph\":\"X\",\"name\":\"texts\",\"ts\":9,\"dur\":1,\"pid\":\"Browser\",\"tid\":\"io\"},"
        "{\"ph\":\"X\",\"name\":\"same\",\"ts\":11,\"dur\":1,\"pid\":\"Browser\",\"tid\":\"io\"}]}");
    const mtprof__columns *columns = &model->columns;
    mtprof_track track;
    REQUIRE(mtprof_model_track(model, columns->track[event_of(model, "first")], &track));
    CHECK_EQ_U64(track.number, 1);
    CHECK_EQ_I64(track.tid, 72);
    CHECK_EQ_STR(track.name.bytes, "main!");
    CHECK_EQ_STR(track.process_name.bytes, "prog");
    REQUIRE(mtprof_model_track(model, columns->track[event_of(model, "second")], &track));
    CHECK_EQ_U64(track.number, 2);
    CHECK_EQ_MEM(track.name.bytes, "pt", 2);
    CHECK_EQ_U64(track.name.length, 2);
    uint32_t texts = columns->track[event_of(model, "texts")];
    CHECK_EQ_U64(texts, columns->track[event_of(model, "same")]);
    REQUIRE(mtprof_model_track(model, texts, &track));
    CHECK_EQ_STR(track.process_name.bytes, "Browser");
    CHECK_EQ_STR(track.name.bytes, "io");
    mtprof_model_info info = {.struct_size = sizeof info};
    REQUIRE_OK(mtprof_model_get_info(model, &info));
    CHECK_EQ_U64(info.tracks, 3);
    CHECK_EQ_U64(info.pid, 7);
    mtprof_model_free(model);
}

TEST(our_own_arguments_come_back)
{
    mtprof_model *model = import_text(
        "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op\",\"ts\":1,\"dur\":1,\"pid\":1,\"tid\":1,\"args\":{"
        "\"correlation_id\":900,\"External id\":900,\"Ev Idx\":12,\"flops\":64,\"overload_name\":\"out\","
        "\"Module Hierarchy\":\"a.b\",\"device_type\":\"NPU\",\"runtime_name\":\"dispatch_kernel\","
        "\"npu_memory_allocated_before\":10,\"npu_memory_allocated_after\":30,"
        "\"npu_memory_allocated_delta\":20,\"Sequence number\":4,\"Fwd thread id\":2,"
        "\"stack\":[\"m.py(3): f\",\"<built-in g>\"],\"input_shapes\":[[2,3],[]],"
        "\"Record function id\":0}}]");
    CHECK_EQ_U64(model->columns.n, 1);
    CHECK_EQ_U64(model->columns.index[0], 12);
    CHECK_EQ_I64(i64(model, MTPROF_COLUMN_FLOPS, 0), 64);
    CHECK_EQ_I64(i64(model, MTPROF_COLUMN_CORRELATION, 0), 900);
    CHECK_EQ_I64(i64(model, MTPROF_COLUMN_SEQUENCE, 0), 4);
    CHECK_EQ_U64(u32(model, MTPROF_COLUMN_FORWARD_THREAD, 0), 2);
    CHECK_EQ_I64(i64(model, MTPROF_COLUMN_MEMORY_BEFORE, 0), 10);
    CHECK_EQ_I64(i64(model, MTPROF_COLUMN_MEMORY_AFTER, 0), 30);
    CHECK((model->columns.flags[0] & MTPROF_EVENT_FLAG_DISPATCHED) != 0);
    mtprof_device device;
    REQUIRE(mtprof_model_device(
        model, ((const uint8_t *)model->columns.extra[MTPROF_COLUMN_MEMORY_DEVICE])[0], &device));
    CHECK_EQ_STR(device.type.bytes, "NPU");
    CHECK_EQ_STR(mtprof_model_name(model, u32(model, MTPROF_COLUMN_OVERLOAD, 0) - 1).bytes, "out");
    CHECK_EQ_STR(mtprof_model_name(model, u32(model, MTPROF_COLUMN_MODULE, 0) - 1).bytes, "a.b");
    const uint64_t *words = NULL;
    uint32_t n = 0;
    REQUIRE(mtprof_model_inputs(model, u32(model, MTPROF_COLUMN_INPUTS, 0), &words, &n));
    CHECK_EQ_U64(n, 4);
    CHECK_EQ_U64(words[0], MTPROF_INPUT_TENSOR | 2 << 8);
    CHECK_EQ_U64(words[3], MTPROF_INPUT_NONE);
    uint32_t parent = 0;
    mtprof_frame frame;
    REQUIRE(mtprof_model_stack(model, u32(model, MTPROF_COLUMN_STACK, 0), &parent, &frame));
    CHECK_EQ_STR(frame.file.bytes, "m.py");
    REQUIRE(mtprof_model_stack(model, parent, &parent, &frame));
    CHECK_EQ_STR(frame.function.bytes, "<built-in g>");
    CHECK_EQ_U64(frame.file.length, 0);
    CHECK(model->columns.extra[MTPROF_COLUMN_METADATA] == NULL); /* nothing was left over */
    mtprof_model_free(model);
}

TEST(inputs_of_every_kind)
{
    mtprof_model *model = import_text(
        "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op\",\"ts\":1,\"dur\":1,\"pid\":1,\"tid\":1,\"args\":{"
        "\"Input Dims\":[[4,5],[[2],[3]],[],[],[],[],[]],"
        "\"Input Strides\":[[5,1],[[1],[1]],[],[],[],[],[]],"
        "\"Input type\":[\"float\",\"TensorList\",\"Scalar\",\"ScalarList\",\"Scalar\",\"Scalar\",\"\"],"
        "\"Concrete Inputs\":[\"\",\"\",\"7\",\"[2, 0.5]\",\"True\",\"1.\",\"12\"]}}]");
    const uint64_t *words = NULL;
    const uint64_t *scalars = NULL;
    uint32_t n = 0;
    uint32_t n_scalars = 0;
    REQUIRE(mtprof_model_inputs(model, u32(model, MTPROF_COLUMN_INPUTS, 0), &words, &n));
    REQUIRE(
        mtprof_model_scalars(model, u32(model, MTPROF_COLUMN_SCALARS, 0), &scalars, &n_scalars));
    static const unsigned kinds[] = {MTPROF_INPUT_LIST, MTPROF_INPUT_TENSOR, MTPROF_INPUT_TENSOR};
    CHECK_EQ_U64(words[0] & 0x1FFFF, MTPROF_INPUT_TENSOR | 2 << 8 | 1 << 16);
    CHECK_EQ_STR(mtprof_model_string(model, (uint32_t)(words[0] >> 32)).bytes, "float");
    CHECK(words[1] == 4 && words[2] == 5 && words[3] == 5 && words[4] == 1);
    CHECK_EQ_U64(words[5] & 0xFF, kinds[0]);
    CHECK_EQ_U64(words[5] >> 32, 2);
    CHECK_EQ_U64(words[6] & 0xFF, kinds[1]);
    CHECK_EQ_U64(words[12], MTPROF_INPUT_INT);
    CHECK_EQ_U64(words[13], MTPROF_INPUT_LIST | (uint64_t)2 << 32);
    CHECK_EQ_U64(words[14], MTPROF_INPUT_INT);
    CHECK_EQ_U64(words[15], MTPROF_INPUT_REAL);
    CHECK_EQ_U64(words[16], MTPROF_INPUT_BOOL);
    CHECK_EQ_U64(words[17], MTPROF_INPUT_REAL);
    CHECK_EQ_U64(words[18], MTPROF_INPUT_STRING);
    CHECK_EQ_U64(n, 19);
    double real = 0;
    REQUIRE(n_scalars == 6);
    CHECK(scalars[0] == 7 && scalars[1] == 2 && scalars[3] == 1);
    memcpy(&real, &scalars[2], sizeof real);
    CHECK_EQ_F64(real, 0.5);
    CHECK_EQ_STR(mtprof_model_string(model, (uint32_t)scalars[5]).bytes, "12");
    mtprof_model_free(model);
}

/* The list of the op before must not show: what was never in the file is an empty list. */
TEST(lists_without_values_are_empty)
{
    mtprof_model *model = import_text(
        "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"pid\":1,\"tid\":1,\"args\":{"
        "\"Input type\":[\"ScalarList\",\"ScalarList\"],\"Concrete Inputs\":[\"[111, 222]\"]}},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"b\",\"ts\":3,\"dur\":1,\"pid\":1,\"tid\":1,\"args\":{"
        "\"Input type\":[\"ScalarList\"]}},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"c\",\"ts\":5,\"dur\":1,\"pid\":1,\"tid\":1,\"args\":{"
        "\"Input type\":[\"ScalarList\",\"ScalarList\",\"ScalarList\"],"
        "\"Concrete Inputs\":[7, null, [1, 2]]}}]");
    const uint64_t *words = NULL;
    uint32_t n = 0;
    REQUIRE(mtprof_model_inputs(model, u32(model, MTPROF_COLUMN_INPUTS, 0), &words, &n));
    REQUIRE(n == 4);
    CHECK_EQ_U64(words[0], MTPROF_INPUT_LIST | (uint64_t)2 << 32);
    CHECK_EQ_U64(words[3], MTPROF_INPUT_LIST);
    REQUIRE(mtprof_model_inputs(model, u32(model, MTPROF_COLUMN_INPUTS, 1), &words, &n));
    REQUIRE(n == 1);
    CHECK_EQ_U64(words[0], MTPROF_INPUT_LIST);
    REQUIRE(mtprof_model_inputs(model, u32(model, MTPROF_COLUMN_INPUTS, 2), &words, &n));
    REQUIRE(n == 3);
    CHECK(words[0] == MTPROF_INPUT_LIST && words[1] == words[0] && words[2] == words[0]);
    mtprof_model_free(model);
}

/* What is beyond a bound of the importer is left out and counted. */
TEST(what_does_not_fit_is_counted)
{
    enum {
        FRAMES = 1100,
        SIZES = 5000,
        ARGS = 70
    };
    static const char head[] =
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"pid\":1,\"tid\":1,\"args\":{";
    char *text = malloc(1 << 17);
    REQUIRE(text != NULL);
    size_t n = (size_t)sprintf(text, "[%s\"Call stack\":\"", head);
    for (int i = 0; i < FRAMES; i++) {
        n += (size_t)sprintf(text + n, "f.py(%d): f;", i);
    }
    n += (size_t)sprintf(text + n, "\"}},%s\"Input Dims\":[[1", head);
    for (int i = 0; i < SIZES; i++) {
        n += (size_t)sprintf(text + n, ",1],[1");
    }
    n += (size_t)sprintf(text + n, "]]}},%s\"k\":1", head);
    for (int i = 0; i < ARGS; i++) {
        n += (size_t)sprintf(text + n, ",\"k%d\":1", i);
    }
    (void)sprintf(text + n, "}}]");
    mtprof_model *model = import_text(text);
    mtprof_model_findings found = import_findings(model);
    CHECK_EQ_U64(found.left_out, 2);        /* frames, sizes */
    CHECK_EQ_U64(found.skipped, ARGS - 63); /* 64 are kept */
    mtprof_model_free(model);
    free(text);
}

/* ---- documents ------------------------------------------------------------------------------- */

#define EVENT(name) "{\"ph\":\"X\",\"name\":\"" name "\",\"ts\":1,\"dur\":1,\"pid\":1,\"tid\":1}"

TEST(documents_that_are_read)
{
    static const struct {
        const char *text;
        uint64_t events, problems;
    } cases[] = {
        {"[]", 0, 0},
        {"{\"traceEvents\": []}", 0, 0},
        {"\xEF\xBB\xBF [" EVENT("a") "]", 1, 0},
        {"[" EVENT("a") ",\n" EVENT("b") ",", 2, 0}, /* as Chrome leaves it when killed */
        {"[" EVENT("a") ",\n" EVENT("b"), 2, 0},
        {"[" EVENT("a") ",\n{\"ph\":\"X\",\"na", 1, 1},
        {"{\"traceEvents\": [" EVENT("a") "], \"after\": {\"x\": [1]}}", 1, 0},
        {"{\"before\": 1, \"traceEvents\": [" EVENT("a") ",", 1, 1},
        {"{\"traceEvents\": [" EVENT("a") "]", 1, 1},
        {"[" EVENT("a") "] []", 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mtprof_model *model = import_text(cases[i].text);
        mtprof_model_findings found = import_findings(model);
        if (found.events != cases[i].events || found.problems != cases[i].problems) {
            FAIL("%s: %llu events, %llu problems", cases[i].text, (unsigned long long)found.events,
                 (unsigned long long)found.problems);
        }
        mtprof_model_free(model);
    }
}

TEST(documents_that_are_refused)
{
    static const struct {
        const char *text, *because;
        int64_t offset;
    } cases[] = {
        {"", "it is empty", 0},
        {"  \n", "it is empty", 0},
        {"hello", "neither JSON nor .mtt", 0},
        {"{\"a\": 1}", "without \"traceEvents\"", 0},
        {"{\"a\": ", "ends before any events", 0},
        {"{\"traceEvents\": 5}", "expected '['", 16},
        {"[{\"ph\" \"X\"}]", "expected ':' at byte 7, found '\"'", 7},
        {"[{\"ph\":\"X\"; \"ts\":1}]", "expected ',' or '}' at byte 10", 10},
        {"[{\"ph\":\"X\",\"args\":{\"a\":}}]", "expected a value at byte 23, found '}'", 23},
        {"[[1,2],[3]]", "none of the entries is an event", 0},
        {"{\"k\": \"v\"q\", \"traceEvents\": []}", "byte 9", 9}, /* torch's unescaped quotes */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mtprof_model *model = NULL;
        CHECK_EQ_I64(import_bytes(cases[i].text, strlen(cases[i].text), &model), MTPROF_EFORMAT);
        CHECK(model == NULL);
        const mtprof_error *error = mtprof_last_error();
        if (strstr(error->message, cases[i].because) == NULL) {
            FAIL("'%s': %s", cases[i].text, error->message);
        }
        CHECK(strstr(error->message, "test.json") != NULL);
        CHECK_EQ_I64(error->offset, cases[i].offset);
    }
}

TEST(metadata_of_the_trace)
{
    mtprof_model *model = import_text(
        "{\"schemaVersion\": 1, \"with_stack\": 1, \"record_shapes\": 0,"
        " \"baseTimeNanoseconds\": 1790857026000000000,"
        " \"user\": \"x\\ny\", \"list\": [1, {\"a\": null}], \"count\": 3, \"traceEvents\": [],"
        " \"traceName\": \"t\", \"late\": true, \"user\": \"last\"}");
    mtprof_metadatum item;
    REQUIRE(mtprof_model_metadata(model, 0, &item));
    CHECK_EQ_STR(item.key.bytes, "user");
    CHECK_EQ_STR(item.text.bytes, "last");
    REQUIRE(mtprof_model_metadata(model, 1, &item));
    CHECK_EQ_STR(item.text.bytes, "[1, {\"a\": null}]");
    CHECK_EQ_U64(item.is_json, 1);
    REQUIRE(mtprof_model_metadata(model, 2, &item));
    CHECK_EQ_U64(item.value, 3);
    REQUIRE(mtprof_model_metadata(model, 3, &item));
    CHECK_EQ_U64(item.type, MTPROF_META_BOOL);
    CHECK(!mtprof_model_metadata(model, 4, &item));
    mtprof_model_info info = {.struct_size = sizeof info};
    REQUIRE_OK(mtprof_model_get_info(model, &info));
    CHECK_EQ_I64(info.real_offset_ns, 1790857026000000000);
    CHECK((info.wants & MTPROF_WANT_STACKS) != 0);
    CHECK((info.wants & MTPROF_WANT_INPUTS) == 0);
    CHECK_EQ_U64(info.foreign, 1);
    mtprof_model_free(model);
}

/* ---- files ----------------------------------------------------------------------------------- */

static const char *write_file(const char *name, const char *bytes, size_t length)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", mt_test_tmpdir(), name);
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL);
    REQUIRE(fwrite(bytes, 1, length, file) == length);
    REQUIRE(fclose(file) == 0);
    return path;
}

TEST(files_that_cannot_be_read)
{
    mtprof_model *model = NULL;
    CHECK_EQ_I64(mtprof_model_open("/nowhere/at/all.json", NULL, &model), MTPROF_EIO);
    CHECK(strstr(mtprof_last_error()->message, "/nowhere/at/all.json") != NULL);
    CHECK_EQ_I64(mtprof_model_open(mt_test_tmpdir(), NULL, &model), MTPROF_EIO);
    CHECK(strstr(mtprof_last_error()->message, "a directory") != NULL);
    CHECK_EQ_I64(mtprof_model_open(NULL, NULL, &model), MTPROF_EINVAL);
    char fifo[512];
    snprintf(fifo, sizeof fifo, "%s/fifo", mt_test_tmpdir());
    REQUIRE(mkfifo(fifo, 0600) == 0);
    CHECK_EQ_I64(mtprof_model_open(fifo, NULL, &model), MTPROF_EIO);
    const char *path = write_file("bad.json.gz", "\x1f\x8b\x08\x00garbage", 11);
    int status = mtprof_model_open(path, NULL, &model);
    CHECK(status == MTPROF_EFORMAT || status == MTPROF_ENOTSUP);
    path = write_file("cut.mtt", "MTTRACE\n", 8);
    CHECK_EQ_I64(mtprof_model_open(path, NULL, &model), MTPROF_EFORMAT);
    CHECK(model == NULL);
}

/* The content decides, not the name. */
TEST(our_own_files_are_known)
{
    char path[512];
    snprintf(path, sizeof path, "%s/ours.json", mt_test_tmpdir());
    mtprof_config config = {.struct_size = sizeof config, .path = path};
    mtprof_session *session = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    {
        MTPROF_SCOPE("ours");
    }
    REQUIRE_OK(mtprof_session_close(session));
    mtprof_model *model = NULL;
    REQUIRE_OK(mtprof_model_open(path, NULL, &model));
    mtprof_model_info info = {.struct_size = sizeof info};
    REQUIRE_OK(mtprof_model_get_info(model, &info));
    CHECK_EQ_U64(info.foreign, 0);
    CHECK_EQ_U64(import_findings(model).events, 1);
    mtprof_model_free(model);
}

static int give_up(void *user, const char *what, uint64_t done, uint64_t total)
{
    CHECK(what != NULL);
    CHECK(done <= total);
    ++*(int *)user;
    return *(int *)user >= 2;
}

TEST(progress_can_give_up)
{
    size_t length = (size_t)4 << 20;
    char *text = malloc(length);
    REQUIRE(text != NULL);
    memset(text, ' ', length);
    text[0] = '[';
    text[length - 1] = ']';
    const char *path = write_file("long.json", text, length);
    free(text);
    int calls = 0;
    mtprof_model_options options = {
        .struct_size = sizeof options, .progress = give_up, .user = &calls};
    mtprof_model *model = NULL;
    CHECK_EQ_I64(mtprof_model_open(path, &options, &model), MTPROF_ECALLBACK);
    CHECK_EQ_I64(calls, 2);
    CHECK_OK(mtprof_model_open(path, NULL, &model));
    mtprof_model_free(model);
}
