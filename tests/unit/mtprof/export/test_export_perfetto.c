/* SPDX-License-Identifier: Apache-2.0
 *
 * Perfetto's protobuf: the encoder's pieces, and packets of small traces. Whole files are decoded
 * against a schema by tests/export/check_exports.py.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "mtprof/export/protobuf.h"
#include "small_image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the wire -------------------------------------------------------------------------------- */

static uint64_t read_varint(const unsigned char **at, const unsigned char *end)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        REQUIRE(*at < end);
        unsigned char byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            return value;
        }
    }
    FAIL("a varint without end");
    mt_test_leave();
}

static void check_varint(uint64_t value)
{
    char bytes[MTPROF__PB_VARINT_MAX + 1];
    const unsigned char *at = (const unsigned char *)bytes;
    char *end = mtprof__pb_put_varint(bytes, value);
    size_t shortest = 1;
    for (uint64_t rest = value >> 7; rest != 0; rest >>= 7) {
        shortest++;
    }
    CHECK_EQ_U64((size_t)(end - bytes), shortest);
    CHECK_EQ_U64(read_varint(&at, (const unsigned char *)end), value);
    CHECK_EQ_PTR((const char *)at, (const char *)end);
    if (value < MTPROF__PB_WIDE_END) {
        uint32_t wide = mtprof__pb_wide((uint32_t)value);
        at = (const unsigned char *)&wide;
        CHECK_EQ_U64(read_varint(&at, at + sizeof wide), value);
        CHECK_EQ_PTR((const char *)at, (const char *)(&wide + 1));
    }
}

TEST(varints_are_the_shortest_or_four_bytes)
{
    uint64_t random = mt_test_seed();
    for (unsigned bit = 0; bit < 64; bit++) {
        uint64_t power = (uint64_t)1 << bit;
        check_varint(power);
        check_varint(power - 1);
        check_varint(power + 1);
        check_varint(~power);
    }
    for (int i = 0; i < 100000; i++) {
        uint64_t value = mt_test_random(&random);
        check_varint(value >> (mt_test_random(&random) % 64));
    }
}

TEST(messages_have_their_length)
{
    static const size_t lengths[] = {0, 1, 127, 128, 16383, 16384, 70000};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        mtprof__pb pb = {0};
        char *text = calloc(1, lengths[i] + 1);
        REQUIRE(text != NULL);
        memset(text, 'x', lengths[i]);
        size_t outer = mtprof__pb_begin(&pb, 1);
        size_t inner = mtprof__pb_begin(&pb, 60);
        mtprof__pb_bytes(&pb, 2, text, lengths[i]);
        mtprof__pb_end(&pb, inner);
        mtprof__pb_fixed64(&pb, 3, 0x0102030405060708u);
        mtprof__pb_end(&pb, outer);
        CHECK(!pb.failed);
        const unsigned char *at = (const unsigned char *)pb.bytes;
        const unsigned char *end = at + pb.used;
        CHECK_EQ_U64(read_varint(&at, end), 1 << 3 | 2);
        uint64_t length = read_varint(&at, end);
        CHECK_EQ_U64(length, (uint64_t)(end - at));
        CHECK_EQ_U64(read_varint(&at, end), 60 << 3 | 2);
        length = read_varint(&at, end);
        CHECK_EQ_U64(length, (uint64_t)(end - at) - 9);
        CHECK_EQ_U64(read_varint(&at, end), 2 << 3 | 2);
        CHECK_EQ_U64(read_varint(&at, end), lengths[i]);
        CHECK_EQ_MEM(at, text, lengths[i]);
        CHECK_EQ_U64(at[lengths[i]], 3 << 3 | 1);
        CHECK_EQ_U64(at[lengths[i] + 1], 8);
        mtprof__pb_fini(&pb);
        free(text);
    }
}

TEST(a_message_remembers_that_memory_was_refused)
{
    mtprof__pb pb = {0};
    size_t start = mtprof__pb_begin(&pb, 1);
    char block[1000] = {0};
    (void)mtb_fail_nth(1, false);
    mtprof__pb_raw(&pb, block, sizeof block);
    (void)mtb_fail_nth(0, false);
    mtprof__pb_u64(&pb, 1, 7);
    mtprof__pb_end(&pb, start);
    CHECK(pb.failed);
    mtprof__pb_clear(&pb);
    CHECK(!pb.failed);
    mtprof__pb_fini(&pb);
}

/* ---- packets --------------------------------------------------------------------------------- */

enum {
    SEQUENCES = 16,
    EVENTS = 32
};

typedef struct packet_event {
    uint64_t sequence, time, type;
} packet_event;

typedef struct packets {
    uint64_t last[SEQUENCES]; /* time of each sequence's clock */
    packet_event events[EVENTS];
    size_t n_events, n;
} packets;

/* One field of a message: its number, its varint or its bytes. */
typedef struct field {
    uint64_t number, value;
    const unsigned char *bytes;
    size_t length;
} field;

static bool next_field(const unsigned char **at, const unsigned char *end, field *f)
{
    if (*at == end) {
        return false;
    }
    uint64_t tag = read_varint(at, end);
    *f = (field){.number = tag >> 3};
    if ((tag & 7) == 0) {
        f->value = read_varint(at, end);
        return true;
    }
    REQUIRE((tag & 7) == 1 || (tag & 7) == 2);
    f->length = (tag & 7) == 1 ? 8 : read_varint(at, end);
    REQUIRE(f->length <= (size_t)(end - *at));
    f->bytes = *at;
    *at += f->length;
    return true;
}

static uint64_t find_value(const unsigned char *bytes, size_t length, uint64_t number)
{
    field f;
    const unsigned char *at = bytes;
    while (next_field(&at, bytes + length, &f)) {
        if (f.number == number) {
            return f.value;
        }
    }
    return 0;
}

/* The lane's clock starts where its snapshot says. */
static void take_clock(packets *p, uint64_t sequence, field snapshot)
{
    field clock;
    const unsigned char *at = snapshot.bytes;
    while (next_field(&at, snapshot.bytes + snapshot.length, &clock)) {
        if (clock.number == 1 && find_value(clock.bytes, clock.length, 1) == 64) {
            p->last[sequence] = find_value(clock.bytes, clock.length, 2);
        }
    }
}

static void take_packet(packets *p, field packet)
{
    field f;
    const unsigned char *at = packet.bytes;
    uint64_t sequence = find_value(packet.bytes, packet.length, 10);
    uint64_t time = find_value(packet.bytes, packet.length, 8);
    bool absolute = find_value(packet.bytes, packet.length, 58) == 3;
    REQUIRE(sequence > 0 && sequence < SEQUENCES);
    p->n++;
    while (next_field(&at, packet.bytes + packet.length, &f)) {
        if (f.number == 6) {
            take_clock(p, sequence, f);
        }
        if (f.number == 11) {
            REQUIRE(p->n_events < EVENTS);
            p->last[sequence] += absolute ? 0 : time;
            p->events[p->n_events++] = (packet_event){sequence, absolute ? time : p->last[sequence],
                                                      find_value(f.bytes, f.length, 9)};
        }
    }
}

static packets take_trace(const chrome_image *image)
{
    packets p = {.n = 0};
    field f;
    const unsigned char *at = (const unsigned char *)image->text;
    while (next_field(&at, (const unsigned char *)image->text + image->length, &f)) {
        REQUIRE(f.number == 1);
        take_packet(&p, f);
    }
    return p;
}

static void check_events(const packets *p, const packet_event *expected, size_t n)
{
    CHECK_EQ_U64(p->n_events, n);
    for (size_t i = 0; i < n && i < p->n_events; i++) {
        CHECK_EQ_U64(p->events[i].time, expected[i].time);
        CHECK_EQ_U64(p->events[i].type, expected[i].type);
        CHECK_EQ_U64(p->events[i].sequence, expected[i].sequence);
    }
}

TEST(events_have_their_times)
{
    chrome_image image;
    mtprof_model *model = small_image(&image, true);
    mtprof_export_report report = {.struct_size = sizeof report};
    const mtprof_export_options options = {.struct_size = sizeof options, .report = &report};
    REQUIRE_OK(image_export(&image, model, MTPROF_EXPORT_PERFETTO, &options));
    packets p = take_trace(&image);
    /* Sequence 1 is the file's, 2 the process's (its instant has the metadata), 3 and 4 are
     * threads, 5 is the kernel's and 6 that of the device's view of "outer step". Two frames are
     * around the op at 8000, a nanosecond wider each. */
    static const packet_event expected[] = {
        {2, 5000, 3},  {3, 6000, 1},  {3, 7998, 1},  {3, 7999, 1},  {3, 8000, 1},  {3, 10000, 1},
        {4, 11000, 1}, {4, 12000, 2}, {3, 13500, 2}, {5, 14000, 1}, {5, 16500, 2}, {3, 20000, 2},
        {3, 20001, 2}, {3, 20002, 2}, {3, 26000, 2}, {6, 14000, 1}, {6, 16500, 2}};
    check_events(&p, expected, sizeof expected / sizeof expected[0]);
    CHECK_EQ_U64(report.events, 6);
    CHECK_EQ_U64(report.clamped, 0);
    mtprof_model_free(model);
    image_fini(&image);
}

/* Times before zero, and steps that need more than four bytes. */
TEST(times_of_any_size)
{
    static const char json[] =
        "{\"traceEvents\": ["
        "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"a\", \"pid\": 7, \"tid\": 7, \"ts\": "
        "-2000000, \"dur\": 3000000000},"
        "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"b\", \"pid\": 7, \"tid\": 7, \"ts\": "
        "-1000000, \"dur\": 1}]}";
    char path[512];
    (void)snprintf(path, sizeof path, "%s/t.json", mt_test_tmpdir());
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL);
    fputs(json, file);
    fclose(file);
    chrome_image image = {.length = 0};
    mtprof_model *model = NULL;
    REQUIRE_OK(mtprof_model_open(path, NULL, &model));
    REQUIRE_OK(image_export(&image, model, MTPROF_EXPORT_PERFETTO, NULL));
    packets p = take_trace(&image);
    REQUIRE(p.n_events >= 4);
    const packet_event *events = p.events + p.n_events - 4; /* an instant may come before */
    uint64_t start = events[0].time;
    CHECK(start < (uint64_t)1 << 62);
    CHECK_EQ_U64(events[1].time - start, 1000000000u);
    CHECK_EQ_U64(events[2].time - start, 1000001000u);
    CHECK_EQ_U64(events[3].time - start, 3000000000000u);
    mtprof_model_free(model);
    free(image.text);
}

TEST(nothing_is_a_trace_too)
{
    chrome_image image;
    image_init(&image);
    image_control(&image, MTPROF_WANT_DEFAULT);
    image_thread(&image, 1);
    mtprof_model *model = image_model(&image);
    REQUIRE_OK(image_export(&image, model, MTPROF_EXPORT_PERFETTO, NULL));
    packets p = take_trace(&image);
    CHECK_EQ_U64(p.n_events, 1); /* the instant with the metadata */
    CHECK_EQ_U64(p.events[0].type, 3);
    mtprof_model_free(model);
    image_fini(&image);
}

TEST(bytes_that_are_no_text_are_replaced_and_counted)
{
    chrome_image image;
    image_init(&image);
    uint32_t name = image_string(&image, "x\xFFy");
    image_control(&image, MTPROF_WANT_DEFAULT);
    image_thread(&image, 1);
    image_begin(&image, 2000, MTPROF_KIND_OP, name);
    tb_end(&image.b, 1, 3000);
    mtprof_model *model = image_model(&image);
    mtprof_export_report report = {.struct_size = sizeof report};
    const mtprof_export_options options = {.struct_size = sizeof options, .report = &report};
    REQUIRE_OK(image_export(&image, model, MTPROF_EXPORT_PERFETTO, &options));
    CHECK_EQ_U64(report.replaced, 1);
    CHECK(memmem(image.text, image.length, "x\xEF\xBF\xBDy", 5) != NULL);
    CHECK(memmem(image.text, image.length, "x\xFFy", 3) == NULL);
    mtprof_model_free(model);
    image_fini(&image);
}

TEST(failures_are_told)
{
    check_no_memory(MTPROF_EXPORT_PERFETTO, NULL);
    check_output(MTPROF_EXPORT_PERFETTO);
}

/* What is set while a scope is open is known at its end, wherever it was recorded. */
TEST(metadata_may_be_late)
{
    chrome_image image;
    image_init(&image);
    uint32_t outer = image_string(&image, "outer");
    uint32_t inner = image_string(&image, "inner");
    uint32_t early = image_string(&image, "early");
    uint32_t late = image_string(&image, "late");
    image_control(&image, MTPROF_WANT_DEFAULT);
    image_thread(&image, 1);
    image_begin(&image, 2000, MTPROF_KIND_SCOPE | MTPROF_FLAG_PAYLOAD, outer);
    tb_record(&image.b, MTPROF_REC_META, MTPROF_META_INT, early, WORDS(1));
    image_begin(&image, 2100, MTPROF_KIND_OP, inner);
    tb_end(&image.b, 1, 2200);
    tb_record(&image.b, MTPROF_REC_ATTACH, 0, 0, WORDS((uint64_t)1 << 40));
    tb_record(&image.b, MTPROF_REC_META, MTPROF_META_INT, late, WORDS(2));
    tb_end(&image.b, 2, 3000);
    mtprof_model *model = image_model(&image);
    REQUIRE_OK(image_export(&image, model, MTPROF_EXPORT_PERFETTO, NULL));
    /* Annotations (field 4) with a name in full (field 10) and a signed value (field 4). */
    CHECK(memmem(image.text, image.length,
                 "\x22\x09\x52\x05"
                 "early"
                 "\x20\x01",
                 11) != NULL);
    CHECK(memmem(image.text, image.length,
                 "\x22\x08\x52\x04"
                 "late"
                 "\x20\x02",
                 10) != NULL);
    mtprof_model_free(model);
    image_fini(&image);
}

/* A flow is an event of the slices around it, none of its own; allocations have a track. */
TEST(flows_and_allocations_are_no_slices_of_a_thread)
{
    chrome_image image;
    image_init(&image);
    uint32_t scope = image_string(&image, "scope");
    uint32_t flow = image_string(&image, "flow");
    image_control(&image, MTPROF_WANT_DEFAULT);
    image_thread(&image, 1);
    image_begin(&image, 2000, MTPROF_KIND_SCOPE, scope);
    tb_record(&image.b, MTPROF_REC_FLOW, 0, flow, WORDS(2100, 7));
    for (uint32_t i = 0; i < 2; i++) { /* two at one time */
        tb_record(&image.b, MTPROF_REC_ALLOC, 1 << 8, 100, WORDS(4096, 64, 64));
    }
    tb_end(&image.b, 1, 3000);
    tb_record(&image.b, MTPROF_REC_FLOW, 2, flow, WORDS(3100, 7)); /* nothing is open */
    mtprof_model *model = image_model(&image);
    REQUIRE_OK(image_export(&image, model, MTPROF_EXPORT_PERFETTO, NULL));
    packets p = take_trace(&image);
    /* 0: no type of its own, 4: the counter of what is allocated. */
    static const packet_event expected[] = {{2, 5000, 3}, {3, 6000, 1}, {3, 6100, 0}, {4, 6200, 3},
                                            {3, 6200, 4}, {4, 6201, 3}, {3, 6200, 4}, {3, 7000, 2}};
    check_events(&p, expected, sizeof expected / sizeof expected[0]);
    mtprof_model_free(model);
    image_fini(&image);
}
