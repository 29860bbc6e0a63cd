/* SPDX-License-Identifier: Apache-2.0
 *
 * CSV of events: columns, quoting, self times.
 */
#include "harness/mt_test.h"
#include "mtprof/export/text/export_text.h"
#include "mtprof/model/facts/open_scopes.h"
#include "small_image.h"

#include <stdlib.h>
#include <string.h>

TEST(lines_say_what_was_recorded)
{
    chrome_image image;
    mtprof_model *model = small_image(&image, true);
    REQUIRE_OK(image_export(&image, model, MTPROF_EXPORT_CSV, NULL));
    CHECK_EQ_STR(
        image.text,
        "index,name,kind,device,thread,step,start_ns,end_ns,duration_ns,self_ns,correlation_id,"
        "parent_id,owner_id,bytes,stack,value,phase,metadata\r\n"
        "3,\"other, \"\"one\"\"\",scope,CPU,4243,3,11000,12000,1000,1000,103,,103,,,,,\r\n"
        "2,aten::mul,op,CPU,4242,3,10000,13500,3500,3500,102,101,102,,my file.py(7): main,,,\r\n"
        ",kernel,kernel,NPU:0,7,3,14000,16500,2500,0,101,,101,,,,,\r\n"
        "1,aten::add,op,CPU,4242,3,8000,20000,12000,8500,101,100,101,,my file.py(8): f;g;my "
        "file.py(7): main,,,\r\n"
        "0,outer step,scope,CPU,4242,3,6000,26000,20000,8000,100,,100,,,,,\r\n"
        ",outer step,annotation,NPU:0,7,3,14000,16500,2500,0,100,,100,,,,,\r\n");
    mtprof_model_free(model);
    image_fini(&image);
}

TEST(what_was_not_recorded_has_no_column)
{
    chrome_image image;
    mtprof_model *model = small_image(&image, false);
    REQUIRE_OK(image_export(&image, model, MTPROF_EXPORT_CSV, NULL));
    CHECK(strstr(image.text, "stack") == NULL);
    CHECK(strstr(image.text, "flops") == NULL);
    CHECK_EQ_I64(count_text(image.text, "\r\n"), 7);
    mtprof_model_free(model);
    image_fini(&image);
}

TEST(failures_are_told)
{
    check_no_memory(MTPROF_EXPORT_CSV, NULL);
    check_output(MTPROF_EXPORT_CSV);
}

/* ---- fields ---------------------------------------------------------------------------------- */

typedef struct kept {
    char text[256];
    size_t length;
} kept;

static int keep(void *context, const void *bytes, size_t length)
{
    kept *k = context;
    memcpy(k->text + k->length, bytes, length);
    k->length += length;
    k->text[k->length] = '\0';
    return 0;
}

static uint64_t written(void (*write)(mtb_writer *, const char *, size_t), const char *text,
                        size_t length, kept *k)
{
    mtb_writer writer;
    *k = (kept){.length = 0};
    REQUIRE(mtb_writer_init(&writer, keep, k));
    write(&writer, text, length);
    uint64_t replaced = writer.replaced;
    CHECK_EQ_I64(mtb_writer_finish(&writer), 0);
    return replaced;
}

#define FIELD(text, k) written(mtprof__write_csv, text, sizeof(text) - 1, &(k))

TEST(fields_are_quoted_where_they_must_be)
{
    kept k;
    FIELD("plain text", k);
    CHECK_EQ_STR(k.text, "plain text");
    FIELD("", k);
    CHECK_EQ_STR(k.text, "");
    FIELD("a,b", k);
    CHECK_EQ_STR(k.text, "\"a,b\"");
    FIELD("a\"b", k);
    CHECK_EQ_STR(k.text, "\"a\"\"b\"");
    FIELD("a\r\nb", k);
    CHECK_EQ_STR(k.text, "\"a\r\nb\"");
    FIELD(" blank", k);
    CHECK_EQ_STR(k.text, "\" blank\"");
    FIELD("\xC3\xA9", k);
    CHECK_EQ_STR(k.text, "\"\xC3\xA9\"");
    CHECK_EQ_U64(FIELD("x\xFFy\0z", k), 2);
    CHECK_EQ_STR(k.text, "\"x\xEF\xBF\xBDy\xEF\xBF\xBDz\"");
}

#define FRAME(text, k) written(mtprof__write_folded, text, sizeof(text) - 1, &(k))

TEST(frames_keep_to_their_line)
{
    kept k;
    FRAME("a b;c\td\ne\rf", k);
    CHECK_EQ_STR(k.text, "a_b_c_d_e_f");
    FRAME("", k);
    CHECK_EQ_STR(k.text, "_");
    CHECK_EQ_U64(FRAME("\xE2\x82\xAC\xE2\x82", k), 2);
    CHECK_EQ_STR(k.text, "\xE2\x82\xAC\xEF\xBF\xBD");
}

/* ---- self times (open_scopes.h) -------------------------------------------------------------- */

static void step(mtprof__open_scopes *open, uint8_t kind, int64_t start)
{
    mtprof__event event = {.edge = MTPROF__EDGE_BEGIN, .kind = kind, .start_ns = start};
    CHECK_OK(mtprof__open_scopes_begin(open, &event, kind));
}

static int64_t stop(mtprof__open_scopes *open, uint8_t kind, uint16_t flags, int64_t start,
                    int64_t end)
{
    mtprof__event event = {
        .edge = MTPROF__EDGE_END, .kind = kind, .flags = flags, .start_ns = start, .end_ns = end};
    int64_t self_ns = -1;
    uint32_t note = 99;
    CHECK(mtprof__open_scopes_end(open, &event, &self_ns, &note));
    CHECK_EQ_U64(note, kind);
    return self_ns;
}

TEST(functions_stand_beside_ops)
{
    mtprof__open_scopes open = {0};
    step(&open, MTPROF_EVENT_KIND_SCOPE, 0);
    step(&open, MTPROF_EVENT_KIND_FUNCTION, 10);
    step(&open, MTPROF_EVENT_KIND_OP, 20);
    CHECK_EQ_I64(stop(&open, MTPROF_EVENT_KIND_OP, 0, 20, 50), 30);
    step(&open, MTPROF_EVENT_KIND_FUNCTION, 60);
    CHECK_EQ_I64(stop(&open, MTPROF_EVENT_KIND_FUNCTION, 0, 60, 65), 5);
    CHECK_EQ_I64(stop(&open, MTPROF_EVENT_KIND_FUNCTION, 0, 10, 90), 80 - 30 - 5);
    CHECK_EQ_I64(stop(&open, MTPROF_EVENT_KIND_SCOPE, 0, 0, 100), 100 - 30);
    mtprof__open_scopes_fini(&open);
}

TEST(what_does_not_nest_takes_nothing)
{
    mtprof__open_scopes open = {0};
    step(&open, MTPROF_EVENT_KIND_SCOPE, 0);
    step(&open, MTPROF_EVENT_KIND_SCOPE, 10);
    step(&open, MTPROF_EVENT_KIND_OP, 20);
    CHECK_EQ_I64(stop(&open, MTPROF_EVENT_KIND_OP, 0, 20, 30), 10);
    CHECK_EQ_I64(stop(&open, MTPROF_EVENT_KIND_SCOPE, MTPROF_EVENT_FLAG_OVERLAP, 10, 100), 0);
    CHECK_EQ_I64(stop(&open, MTPROF_EVENT_KIND_SCOPE, 0, 0, 100), 90);
    mtprof__open_scopes_fini(&open);
}

/* O1 for any times, and no overflow (UBSan looks). */
TEST(self_times_of_anything_are_bounded)
{
    uint64_t random = mt_test_seed();
    mtprof__open_scopes open = {0};
    mtprof__event event = {.kind = MTPROF_EVENT_KIND_OP};
    for (int i = 0; i < 100000; i++) {
        uint64_t what = mt_test_random(&random);
        event.track = (uint32_t)(what % 5);
        event.kind = what & 64 ? MTPROF_EVENT_KIND_FUNCTION : MTPROF_EVENT_KIND_OP;
        event.flags = what & 128 ? MTPROF_EVENT_FLAG_OVERLAP : 0;
        event.start_ns = (int64_t)mt_test_random(&random) >> (what >> 8 & 63);
        event.end_ns = (int64_t)mt_test_random(&random) >> (what >> 16 & 63);
        if (what & 32) {
            CHECK_OK(mtprof__open_scopes_begin(&open, &event, 1));
            continue;
        }
        int64_t self_ns = -1;
        uint32_t note = 0;
        bool was = mtprof__open_scopes_end(&open, &event, &self_ns, &note);
        int64_t most = 0;
        if (__builtin_sub_overflow(event.end_ns, event.start_ns, &most) || most < 0) {
            most = INT64_MAX;
        }
        if (!CHECK(self_ns >= 0 && self_ns <= most) || !CHECK_EQ_U64(note, was)) {
            break;
        }
    }
    mtprof__open_scopes_fini(&open);
}
