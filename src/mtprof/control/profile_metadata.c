/* SPDX-License-Identifier: Apache-2.0
 *
 * What is written about a trace: keys and values, and its id.
 *
 * A pair that is added once a trace is prepared goes to its session directly. Others wait in a list
 * and are put into every window that opens: before that it is unknown which one was meant.
 *
 * Invariant
 *   PM1  Whether a pair waits is decided, and it is added to the list, under metadata_lock; the
 *        list is emitted under it as well, after the trace was prepared. So no pair falls between.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"
#include "mtprof/control/profile_impl.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum {
    TEXT_MAX = 16 << 20
};

static const struct {
    uint32_t flag;
    const char *key;
} flag_keys[] = {
    {MTPROF_PROFILE_MEMORY, "profile_memory"},       {MTPROF_PROFILE_WITH_STACK, "with_stack"},
    {MTPROF_PROFILE_RECORD_SHAPES, "record_shapes"}, {MTPROF_PROFILE_WITH_MODULES, "with_modules"},
    {MTPROF_PROFILE_WITH_FLOPS, "with_flops"},
};

/* What a caller gives, borrowed. */
typedef struct text_pair {
    const char *key, *value;
    size_t key_length, value_length;
    bool is_json;
} text_pair;

static void pair_free(mtprof__pair *pair)
{
    mtb_free(pair->key);
    mtb_free(pair->value);
}

/* Adds a pair, or replaces the one with the same key. Under metadata_lock. */
static int list_put(mtprof_profile *profile, const text_pair *given)
{
    mtprof__pair own = {
        .key = mtb_copy_text(given->key, given->key_length),
        .value = mtb_copy_text(given->value, given->value_length),
        .key_length = given->key_length,
        .value_length = given->value_length,
        .is_json = given->is_json,
    };
    mtprof__pair *place = NULL;
    for (size_t i = 0; i < profile->n_pairs && place == NULL; i++) {
        mtprof__pair *pair = &profile->pairs[i];
        if (pair->key_length == given->key_length &&
            memcmp(pair->key, given->key, given->key_length) == 0) {
            place = pair;
        }
    }
    bool fits = own.key != NULL && own.value != NULL &&
                (place != NULL || mtb_grow((void **)&profile->pairs, &profile->pairs_capacity,
                                           profile->n_pairs + 1, sizeof *profile->pairs));
    if (!fits) {
        pair_free(&own);
        return mtb_fail(MTPROF_ENOMEM, "metadata: no memory for %zu bytes",
                        given->key_length + given->value_length);
    }
    if (place != NULL) {
        pair_free(place);
    } else {
        place = &profile->pairs[profile->n_pairs++];
    }
    *place = own;
    return MTPROF_OK;
}

/* The session that a pair belongs to now, with a reference; NULL: it has to wait. */
static mtprof__profile_run *take_prepared(mtprof_profile *profile)
{
    mtprof__profile_lock(profile);
    mtprof__profile_run *run = profile->active;
    if (run == NULL && profile->n_results != 0) {
        run = profile->results[profile->n_results - 1];
    }
    if (run != NULL && !run->prepared) {
        run = NULL;
    }
    if (run != NULL) {
        run->refs++;
    }
    mtprof__profile_unlock(profile);
    return run;
}

static int put(mtprof_profile *profile, const text_pair *pair, bool preset)
{
    MT_TRY(mtprof__profile_check(profile, "metadata"));
    if (pair->key == NULL || pair->key_length == 0 || pair->value == NULL) {
        return mtb_fail(MTPROF_EINVAL, "metadata: the %s is missing",
                        pair->value == NULL ? "value" : "key");
    }
    if (pair->key_length > TEXT_MAX || pair->value_length > TEXT_MAX) {
        return mtb_fail(MTPROF_EINVAL, "metadata: %zu bytes of key and %zu of value, at most %d",
                        pair->key_length, pair->value_length, (int)TEXT_MAX);
    }
    pthread_mutex_lock(&profile->metadata_lock);
    mtprof__profile_run *run = preset ? NULL : take_prepared(profile);
    int status = run == NULL ? list_put(profile, pair) : MTPROF_OK;
    pthread_mutex_unlock(&profile->metadata_lock);
    if (run == NULL) {
        return status;
    }
    status = mtprof_session_add_metadata(run->session, pair->key, pair->key_length, pair->value,
                                         pair->value_length, pair->is_json);
    int closed = mtprof__run_drop(profile, run);
    return status != MTPROF_OK ? status : closed;
}

mtprof_status mtprof_profile_add_metadata(mtprof_profile *profile, const char *key,
                                          size_t key_length, const char *value, size_t value_length,
                                          bool is_json)
{
    text_pair pair = {key, value, key_length, value_length, is_json};
    return put(profile, &pair, false);
}

mtprof_status mtprof_profile_preset_metadata(mtprof_profile *profile, const char *key,
                                             size_t key_length, const char *value,
                                             size_t value_length, bool is_json)
{
    text_pair pair = {key, value, key_length, value_length, is_json};
    return put(profile, &pair, true);
}

int mtprof__metadata_emit(mtprof_profile *profile)
{
    mtprof_session *session = profile->active->session;
    int first = MTPROF_OK;
    for (size_t i = 0; i < MT_COUNT(flag_keys); i++) {
        const char *key = flag_keys[i].key;
        if ((profile->config.flags & flag_keys[i].flag) != 0) {
            int status = mtprof_session_add_metadata(session, key, strlen(key), "1", 1, true);
            first = first != MTPROF_OK ? first : status;
        }
    }
    pthread_mutex_lock(&profile->metadata_lock);
    for (size_t i = 0; i < profile->n_pairs; i++) {
        const mtprof__pair *pair = &profile->pairs[i];
        int status = mtprof_session_add_metadata(session, pair->key, pair->key_length, pair->value,
                                                 pair->value_length, pair->is_json);
        first = first != MTPROF_OK ? first : status;
    }
    pthread_mutex_unlock(&profile->metadata_lock);
    return first;
}

void mtprof__metadata_free(mtprof_profile *profile)
{
    for (size_t i = 0; i < profile->n_pairs; i++) {
        pair_free(&profile->pairs[i]);
    }
    mtb_free(profile->pairs);
}

/* ---- trace ids ------------------------------------------------------------------------------- */

/* A random UUID without its dashes. */
static void random_id(const mtprof_profile *profile, char *text)
{
    uint64_t bits[2];
    if (getrandom(bits, sizeof bits, GRND_NONBLOCK) != (ssize_t)sizeof bits) {
        /* Early in boot, or an old kernel: ids must be unique, not unpredictable. */
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        bits[0] = mtb_mix((uint64_t)now.tv_sec, (uint64_t)now.tv_nsec);
        bits[1] = mtb_mix(bits[0] ^ (uint64_t)getpid() << 32, (uintptr_t)profile ^ profile->serial);
    }
    bits[0] = (bits[0] & ~(uint64_t)0xF000) | 0x4000;                 /* version 4 */
    bits[1] = (bits[1] & ~((uint64_t)3 << 62)) | ((uint64_t)1 << 63); /* RFC 4122 */
    snprintf(text, MTPROF_TRACE_ID_BYTES, "%016llX%016llX", (unsigned long long)bits[0],
             (unsigned long long)bits[1]);
}

int mtprof__trace_id_make(mtprof_profile *profile, char *text)
{
    mtprof__profile_lock(profile);
    mtprof__trace_id_callback callback = profile->trace_id_callback;
    void *user = profile->trace_id_user;
    mtprof__profile_unlock(profile);
    if (callback == NULL) {
        random_id(profile, text);
        return MTPROF_OK;
    }
    memset(text, 0, MTPROF_TRACE_ID_BYTES);
    mtprof__callback_begin(profile);
    int result = callback(user, text, MTPROF_TRACE_ID_BYTES);
    mtprof__callback_end(profile);
    text[MTPROF_TRACE_ID_BYTES - 1] = '\0';
    return mtprof__callback_check(profile, "trace_id", result);
}

mtprof_status mtprof_profile_get_trace_id(mtprof_profile *profile, char *text, size_t size)
{
    if (text == NULL || size == 0) {
        return mtb_fail(MTPROF_EINVAL, "trace id: there is no room for it");
    }
    text[0] = '\0';
    MT_TRY(mtprof__profile_check(profile, "trace id"));
    mtprof__profile_lock(profile);
    snprintf(text, size, "%s", profile->trace_id);
    mtprof__profile_unlock(profile);
    return MTPROF_OK;
}

mtprof_status mtprof_profile_set_trace_id_callback(
    mtprof_profile *profile, int (*trace_id)(void *user, char *text, size_t size), void *user)
{
    MT_TRY(mtprof__profile_check(profile, "trace id callback"));
    mtprof__profile_lock(profile);
    profile->trace_id_callback = trace_id;
    profile->trace_id_user = user;
    mtprof__profile_unlock(profile);
    return MTPROF_OK;
}
