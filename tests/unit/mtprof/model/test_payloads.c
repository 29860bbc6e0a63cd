/* SPDX-License-Identifier: Apache-2.0
 *
 * What the event stream and the exports say of ops with long lists, and of ops that lack what the
 * op before them had (payload_store.h PS1, event.h EVT3).
 */
#include "base/compiler.h"
#include "harness/mt_test.h"
#include "mtprof/model/events/event.h"
#include "unit/mtprof/export/text_sink.h"

#include <mtprof/export.h>
#include <mtprof/mtprof.h>
#include <mtprof/op.h>

#include <stdlib.h>
#include <string.h>

static mtprof_site site = MTPROF_SITE_INIT("op", MTPROF_KIND_OP);
static mtprof_site other = MTPROF_SITE_INIT("other", MTPROF_KIND_OP);

static mtprof_session *start(uint32_t wants)
{
    mtprof_config config = {.struct_size = sizeof config, .wants = MTPROF_WANT_OPS | wants};
    mtprof_session *session = NULL;
    REQUIRE_EQ_I64(mtprof_session_start(&config, &session), MTPROF_OK);
    return session;
}

static mtprof_model *stop(mtprof_session *session)
{
    mtprof_model *model = NULL;
    REQUIRE_EQ_I64(mtprof_session_stop(session), MTPROF_OK);
    REQUIRE_EQ_I64(mtprof_model_from_session(session, NULL, &model), MTPROF_OK);
    return model;
}

static void check_ids(const mtprof__tensor *tensors, uint32_t n, uint64_t first, uint32_t expected)
{
    REQUIRE_EQ_U64(n, expected);
    for (uint32_t i = 0; i < n; i++) {
        REQUIRE_EQ_U64(tensors[i].tensor, first + i);
        REQUIRE_EQ_U64(tensors[i].role, i % 5);
        REQUIRE_EQ_U64(tensors[i].device, 0);
    }
}

/* Lists that end in the middle of a chunk, at its end, and many chunks later. */
TEST(tensors_are_complete_when_their_op_begins)
{
    enum {
        MOST = 3000
    };
    static mtprof_tensor_ref many[MOST + 1];
    for (uint64_t i = 0; i <= MOST; i++) {
        many[i].tensor = i + 1;
        many[i].role = (uint16_t)(i % 5);
    }
    mtprof_session *session = start(MTPROF_WANT_TENSORS);
    for (uint32_t n = 1; n <= MOST; n += 1 + n / 7) {
        mtprof_op op = {.struct_size = sizeof op, .tensors = many, .n_tensors = n};
        mtprof_token token = mtprof_op_begin(&site, &op);
        mtprof_end(mtprof_begin(&other));
        mtprof_op_outputs(token, many, n);
        mtprof_end(token);
    }
    mtprof_model *model = stop(session);
    mtprof__events *events = NULL;
    const mtprof__event *event;
    REQUIRE_EQ_I64(mtprof__events_open(model, &events), MTPROF_OK);
    uint32_t n = 1;
    while (mtprof__events_next(events, &event) == MTPROF_OK) {
        if (strcmp(event->name_text.bytes, "op") != 0) {
            CHECK(event->payload == NULL || event->payload->n_tensors_in == 0);
            continue;
        }
        REQUIRE(event->payload != NULL);
        check_ids(event->payload->tensors_in, event->payload->n_tensors_in, 1, n);
        if (event->edge == MTPROF__EDGE_END) {
            check_ids(event->payload->tensors_out, event->payload->n_tensors_out, 1, n);
            n += 1 + n / 7;
        }
    }
    CHECK(n > MOST);
    mtprof__events_close(events);
    mtprof_model_free(model);
    mtprof_session_close(session);
}

/* ---- what an op does not have ---- */

static uint32_t occurrences(const char *bytes, size_t size, const char *text)
{
    uint32_t n = 0;
    for (size_t i = 0, length = strlen(text); i + length <= size; i++) {
        n += memcmp(bytes + i, text, length) == 0;
    }
    return n;
}

/* The second op's scalars are too many to be kept; the first one's must not be shown in their
 * place. Many of both, so that blocks that were given back are used again. */
TEST(an_op_without_scalars_does_not_show_those_of_another)
{
    enum {
        ROUNDS = 50
    };
    mtprof_value three[3] = {{0}}, lots[400] = {{0}};
    mtprof_tensor_ref refs[60] = {{0}};
    for (size_t i = 0; i < MT_COUNT(lots); i++) {
        lots[i].kind = MTPROF_INPUT_INT;
        lots[i].of.integer = 7;
    }
    for (size_t i = 0; i < MT_COUNT(three); i++) {
        three[i].kind = MTPROF_INPUT_INT;
        three[i].of.integer = 111111;
    }
    mtprof_op few = {.struct_size = sizeof few, .inputs = three, .n_inputs = MT_COUNT(three)};
    mtprof_op cut = {.struct_size = sizeof cut, .inputs = lots, .n_inputs = MT_COUNT(lots)};
    cut.tensors = refs;
    cut.n_tensors = MT_COUNT(refs);
    mtprof_session *session = start(MTPROF_WANT_INPUTS | MTPROF_WANT_TENSORS);
    for (int i = 0; i < ROUNDS; i++) {
        mtprof_end(mtprof_op_begin(&site, &few));
        mtprof_end(mtprof_op_begin(&other, &cut));
    }
    mtprof_model *model = stop(session);
    mtprof_health health = {.struct_size = sizeof health};
    REQUIRE_EQ_I64(mtprof_session_get_health(session, &health), MTPROF_OK);
    CHECK_EQ_U64(health.texts_cut, ROUNDS);
    static const enum mtprof_export_format formats[] = {
        MTPROF_EXPORT_EXECUTION, MTPROF_EXPORT_CSV, MTPROF_EXPORT_CHROME, MTPROF_EXPORT_PERFETTO};
    for (size_t i = 0; i < MT_COUNT(formats); i++) {
        text_sink sink = {0};
        mtprof_output output = {
            .struct_size = sizeof output, .context = &sink, .write = text_sink_write};
        REQUIRE_EQ_I64(mtprof_export_to(model, formats[i], &output, NULL), MTPROF_OK);
        uint32_t n = occurrences(sink.text, sink.length, "111111");
        if (formats[i] == MTPROF_EXPORT_PERFETTO) {
            CHECK(n >= 3 && n <= 3 * ROUNDS); /* equal texts are stored once */
        } else {
            /* CSV has sizes alone */
            CHECK_EQ_U64(n, formats[i] == MTPROF_EXPORT_CSV ? 0 : 3 * ROUNDS);
        }
        free(sink.text);
    }
    mtprof_model_free(model);
    mtprof_session_close(session);
}
