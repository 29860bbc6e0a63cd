/* SPDX-License-Identifier: Apache-2.0
 *
 * The dictionary: what is equal has one number (DICT1), what was handed out stays (DICT2), a
 * reader's definitions under their own ids, threads that read while others add, and refused memory.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "harness/mt_test.h"
#include "mtprof/model/model_impl.h"
#include "support/traces/trace_builder.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static mtprof_text text_of(const char *text)
{
    return (mtprof_text){text, strlen(text)};
}

static uint32_t name_of(mtprof__dictionary *d, const char *text)
{
    uint32_t name = UINT32_MAX;
    CHECK_OK(mtprof__dictionary_name(d, text_of(text), &name));
    return name;
}

/* Names, tracks and so on are asked for through a model. */
static void open_model(mtprof_model *model, const mtprof_reader *reader)
{
    memset(model, 0, sizeof *model);
    REQUIRE_OK(mtprof__dictionary_init(&model->dictionary, reader));
}

/* ---- names ----------------------------------------------------------------------------------- */

TEST(names_are_distinct_texts)
{
    mtprof_model model;
    open_model(&model, NULL);
    mtprof__dictionary *d = &model.dictionary;
    char bytes[] = "b\0x";
    CHECK_EQ_U64(name_of(d, ""), 0);
    uint32_t a = name_of(d, "aten::add");
    uint32_t b;
    REQUIRE_OK(mtprof__dictionary_name(d, (mtprof_text){bytes, 3}, &b));
    bytes[0] = 'Z'; /* it was copied */
    CHECK(a != b);
    CHECK_EQ_U64(name_of(d, "aten::add"), a);
    CHECK_EQ_MEM(mtprof_model_name(&model, b).bytes, "b\0x", 4);
    CHECK_EQ_STR(mtprof_model_name(&model, a).bytes, "aten::add");
    CHECK_EQ_U64(mtprof_model_name(&model, 99).length, 0);
    CHECK_EQ_STR(mtprof_model_name(&model, UINT32_MAX).bytes, "");
    CHECK_EQ_STR(mtprof_model_string(&model, a + 1).bytes, "aten::add");
    CHECK_EQ_U64(mtprof_model_string(&model, 0).length, 0);
    uint32_t none;
    REQUIRE_OK(mtprof__dictionary_name(d, (mtprof_text){NULL, 0}, &none));
    CHECK_EQ_U64(none, 0);
    mtprof__dictionary_fini(d);
}

TEST(steps_are_grouped)
{
    mtprof_model model;
    open_model(&model, NULL);
    mtprof__dictionary *d = &model.dictionary;
    uint32_t step = name_of(d, "ProfilerStep#7");
    uint32_t other = name_of(d, "ProfilerStep#4294967296");
    uint32_t star = name_of(d, "ProfilerStep*");
    CHECK(step != star);
    CHECK_EQ_U64(mtprof_model_name_key(&model, step), star);
    CHECK_EQ_U64(mtprof_model_name_key(&model, other), star);
    CHECK_EQ_U64(mtprof_model_name_key(&model, star), star);
    static const char *const plain[] = {"ProfilerStep#",  "ProfilerStep#7x", "ProfilerStep#-1",
                                        "profilerstep#7", " ProfilerStep#7", "add"};
    for (size_t i = 0; i < MT_COUNT(plain); i++) {
        uint32_t name = name_of(d, plain[i]);
        CHECK_EQ_U64(mtprof_model_name_key(&model, name), name);
    }
    mtprof__dictionary_fini(d);
}

TEST(plain_names_need_no_escapes)
{
    mtprof_model model;
    open_model(&model, NULL);
    mtprof__dictionary *d = &model.dictionary;
    static const struct {
        const char *text;
        uint32_t plain;
    } cases[] = {{"aten::add(x) ~ !", 1}, {"a\"b", 0}, {"a\\b", 0}, {"tab\t", 0}, {"\x7F", 0},
                 {"\xC3\xA9", 0},         {"", 1}};
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        uint32_t name = name_of(d, cases[i].text);
        CHECK_EQ_U64(mtprof__dictionary_entry(d, name)->plain, cases[i].plain);
    }
    mtprof__dictionary_fini(d);
}

TEST(nothing_that_was_handed_out_moves)
{
    enum {
        MANY = 20000
    };
    mtprof_model model;
    open_model(&model, NULL);
    mtprof__dictionary *d = &model.dictionary;
    const mtprof__name_entry *first = mtprof__dictionary_entry(d, name_of(d, "first"));
    const char *bytes = first->text.bytes;
    char text[32];
    for (uint32_t i = 0; i < MANY; i++) {
        (void)snprintf(text, sizeof text, "name %u", i);
        CHECK_EQ_U64(name_of(d, text), i + 2);
    }
    CHECK_EQ_PTR(mtprof__dictionary_entry(d, 1), first);
    CHECK_EQ_PTR(first->text.bytes, bytes);
    CHECK_EQ_STR(bytes, "first");
    CHECK_EQ_STR(mtprof_model_name(&model, MANY + 1).bytes, "name 19999");
    mtprof__dictionary_fini(d);
}

/* ---- lists, stacks, metadata ----------------------------------------------------------------- */

TEST(input_lists_and_scalars)
{
    mtprof_model model;
    open_model(&model, NULL);
    mtprof__dictionary *d = &model.dictionary;
    uint64_t words[] = {1, 2, 3};
    const uint64_t *found = NULL;
    uint32_t n = 0;
    uint32_t a;
    uint32_t b;
    uint32_t c;
    REQUIRE_OK(mtprof__dictionary_inputs(d, words, 3, &a));
    REQUIRE_OK(mtprof__dictionary_inputs(d, words, 2, &b));
    words[0] = 9;
    REQUIRE_OK(mtprof__dictionary_inputs(d, (uint64_t[]){1, 2, 3}, 3, &c));
    CHECK_EQ_U64(c, a);
    CHECK(a != b && a != 0 && b != 0);
    REQUIRE_OK(mtprof__dictionary_inputs(d, NULL, 0, &c));
    REQUIRE(mtprof_model_inputs(&model, c, &found, &n));
    CHECK_EQ_U64(n, 0);
    REQUIRE(mtprof_model_inputs(&model, a, &found, &n));
    CHECK_EQ_U64(n, 3);
    CHECK_EQ_U64(found[0], 1);
    CHECK(!mtprof_model_inputs(&model, 0, &found, &n));
    CHECK(!mtprof_model_inputs(&model, 4, &found, &n));
    CHECK(!mtprof_model_inputs(&model, UINT32_MAX, &found, &n));
    CHECK_EQ_U64(mtprof__dictionary_reader_inputs(d, 1), 0);

    REQUIRE_OK(mtprof__dictionary_scalars(d, (uint64_t[]){7}, 1, &a));
    REQUIRE_OK(mtprof__dictionary_scalars(d, (uint64_t[]){7, 8}, 2, &b));
    REQUIRE(mtprof_model_scalars(&model, b, &found, &n));
    CHECK_EQ_U64(n, 2);
    CHECK_EQ_U64(found[1], 8);
    CHECK(!mtprof_model_scalars(&model, 0, &found, &n));
    CHECK(!mtprof_model_scalars(&model, 3, &found, &n));
    mtprof__dictionary_fini(d);
}

TEST(foreign_stacks)
{
    mtprof_model model;
    open_model(&model, NULL);
    mtprof__dictionary *d = &model.dictionary;
    mtprof_frame frame = {text_of("forward"), text_of("model.py"), 7, 0};
    mtprof_frame other = frame;
    uint32_t frames[3];
    uint32_t nodes[3];
    uint32_t parent = 9;
    other.line = 8;
    REQUIRE_OK(mtprof__dictionary_frame(d, &frame, &frames[0]));
    REQUIRE_OK(mtprof__dictionary_frame(d, &other, &frames[1]));
    REQUIRE_OK(mtprof__dictionary_frame(d, &frame, &frames[2]));
    CHECK_EQ_U64(frames[0], 0);
    CHECK_EQ_U64(frames[1], 1);
    CHECK_EQ_U64(frames[2], 0);
    REQUIRE_OK(mtprof__dictionary_node(d, 0, 0, &nodes[0]));
    REQUIRE_OK(mtprof__dictionary_node(d, nodes[0], 1, &nodes[1]));
    REQUIRE_OK(mtprof__dictionary_node(d, nodes[0], 1, &nodes[2]));
    CHECK_EQ_U64(nodes[0], 1);
    CHECK_EQ_U64(nodes[1], 2);
    CHECK_EQ_U64(nodes[2], 2);
    REQUIRE(mtprof_model_stack(&model, 2, &parent, &other));
    CHECK_EQ_U64(parent, 1);
    CHECK_EQ_STR(other.function.bytes, "forward");
    CHECK_EQ_U64(other.line, 8);
    REQUIRE(mtprof_model_stack(&model, 1, &parent, &other));
    CHECK_EQ_U64(parent, 0);
    CHECK(!mtprof_model_stack(&model, 0, &parent, &other));
    CHECK(!mtprof_model_stack(&model, 3, &parent, &other));
    mtprof__dictionary_fini(d);
}

TEST(metadata_of_events)
{
    mtprof_model model;
    open_model(&model, NULL);
    mtprof__dictionary *d = &model.dictionary;
    char value[] = "[1]";
    mtprof_metadatum items[] = {
        {.key = text_of("grid"), .type = MTPROF_META_TEXT, .is_json = 1, .text = text_of(value)},
        {.key = text_of(""), .type = MTPROF_META_INT, .value = 5},
    };
    uint32_t lists[3];
    mtprof_metadatum out;
    REQUIRE_OK(mtprof__dictionary_metadata(d, items, 2, &lists[0]));
    REQUIRE_OK(mtprof__dictionary_metadata(d, items, 0, &lists[1]));
    REQUIRE_OK(mtprof__dictionary_metadata(d, items, 1, &lists[2]));
    value[1] = 'x';
    REQUIRE(mtprof_model_event_metadata(&model, lists[0], 0, &out));
    CHECK_EQ_STR(out.key.bytes, "grid");
    CHECK_EQ_STR(out.text.bytes, "[1]");
    CHECK_EQ_U64(out.is_json, 1);
    const char *key = out.key.bytes;
    REQUIRE(mtprof_model_event_metadata(&model, lists[0], 1, &out));
    CHECK_EQ_U64(out.value, 5);
    CHECK_EQ_U64(out.text.length, 0);
    CHECK(!mtprof_model_event_metadata(&model, lists[0], 2, &out));
    CHECK(!mtprof_model_event_metadata(&model, lists[1], 0, &out));
    REQUIRE(mtprof_model_event_metadata(&model, lists[2], 0, &out));
    CHECK_EQ_PTR(out.key.bytes, key);                                   /* keys are kept once */
    CHECK(!mtprof_model_event_metadata(&model, lists[0] + 1, 0, &out)); /* inside a list */
    CHECK(!mtprof_model_event_metadata(&model, 0, 0, &out));
    CHECK(!mtprof_model_event_metadata(&model, 99, 0, &out));
    mtprof__dictionary_fini(d);
}

TEST(metadata_of_the_trace_is_replaced_by_key)
{
    mtprof_model model;
    open_model(&model, NULL);
    mtprof__dictionary *d = &model.dictionary;
    mtprof_metadatum item = {.key = text_of("a"), .type = MTPROF_META_TEXT, .text = text_of("1")};
    mtprof_metadatum out;
    REQUIRE_OK(mtprof__dictionary_trace_metadata(d, &item));
    item.key = text_of("b");
    REQUIRE_OK(mtprof__dictionary_trace_metadata(d, &item));
    item = (mtprof_metadatum){.key = text_of("a"), .type = MTPROF_META_UINT, .value = 3};
    REQUIRE_OK(mtprof__dictionary_trace_metadata(d, &item));
    REQUIRE(mtprof_model_metadata(&model, 0, &out));
    CHECK_EQ_STR(out.key.bytes, "a");
    CHECK_EQ_U64(out.value, 3);
    REQUIRE(mtprof_model_metadata(&model, 1, &out));
    CHECK_EQ_STR(out.key.bytes, "b");
    CHECK(!mtprof_model_metadata(&model, 2, &out));
    CHECK_EQ_STR(mtprof__dictionary_copy(d, text_of("kept")).bytes, "kept");
    CHECK_EQ_STR(mtprof__dictionary_copy(d, (mtprof_text){NULL, 0}).bytes, "");
    mtprof__dictionary_fini(d);
}

/* ---- tracks and devices ---------------------------------------------------------------------- */

TEST(tracks)
{
    mtprof_model model;
    open_model(&model, NULL);
    mtprof__dictionary *d = &model.dictionary;
    mtprof_track thread = {.pid = 10, .tid = 11};
    mtprof_track out;
    uint32_t numbers[6];
    uint32_t device;
    REQUIRE_OK(mtprof__dictionary_thread_track(d, &thread, &numbers[0]));
    thread.pid = 12;
    REQUIRE_OK(mtprof__dictionary_thread_track(d, &thread, &numbers[1]));
    REQUIRE_OK(mtprof__dictionary_device(d, text_of("NPU"), 3, &device));
    REQUIRE_OK(mtprof__dictionary_queue_track(d, device, 11, &numbers[2]));
    REQUIRE_OK(mtprof__dictionary_queue_track(d, device, 12, &numbers[3]));
    REQUIRE_OK(mtprof__dictionary_queue_track(d, device, 11, &numbers[4]));
    thread =
        (mtprof_track){.pid = 10, .tid = 11, .number = 4, .pthread_id = 5, .name = text_of("m")};
    REQUIRE_OK(mtprof__dictionary_thread_track(d, &thread, &numbers[5]));
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_EQ_U64(numbers[i], i);
    }
    CHECK_EQ_U64(numbers[4], 2);
    CHECK_EQ_U64(numbers[5], 0);
    REQUIRE(mtprof_model_track(&model, 0, &out)); /* known later, filled in */
    CHECK_EQ_STR(out.name.bytes, "m");
    CHECK_EQ_STR(out.process_name.bytes, "");
    CHECK_EQ_U64(out.number, 4);
    CHECK_EQ_U64(out.pthread_id, 5);
    REQUIRE(mtprof_model_track(&model, 3, &out));
    CHECK_EQ_U64(out.device, device);
    CHECK_EQ_I64(out.pid, 3);
    CHECK_EQ_I64(out.tid, 12);
    CHECK_EQ_U64(out.number, 12);
    CHECK(!mtprof_model_track(&model, 4, &out));
    mtprof__dictionary_fini(d);
}

TEST(devices)
{
    mtprof_model model;
    open_model(&model, NULL);
    mtprof__dictionary *d = &model.dictionary;
    mtprof_device out;
    uint32_t device;
    REQUIRE(mtprof_model_device(&model, 0, &out));
    CHECK_EQ_STR(out.type.bytes, "CPU");
    CHECK_EQ_I64(out.index, -1);
    REQUIRE_OK(mtprof__dictionary_device(d, text_of("CPU"), -1, &device));
    CHECK_EQ_U64(device, 0);
    for (int32_t i = 0; i < 600; i++) {
        REQUIRE_OK(mtprof__dictionary_device(d, text_of(i % 2 ? "CUDA" : "NPU"), i / 2, &device));
        CHECK_EQ_U64(device, i < 255 ? (uint32_t)i + 1 : 255);
    }
    REQUIRE_OK(mtprof__dictionary_device(d, text_of("CUDA"), 0, &device));
    CHECK_EQ_U64(device, 2);
    REQUIRE(mtprof_model_device(&model, 2, &out));
    CHECK_EQ_STR(out.type.bytes, "CUDA");
    CHECK(!mtprof_model_device(&model, 256, &out));
    CHECK_EQ_U64(d->devices_merged, 600 - 255);
    mtprof__dictionary_fini(d);
}

/* ---- over a reader --------------------------------------------------------------------------- */

static mtprof_reader *open_trace(trace_builder *b, tb_memory *memory)
{
    mtprof_reader *reader = NULL;
    tb_finish(b, true);
    *memory = (tb_memory){.bytes = b->bytes, .size = b->size};
    mtprof_bytes bytes = tb_bytes(memory);
    REQUIRE_OK(mtprof_reader_open_bytes(&bytes, &reader));
    return reader;
}

static void define(trace_builder *b)
{
    tb_init(b);
    tb_chunk(b, MTPROF_STREAM_DEFINITIONS, 0);
    tb_string(b, 1, "aten::add");
    tb_string(b, 3, "ProfilerStep#3"); /* with a gap, and not in order */
    tb_string(b, 90, "aten::add");     /* the same text again */
    tb_string(b, 20, "");
    tb_record(b, MTPROF_REC_DEF_INPUTS, 0, 5, 2, (uint64_t[]){3, 4});
    tb_record(b, MTPROF_REC_DEF_INPUTS, 0, 2, 1, (uint64_t[]){3});
    tb_record(b, MTPROF_REC_DEF_INPUTS, 0, 9, 2, (uint64_t[]){3, 4}); /* the same list again */
    tb_record(b, MTPROF_REC_DEF_FRAME, 0, 6, 3, (uint64_t[]){1 | 3ULL << 32, 12, 0});
    tb_record(b, MTPROF_REC_DEF_STACK, 0, 8, 1, (uint64_t[]){0 | 6ULL << 32});
    tb_chunk(b, MTPROF_STREAM_CONTROL, 0);
    tb_record_texts(b, MTPROF_REC_TRACE_META, 1, 0, 1, (uint64_t[]){1 | 2ULL << 32}, 2,
                    (const char *const[]){"k", "[]"});
}

TEST(what_a_reader_has_keeps_its_ids)
{
    trace_builder b;
    tb_memory memory;
    define(&b);
    mtprof_reader *reader = open_trace(&b, &memory);
    mtprof_model model;
    open_model(&model, reader);
    mtprof__dictionary *d = &model.dictionary;
    uint32_t add = mtprof__dictionary_string_name(d, 1);
    CHECK_EQ_STR(mtprof_model_name(&model, add).bytes, "aten::add");
    CHECK_EQ_U64(mtprof__dictionary_string_name(d, 90), add);
    CHECK_EQ_U64(name_of(d, "aten::add"), add);
    CHECK_EQ_U64(mtprof__dictionary_string_name(d, 0), 0);
    CHECK_EQ_U64(mtprof__dictionary_string_name(d, 2), 0);
    CHECK_EQ_U64(mtprof__dictionary_string_name(d, 20), 0);
    CHECK_EQ_U64(mtprof_model_name_key(&model, mtprof__dictionary_string_name(d, 3)),
                 name_of(d, "ProfilerStep*"));
    CHECK_EQ_STR(mtprof_model_string(&model, 3).bytes, "ProfilerStep#3");
    CHECK_EQ_U64(mtprof_model_string(&model, 4).length, 0);

    const uint64_t *words = NULL;
    uint32_t n = 0;
    uint32_t first = mtprof__dictionary_reader_inputs(d, 5);
    uint32_t own;
    REQUIRE(mtprof_model_inputs(&model, first, &words, &n));
    CHECK_EQ_U64(n, 2);
    CHECK_EQ_U64(words[1], 4);
    CHECK_EQ_U64(mtprof__dictionary_reader_inputs(d, 9), first);
    CHECK(mtprof__dictionary_reader_inputs(d, 2) != first);
    CHECK_EQ_U64(mtprof__dictionary_reader_inputs(d, 1), 0);
    REQUIRE_OK(mtprof__dictionary_inputs(d, (uint64_t[]){3, 4}, 2, &own));
    CHECK_EQ_U64(own, first); /* one that was stored in full */
    REQUIRE_OK(mtprof__dictionary_inputs(d, (uint64_t[]){7, 7}, 2, &own));
    CHECK_EQ_U64(own, 4);
    REQUIRE(mtprof_model_inputs(&model, own, &words, &n));
    CHECK_EQ_U64(words[0], 7);
    CHECK(!mtprof_model_inputs(&model, 5, &words, &n));

    mtprof_frame frame;
    uint32_t parent = 9;
    REQUIRE(mtprof_model_stack(&model, 8, &parent, &frame));
    CHECK_EQ_U64(parent, 0);
    CHECK_EQ_STR(frame.function.bytes, "aten::add");
    CHECK_EQ_U64(frame.line, 12);
    CHECK(!mtprof_model_stack(&model, 1, &parent, &frame));
    mtprof_metadatum item;
    REQUIRE(mtprof_model_metadata(&model, 0, &item));
    CHECK_EQ_STR(item.key.bytes, "k");
    CHECK_EQ_STR(item.text.bytes, "[]");
    CHECK_EQ_U64(item.is_json, 1);
    CHECK_EQ_U64(item.type, MTPROF_META_TEXT);
    mtprof__dictionary_fini(d);
    mtprof_reader_close(reader);
    tb_fini(&b);
}

/* ---- threads --------------------------------------------------------------------------------- */

enum {
    ADDERS = 3,
    ADDED = 4000
};

static void *add_names(void *context)
{
    mtprof__dictionary *d = context;
    char text[32];
    for (int i = 0; i < ADDED; i++) {
        (void)snprintf(text, sizeof text, "n%d", i);
        uint32_t name = name_of(d, text);
        if (strcmp(mtprof__dictionary_entry(d, name)->text.bytes, text) != 0) {
            FAIL("name %u is %s, not %s", name, mtprof__dictionary_entry(d, name)->text.bytes,
                 text);
        }
        uint32_t device;
        uint32_t track;
        CHECK_OK(mtprof__dictionary_device(d, text_of("NPU"), i % 40, &device));
        CHECK_OK(mtprof__dictionary_queue_track(d, device, (uint32_t)(i % 100), &track));
    }
    return NULL;
}

static void *look_up(void *context)
{
    const mtprof_model *model = context;
    uint32_t seen = 0;
    for (uint32_t name = 0; name <= ADDED; name++) { /* the empty one, and those added */
        mtprof_track track;
        mtprof_device device;
        for (int patience = 0; patience < 20000; patience++) {
            if (name == 0 || mtprof_model_name(model, name).length != 0) {
                seen++;
                break;
            }
        }
        if (mtprof_model_track(model, name, &track)) {
            CHECK(track.device != 0);
        }
        if (mtprof_model_device(model, name, &device)) {
            CHECK_EQ_U64(device.type.length, 3);
        }
    }
    CHECK(seen > 0);
    return NULL;
}

TEST(names_are_read_while_others_add)
{
    static mtprof_model model;
    open_model(&model, NULL);
    pthread_t threads[ADDERS + 1];
    for (int i = 0; i < ADDERS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, add_names, &model.dictionary) == 0);
    }
    REQUIRE(pthread_create(&threads[ADDERS], NULL, look_up, &model) == 0);
    for (int i = 0; i <= ADDERS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQ_U64(model.dictionary.n_names, ADDED + 1);
    mtprof__dictionary_fini(&model.dictionary);
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* Adds one of everything; how many were refused. */
static int add_all(mtprof__dictionary *d)
{
    int refused = 0;
    uint32_t number;
    mtprof_frame frame = {text_of("f"), text_of("x.py"), 1, 0};
    mtprof_metadatum item = {.key = text_of("k"), .type = MTPROF_META_TEXT, .text = text_of("v")};
    refused += mtprof__dictionary_name(d, text_of("ProfilerStep#1"), &number) != MTPROF_OK;
    refused += mtprof__dictionary_inputs(d, (uint64_t[]){1}, 1, &number) != MTPROF_OK;
    refused += mtprof__dictionary_scalars(d, (uint64_t[]){1}, 1, &number) != MTPROF_OK;
    refused += mtprof__dictionary_frame(d, &frame, &number) != MTPROF_OK;
    if (d->n_frames != 0) {
        refused += mtprof__dictionary_node(d, 0, 0, &number) != MTPROF_OK;
    }
    mtprof_track thread = {.pid = 1, .tid = 2};
    refused += mtprof__dictionary_thread_track(d, &thread, &number) != MTPROF_OK;
    refused += mtprof__dictionary_device(d, text_of("NPU"), 0, &number) != MTPROF_OK;
    refused += mtprof__dictionary_metadata(d, &item, 1, &number) != MTPROF_OK;
    refused += mtprof__dictionary_trace_metadata(d, &item) != MTPROF_OK;
    refused += mtprof__dictionary_copy(d, text_of("text")).bytes == NULL;
    return refused;
}

TEST(refused_memory_leaves_the_dictionary_whole)
{
    trace_builder b;
    tb_memory memory;
    define(&b);
    mtprof_reader *reader = open_trace(&b, &memory);
    uint64_t inits = 0;
    for (uint64_t nth = 1;; nth++) {
        mtprof__dictionary d;
        mtb_fail_nth(nth, false);
        int status = mtprof__dictionary_init(&d, nth % 2 ? reader : NULL);
        int refused = status == MTPROF_OK ? add_all(&d) : 1;
        mtb_fail_nth(0, false);
        if (status == MTPROF_OK) {
            CHECK(refused <= 1);
            CHECK_EQ_I64(add_all(&d), 0);
            CHECK_EQ_U64(d.n_scalars, refused == 0 ? 2 : d.n_scalars);
            mtprof__dictionary_fini(&d);
        } else {
            CHECK_EQ_I64(status, MTPROF_ENOMEM);
            inits++;
        }
        if (refused == 0 && nth > 60) {
            break;
        }
    }
    CHECK(inits > 5);
    mtprof_reader_close(reader);
    tb_fini(&b);
}
