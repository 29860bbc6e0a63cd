/* SPDX-License-Identifier: Apache-2.0
 *
 * Models: opening, asking, freeing. What they are made of comes from prepare.c and build.c.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "base/struct_size.h"
#include "mtprof/model/events/event.h"
#include "mtprof/model/model_impl.h"
#include "mtprof/model/prepare.h"
#include "mtprof/read/reader_impl.h"

#include <string.h>

/* ---- making ---------------------------------------------------------------------------------- */

static int check_options(const mtprof_model_options *options)
{
    if (options == NULL) {
        return MTPROF_OK;
    }
    if (options->struct_size == 0 || options->struct_size > 4096) {
        return mtb_fail(MTPROF_EINVAL, "make model: options.struct_size is %u",
                        options->struct_size);
    }
    return MTPROF_OK;
}

/* NULL: no memory. The options have been checked. */
static mtprof_model *new_model(const mtprof_model_options *options)
{
    mtprof_model *model = mtb_calloc(1, sizeof *model);
    if (model == NULL) {
        return NULL;
    }
    if (options != NULL) {
        mtb_read_struct(&model->options, options);
    }
    mtb_lock_init(&model->lock, MTB_RANK_MODEL);
    (void)pthread_cond_init(&model->change, NULL);
    return model;
}

mtprof_status mtprof_model_take_reader(mtprof_reader *reader, const mtprof_model_options *options,
                                       mtprof_model **out)
{
    if (out == NULL) {
        return mtb_fail(MTPROF_EINVAL, "make model: out is NULL");
    }
    *out = NULL;
    if (reader == NULL) {
        return mtb_fail(MTPROF_EINVAL, "make model: reader is NULL");
    }
    MT_TRY(check_options(options));
    mtprof_model *model = new_model(options);
    if (model == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "make model: no memory for the model");
    }
    model->reader = reader;
    int status = mtprof__dictionary_init(&model->dictionary, reader);
    if (status == MTPROF_OK) {
        status = mtprof__model_prepare(model);
    }
    if (status != MTPROF_OK) {
        model->reader = NULL; /* still the caller's */
        mtprof_model_free(model);
        return status;
    }
    *out = model;
    return MTPROF_OK;
}

int mtprof__model_new_foreign(const mtprof_model_options *options, mtprof_model **out)
{
    *out = NULL;
    MT_TRY(check_options(options));
    mtprof_model *model = new_model(options);
    if (model == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "make model: no memory for the model");
    }
    int status = mtprof__dictionary_init(&model->dictionary, NULL);
    if (status != MTPROF_OK) {
        mtprof_model_free(model);
        return status;
    }
    model->info.foreign = 1;
    model->info.closed = 1;
    *out = model;
    return MTPROF_OK;
}

mtprof_status mtprof_model_from_session(mtprof_session *session,
                                        const mtprof_model_options *options, mtprof_model **out)
{
    mtprof_bytes bytes = {.struct_size = sizeof bytes};
    mtprof_reader *reader = NULL;
    if (out == NULL) {
        return mtb_fail(MTPROF_EINVAL, "make model: out is NULL");
    }
    *out = NULL;
    MT_TRY(check_options(options));
    MT_TRY(mtprof_session_get_bytes(session, &bytes));
    MT_TRY(mtprof_reader_open_bytes(&bytes, &reader));
    int status = mtprof_model_take_reader(reader, options, out);
    if (status != MTPROF_OK) {
        mtprof_reader_close(reader);
    }
    return status;
}

mtprof_status mtprof_model_from_profile(mtprof_profile *profile,
                                        const mtprof_model_options *options, mtprof_model **out)
{
    mtprof_window window = {.struct_size = sizeof window};
    mtprof_model_options own = {.struct_size = sizeof own};
    if (out == NULL) {
        return mtb_fail(MTPROF_EINVAL, "make model: out is NULL");
    }
    *out = NULL;
    MT_TRY(check_options(options));
    if (options != NULL) {
        mtb_read_struct(&own, options);
        own.struct_size = sizeof own;
    }
    MT_TRY(mtprof_profile_get_window(profile, &window));
    uint32_t session = own.session != 0 ? own.session : window.sessions;
    mtprof_session *held = session > 0 ? mtprof_profile_session(profile, session - 1) : NULL;
    if (window.results == MTPROF_RESULTS_NONE || held == NULL) {
        return mtb_fail(MTPROF_ESTATE, "make model: the profile has no results (session %u of %u)",
                        session, window.sessions);
    }
    if (session == window.sessions && own.first_window == 0 && own.last_window == 0) {
        own.first_window = window.first_window;
        own.discarded =
            1; /* the latest window counts even if it was discarded (torch-contract 1.4.3) */
    }
    return mtprof_model_from_session(held, &own, out);
}

void mtprof_model_free(mtprof_model *model)
{
    if (model == NULL) {
        return;
    }
    mtprof__model_derived_fini(model);
    mtprof__columns_fini(&model->columns);
    mtprof__dictionary_fini(&model->dictionary);
    mtprof_reader_close(model->reader);
    mtb_free(model->epochs);
    mtb_free(model->steps);
    mtb_free(model->unrecorded);
    mtb_free(model->points);
    (void)pthread_cond_destroy(&model->change);
    mtb_lock_fini(&model->lock);
    mtb_free(model);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Structs of callers may be shorter or longer than ours. */
static int copy_out(void *to, uint32_t size, const void *from, size_t known, const char *what)
{
    if (size == 0) {
        return mtb_fail(MTPROF_EINVAL, "%s: struct_size is 0", what);
    }
    mtb_struct_out(to, size, from, known);
    return MTPROF_OK;
}

mtprof_status mtprof_model_get_info(const mtprof_model *model, mtprof_model_info *info)
{
    mtprof_model_info own = model->info;
    own.names = __atomic_load_n(&model->dictionary.n_names, __ATOMIC_ACQUIRE);
    own.tracks = (uint32_t)__atomic_load_n(&model->dictionary.n_tracks, __ATOMIC_ACQUIRE);
    own.devices = (uint32_t)__atomic_load_n(&model->dictionary.n_devices, __ATOMIC_ACQUIRE);
    own.frames = (uint32_t)model->dictionary.n_frames;
    return copy_out(info, info->struct_size, &own, sizeof own, "model info");
}

/* Makes the columns once (MI1). After a failure the next call tries again: memory may be available
 * by then, or the caller may not cancel. No lock is held meanwhile, because the progress function
 * is the caller's code. */
static int ensure_built(mtprof_model *model)
{
    if (__atomic_load_n(&model->built, __ATOMIC_ACQUIRE) != 0) {
        return MTPROF_OK;
    }
    mtb_lock_acquire(&model->lock);
    while (model->building && !pthread_equal(model->builder, pthread_self())) {
        (void)pthread_cond_wait(&model->change, &model->lock.mutex);
    }
    if (model->building) {
        mtb_lock_release(&model->lock);
        return mtb_fail(MTPROF_EBUSY, "make model: asked for from its own progress function");
    }
    int status = MTPROF_OK;
    if (__atomic_load_n(&model->built, __ATOMIC_RELAXED) == 0) {
        model->building = true;
        model->builder = pthread_self();
        mtb_lock_release(&model->lock);
        status = model->reader != NULL ? mtprof__model_build(model) : MTPROF_OK;
        model->findings.events = model->columns.n;
        mtb_lock_acquire(&model->lock);
        model->building = false;
        if (status == MTPROF_OK) {
            __atomic_store_n(&model->built, 1, __ATOMIC_RELEASE);
        }
        (void)pthread_cond_broadcast(&model->change);
    }
    mtb_lock_release(&model->lock);
    return status;
}

int mtprof__model_ask(const mtprof_model *model, const char *what)
{
    const mtprof_model_options *options = &model->options;
    if (options->progress != NULL && options->progress(options->user, what, 0, 0) != 0) {
        return mtb_fail(MTPROF_ECALLBACK, "make model: given up on request");
    }
    return MTPROF_OK;
}

mtprof_status mtprof_model_get_findings(mtprof_model *model, mtprof_model_findings *findings)
{
    MT_TRY(ensure_built(model));
    mtprof_model_findings own = model->findings;
    own.left_out += __atomic_load_n(&model->dictionary.devices_merged, __ATOMIC_RELAXED);
    return copy_out(findings, findings->struct_size, &own, sizeof own, "model findings");
}

static void health_of_trace(const mtprof_model *model, mtprof_health *health)
{
    const mtprof_trace_info *info = &model->reader->info;
    const uint64_t *counters = info->health;
    health->threads = mtprof_reader_thread_count(model->reader);
    health->begins = counters[MTPROF_HEALTH_BEGINS];
    health->others = counters[MTPROF_HEALTH_OTHERS];
    health->truncated = counters[MTPROF_HEALTH_TRUNCATED];
    health->launches = counters[MTPROF_HEALTH_LAUNCHES];
    health->activities = counters[MTPROF_HEALTH_ACTIVITIES];
    for (uint32_t i = 0; i < MTPROF_HEALTH_LOST_END; i++) {
        health->lost_by[i] = counters[i];
        health->lost += counters[i];
    }
    health->evicted = counters[MTPROF_HEALTH_RING_BEGINS];
    health->stalls = counters[MTPROF_HEALTH_STALLS];
    health->busy_at_stop = counters[MTPROF_HEALTH_BUSY_AT_STOP];
    health->texts_cut = counters[MTPROF_HEALTH_TEXTS_CUT];
    health->clock_back = counters[MTPROF_HEALTH_CLOCK_BACK];
    health->stacks_missed = counters[MTPROF_HEALTH_STACKS_MISSED];
    health->bytes = info->file_bytes;
    uint64_t trouble = counters[MTPROF_HEALTH_WRITTEN_BEHIND];
    health->written_behind = (trouble & MTPROF_FILE_BEHIND) != 0;
    health->unlocked = (trouble & MTPROF_FILE_UNLOCKED) != 0;
    /* 1/256 ticks, times nanoseconds per tick with 56 fraction bits, in picoseconds */
    unsigned __int128 cost = (unsigned __int128)info->begin_cost_ticks * info->tick_period * 1000;
    health->pair_cost_ps = (uint64_t)(cost >> (MTPROF_PERIOD_SHIFT + 8));
}

/* The same of the limit of the overhead. */
static void limit_of_trace(const mtprof_model *model, mtprof_health *health)
{
    mtprof_limit_info limit;
    mtprof_unrecorded_info out;
    for (uint32_t i = 0; mtprof_reader_limit(model->reader, i, &limit); i++) {
        health->limit_ppm = limit.limit_ppm;
        health->limit_level = limit.level > health->limit_level ? limit.level : health->limit_level;
        health->limit_changes += limit.level != limit.before;
        health->own_cost_ns = limit.cost_ns;
        health->own_cost_of_ns = limit.base_ns;
    }
    for (uint32_t i = 0; mtprof_reader_unrecorded(model->reader, i, &out); i++) {
        if (out.what == MTPROF_UNRECORDED_PAYLOADS) {
            health->without_payload = mtb_add_counts(health->without_payload, out.count);
            continue;
        }
        health->unrecorded = mtb_add_counts(health->unrecorded, out.count);
        if (out.what == MTPROF_UNRECORDED_ESTIMATE) {
            health->unrecorded_estimated = mtb_add_counts(health->unrecorded_estimated, out.count);
        }
    }
}

mtprof_status mtprof_model_get_health(mtprof_model *model, mtprof_health *health)
{
    mtprof_health own = {.struct_size = sizeof own};
    MT_TRY(ensure_built(model));
    if (model->reader != NULL) {
        health_of_trace(model, &own);
        limit_of_trace(model, &own);
        own.unmatched = model->findings.unmatched;
        if (model->findings.truncated > own.truncated) {
            own.truncated = model->findings.truncated; /* the process died before it could count */
        }
    }
    own.problems = model->findings.problems;
    own.problem_bytes = model->findings.problem_bytes;
    own.problem_offset = model->findings.problem_offset;
    return copy_out(health, health->struct_size, &own, sizeof own, "model health");
}

mtprof_status mtprof_model_get_column(mtprof_model *model, enum mtprof_column_id id,
                                      mtprof_column *out)
{
    static const uint64_t nothing = 0;
    memset(out, 0, sizeof *out);
    if ((uint32_t)id >= MTPROF_COLUMN_COUNT) {
        return mtb_fail(MTPROF_EINVAL, "model column: %u, expected less than %u", (uint32_t)id,
                        MTPROF_COLUMN_COUNT);
    }
    MT_TRY(ensure_built(model));
    const void *data = NULL;
    if (id <= MTPROF_COLUMN_FLAGS) {
        data = *mtprof__column_slot(&model->columns, id);
        data = data != NULL ? data : &nothing;
    } else if (model->columns.extra[id] != NULL) {
        data = model->columns.extra[id];
    } else if (id >= MTPROF_COLUMN_DEPTH) {
        MT_TRY(mtprof__model_derive(model, id, &data));
    }
    if (data != NULL) {
        out->data = data;
        out->count = model->columns.n;
        out->type = mtprof__column_type(id);
        out->item_bytes = (uint32_t)mtprof__column_item_bytes(id);
    }
    return MTPROF_OK;
}
