/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrow streams as files of Parquet: what is refused, and that no file is left then. What is in
 * the files is tests/python/dataset/test_parquet_files.py's to read.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "mtprof/model/events/event.h"
#include "unit/mtprof/analyze/model_maker.h"

#include <mtprof/arrow.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *made_path(void)
{
    static char path[512];
    (void)snprintf(path, sizeof path, "%s/made.parquet", mt_test_tmpdir());
    return path;
}

static mtprof_model *some_model(void)
{
    mtprof_model *model = mm_model();
    for (uint32_t i = 0; i < 300; i++) {
        mm_event event = mm_add(model, i % 3 == 0 ? "outer" : "inner", 10 * i, 10 * i + 8);
        *event.parent = i % 3 == 1 ? i - 1 : MTPROF_NO_EVENT;
    }
    return model;
}

static mtprof_status write_once(struct ArrowArrayStream *stream, uint64_t *rows)
{
    mtprof_status status = mtprof_arrow_write_parquet(stream, made_path(), rows);
    CHECK((access(made_path(), F_OK) == 0) == (status == MTPROF_OK));
    (void)unlink(made_path());
    return status;
}

TEST(a_file_begins_and_ends_as_it_must)
{
    mtprof_model *model = some_model();
    struct ArrowArrayStream stream;
    mtprof_arrow_options options = {.struct_size = sizeof options, .batch_rows = 64};
    char ends[2][4];
    uint64_t rows = 0;
    REQUIRE_OK(mtprof_arrow_dataset(model, &options, &stream));
    REQUIRE_OK(mtprof_arrow_write_parquet(&stream, made_path(), &rows));
    CHECK_EQ_U64(rows, 300);
    stream.release(&stream);
    FILE *file = fopen(made_path(), "rb");
    REQUIRE(file != NULL);
    REQUIRE(fread(ends[0], 1, 4, file) == 4);
    REQUIRE(fseek(file, -4, SEEK_END) == 0 && fread(ends[1], 1, 4, file) == 4);
    CHECK(memcmp(ends[0], "PAR1", 4) == 0 && memcmp(ends[1], "PAR1", 4) == 0);
    (void)fclose(file);
    (void)unlink(made_path());
    mtprof_model_free(model);
}

/* ---- streams that are not right -------------------------------------------------------------- */

static struct wrong {
    const char *format;
    int64_t flags;
    int failure; /* of get_next */
    bool is_done;
    struct ArrowSchema child, *children[1];
    struct ArrowArray array, *arrays[1];
    int64_t values[8];
    uint8_t valid[8];
    const void *buffers[2], *no_buffers[1];
} wrong;

static void release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void release_array(struct ArrowArray *array)
{
    array->release = NULL;
}

static void release_stream(struct ArrowArrayStream *stream)
{
    stream->release = NULL;
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    (void)stream;
    wrong.child = (struct ArrowSchema){
        .format = wrong.format, .name = "column", .flags = wrong.flags, .release = release_schema};
    wrong.children[0] = &wrong.child;
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = 1,
                                .children = wrong.children,
                                .release = release_schema};
    return 0;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    (void)stream;
    *out = (struct ArrowArray){.release = NULL};
    if (wrong.failure != 0 || wrong.is_done) {
        return wrong.failure;
    }
    wrong.is_done = true;
    wrong.buffers[0] = wrong.valid;
    wrong.buffers[1] = wrong.values;
    wrong.array = (struct ArrowArray){.length = 3,
                                      .null_count = -1,
                                      .offset = 2,
                                      .n_buffers = 2,
                                      .buffers = wrong.buffers,
                                      .release = release_array};
    wrong.arrays[0] = &wrong.array;
    *out = (struct ArrowArray){.length = 3,
                               .n_buffers = 1,
                               .n_children = 1,
                               .buffers = wrong.no_buffers,
                               .children = wrong.arrays,
                               .release = release_array};
    return 0;
}

static const char *get_last_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return "the reason";
}

static mtprof_status write_wrong(const char *format, int64_t flags, int failure, uint8_t valid)
{
    struct ArrowArrayStream stream = {get_schema, get_next, get_last_error, release_stream, NULL};
    uint64_t rows = 0;
    wrong.format = format;
    wrong.flags = flags;
    wrong.failure = failure;
    wrong.valid[0] = valid;
    wrong.is_done = false;
    mtprof_status status = write_once(&stream, &rows);
    CHECK_EQ_U64(rows, status == MTPROF_OK ? 3 : 0);
    return status;
}

static bool said(const char *text)
{
    return strstr(mtprof_last_error()->message, text) != NULL;
}

TEST(streams_that_are_not_right)
{
    CHECK_EQ_I64(write_wrong("l", ARROW_FLAG_NULLABLE, 0, 0x14), MTPROF_OK);
    CHECK_EQ_I64(write_wrong("l", 0, 0, 0x1C), MTPROF_OK); /* the bits of the three rows */
    CHECK_EQ_I64(write_wrong("l", 0, 0, 0x0C), MTPROF_EINVAL);
    CHECK(said("column has nulls and says that it has none"));
    CHECK_EQ_I64(write_wrong("z", 0, 0, 0x1C), MTPROF_EINVAL);
    CHECK(said("column column has format z"));
    CHECK_EQ_I64(write_wrong("tsn:", 0, 0, 0x1C), MTPROF_EINVAL);
    CHECK(said("format tsn:"));
    CHECK_EQ_I64(write_wrong("l", 0, EIO, 0x1C), MTPROF_ECALLBACK);
    CHECK(said("the reason"));
    CHECK_EQ_I64(write_wrong("l", 0, ENOMEM, 0x1C), MTPROF_ENOMEM);
}

TEST(every_allocation_may_fail)
{
    bool ok = false;
    uint64_t n = 1;
    mtprof_model *model = some_model();
    for (; !ok && n < 2000; n++) {
        struct ArrowArrayStream stream;
        uint64_t rows = 0;
        REQUIRE_OK(mtprof_arrow_dataset(model, NULL, &stream));
        (void)mtb_fail_nth(n, false);
        mtprof_status status = write_once(&stream, &rows);
        (void)mtb_fail_nth(0, false);
        ok = status == MTPROF_OK;
        CHECK(ok || status == MTPROF_ENOMEM || status == MTPROF_ECALLBACK);
        CHECK_EQ_U64(rows, ok ? 300 : 0);
        stream.release(&stream);
    }
    CHECK(ok);
    CHECK(n > 10);
    mtprof_model_free(model);
}
