/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening, polling and closing a live view. See live_impl.h for the picture.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "base/struct_size.h"
#include "mtprof/live/live_impl.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <time.h>

static const int64_t default_window_ns = 5000000000;

/* ---- opening --------------------------------------------------------------------------------- */

static int check_options(const mtprof_live_options *given, mtprof_live_options *own)
{
    *own = (mtprof_live_options){.struct_size = sizeof *own};
    if (given != NULL) {
        if (given->struct_size == 0) {
            return mtb_fail(MTPROF_EINVAL, "follow trace: struct_size is 0");
        }
        mtb_read_struct(own, given);
    }
    if (own->window_ns < 0) {
        return mtb_fail(MTPROF_EINVAL, "follow trace: window_ns is %lld, expected 0 or more",
                        (long long)own->window_ns);
    }
    own->window_ns = own->window_ns != 0 ? own->window_ns : default_window_ns;
    return MTPROF_OK;
}

/* Row 0 is for names that there is no row left for. */
static int make_first_row(mtprof_live *live)
{
    static const char text[] = "(further names)";
    mtprof__live_key key = {.kind = MTPROF_EVENT_KIND_OTHER};
    uint32_t row = 0;
    MT_TRY(mtprof__live_name(live, (mtprof_text){text, sizeof text - 1}, &key.name));
    return mtprof__live_row_get(live, &key, &row);
}

static int open_all(mtprof_live *live)
{
    MT_TRY(mtprof__live_read_header(live));
    const mtprof_trace_info *info = &live->reader.info;
    live->reader.clock.tick_period = info->tick_period;
    const mtprof__clock_point start = {info->start_ticks, info->start_mono_ns, info->start_real_ns};
    if (!mtprof__clock_map_add(&live->reader.clock, start)) {
        return mtb_fail(MTPROF_ENOMEM, "follow trace: no memory for the first anchor");
    }
    live->random = info->start_ticks;
    live->step = live->allocated = live->allocated_most = -1;
    live->last_ns = live->now_ns = mtprof_reader_ns(&live->reader, info->start_ticks);
    return make_first_row(live);
}

/* Takes the bytes: they are closed also on failure. */
static mtprof_status open_taken(mtprof__bytes *bytes, const mtprof_live_options *options,
                                mtprof_live **out)
{
    const mtb_failure before = *mtb_last_failure();
    mtprof_live *live = mtb_calloc(1, sizeof *live);
    if (live == NULL) {
        mtprof__bytes_close(bytes);
        return mtb_fail(MTPROF_ENOMEM, "follow trace: no memory");
    }
    live->reader.bytes = *bytes;
    live->options = *options;
    int status = mtprof__dictionary_init(&live->dictionary, NULL);
    if (status != MTPROF_OK) {
        mtprof__bytes_close(&live->reader.bytes);
        mtb_free(live);
        return status;
    }
    status = open_all(live);
    if (status != MTPROF_OK) {
        mtprof_live_close(live);
        return status;
    }
    *mtb_last_failure() = before;
    *out = live;
    return MTPROF_OK;
}

mtprof_status mtprof_live_open(const char *path, const mtprof_live_options *options,
                               mtprof_live **out)
{
    mtprof__bytes bytes;
    mtprof_live_options own;
    *out = NULL;
    if (path == NULL) {
        return mtb_fail(MTPROF_EINVAL, "follow trace: the path is NULL");
    }
    MT_TRY(check_options(options, &own));
    MT_TRY(mtprof__bytes_open_file(&bytes, path));
    return open_taken(&bytes, &own, out);
}

mtprof_status mtprof_live_open_bytes(const mtprof_bytes *calls, const mtprof_live_options *options,
                                     mtprof_live **out)
{
    mtprof__bytes bytes;
    mtprof_live_options own;
    *out = NULL;
    if (calls == NULL) {
        return mtb_fail(MTPROF_EINVAL, "follow trace: bytes is NULL");
    }
    int status = mtprof__bytes_init(&bytes, calls);
    if (status == MTPROF_OK) {
        status = check_options(options, &own);
    }
    if (status != MTPROF_OK) {
        mtprof__bytes_close(&bytes);
        return status;
    }
    return open_taken(&bytes, &own, out);
}

void mtprof_live_close(mtprof_live *live)
{
    if (live == NULL) {
        return;
    }
    mtprof__live_window_fini(live);
    for (size_t i = 0; i < live->n_streams; i++) {
        mtprof__live_stream_free(live->streams[i]);
    }
    mtb_free(live->streams);
    mtb_idmap_reset(&live->stream_map);
    mtb_free(live->blocks);
    mtb_free(live->rows);
    mtb_idmap_reset(&live->row_map);
    mtb_free(live->touched);
    mtb_free(live->devices);
    mtb_free(live->spans);
    mtb_free(live->ends);
    mtb_free(live->begins);
    mtb_free(live->shown);
    mtb_free(live->shown_keys);
    mtb_free(live->shown_inputs);
    mtb_idmap_reset(&live->shown_map);
    mtb_arena_reset(&live->texts);
    mtprof__dictionary_fini(&live->dictionary);
    mtprof__clock_map_fini(&live->reader.clock);
    mtprof__control_read_fini(&live->reader.control);
    mtprof__definitions_fini(&live->reader.definitions);
    mtprof__chunk_index_fini(&live->reader.index);
    mtprof__problems_fini(&live->reader.problems);
    mtprof__bytes_close(&live->reader.bytes);
    mtb_free(live);
}

/* ---- who records ----------------------------------------------------------------------------- */

static bool is_there(uint64_t pid)
{
    return pid == 0 || pid > INT_MAX || kill((pid_t)pid, 0) == 0 || errno != ESRCH;
}

/* The recorder holds the file's lock until it stops. Without locks its process has to do; another
 * may have got its number. */
static enum mtprof_live_state find_state(const mtprof_live *live)
{
    const mtprof_trace_info *info = &live->reader.info;
    if (info->closed) {
        return MTPROF_LIVE_CLOSED;
    }
    bool unlocked = (info->health[MTPROF_HEALTH_WRITTEN_BEHIND] & MTPROF_FILE_UNLOCKED) != 0;
    int locked = unlocked ? -1 : mtprof__bytes_is_locked(&live->reader.bytes);
    if (locked == 1) {
        return MTPROF_LIVE_RUNNING;
    }
    if (!is_there(info->pid)) {
        return MTPROF_LIVE_GONE;
    }
    return locked == 0 ? MTPROF_LIVE_STOPPED : MTPROF_LIVE_RUNNING;
}

/* ---- polling --------------------------------------------------------------------------------- */

int64_t mtprof__live_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* When a recording that is not written any more ended, as far as it is known before its records are
 * read. */
static int64_t end_ns(const mtprof_live *live)
{
    const mtprof_reader *reader = &live->reader;
    if (reader->info.closed && reader->end_told) {
        return mtprof_reader_ns(reader, reader->info.end_ticks);
    }
    int64_t last = mtprof_reader_ns(reader, reader->index.last_ticks);
    return last > live->last_ns ? last : live->last_ns;
}

/* From when on a ring has all that its threads and devices recorded. The first chunk of a source is
 * never reused. */
static int64_t ring_start(const mtprof_live *live)
{
    int64_t start = -MTB_TIME_MOST;
    for (size_t i = 0; i < live->n_streams; i++) {
        const mtprof__live_stream *s = live->streams[i];
        size_t first = s->kind == MTPROF_STREAM_SOURCE ? 1 : 0;
        bool is_events = s->kind == MTPROF_STREAM_SOURCE || s->kind == MTPROF_STREAM_THREAD;
        if (!is_events || s->stream.n_chunks <= first) {
            continue;
        }
        const mtprof__chunk *oldest = &s->stream.chunks[first];
        int64_t from = mtprof_reader_ns(&live->reader, oldest->base_ticks);
        start = oldest->sequence > first && from > start ? from : start;
    }
    return start;
}

/* From when the first poll counts. A ring may not reach back as far as the window. */
static int64_t find_floor(const mtprof_live *live, int64_t now)
{
    if (live->options.from_start) {
        return -MTB_TIME_MOST;
    }
    int64_t last = live->state == MTPROF_LIVE_RUNNING ? now : end_ns(live);
    int64_t floor = mtb_sub_sat(last, live->options.window_ns);
    int64_t start = ring_start(live);
    return start > floor ? start : floor;
}

static int read_texts(mtprof_live *live, int64_t now)
{
    if (!live->opened) {
        live->floor_ns =
            find_floor(live, now); /* by the first anchor alone: good enough for steps */
    }
    MT_TRY(mtprof__live_read_control(live));
    MT_TRY(mtprof__live_read_definitions(live));
    if (!live->opened) {
        live->floor_ns = find_floor(live, now);
        if (!live->options.from_start) {
            mtprof__live_skip_old(live, live->floor_ns);
        }
    }
    return MTPROF_OK;
}

int mtprof__live_find(mtprof_live *live, int64_t now)
{
    MT_TRY(mtprof__live_look(live));
    live->state = find_state(live);
    MT_TRY(read_texts(live, now));
    return mtprof__live_choose(live);
}

int mtprof__live_read(mtprof_live *live, int64_t limit_ns)
{
    for (size_t i = 0; i < live->n_streams; i++) {
        mtprof__live_stream *s = live->streams[i];
        if (s->source != NULL) {
            MT_TRY(mtprof__live_read_source(live, s, limit_ns));
        } else if (s->thread != NULL) {
            MT_TRY(mtprof__live_read_slot(live, s, limit_ns));
        }
    }
    return mtprof__live_foreign_ends(live);
}

int mtprof__live_settle(mtprof_live *live)
{
    for (size_t i = 0; i < live->n_streams; i++) {
        if (live->streams[i]->thread != NULL) {
            MT_TRY(mtprof__live_credit_open(live, live->streams[i]));
        }
    }
    mtprof__live_add_busy(live);
    return MTPROF_OK;
}

/* The time that this poll is about ends here. */
static void settle_now(mtprof_live *live, int64_t now)
{
    if (live->state != MTPROF_LIVE_RUNNING) {
        live->now_ns = end_ns(live);
        return;
    }
    live->now_ns = now > live->last_ns ? now : live->last_ns;
}

static int poll(mtprof_live *live, int64_t now)
{
    int64_t from = live->now_ns;
    MT_TRY(mtprof__live_find(live, now));
    if (!live->opened && !live->options.from_start && live->floor_ns > from) {
        from = live->floor_ns;
    }
    int status = mtprof__live_read(live, INT64_MAX);
    mtprof__live_chosen_end(live);
    MT_TRY(status);
    settle_now(live, now);
    MT_TRY(mtprof__live_settle(live));
    bool over = live->ended && live->now.bytes_new == 0;
    live->ended = live->state != MTPROF_LIVE_RUNNING;
    live->opened = true;
    return over ? MTPROF_OK : mtprof__live_window_add(live, from);
}

mtprof_status mtprof_live_poll(mtprof_live *live, int64_t now_ns)
{
    /* Damage that is passed over is no failure of this call. */
    const mtb_failure before = *mtb_last_failure();
    int status = poll(live, now_ns != 0 ? mtb_bound_time(now_ns) : mtprof__live_clock_ns());
    if (status == MTPROF_OK) {
        *mtb_last_failure() = before;
    }
    return status;
}

mtprof_status mtprof_live_set_window(mtprof_live *live, int64_t window_ns)
{
    if (window_ns < 1) {
        return mtb_fail(MTPROF_EINVAL, "follow trace: window_ns is %lld, expected 1 or more",
                        (long long)window_ns);
    }
    live->options.window_ns = window_ns;
    return MTPROF_OK;
}
