/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrow streams, walked as an engine walks them: formats, buffers that are the model's own columns,
 * nulls, dictionaries, and releases in every order.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "mtprof/model/events/event.h"
#include "unit/mtprof/analyze/model_maker.h"

#include <mtprof/arrow.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef mtprof_status maker(mtprof_model *model, const mtprof_arrow_options *options,
                            struct ArrowArrayStream *out);

/* ---- walking --------------------------------------------------------------------------------- */

typedef struct batch {
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    struct ArrowArray array;
} batch;

static void check_shape(const struct ArrowSchema *schema, const struct ArrowArray *array,
                        int64_t length)
{
    CHECK(schema->release != NULL && array->release != NULL);
    CHECK_EQ_I64(array->length, length);
    CHECK_EQ_I64(array->offset, 0);
    CHECK_EQ_I64(array->n_children, schema->n_children);
    CHECK_EQ_I64(array->n_buffers, strcmp(schema->format, "+s") == 0  ? 1
                                   : strcmp(schema->format, "U") == 0 ? 3
                                                                      : 2);
    CHECK(array->null_count == 0 || (schema->flags & ARROW_FLAG_NULLABLE) != 0);
    CHECK((array->null_count == 0) == (array->buffers[0] == NULL));
    for (int64_t i = 1; i < array->n_buffers; i++) {
        CHECK(array->buffers[i] != NULL);
    }
    CHECK((schema->dictionary != NULL) == (array->dictionary != NULL));
    if (schema->dictionary != NULL) {
        CHECK_EQ_STR(schema->dictionary->format, "U");
        check_shape(schema->dictionary, array->dictionary, array->dictionary->length);
    }
    for (int64_t i = 0; i < schema->n_children; i++) {
        check_shape(schema->children[i], array->children[i], length);
    }
}

static void read_stream(batch *b)
{
    struct ArrowArray end = {.release = NULL, .length = 7};
    REQUIRE(b->stream.release != NULL);
    REQUIRE_EQ_I64(b->stream.get_schema(&b->stream, &b->schema), 0);
    REQUIRE_EQ_I64(b->stream.get_next(&b->stream, &b->array), 0);
    REQUIRE_EQ_STR(b->schema.format, "+s");
    check_shape(&b->schema, &b->array, b->array.length);
    REQUIRE_EQ_I64(b->stream.get_next(&b->stream, &end), 0);
    CHECK(end.release == NULL);
    CHECK(b->stream.get_last_error(&b->stream) == NULL);
}

static void read_table(batch *b, maker *make, mtprof_model *model)
{
    REQUIRE_OK(make(model, NULL, &b->stream));
    read_stream(b);
}

static void batch_release(batch *b)
{
    b->array.release(&b->array);
    b->schema.release(&b->schema);
    b->stream.release(&b->stream);
    CHECK(b->array.release == NULL && b->schema.release == NULL && b->stream.release == NULL);
}

/* The place of a column, which must be there with this format. */
static const struct ArrowArray *column(const batch *b, const char *name, const char *format)
{
    for (int64_t i = 0; i < b->schema.n_children; i++) {
        if (strcmp(b->schema.children[i]->name, name) == 0) {
            CHECK_EQ_STR(b->schema.children[i]->format, format);
            return b->array.children[i];
        }
    }
    FAIL("there is no column %s", name);
    return NULL;
}

static bool has_column(const batch *b, const char *name)
{
    for (int64_t i = 0; i < b->schema.n_children; i++) {
        if (strcmp(b->schema.children[i]->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_null(const struct ArrowArray *array, uint64_t row)
{
    const uint8_t *valid = array->buffers[0];
    return valid != NULL && (valid[row / 8] >> (row % 8) & 1) == 0;
}

/* A text of a column, by way of an int32 where it has a dictionary; valid until the next call. */
static const char *text_at(const struct ArrowArray *array, uint64_t row)
{
    static char text[64];
    const struct ArrowArray *texts = array;
    if (array->dictionary != NULL) {
        texts = array->dictionary;
        row = (uint64_t)((const int32_t *)array->buffers[1])[row];
    }
    const int64_t *offsets = texts->buffers[1];
    REQUIRE((int64_t)row < texts->length);
    size_t length = (size_t)(offsets[row + 1] - offsets[row]);
    REQUIRE(length < sizeof text);
    memcpy(text, (const char *)texts->buffers[2] + offsets[row], length);
    text[length] = '\0';
    return text;
}

#define I64(array, row) (((const int64_t *)(array)->buffers[1])[row])
#define U32(array, row) (((const uint32_t *)(array)->buffers[1])[row])
#define I32(array, row) (((const int32_t *)(array)->buffers[1])[row])

/* ---- a model --------------------------------------------------------------------------------- */

static void add_point(mtprof_model *model, const mtprof__event *event)
{
    size_t n = model->n_points;
    mtprof__event *points = mtb_resize(model->points, n + 1, sizeof points[0]);
    REQUIRE(points != NULL);
    points[n] = *event;
    model->points = points;
    model->n_points = n + 1;
}

/* A step with an op that has a child; the child has what is optional. */
static mtprof_model *small_model(void)
{
    mtprof_model *model = mm_model();
    mtprof_frame frames[] = {{.function = {"main", 4}, .file = {"a.py", 4}, .line = 3},
                             {.function = {"forward", 7}, .file = {"", 0}, .line = 0}};
    uint32_t frame = 0;
    uint32_t outer = 0;
    uint32_t inner = 0;
    mm_event step = mm_add(model, "ProfilerStep#4", 0, 100);
    *step.kind = MTPROF_EVENT_KIND_STEP;
    *step.step = 4;
    mm_event op = mm_add(model, "aten::linear", 10, 90);
    *op.parent = 0;
    *op.step = 4;
    mm_event child = mm_add(model, "aten::mm\xFFx", 20, 60);
    *child.parent = 1;
    *child.step = 4;
    REQUIRE_OK(mtprof__dictionary_frame(&model->dictionary, &frames[0], &frame));
    REQUIRE_OK(mtprof__dictionary_node(&model->dictionary, 0, frame, &outer));
    REQUIRE_OK(mtprof__dictionary_frame(&model->dictionary, &frames[1], &frame));
    REQUIRE_OK(mtprof__dictionary_node(&model->dictionary, outer, frame, &inner));
    mm_set(model, MTPROF_COLUMN_STACK, inner);
    mm_set(model, MTPROF_COLUMN_MODULE, mm_name(model, "net.0") + 1);
    mm_set(model, MTPROF_COLUMN_BYTES, (uint64_t)-512);
    mm_set(model, MTPROF_COLUMN_SEQUENCE, 7);
    mtprof__event point = mtprof__event_at(MTPROF__EDGE_POINT, MTPROF_EVENT_KIND_INSTANT, 5, 5);
    point.name_text = (mtprof_text){"here", 4};
    add_point(model, &point);
    point.kind = MTPROF_EVENT_KIND_ALLOC;
    add_point(model, &point);
    return model;
}

/* ---- events ---------------------------------------------------------------------------------- */

TEST(columns_are_the_models_own_memory)
{
    static const struct {
        enum mtprof_column_id id;
        const char *format;
    } same[] = {
        {MTPROF_COLUMN_START_NS, "l"},       {MTPROF_COLUMN_END_NS, "l"},
        {MTPROF_COLUMN_SELF_NS, "l"},        {MTPROF_COLUMN_PARENT, "I"},
        {MTPROF_COLUMN_NAME, "i"},           {MTPROF_COLUMN_TRACK, "I"},
        {MTPROF_COLUMN_STEP, "i"},           {MTPROF_COLUMN_INDEX, "I"},
        {MTPROF_COLUMN_KIND, "c"},           {MTPROF_COLUMN_DEVICE, "C"},
        {MTPROF_COLUMN_FLAGS, "S"},          {MTPROF_COLUMN_STACK, "I"},
        {MTPROF_COLUMN_SEQUENCE, "l"},       {MTPROF_COLUMN_BYTES, "l"},
        {MTPROF_COLUMN_DEPTH, "I"},          {MTPROF_COLUMN_DEVICE_NS, "l"},
        {MTPROF_COLUMN_SELF_DEVICE_NS, "l"},
    };
    mtprof_model *model = small_model();
    batch b;
    read_table(&b, mtprof_arrow_events, model);
    CHECK_EQ_I64(b.array.length, 3);
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        mtprof_column own;
        REQUIRE_OK(mtprof_model_get_column(model, same[i].id, &own));
        REQUIRE(own.data != NULL);
        CHECK_EQ_PTR(column(&b, mtprof_column_name(same[i].id), same[i].format)->buffers[1],
                     own.data);
    }
    CHECK(!has_column(&b, "flops")); /* not recorded */
    CHECK(!has_column(&b, "first_child"));
    batch_release(&b);
    mtprof_model_free(model);
}

TEST(numbers_nulls_and_texts)
{
    mtprof_model *model = small_model();
    batch b;
    read_table(&b, mtprof_arrow_events, model);
    const struct ArrowArray *parent = column(&b, "parent", "I");
    CHECK_EQ_I64(parent->null_count, 1);
    CHECK(is_null(parent, 0) && !is_null(parent, 1) && !is_null(parent, 2));
    CHECK_EQ_U64(U32(parent, 2), 1);
    const struct ArrowArray *event = column(&b, "event", "I");
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ_U64(U32(event, i), i);
    }
    CHECK_EQ_STR(text_at(column(&b, "name", "i"), 1), "aten::linear");
    CHECK_EQ_STR(text_at(column(&b, "name", "i"), 2), "aten::mm\xEF\xBF\xBDx");
    const struct ArrowArray *module = column(&b, "module", "i");
    CHECK(is_null(module, 0) && is_null(module, 1) && !is_null(module, 2));
    CHECK_EQ_STR(text_at(module, 2), "net.0");
    CHECK_EQ_I64(I64(column(&b, "bytes", "l"), 2), -512);
    CHECK_EQ_I64(I64(column(&b, "sequence", "l"), 0), -1);
    const struct ArrowArray *kind = column(&b, "kind", "c");
    const int8_t *kinds = kind->buffers[1];
    CHECK_EQ_I64(kinds[0], MTPROF_EVENT_KIND_STEP);
    for (int64_t i = 0; i < kind->dictionary->length; i++) { /* distinct, as pandas wants them */
        char text[64];
        (void)snprintf(text, sizeof text, "%s", text_at(kind->dictionary, (uint64_t)i));
        for (int64_t k = 0; k < i; k++) {
            CHECK(strcmp(text, text_at(kind->dictionary, (uint64_t)k)) != 0);
        }
    }
    CHECK_EQ_STR(text_at(kind->dictionary, MTPROF_EVENT_KIND_STEP), "step");
    batch_release(&b);
    mtprof_model_free(model);
}

/* Two names that are no UTF-8 become one text: the dictionary has it once. */
TEST(names_that_become_the_same_are_one_text)
{
    mtprof_model *model = mm_model();
    mm_add(model, "a\xFE", 0, 1);
    mm_add(model, "b", 1, 2);
    mm_add(model, "a\xFD", 2, 3);
    mm_event unknown = mm_add(model, "c", 3, 4);
    *unknown.kind = 200;
    batch b;
    read_table(&b, mtprof_arrow_events, model);
    const struct ArrowArray *name = column(&b, "name", "i");
    CHECK_EQ_I64(I32(name, 0), I32(name, 2));
    CHECK_EQ_STR(text_at(name, 0), "a\xEF\xBF\xBD");
    CHECK_EQ_STR(text_at(name, 1), "b");
    CHECK_EQ_STR(text_at(name, 3), "c");
    const struct ArrowArray *kind = column(&b, "kind", "c");
    int8_t number = ((const int8_t *)kind->buffers[1])[3];
    REQUIRE(number >= 0 && number < kind->dictionary->length);
    CHECK_EQ_STR(text_at(kind->dictionary, (uint64_t)number), "unknown");
    batch_release(&b);
    mtprof_model_free(model);
}

TEST(rows_are_picked)
{
    static const uint32_t rows[] = {2, 0, 2};
    static const uint32_t wrong[] = {1, 3};
    mtprof_model *model = small_model();
    mtprof_arrow_options options = {.struct_size = sizeof options, .rows = rows, .n_rows = 3};
    batch b;
    REQUIRE_OK(mtprof_arrow_events(model, &options, &b.stream));
    read_stream(&b);
    CHECK_EQ_I64(b.array.length, 3);
    CHECK_EQ_U64(U32(column(&b, "event", "I"), 0), 2);
    CHECK_EQ_I64(I64(column(&b, "start_ns", "l"), 2), 20);
    CHECK_EQ_I64(column(&b, "parent", "I")->null_count, 1);
    CHECK(is_null(column(&b, "parent", "I"), 1));
    CHECK_EQ_STR(text_at(column(&b, "module", "i"), 2), "net.0");
    batch_release(&b);
    options.n_rows = 0;
    REQUIRE_OK(mtprof_arrow_events(model, &options, &b.stream));
    read_stream(&b);
    CHECK_EQ_I64(b.array.length, 0);
    batch_release(&b);
    options.rows = wrong;
    options.n_rows = 2;
    CHECK_EQ_I64(mtprof_arrow_events(model, &options, &b.stream), MTPROF_EINVAL);
    CHECK_EQ_STR(mtprof_last_error()->message, "arrow: row 1 is event 3 of 3");
    CHECK(b.stream.release == NULL);
    mtprof_model_free(model);
}

TEST(nulls_of_any_number_of_rows)
{
    for (uint32_t n = 0; n < 140; n += n < 20 ? 1 : 7) { /* with and without blocks of 64 */
        mtprof_model *model = mm_model();
        int64_t nulls = 0;
        for (uint32_t i = 0; i < n; i++) {
            mm_event event = mm_add(model, "op", i, i + 1);
            *event.parent = i % 3 == 0 ? MTPROF_NO_EVENT : 0;
            nulls += i % 3 == 0;
        }
        batch b;
        read_table(&b, mtprof_arrow_events, model);
        const struct ArrowArray *parent = column(&b, "parent", "I");
        CHECK_EQ_I64(parent->null_count, nulls);
        for (uint32_t i = 0; i < n; i++) {
            CHECK(is_null(parent, i) == (i % 3 == 0));
            CHECK_EQ_U64(U32(column(&b, "event", "I"), i), i);
        }
        batch_release(&b);
        mtprof_model_free(model);
    }
}

static void count_release(void *user)
{
    ++*(int *)user;
}

/* ---- batches --------------------------------------------------------------------------------- */

enum {
    LONG_EVENTS = 300
};

static mtprof_model *long_model(void)
{
    mtprof_model *model = mm_model();
    for (uint32_t i = 0; i < LONG_EVENTS; i++) {
        mm_event event = mm_add(model, i % 3 == 0 ? "outer" : "inner", 10 * i, 10 * i + 8);
        *event.self = i % 3 == 0 ? 3 : 8;
        *event.parent = i % 3 == 1 ? i - 1 : MTPROF_NO_EVENT;
    }
    return model;
}

static void check_long_batch(const batch *b, uint64_t first)
{
    const struct ArrowArray *self = column(b, "self_ns", "l");
    for (uint64_t k = 0; k < (uint64_t)b->array.length; k++) {
        uint64_t i = first + k;
        CHECK_EQ_U64(U32(column(b, "event", "I"), k), i);
        CHECK_EQ_I64(I64(column(b, "start_ns", "l"), k), (int64_t)(10 * i));
        CHECK_EQ_I64(I64(column(b, "dur_ns", "l"), k), 8);
        CHECK_EQ_I64(I64(self, k), i % 3 == 0 ? 3 : 8);
        CHECK(is_null(column(b, "parent", "I"), k) == (i % 3 != 1));
        CHECK(i % 3 != 1 || U32(column(b, "parent", "I"), k) == i - 1);
        CHECK_EQ_STR(text_at(column(b, "name", "i"), k), i % 3 == 0 ? "outer" : "inner");
        CHECK(is_null(column(b, "module", "i"), k) && is_null(column(b, "stack", "I"), k));
        CHECK(is_null(column(b, "flops", "l"), k) && is_null(column(b, "sequence", "l"), k));
    }
}

TEST(a_data_set_comes_in_batches)
{
    static const uint32_t sizes[] = {1, 64, 100, 128, LONG_EVENTS, 0};
    mtprof_model *model = long_model();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int released = 0;
        mtprof_arrow_options options = {.struct_size = sizeof options,
                                        .release = count_release,
                                        .user = &released,
                                        .batch_rows = sizes[i]};
        int64_t most = sizes[i] == 0 ? LONG_EVENTS : (int64_t)(sizes[i] + 63) / 64 * 64;
        int64_t rows = 0;
        batch b;
        REQUIRE_OK(mtprof_arrow_dataset(model, &options, &b.stream));
        REQUIRE_EQ_I64(b.stream.get_schema(&b.stream, &b.schema), 0);
        for (;;) {
            REQUIRE_EQ_I64(b.stream.get_next(&b.stream, &b.array), 0);
            if (b.array.release == NULL) {
                break;
            }
            int64_t left = LONG_EVENTS - rows;
            CHECK_EQ_I64(b.array.length, left < most ? left : most);
            check_long_batch(&b, (uint64_t)rows);
            rows += b.array.length;
            b.array.release(&b.array);
        }
        CHECK_EQ_I64(rows, LONG_EVENTS);
        b.stream.release(&b.stream);
        CHECK_EQ_I64(released, 1);
        b.schema.release(&b.schema);
    }
    mtprof_model_free(model);
}

TEST(a_batch_outlives_its_stream)
{
    mtprof_model *model = long_model();
    int released = 0;
    mtprof_arrow_options options = {.struct_size = sizeof options,
                                    .release = count_release,
                                    .user = &released,
                                    .batch_rows = 128};
    batch first;
    batch second;
    REQUIRE_OK(mtprof_arrow_dataset(model, &options, &first.stream));
    REQUIRE_EQ_I64(first.stream.get_schema(&first.stream, &first.schema), 0);
    second.schema = first.schema;
    REQUIRE_EQ_I64(first.stream.get_next(&first.stream, &first.array), 0);
    REQUIRE_EQ_I64(first.stream.get_next(&first.stream, &second.array), 0);
    first.stream.release(&first.stream);
    CHECK_EQ_I64(released, 0);
    first.array.release(&first.array);
    check_long_batch(&second, 128);
    CHECK_EQ_I64(released, 0);
    second.array.release(&second.array);
    CHECK_EQ_I64(released, 1);
    first.schema.release(&first.schema);
    mtprof_model_free(model);
}

TEST(any_table_comes_in_batches)
{
    mtprof_model *model = long_model();
    mtprof_arrow_options options = {.struct_size = sizeof options, .batch_rows = 64};
    batch b;
    REQUIRE_OK(mtprof_arrow_events(model, &options, &b.stream));
    REQUIRE_EQ_I64(b.stream.get_schema(&b.stream, &b.schema), 0);
    for (uint64_t first = 0; first < LONG_EVENTS; first += 64) {
        REQUIRE_EQ_I64(b.stream.get_next(&b.stream, &b.array), 0);
        CHECK(I64(column(&b, "end_ns", "l"), 0) == (int64_t)(10 * first + 8));
        CHECK(column(&b, "end_ns", "l")->buffers[1] == model->columns.end_ns + first);
        CHECK(is_null(column(&b, "parent", "I"), 1) == ((first + 1) % 3 != 1));
        b.array.release(&b.array);
    }
    REQUIRE_EQ_I64(b.stream.get_next(&b.stream, &b.array), 0);
    CHECK(b.array.release == NULL);
    b.schema.release(&b.schema);
    b.stream.release(&b.stream);
    mtprof_model_free(model);
}

TEST(parts_add_up_to_the_steps)
{
    mtprof_model *model = small_model();
    batch b;
    int64_t sum = 0;
    read_table(&b, mtprof_arrow_parts, model);
    for (int64_t i = 0; i < b.array.length; i++) {
        CHECK_EQ_I64(I32(column(&b, "step", "i"), i), 4);
        CHECK_EQ_STR(text_at(column(&b, "state", "i"), (uint64_t)i), "normal");
        CHECK(I64(column(&b, "ns", "l"), i) > 0);
        sum += I64(column(&b, "ns", "l"), i);
    }
    CHECK_EQ_I64(sum, 100);
    batch_release(&b);
    mtprof_model_free(model);
}

/* ---- other tables ---------------------------------------------------------------------------- */

TEST(steps_tracks_and_frames)
{
    mtprof_model *model = small_model();
    batch b;
    read_table(&b, mtprof_arrow_steps, model);
    REQUIRE_EQ_I64(b.array.length, 1);
    CHECK_EQ_I64(I32(column(&b, "step", "i"), 0), 4);
    CHECK_EQ_I64(I64(column(&b, "end_ns", "l"), 0), 100);
    CHECK_EQ_STR(text_at(column(&b, "name", "U"), 0), "ProfilerStep#4");
    batch_release(&b);
    read_table(&b, mtprof_arrow_tracks, model);
    REQUIRE_EQ_I64(b.array.length, MM_THREADS + 1);
    CHECK_EQ_STR(text_at(column(&b, "name", "U"), 1), "worker");
    CHECK(is_null(column(&b, "name", "U"), 2));
    CHECK_EQ_I64(I64(column(&b, "tid", "l"), 2), 103);
    CHECK_EQ_STR(text_at(column(&b, "device_type", "i"), MM_QUEUE), "NPU");
    CHECK(is_null(column(&b, "device_index", "i"), 0));
    CHECK_EQ_I64(I32(column(&b, "device_index", "i"), MM_QUEUE), 0);
    batch_release(&b);
    read_table(&b, mtprof_arrow_frames, model);
    REQUIRE_EQ_I64(b.array.length, 2);
    CHECK_EQ_U64(U32(column(&b, "stack", "I"), 0), 2);
    CHECK_EQ_U64(U32(column(&b, "parent", "I"), 0), 1);
    CHECK(is_null(column(&b, "parent", "I"), 1));
    CHECK_EQ_STR(text_at(column(&b, "function", "i"), 0), "forward");
    CHECK_EQ_STR(text_at(column(&b, "file", "i"), 1), "a.py");
    CHECK(is_null(column(&b, "file", "i"), 0));
    CHECK_EQ_I64(I64(column(&b, "line", "L"), 1), 3);
    batch_release(&b);
    mtprof_model_free(model);
}

TEST(marks_and_allocations)
{
    mtprof_model *model = mm_model();
    const double half = 0.5;
    mtprof__event event = mtprof__event_at(MTPROF__EDGE_POINT, MTPROF_EVENT_KIND_COUNTER, 10, 10);
    event.name_text = (mtprof_text){"queue", 5};
    event.name = mm_name(model, "queue");
    event.value = (uint64_t)-7;
    event.step = 3;
    add_point(model, &event);
    event.start_ns = event.end_ns = 20;
    event.phase = 1;
    memcpy(&event.value, &half, sizeof half);
    add_point(model, &event);
    event.start_ns = event.end_ns = 30;
    event.kind = MTPROF_EVENT_KIND_FLOW;
    event.phase = 2;
    event.value = UINT64_MAX;
    add_point(model, &event);
    event.kind = MTPROF_EVENT_KIND_INSTANT;
    event.phase = 0;
    add_point(model, &event);
    event.kind = MTPROF_EVENT_KIND_ALLOC;
    event.device = 1;
    event.value = 0x1000;
    event.bytes = -512;
    event.allocated = 64;
    event.owner = 0;
    add_point(model, &event);
    batch b;
    read_table(&b, mtprof_arrow_marks, model);
    REQUIRE_EQ_I64(b.array.length, 4);
    CHECK_EQ_STR(text_at(column(&b, "kind", "i"), 1), "counter");
    CHECK_EQ_STR(text_at(column(&b, "kind", "i"), 2), "flow");
    CHECK_EQ_STR(text_at(column(&b, "kind", "i"), 3), "instant");
    CHECK_EQ_STR(text_at(column(&b, "name", "i"), 0), "queue");
    CHECK_EQ_I64(I64(column(&b, "time_ns", "l"), 1), 20);
    CHECK_EQ_I64(I32(column(&b, "step", "i"), 0), 3);
    const struct ArrowArray *value = column(&b, "value", "g");
    const double *values = value->buffers[1];
    CHECK_EQ_F64(values[0], -7.0);
    CHECK_EQ_F64(values[1], 0.5);
    CHECK(!is_null(value, 0) && !is_null(value, 1) && is_null(value, 2) && is_null(value, 3));
    const struct ArrowArray *integer = column(&b, "integer", "l");
    CHECK_EQ_I64(I64(integer, 0), -7);
    CHECK(!is_null(integer, 0) && is_null(integer, 1) && is_null(integer, 2));
    const struct ArrowArray *flow = column(&b, "flow", "L");
    CHECK(is_null(flow, 0) && !is_null(flow, 2) && is_null(flow, 3));
    CHECK_EQ_I64(I64(flow, 2), -1);
    CHECK_EQ_STR(text_at(column(&b, "flow_phase", "i"), 2), "end");
    CHECK(is_null(column(&b, "flow_phase", "i"), 3));
    batch_release(&b);
    read_table(&b, mtprof_arrow_allocations, model);
    REQUIRE_EQ_I64(b.array.length, 1);
    CHECK_EQ_I64(I64(column(&b, "bytes", "l"), 0), -512);
    CHECK_EQ_I64(I64(column(&b, "allocated_bytes", "l"), 0), 64);
    CHECK_EQ_I64(I64(column(&b, "address", "L"), 0), 0x1000);
    CHECK(is_null(column(&b, "reserved_bytes", "l"), 0));
    CHECK(is_null(column(&b, "scope", "L"), 0));
    CHECK_EQ_U64(*(const uint8_t *)column(&b, "device", "C")->buffers[1], 1);
    batch_release(&b);
    mtprof_model_free(model);
}

TEST(averages_outlive_what_they_were_made_from)
{
    mtprof_model *model = small_model();
    mtprof_averages *averages = NULL;
    mtprof_averages_options options = {.struct_size = sizeof options,
                                       .group = MTPROF_GROUP_MODULE | MTPROF_GROUP_STEP};
    batch b;
    REQUIRE_OK(mtprof_averages_new(model, &options, &averages));
    uint32_t n = mtprof_averages_count(averages);
    REQUIRE_OK(mtprof_arrow_averages(averages, NULL, &b.stream));
    mtprof_averages_free(averages);
    mtprof_model_free(model);
    read_stream(&b);
    REQUIRE_EQ_I64(b.array.length, n);
    REQUIRE_EQ_U64(n, 3);
    CHECK_EQ_STR(text_at(column(&b, "name", "U"), 1), "aten::linear");
    CHECK_EQ_I64(I64(column(&b, "cpu_ns", "l"), 2), 40);
    CHECK_EQ_I64(I64(column(&b, "count", "L"), 0), 1);
    CHECK_EQ_I64(I32(column(&b, "step", "i"), 2), 4);
    CHECK(is_null(column(&b, "module", "i"), 0));
    CHECK_EQ_STR(text_at(column(&b, "module", "i"), 2), "net.0");
    CHECK(is_null(column(&b, "track", "I"), 0));
    CHECK_EQ_STR(text_at(column(&b, "kind", "i"), 0), "step");
    const uint8_t *annotations = column(&b, "is_user_annotation", "b")->buffers[1];
    CHECK_EQ_U64(annotations[0] & 7u, 1);
    batch_release(&b);
}

TEST(a_model_without_events_has_tables_without_rows)
{
    static maker *const makers[] = {mtprof_arrow_events, mtprof_arrow_steps, mtprof_arrow_frames,
                                    mtprof_arrow_marks, mtprof_arrow_allocations};
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        mtprof_model *model = mm_model();
        batch b;
        read_table(&b, makers[i], model);
        CHECK_EQ_I64(b.array.length, 0);
        CHECK(b.schema.n_children > 5);
        batch_release(&b);
        mtprof_model_free(model);
    }
}

/* ---- releases -------------------------------------------------------------------------------- */

TEST(the_caller_hears_of_the_last_release_only)
{
    mtprof_model *model = small_model();
    int released = 0;
    mtprof_arrow_options options = {
        .struct_size = sizeof options, .release = count_release, .user = &released};
    batch b;
    REQUIRE_OK(mtprof_arrow_events(model, &options, &b.stream));
    b.stream.release(&b.stream); /* nothing was taken */
    CHECK_EQ_I64(released, 1);
    REQUIRE_OK(mtprof_arrow_events(model, &options, &b.stream));
    read_stream(&b);
    b.stream.release(&b.stream);
    b.schema.release(&b.schema);
    CHECK_EQ_I64(released, 1);
    b.array.release(&b.array);
    CHECK_EQ_I64(released, 2);
    mtprof_model_free(model);
}

/* ARE3: what is made for the table is made once, and each stream is released by itself. */
TEST(the_table_of_all_events_is_kept)
{
    mtprof_model *model = small_model();
    int released[2] = {0, 0};
    batch b[2];
    for (int i = 0; i < 2; i++) {
        mtprof_arrow_options options = {
            .struct_size = sizeof options, .release = count_release, .user = &released[i]};
        REQUIRE_OK(mtprof_arrow_events(model, &options, &b[i].stream));
        read_stream(&b[i]);
    }
    CHECK(column(&b[0], "event", "I")->buffers[1] == column(&b[1], "event", "I")->buffers[1]);
    CHECK(column(&b[0], "parent", "I")->buffers[0] == column(&b[1], "parent", "I")->buffers[0]);
    batch_release(&b[0]);
    CHECK(released[0] == 1 && released[1] == 0);
    const struct ArrowArray *numbers = column(&b[1], "event", "I");
    for (int64_t i = 0; i < numbers->length; i++) {
        CHECK_EQ_I64(((const uint32_t *)numbers->buffers[1])[i], i);
    }
    uint32_t picked[] = {1};
    mtprof_arrow_options some = {.struct_size = sizeof some, .rows = picked, .n_rows = 1};
    REQUIRE_OK(mtprof_arrow_events(model, &some, &b[0].stream));
    read_stream(&b[0]);
    CHECK_EQ_I64(((const uint32_t *)column(&b[0], "event", "I")->buffers[1])[0], 1);
    batch_release(&b[0]);
    batch_release(&b[1]);
    CHECK_EQ_I64(released[1], 1);
    mtprof_model_free(model);
}

/* As the specification has it: a child that was moved is released by whoever took it. */
TEST(children_that_were_moved_out_outlive_their_parents)
{
    mtprof_model *model = small_model();
    int released = 0;
    mtprof_arrow_options options = {
        .struct_size = sizeof options, .release = count_release, .user = &released};
    batch b;
    REQUIRE_OK(mtprof_arrow_events(model, &options, &b.stream));
    read_stream(&b);
    int64_t place = 0;
    while (strcmp(b.schema.children[place]->name, "name") != 0) {
        place++;
    }
    struct ArrowArray name = *b.array.children[place];
    struct ArrowSchema name_schema = *b.schema.children[place];
    b.array.children[place]->release = NULL;
    b.schema.children[place]->release = NULL;
    struct ArrowArray texts = *name.dictionary;
    name.dictionary->release = NULL;
    batch_release(&b);
    CHECK_EQ_I64(released, 0);
    CHECK_EQ_STR(name_schema.name, "name");
    CHECK_EQ_STR(name_schema.dictionary->format, "U");
    CHECK_EQ_STR(text_at(&texts, (uint64_t)I32(&name, 1)), "aten::linear");
    name.release(&name);
    name_schema.release(&name_schema);
    CHECK_EQ_I64(released, 0);
    CHECK_EQ_STR(text_at(&texts, *model->columns.name), "ProfilerStep#4");
    texts.release(&texts);
    CHECK_EQ_I64(released, 1);
    mtprof_model_free(model);
}

/* ---- memory that is refused ------------------------------------------------------------------ */

static mtprof_status make_averages(mtprof_model *model, const mtprof_arrow_options *options,
                                   struct ArrowArrayStream *out)
{
    mtprof_averages *averages = NULL;
    mtprof_status status = mtprof_averages_new(model, NULL, &averages);
    *out = (struct ArrowArrayStream){.release = NULL};
    if (status == MTPROF_OK) {
        status = mtprof_arrow_averages(averages, options, out);
    }
    mtprof_averages_free(averages);
    return status;
}

/* Whether all of it went well; the caller's release is called exactly where a stream was made. */
static bool try_all(maker *make, mtprof_model *model)
{
    int released = 0;
    mtprof_arrow_options options = {
        .struct_size = sizeof options, .release = count_release, .user = &released};
    batch b;
    mtprof_status status = make(model, &options, &b.stream);
    if (status != MTPROF_OK) {
        CHECK_EQ_I64(status, MTPROF_ENOMEM);
        CHECK(b.stream.release == NULL);
        CHECK_EQ_I64(released, 0);
        return false;
    }
    int schema = b.stream.get_schema(&b.stream, &b.schema);
    int array = b.stream.get_next(&b.stream, &b.array);
    CHECK((schema == 0) == (b.schema.release != NULL));
    CHECK((array == 0) == (b.array.release != NULL));
    CHECK((schema == 0 || schema == ENOMEM) && (array == 0 || array == ENOMEM));
    bool ok = schema == 0 && array == 0;
    CHECK(ok == (b.stream.get_last_error(&b.stream) == NULL));
    if (schema == 0) {
        b.schema.release(&b.schema);
    }
    if (array == 0) {
        b.array.release(&b.array);
    }
    CHECK_EQ_I64(released, 0);
    b.stream.release(&b.stream);
    CHECK_EQ_I64(released, 1);
    return ok;
}

TEST(every_allocation_may_fail)
{
    static maker *const makers[] = {
        mtprof_arrow_events, mtprof_arrow_steps,   mtprof_arrow_tracks,
        mtprof_arrow_frames, mtprof_arrow_marks,   mtprof_arrow_allocations,
        make_averages,       mtprof_arrow_dataset, mtprof_arrow_parts};
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        bool ok = false;
        uint64_t n = 1;
        for (; !ok && n < 2000; n++) {
            mtprof_model *model = small_model();
            (void)mtb_fail_nth(n, false);
            ok = try_all(makers[i], model);
            (void)mtb_fail_nth(0, false);
            mtprof_model_free(model);
        }
        CHECK(ok);
        CHECK(n > 5);
    }
}
