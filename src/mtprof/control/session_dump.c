/* SPDX-License-Identifier: Apache-2.0
 *
 * Dumps: the last part of a session as a trace of its own, while it goes on (store_dump.h has the
 * invariants).
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/new_file.h"
#include "base/struct_size.h"
#include "mtprof/control/session_impl.h"
#include "mtprof/record/store/store_dump.h"

#include <mtprof/clock.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Records for the control stream of a dump. */
typedef struct meta_words {
    uint64_t *at;
    size_t n, capacity;
} meta_words;

static bool add_record(meta_words *words, const session_meta *meta)
{
    if (meta == NULL ||
        !mtb_grow((void **)&words->at, &words->capacity, words->n + meta->n_words, 8)) {
        return false;
    }
    memcpy(words->at + words->n, meta->words, meta->n_words * 8);
    words->n += meta->n_words;
    return true;
}

static bool add_own(meta_words *words, const mtprof_session *session, const char *key,
                    const char *value, bool is_json)
{
    session_meta *meta = mtprof__session_make_meta(key, strlen(key), value, strlen(value), is_json);
    if (meta != NULL) {
        meta->words[0] |= (uint64_t)session->window << 32;
    }
    bool added = add_record(words, meta);
    mtb_free(meta);
    return added;
}

static mtprof_status collect_metadata(mtprof_session *session, const mtprof__dump *dump,
                                      const mtprof_dump_options *options, meta_words *words)
{
    char window[160];
    (void)snprintf(window, sizeof window,
                   "{\"from_ns\": %" PRId64 ", \"to_ns\": %" PRId64 ", \"chunks_missed\": %" PRIu64
                   "}",
                   mtprof_ticks_to_ns(dump->from), mtprof_ticks_to_ns(dump->to), dump->missed);
    bool added = true;
    mtb_lock_acquire(&mtprof__session_lock);
    for (const session_meta *m = session->metadata; m != NULL && added; m = m->next) {
        added = add_record(words, m);
    }
    added = added && add_own(words, session, "dump_window", window, true);
    const struct {
        const char *key, *value;
    } texts[] = {{"dump_reason", options->reason},
                 {"dump_trigger", options->trigger},
                 {"dump_stacks", options->stacks}};
    for (size_t i = 0; i < MT_COUNT(texts); i++) {
        added = added && (texts[i].value == NULL ||
                          add_own(words, session, texts[i].key, texts[i].value, false));
    }
    mtb_lock_release(&mtprof__session_lock);
    return added ? MTPROF_OK : mtb_fail(MTPROF_ENOMEM, "session_dump: no memory for the metadata");
}

/* The window's start in ticks: 0 where nothing bounds it. */
static uint64_t window_from(mtprof_session *session, const mtprof_dump_options *options)
{
    uint64_t from = 0;
    if (options->last_steps != 0) {
        from = mtprof__session_steps_from(session, options->last_steps);
    }
    if (options->last_ns != 0) {
        uint64_t now = mtprof__ticks();
        uint64_t ticks = mtprof__ns_to_ticks(options->last_ns);
        uint64_t since = ticks < now ? now - ticks : 0;
        from = since > from ? since : from;
    }
    return from;
}

static mtprof_status write_dump(mtprof_session *session, mtprof__recording *recording,
                                mtprof__dump *dump, const mtprof_dump_options *options)
{
    mtprof_health totals = {.struct_size = sizeof totals};
    mtprof__recorder_sum(recording, &totals);
    dump->begins = totals.begins;
    dump->others = totals.others;
    dump->launches = totals.launches;
    dump->truncated = totals.truncated;
    MT_TRY(mtprof__dump_events(dump));
    dump->from = dump->from > dump->first ? dump->from : dump->first;
    dump->from = dump->from < dump->to ? dump->from : dump->to;
    meta_words words = {0};
    mtprof_status status = collect_metadata(session, dump, options, &words);
    if (status == MTPROF_OK) {
        status = mtprof__dump_rest(dump, words.at, words.n);
    }
    mtb_free(words.at);
    return status;
}

mtprof_status mtprof__session_dump_to(mtprof_session *session, int fd, const char *name,
                                      const mtprof_dump_options *options, mtprof_dump_info *info)
{
    uint64_t began = mtprof__mono_ns();
    mtprof__recording *recording = mtprof__session_pin(session);
    mtprof__dump dump = {
        .store = recording->store,
        .fd = fd,
        .name = name,
        .from = window_from(session, options),
        .bytes_max = options->last_bytes,
    };
    mtprof_status status = write_dump(session, recording, &dump, options);
    mtprof__dump_fini(&dump);
    mtprof__recording_release(recording);
    *info = (mtprof_dump_info){
        .struct_size = sizeof *info,
        .from_ns = mtprof_ticks_to_ns(dump.from),
        .to_ns = mtprof_ticks_to_ns(dump.to),
        .bytes = dump.bytes,
        .chunks = dump.chunks,
        .chunks_missed = dump.missed,
        .took_ns = mtprof__mono_ns() - began,
    };
    return status;
}

static mtprof_status dump_to_path(mtprof_session *session, const char *path,
                                  const mtprof_dump_options *options, mtprof_dump_info *info)
{
    mtb_new_file file;
    uint64_t began = mtprof__mono_ns();
    int error = mtb_new_file_open(&file, path);
    if (error != 0) {
        return mtb_fail_errno(error == ENOMEM ? MTPROF_ENOMEM : MTPROF_EIO, error,
                              "session_dump: cannot create a file beside %s", path);
    }
    mtprof_status status = mtprof__session_dump_to(session, file.fd, path, options, info);
    if (status == MTPROF_OK) {
        error = mtb_new_file_close(&file);
        error = error == 0 ? mtb_new_file_commit(&file) : error;
    }
    if (error != 0) {
        status = mtb_fail_errno(mtb_is_full(error) ? MTPROF_ENOSPC
                                : error == ENOMEM  ? MTPROF_ENOMEM
                                                   : MTPROF_EIO,
                                error, "session_dump: cannot put %s in place", path);
    }
    mtb_new_file_abandon(&file);
    info->took_ns = mtprof__mono_ns() - began;
    return status;
}

static mtprof_status check_options(const mtprof_dump_options *given, mtprof_dump_options *options)
{
    if (given == NULL) {
        return MTPROF_OK;
    }
    if (given->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "session_dump: struct_size of the options is 0");
    }
    mtb_read_struct(options, given); /* SES3 */
    if (options->last_steps >= MTPROF_SESSION_STEPS_MAX) {
        return mtb_fail(MTPROF_EINVAL, "session_dump: last_steps is %u, it must be below %d",
                        options->last_steps, MTPROF_SESSION_STEPS_MAX);
    }
    return MTPROF_OK;
}

mtprof_status mtprof_session_dump(mtprof_session *session, const char *path,
                                  const mtprof_dump_options *options, mtprof_dump_info *info)
{
    if (session == NULL || path == NULL || path[0] == '\0') {
        return mtb_fail(MTPROF_EINVAL, "session_dump: %s",
                        session == NULL ? "session is NULL" : "the path is empty");
    }
    if (info != NULL && info->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "session_dump: struct_size of the info is 0");
    }
    mtprof_dump_options full = {0};
    MT_TRY(check_options(options, &full));
    enum session_state found = mtprof__session_state_of(session);
    if (found == FOREIGN || found == STARTING || found == STOPPING) {
        return mtprof__session_refuse("session_dump", session, found);
    }
    mtprof_dump_info done = {0};
    MT_TRY(dump_to_path(session, path, &full, &done));
    if (info != NULL) {
        mtb_write_struct(info, &done);
    }
    return MTPROF_OK;
}
