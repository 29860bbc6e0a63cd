/* SPDX-License-Identifier: Apache-2.0
 *
 * The results of a session: metadata, health, its bytes, a copy in a file.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "mtprof/control/session_impl.h"

#include <mtprof/clock.h>

#include <string.h>

enum {
    TEXT_LIMIT = 16 << 20
};

mtprof__recording *mtprof__session_pin(mtprof_session *session)
{
    mtb_lock_acquire(&mtprof__session_lock);
    mtprof__recording *recording = session->recording;
    mtprof__recording_retain(recording);
    mtb_lock_release(&mtprof__session_lock);
    return recording;
}

session_meta *mtprof__session_make_meta(const char *key, size_t key_length, const char *value,
                                        size_t value_length, bool is_json)
{
    uint64_t key_words = mtprof__text_words(key_length);
    uint64_t total = 3 + key_words + mtprof__text_words(value_length);
    session_meta *meta = mtb_calloc(1, sizeof *meta + total * sizeof meta->words[0]);
    if (meta == NULL) {
        return NULL;
    }
    /* Always with an extended length: one form to write, and values may be long. */
    meta->n_words = total;
    meta->words[0] = mtprof__word0(MTPROF_REC_TRACE_META, 255, is_json, 0);
    meta->words[1] = total;
    meta->words[2] = key_length | (uint64_t)value_length << 32;
    memcpy(meta->words + 3, key, key_length);
    if (value_length != 0) {
        memcpy(meta->words + 3 + key_words, value, value_length);
    }
    return meta;
}

static bool same_key(const session_meta *a, const session_meta *b)
{
    uint32_t length = (uint32_t)a->words[2];
    return length == (uint32_t)b->words[2] && memcmp(a->words + 3, b->words + 3, length) == 0;
}

bool mtprof__session_has_meta(mtprof_session *s, const char *key, size_t length)
{
    bool found = false;
    mtb_lock_acquire(&mtprof__session_lock);
    for (const session_meta *m = s->metadata; m != NULL && !found; m = m->next) {
        found = (uint32_t)m->words[2] == length && memcmp(m->words + 3, key, length) == 0;
    }
    mtb_lock_release(&mtprof__session_lock);
    return found;
}

mtprof_status mtprof__session_add_meta(mtprof_session *s, const char *key, size_t key_length,
                                       const char *value, size_t value_length, bool is_json)
{
    session_meta *meta = mtprof__session_make_meta(key, key_length, value, value_length, is_json);
    if (meta == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "session_metadata: no memory for %zu bytes",
                        key_length + value_length);
    }
    mtb_lock_acquire(&mtprof__session_lock);
    meta->words[0] |= (uint64_t)s->window << 32;
    session_meta **at = &s->metadata;
    while (*at != NULL && !same_key(*at, meta)) {
        at = &(*at)->next;
    }
    session_meta *replaced = *at;
    meta->next = replaced != NULL ? replaced->next : NULL;
    *at = meta;
    bool stored = mtprof__control_append(s->recording, meta->words, meta->n_words, mtprof__ticks());
    mtb_lock_release(&mtprof__session_lock);
    mtb_free(replaced);
    return stored ? MTPROF_OK : mtb_fail(MTPROF_ENOSPC, "session_metadata: no room in the trace");
}

mtprof__recording *mtprof__session_exchange(mtprof_session *s, mtprof__recording *recording)
{
    mtb_lock_acquire(&mtprof__session_lock);
    mtprof__recording *old = s->recording;
    s->recording = recording;
    for (const session_meta *m = s->metadata; m != NULL; m = m->next) {
        mtprof__control_append(recording, m->words, m->n_words, mtprof__ticks());
    }
    mtb_lock_release(&mtprof__session_lock);
    return old;
}

mtprof_status mtprof_session_add_metadata(mtprof_session *session, const char *key,
                                          size_t key_length, const char *value, size_t value_length,
                                          bool is_json)
{
    if (session == NULL || key == NULL || key_length == 0 || (value == NULL && value_length != 0)) {
        return mtb_fail(MTPROF_EINVAL, "session_metadata: %s",
                        session == NULL                  ? "session is NULL"
                        : key == NULL || key_length == 0 ? "the key is empty"
                                                         : "the value is NULL");
    }
    if (key_length > TEXT_LIMIT || value_length > TEXT_LIMIT) {
        return mtb_fail(MTPROF_EINVAL, "session_metadata: %zu bytes, at most %d are allowed",
                        key_length > value_length ? key_length : value_length, TEXT_LIMIT);
    }
    if (mtprof__session_state_of(session) == FOREIGN) {
        return mtprof__session_refuse("session_metadata", session, FOREIGN);
    }
    return mtprof__session_add_meta(session, key, key_length, value, value_length, is_json);
}

static void fill_health(mtprof_session *session, mtprof__recording *recording, mtprof_health *h)
{
    mtprof__store *store = recording->store;
    if (MTPROF__GET(recording->retired) == 0) {
        mtprof__count_collect(recording);
    }
    mtprof__recorder_sum(recording, h);
    h->threads = MTPROF__GET(recording->n_threads);
    h->activities = mtprof__store_counted(store, MTPROF_HEALTH_ACTIVITIES);
    h->unmatched = h->launches > h->activities ? h->launches - h->activities : 0;
    for (uint32_t i = 0; i < MTPROF_HEALTH_LOST_END; i++) {
        h->lost_by[i] = mtprof__store_counted(store, i);
        h->lost += h->lost_by[i];
    }
    h->evicted = mtprof__store_counted(store, MTPROF_HEALTH_RING_BEGINS);
    h->stalls = mtprof__store_counted(store, MTPROF_HEALTH_STALLS);
    h->busy_at_stop = mtprof__store_counted(store, MTPROF_HEALTH_BUSY_AT_STOP);
    h->texts_cut = mtprof__store_counted(store, MTPROF_HEALTH_TEXTS_CUT);
    h->clock_back = mtprof__store_counted(store, MTPROF_HEALTH_CLOCK_BACK);
    h->stacks_missed = mtprof__store_counted(store, MTPROF_HEALTH_STACKS_MISSED);
    h->bytes = __atomic_load_n(&store->frontier, __ATOMIC_RELAXED);
    h->pair_cost_ps =
        (uint64_t)(((unsigned __int128)session->pair_cost * mtprof_tick_period() * 1000) >> 64);
    h->written_behind = store->behind;
    h->unlocked = store->unlocked;
    mtprof__limiter_health(&session->helper.limiter, h);
}

mtprof_status mtprof_session_get_health(mtprof_session *session, mtprof_health *health)
{
    if (session == NULL || health == NULL || health->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "session_health: %s",
                        session == NULL  ? "session is NULL"
                        : health == NULL ? "health is NULL"
                                         : "struct_size is 0");
    }
    if (mtprof__session_state_of(session) == FOREIGN) {
        return mtprof__session_refuse("session_health", session, FOREIGN);
    }
    mtprof_health full;
    memset(&full, 0, sizeof full);
    mtprof__recording *recording = mtprof__session_pin(session);
    fill_health(session, recording, &full);
    mtprof__recording_release(recording);
    mtb_write_struct(health, &full); /* SES3 */
    return MTPROF_OK;
}

/* The bytes of what a session has; `get` chooses how they are read. */
static mtprof_status get_bytes(mtprof_session *session, mtprof_bytes *bytes,
                               void (*get)(mtprof__store *, mtprof_bytes *))
{
    if (session == NULL || bytes == NULL) {
        return mtb_fail(MTPROF_EINVAL, "session_bytes: %s is NULL",
                        session == NULL ? "session" : "bytes");
    }
    if (mtprof__session_state_of(session) == FOREIGN) {
        return mtprof__session_refuse("session_bytes", session, FOREIGN);
    }
    if (bytes->struct_size < sizeof *bytes) {
        return mtb_fail(MTPROF_EINVAL, "session_bytes: struct_size is %u, at least %zu is needed",
                        bytes->struct_size, sizeof *bytes);
    }
    mtprof__recording *recording = mtprof__session_pin(session);
    get(recording->store, bytes);
    mtprof__recording_release(recording);
    return MTPROF_OK;
}

mtprof_status mtprof_session_get_bytes(mtprof_session *session, mtprof_bytes *bytes)
{
    return get_bytes(session, bytes, mtprof__store_bytes);
}

mtprof_status mtprof__session_memory(mtprof_session *session, mtprof_bytes *bytes)
{
    return get_bytes(session, bytes, mtprof__store_memory);
}

mtprof_status mtprof_session_save(mtprof_session *session, const char *path)
{
    return mtprof_session_save_with(session, path, NULL, NULL);
}

mtprof_status mtprof_session_save_with(mtprof_session *session, const char *path,
                                       mtprof__save_progress *progress, void *user)
{
    if (session == NULL || path == NULL || path[0] == '\0') {
        return mtb_fail(MTPROF_EINVAL, "session_save: %s",
                        session == NULL ? "session is NULL" : "the path is empty");
    }
    enum session_state found = mtprof__session_state_of(session);
    if (found != STOPPED) {
        return mtprof__session_refuse("session_save", session, found);
    }
    return mtprof__store_save(session->recording->store, path, session->end_ticks, progress, user);
}
