/* SPDX-License-Identifier: Apache-2.0
 *
 * Device work on its way to rows, and how long devices were busy. A source reports work when it
 * pleases, in batches perhaps: it counts in the poll that reads it.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/format/texts.h"
#include "mtprof/live/live_impl.h"

#include <stdlib.h>
#include <string.h>

enum {
    PAIRS_MOST = 1024 /* of a source's clock */
};

/* ---- devices --------------------------------------------------------------------------------- */

mtprof_text mtprof__live_device_type(const mtprof_live *live)
{
    mtprof_text name;
    mtprof_text type;
    for (size_t i = 0; i < live->n_streams; i++) {
        const mtprof__live_stream *s = live->streams[i];
        if (s->source != NULL &&
            mtprof_reader_source(&live->reader, s->stream.slot, &name, &type) && type.length > 0) {
            return type;
        }
    }
    return (mtprof_text){"NPU", 3};
}

int mtprof__live_device_get(mtprof_live *live, mtprof_text type, uint32_t index, uint32_t *place)
{
    for (size_t i = 0; i < live->n_devices; i++) {
        if (live->devices[i].index == index && mtprof__text_same(live->devices[i].type, type)) {
            *place = (uint32_t)i;
            return MTPROF_OK;
        }
    }
    *place = MTPROF__LIVE_DEVICES - 1;
    if (live->n_devices == MTPROF__LIVE_DEVICES) {
        return MTPROF_OK;
    }
    *place = (uint32_t)live->n_devices;
    const mtprof__live_device made = {
        .type = type, .index = index, .busy_to_ns = INT64_MIN, .allocated = -1, .reserved = -1};
    return mtb_append(live->devices, live->n_devices, live->devices_capacity, &made)
               ? MTPROF_OK
               : mtb_fail(MTPROF_ENOMEM, "follow trace: no memory for %u devices", *place + 1);
}

static int order_spans(const void *a, const void *b)
{
    const mtprof__live_span *left = a;
    const mtprof__live_span *right = b;
    int order = mtb_order(left->device, right->device);
    return order != 0 ? order : mtb_order(left->start_ns, right->start_ns);
}

void mtprof__live_add_busy(mtprof_live *live)
{
    if (live->n_spans > 1) {
        qsort(live->spans, live->n_spans, sizeof *live->spans, order_spans);
    }
    for (size_t i = 0; i < live->n_spans; i++) {
        const mtprof__live_span *span = &live->spans[i];
        mtprof__live_device *device = &live->devices[span->device];
        int64_t from = span->start_ns > device->busy_to_ns ? span->start_ns : device->busy_to_ns;
        if (span->end_ns > from) {
            device->now_ns += span->scale * (double)mtb_sub_sat(span->end_ns, from);
            device->busy_to_ns = span->end_ns;
        }
    }
    live->n_spans = 0;
}

/* ---- records --------------------------------------------------------------------------------- */

static int add_pair(mtprof__live_source *s, const mtprof_record *record)
{
    mtprof__source_clock *clock = &s->clock;
    mtprof__clock_pair pair = {.time = record->words[0], .ticks = record->words[1]};
    if (!mtprof__source_clock_add(clock, pair)) {
        return mtb_fail(MTPROF_ENOMEM, "follow trace: no memory for %zu clock pairs", clock->n + 1);
    }
    if (clock->n > PAIRS_MOST) {
        size_t kept = PAIRS_MOST / 2;
        memmove(clock->pairs, clock->pairs + clock->n - kept, kept * sizeof *clock->pairs);
        clock->n = kept;
    }
    return MTPROF_OK;
}

static int64_t source_ns(mtprof_live *live, mtprof__live_source *s, uint64_t time)
{
    uint64_t ticks = 0;
    if (mtprof__source_clock_ticks(&s->clock, live->reader.info.tick_period, time, &ticks)) {
        return mtprof__timebase_ns(&s->timebase, ticks);
    }
    return time > (uint64_t)MTB_TIME_MOST ? MTB_TIME_MOST : (int64_t)time;
}

static bool is_work(uint16_t kind)
{
    return kind == MTPROF_ACTIVITY_KERNEL || kind == MTPROF_ACTIVITY_COPY ||
           kind == MTPROF_ACTIVITY_SET;
}

/* The row of the source's work. */
static int work_row(mtprof_live *live, mtprof__live_source *s, uint32_t place, uint32_t *row)
{
    mtprof_text text = {"", 0};
    mtprof__live_key key = {.device = place + 1,
                            .kind = (uint32_t)MTPROF_EVENT_KIND_KERNEL + s->work.aux};
    if (s->work.arg != 0) {
        (void)mtprof_reader_string(&live->reader, s->work.arg, &text);
    } else {
        (void)mtprof__payload_name(&s->payload, &text);
    }
    MT_TRY(mtprof__live_name(live, text, &key.name));
    return mtprof__live_row_get(live, &key, row);
}

/* The work that waited for its name. Calls, waits and annotations are the host's, or no work. */
static int flush_work(mtprof_live *live, mtprof__live_stream *stream)
{
    mtprof__live_source *s = stream->source;
    mtprof_text name;
    mtprof_text type = {"", 0};
    bool had = s->has_work;
    s->has_work = false;
    if (!had || !is_work(s->work.aux)) {
        return MTPROF_OK;
    }
    int64_t start = source_ns(live, s, s->words[0]);
    int64_t end = source_ns(live, s, s->words[1]);
    end = end > start ? end : start;
    if (end < live->floor_ns) {
        return MTPROF_OK;
    }
    start = start > live->floor_ns ? start : live->floor_ns;
    uint32_t place = 0;
    uint32_t row = 0;
    if (!mtprof_reader_source(&live->reader, stream->stream.slot, &name, &type) ||
        type.length == 0) {
        type = mtprof__live_device_type(live);
    }
    MT_TRY(mtprof__live_device_get(live, type, (uint32_t)s->words[3], &place));
    MT_TRY(work_row(live, s, place, &row));
    mtprof__live_sums *now = &live->rows[row].now;
    double duration = (double)mtb_sub_sat(end, start);
    now->calls += stream->scale;
    now->ended += stream->scale;
    now->self_ns += stream->scale * duration;
    now->total_ns += stream->scale * duration;
    const mtprof__live_span span = {place, start, end, stream->scale};
    if (!mtb_append(live->spans, live->n_spans, live->spans_capacity, &span)) {
        return mtb_fail(MTPROF_ENOMEM, "follow trace: no memory for %zu pieces of work",
                        live->n_spans + 1);
    }
    return mtprof__live_touch(live, &live->rows[row]);
}

static int take_record(mtprof_live *live, mtprof__live_stream *stream, const mtprof_record *record)
{
    mtprof__live_source *s = stream->source;
    if (record->kind == MTPROF_REC_NAME || record->kind == MTPROF_REC_META) {
        return s->has_work && record->kind == MTPROF_REC_NAME
                   ? mtprof__payload_add(&s->payload, &live->reader, record)
                   : MTPROF_OK;
    }
    MT_TRY(flush_work(live, stream));
    if (record->kind == MTPROF_REC_CLOCK_PAIR) {
        return add_pair(s, record);
    }
    live->now.events++;
    live->now.events_all += stream->scale;
    if (record->kind == MTPROF_REC_ACTIVITY) {
        s->work = *record;
        s->has_work = true;
        mtprof__payload_reset(&s->payload);
        memcpy(s->words, record->words, sizeof s->words);
    }
    return MTPROF_OK;
}

/* Whether the work that waits for its name began at or after a time. */
static bool is_later(mtprof_live *live, mtprof__live_source *s, int64_t limit_ns)
{
    return s->has_work && limit_ns != INT64_MAX && source_ns(live, s, s->words[0]) >= limit_ns;
}

int mtprof__live_read_source(mtprof_live *live, mtprof__live_stream *stream, int64_t limit_ns)
{
    mtprof_record record;
    int status = MTPROF_OK;
    while (status != MTPROF_EEND) {
        if (is_later(live, stream->source, limit_ns)) {
            return MTPROF_OK;
        }
        status = mtprof__cursor_next(stream->cursor, &record);
        if (status == MTPROF_EFORMAT || status == MTPROF_EIO) {
            live->damaged++;
            continue;
        }
        if (status == MTPROF_OK) {
            status = take_record(live, stream, &record);
        }
        if (status != MTPROF_OK && status != MTPROF_EEND) {
            return status;
        }
    }
    /* A name in full may be on its way. */
    return stream->source->has_work && stream->source->work.arg != 0 ? flush_work(live, stream)
                                                                     : MTPROF_OK;
}
