/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows, and the window of polls that they are about.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"
#include "mtprof/live/live_impl.h"

#include <string.h>

/* ---- rows ------------------------------------------------------------------------------------ */

static uint64_t key_hash(const mtprof__live_key *key)
{
    uint64_t words[3];
    _Static_assert(sizeof words == sizeof *key, "no padding");
    memcpy(words, key, sizeof words);
    return mtb_hash_words(words, 3);
}

static bool is_row(const void *context, uint32_t id, const void *key)
{
    const mtprof_live *live = context;
    return memcmp(&live->rows[id - 1].key, key, sizeof(mtprof__live_key)) == 0;
}

static int find_or_add(mtprof_live *live, const mtprof__live_key *key, uint32_t *row, bool *full)
{
    uint64_t hash = key_hash(key);
    uint32_t id = mtb_idmap_find(&live->row_map, hash, is_row, live, key);
    *full = id == 0 && live->n_rows >= MTPROF__LIVE_ROWS;
    if (id == 0 && !*full) {
        const mtprof__live_row made = {.key = *key};
        if (!mtb_idmap_append(&live->row_map, hash, live->rows, live->n_rows, live->rows_capacity,
                              &made)) {
            return mtb_fail(MTPROF_ENOMEM, "follow trace: no memory for %zu rows",
                            live->n_rows + 1);
        }
        id = (uint32_t)live->n_rows;
    }
    *row = id - 1;
    return MTPROF_OK;
}

/* Where there are too many rows, those of one name become one; then all names that are new. */
int mtprof__live_row_get(mtprof_live *live, const mtprof__live_key *key, uint32_t *row)
{
    bool full = false;
    MT_TRY(find_or_add(live, key, row, &full));
    if (full) {
        const mtprof__live_key coarse = {
            .name = key->name, .device = key->device, .kind = key->kind};
        live->rows_merged++;
        MT_TRY(find_or_add(live, &coarse, row, &full));
    }
    if (full) {
        *row = 0; /* made when it was opened */
    }
    return MTPROF_OK;
}

int mtprof__live_name(mtprof_live *live, mtprof_text text, uint32_t *name)
{
    text = mtprof__group_text(text);
    if (live->dictionary.n_names < MTPROF__LIVE_ROWS) {
        return mtprof__dictionary_name(&live->dictionary, text, name);
    }
    if (!mtprof__dictionary_find_name(&live->dictionary, text, name)) {
        *name = live->rows[0].key.name;
        live->rows_merged++;
    }
    return MTPROF_OK;
}

int mtprof__live_touch(mtprof_live *live, mtprof__live_row *row)
{
    if (MT_LIKELY(row->touched)) {
        return MTPROF_OK;
    }
    uint32_t place = (uint32_t)(row - live->rows);
    if (!mtb_append(live->touched, live->n_touched, live->touched_capacity, &place)) {
        return mtb_fail(MTPROF_ENOMEM, "follow trace: no memory for %zu rows", live->n_touched + 1);
    }
    row->touched = true;
    return MTPROF_OK;
}

/* ---- the window ------------------------------------------------------------------------------ */

static void add_sums(mtprof__live_sums *to, const mtprof__live_sums *from, double sign)
{
    to->calls += sign * from->calls;
    to->ended += sign * from->ended;
    to->self_ns += sign * from->self_ns;
    to->total_ns += sign * from->total_ns;
}

static void drop_oldest(mtprof_live *live)
{
    mtprof__live_poll *poll = &live->polls[live->first_poll++];
    live->n_polls--;
    for (size_t i = 0; i < poll->n_changes; i++) {
        mtprof__live_row *row = &live->rows[poll->changes[i].row];
        add_sums(&row->window, &poll->changes[i].sums, -1);
        if (--row->changes == 0) {
            memset(&row->window, 0, sizeof row->window); /* no rests of rounding */
        }
    }
    for (uint32_t i = 0; i < poll->n_busy; i++) {
        live->devices[i].window_ns -= poll->busy_ns[i];
    }
    live->window.bytes_new -= poll->facts.bytes_new;
    live->window.bytes_read -= poll->facts.bytes_read;
    live->window.events -= poll->facts.events;
    live->window.events_all -= poll->facts.events_all;
    live->window.steps -= poll->facts.steps;
    mtb_free(poll->changes);
    mtb_free(poll->busy_ns);
    if (live->n_polls == 0) {
        memset(&live->window, 0, sizeof live->window);
    }
}

/* Room for one more at the end. */
static bool make_room(mtprof_live *live)
{
    if (live->first_poll > 0 && live->first_poll + live->n_polls == live->polls_capacity) {
        memmove(live->polls, live->polls + live->first_poll, live->n_polls * sizeof *live->polls);
        live->first_poll = 0;
    }
    return mtb_grow((void **)&live->polls, &live->polls_capacity,
                    live->first_poll + live->n_polls + 1, sizeof *live->polls);
}

static void move_rows(mtprof_live *live, mtprof__live_poll *poll)
{
    for (size_t i = 0; i < live->n_touched; i++) {
        mtprof__live_row *row = &live->rows[live->touched[i]];
        poll->changes[poll->n_changes++] = (mtprof__live_change){live->touched[i], row->now};
        add_sums(&row->window, &row->now, 1);
        add_sums(&row->all, &row->now, 1);
        memset(&row->now, 0, sizeof row->now);
        row->touched = false;
        row->changes++;
    }
    live->n_touched = 0;
    for (size_t i = 0; i < live->n_devices; i++) {
        poll->busy_ns[i] = live->devices[i].now_ns;
        live->devices[i].window_ns += live->devices[i].now_ns;
        live->devices[i].now_ns = 0;
    }
    poll->n_busy = (uint32_t)live->n_devices;
}

int mtprof__live_window_add(mtprof_live *live, int64_t start_ns)
{
    mtprof__live_poll poll = {.start_ns = start_ns, .end_ns = live->now_ns, .facts = live->now};
    poll.changes = mtb_calloc(live->n_touched + 1, sizeof *poll.changes);
    poll.busy_ns = mtb_calloc(live->n_devices + 1, sizeof *poll.busy_ns);
    if (poll.changes == NULL || poll.busy_ns == NULL || !make_room(live)) {
        mtb_free(poll.changes);
        mtb_free(poll.busy_ns);
        return mtb_fail(MTPROF_ENOMEM, "follow trace: no memory for %zu changes of rows",
                        live->n_touched);
    }
    move_rows(live, &poll);
    live->window.bytes_new += poll.facts.bytes_new;
    live->window.bytes_read += poll.facts.bytes_read;
    live->window.events += poll.facts.events;
    live->window.events_all += poll.facts.events_all;
    live->window.steps += poll.facts.steps;
    memset(&live->now, 0, sizeof live->now);
    live->polls[live->first_poll + live->n_polls++] = poll;
    while (live->n_polls > 1 &&
           (live->by_step || live->n_polls > MTPROF__LIVE_POLLS ||
            live->polls[live->first_poll].end_ns <= live->now_ns - live->options.window_ns)) {
        drop_oldest(live);
    }
    return MTPROF_OK;
}

void mtprof__live_window_fini(mtprof_live *live)
{
    while (live->n_polls > 0) {
        drop_oldest(live);
    }
    mtb_free(live->polls);
}
