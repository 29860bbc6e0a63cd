/* SPDX-License-Identifier: Apache-2.0
 *
 * CSV of events: columns, quoting, self times.
 */
#include "harness/mt_test.h"
#include "mtprof/export/text/export_text.h"
#include "small_image.h"

#include <mtprof/mtprof.h>

#include <stdio.h>
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

/* ---- self times (event.h) -------------------------------------------------------------------- */

static mtprof_site scope = MTPROF_SITE_INIT("scope", MTPROF_KIND_SCOPE);
static mtprof_site inner = MTPROF_SITE_INIT("inner", MTPROF_KIND_SCOPE);
static mtprof_site op = MTPROF_SITE_INIT("op", MTPROF_KIND_OP);
static mtprof_site function = MTPROF_SITE_INIT("function", MTPROF_KIND_FUNCTION);
static mtprof_site called = MTPROF_SITE_INIT("called", MTPROF_KIND_FUNCTION);

static mtprof_session *start(void)
{
    mtprof_config config = {.struct_size = sizeof config,
                            .wants = MTPROF_WANT_OPS | MTPROF_WANT_SCOPES};
    mtprof_session *session = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    return session;
}

typedef struct times {
    char name[16];
    int64_t duration, self;
} times;

/* The events that a stream has shown to end, up to five. */
static size_t stop(mtprof_session *session, times *out)
{
    mtprof_model *model = NULL;
    mtprof__events *events = NULL;
    const mtprof__event *event = NULL;
    size_t n = 0;
    REQUIRE_OK(mtprof_session_stop(session));
    REQUIRE_OK(mtprof_model_from_session(session, NULL, &model));
    REQUIRE_OK(mtprof__events_open(model, &events));
    while (n < 5 && mtprof__events_next(events, &event) == MTPROF_OK) {
        if (event->edge == MTPROF__EDGE_END) {
            out[n].duration = event->end_ns - event->start_ns;
            out[n].self = event->self_ns;
            (void)snprintf(out[n++].name, sizeof out->name, "%.*s", (int)event->name_text.length,
                           event->name_text.bytes);
        }
    }
    mtprof__events_close(events);
    mtprof_model_free(model);
    mtprof_session_close(session);
    return n;
}

TEST(functions_stand_beside_ops)
{
    times t[5];
    mtprof_session *session = start();
    mtprof_token outermost = mtprof_begin(&scope);
    mtprof_token around = mtprof_begin(&function);
    mtprof_end(mtprof_begin(&op));
    mtprof_end(mtprof_begin(&called));
    mtprof_end(around);
    mtprof_end(outermost);
    REQUIRE_EQ_U64(stop(session, t), 4);
    CHECK_EQ_STR(t[0].name, "op");
    CHECK_EQ_I64(t[0].self, t[0].duration);
    CHECK_EQ_I64(t[1].self, t[1].duration);
    CHECK_EQ_I64(t[2].self, t[2].duration - t[0].duration - t[1].duration);
    CHECK_EQ_STR(t[3].name, "scope");
    CHECK_EQ_I64(t[3].self, t[3].duration - t[0].duration);
}

TEST(what_does_not_nest_takes_nothing)
{
    times t[5];
    mtprof_session *session = start();
    mtprof_token outermost = mtprof_begin(&scope);
    mtprof_token longer = mtprof_begin(&inner);
    mtprof_end(mtprof_begin(&op));
    mtprof_end(outermost); /* "inner" is shown to end here */
    mtprof_end(longer);
    REQUIRE_EQ_U64(stop(session, t), 3);
    CHECK_EQ_STR(t[0].name, "op");
    CHECK_EQ_I64(t[0].self, t[0].duration);
    CHECK_EQ_STR(t[1].name, "inner");
    CHECK_EQ_I64(t[1].self, 0);
    CHECK_EQ_STR(t[2].name, "scope");
    CHECK_EQ_I64(t[2].self, t[2].duration - t[0].duration);
}
