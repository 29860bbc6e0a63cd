/* SPDX-License-Identifier: Apache-2.0
 *
 * Strings and their ids: of the process (places in the program, mtprof_intern) and of a recording
 * (dynamic names). See recording.h for the rules RC1 to RC3.
 */
#include "base/hash.h"
#include "base/pages.h"
#include "mtprof/record/hot/batch.h"
#include "mtprof/record/recording.h"

#include <string.h>

mtb_lock mtprof__names_lock = MTB_LOCK_INIT(MTB_RANK_NAMES);
uint32_t mtprof__strings_tag;

/* The process's strings; id = index + 1. */
static struct {
    mtb_arena arena;
    mtb_idmap map;
    mtprof__text_entry *entries;
    size_t count, capacity;
} process;

enum {
    NAME_CACHE = 128 /* a power of two */
};

struct mtprof__names_cache {
    struct {
        uint64_t hash;
        const char *text; /* in the recording's arena */
        uint32_t length, id;
    } at[NAME_CACHE];
};

static bool same_text(const void *context, uint32_t id, const void *key)
{
    const mtprof__text_entry *entries = context;
    const mtprof__text_entry *wanted = key;
    const mtprof__text_entry *there = &entries[(id & ~MTPROF__DYNAMIC) - 1];
    return there->length == wanted->length && there->file == wanted->file &&
           there->line == wanted->line && memcmp(there->text, wanted->text, wanted->length) == 0;
}

static uint64_t hash_text(const mtprof__text_entry *entry)
{
    uint64_t hash = mtb_hash_bytes(entry->text, entry->length);
    return entry->file == 0 ? hash : mtb_mix(hash, entry->file | (uint64_t)entry->line << 32);
}

/* Writes DEF_STRING. Caller holds the lock. */
static bool define_string(mtprof__recording *recording, uint32_t id,
                          const mtprof__text_entry *entry, uint32_t *cause)
{
    uint64_t text_words = mtprof__text_words(entry->length);
    uint64_t body = 1 + (entry->file != 0) + text_words;
    bool extended = 1 + body > MTPROF__RECORD_MAX;
    uint64_t total = 1 + extended + body;
    uint64_t local[64];
    uint64_t *words = total <= MT_COUNT(local) ? local : mtb_pages_take(total * 8);
    if (words == NULL) {
        *cause = MTPROF_LOST_MEMORY;
        return false;
    }
    uint64_t *at = words;
    *at++ = mtprof__word0(MTPROF_REC_DEF_STRING, extended ? 255 : (uint32_t)total, entry->file != 0,
                          id);
    if (extended) {
        *at++ = total;
    }
    *at++ = entry->length;
    if (entry->file != 0) {
        *at++ = entry->file | (uint64_t)entry->line << 32;
    }
    mtprof__put_text(at, entry->text, entry->length);
    bool stored = mtprof__stream_append(recording->store, &recording->definitions, words, total,
                                        mtprof__ticks(), cause);
    if (words != local) {
        mtb_pages_give(words, total * 8);
    }
    return stored;
}

/* The id of a string of the process. Caller holds the lock. 0: refused, and *cause says why. */
static uint32_t intern(const char *text, size_t length, uint32_t file, uint32_t line,
                       uint32_t *cause)
{
    mtprof__text_entry entry = {text, (uint32_t)length, file, line};
    uint64_t hash = hash_text(&entry);
    uint32_t id = mtb_idmap_find(&process.map, hash, same_text, process.entries, &entry);
    if (id != 0) {
        return id;
    }
    id = (uint32_t)process.count + 1;
    *cause = MTPROF_LOST_MEMORY;
    mtb_arena before = process.arena;
    if (id >= MTPROF__DYNAMIC || !mtb_idmap_reserve(&process.map) ||
        !mtb_pages_grow((void **)&process.entries, &process.capacity, process.count + 1,
                        sizeof *process.entries) ||
        (entry.text = mtb_arena_copy_text(&process.arena, text, length)) == NULL) {
        return 0;
    }
    /* RC1: into the trace first. A string that does not get there gets no id. */
    if (mtprof__current != NULL && !define_string(mtprof__current, id, &entry, cause)) {
        mtb_arena_undo(&process.arena, before);
        return 0;
    }
    process.entries[process.count++] = entry;
    mtb_idmap_add(&process.map, hash, id); /* there is room */
    return id;
}

uint32_t mtprof_intern(const char *text, size_t length)
{
    return mtb_locks_held() ? 0 : mtprof__intern(text, length);
}

uint32_t mtprof__intern(const char *text, size_t length)
{
    if (text == NULL) {
        return 0;
    }
    if (length > MTPROF__TEXT_MAX) {
        length = MTPROF__TEXT_MAX;
        mtprof__count(MTPROF_HEALTH_TEXTS_CUT, 1);
    }
    mtb_lock_acquire(&mtprof__names_lock);
    uint32_t cause;
    uint32_t id = intern(text, length, 0, 0, &cause);
    mtb_lock_release(&mtprof__names_lock);
    return id;
}

uint32_t mtprof__lasting_string(mtprof__recording *recording, uint32_t id)
{
    if (id < MTPROF__DYNAMIC) {
        return id;
    }
    size_t at = (id & ~MTPROF__DYNAMIC) - 1;
    uint32_t cause;
    mtb_lock_acquire(&mtprof__names_lock);
    const mtprof__text_entry *entry = at < recording->n_names ? &recording->names[at] : NULL;
    uint32_t lasting = entry != NULL ? intern(entry->text, entry->length, 0, 0, &cause) : 0;
    mtb_lock_release(&mtprof__names_lock);
    return lasting;
}

bool mtprof__names_define_all(mtprof__recording *recording, uint32_t *cause)
{
    for (size_t i = 0; i < process.count; i++) {
        if (!define_string(recording, (uint32_t)i + 1, &process.entries[i], cause)) {
            return false;
        }
    }
    return true;
}

uint16_t mtprof__wants_of(uint32_t flags)
{
    uint32_t wants = MTPROF_WANT_SCOPES;
    if ((flags & MTPROF_KIND_MASK) == MTPROF_KIND_OP) {
        wants = MTPROF_WANT_OPS;
    } else if ((flags & MTPROF_KIND_MASK) == MTPROF_KIND_RUNTIME) {
        wants = MTPROF_WANT_RUNTIME;
    }
    return (uint16_t)((flags & (MTPROF_FLAG_DEVICE | MTPROF_FLAG_LAUNCH)) != 0
                          ? wants | MTPROF_WANT_DEVICE
                          : wants);
}

bool mtprof__site_register(mtprof_site *site)
{
    if (mtprof__site_word(site) != 0) {
        return true;
    }
    if (mtb_locks_held()) {
        mtprof__lose(MTPROF_LOST_NESTED, 1);
        return false;
    }
    if (site->struct_size < sizeof *site) { /* no site, or not made by MTPROF_SITE_INIT() */
        mtprof__lose(MTPROF_LOST_TOO_LARGE, 1);
        return false;
    }
    const char *name = site->name != NULL ? site->name : "(unnamed)";
    size_t length = strlen(name);
    length = length > MTPROF__TEXT_MAX ? MTPROF__TEXT_MAX : length;
    mtb_lock_acquire(&mtprof__names_lock);
    uint32_t cause = MTPROF_LOST_MEMORY;
    uint32_t file = site->file != NULL ? intern(site->file, strlen(site->file), 0, 0, &cause) : 0;
    uint32_t id = intern(name, length, file, file != 0 ? site->line : 0, &cause);
    mtb_lock_release(&mtprof__names_lock);
    if (id == 0) {
        mtprof__lose(cause, 1);
        return false;
    }
    MTPROF__SET(site->wants, mtprof__wants_of(site->flags));
    /* Release: pairs with the acquire of mtprof__site_word(). */
    __atomic_store_n(&site->word,
                     mtprof__word0(MTPROF_REC_BEGIN, 2, mtprof__begin_flags(site->flags), id),
                     __ATOMIC_RELEASE);
    return true;
}

/* What a string of the recording is for: each kind has its bound. */
enum use {
    USE_NAME, /* of an event, which can hold it in full */
    USE_TEXT  /* anything else */
};

/* Finds or adds a string of the recording. Caller holds the lock. NULL: not interned. */
static const mtprof__text_entry *add_name(mtprof__recording *recording, enum use use,
                                          const char *text, size_t length, uint64_t hash,
                                          uint32_t *id)
{
    mtprof__text_entry entry = {text, (uint32_t)length, 0, 0};
    *id = mtb_idmap_find(&recording->name_map, hash, same_text, recording->names, &entry);
    if (*id != 0) {
        return &recording->names[(*id & ~MTPROF__DYNAMIC) - 1];
    }
    uint32_t cause;
    uint32_t fresh = MTPROF__DYNAMIC | (uint32_t)(recording->n_names + 1);
    mtb_arena before = recording->arena;
    size_t used = use == USE_TEXT ? recording->n_texts : recording->n_names - recording->n_texts;
    uint64_t words = 2 + mtprof__text_words(length);
    if (used >= MTPROF__BOUND || !mtprof__definition_fits(recording, words) ||
        !mtb_idmap_reserve(&recording->name_map) ||
        !mtb_pages_grow((void **)&recording->names, &recording->names_capacity,
                        recording->n_names + 1, sizeof *recording->names) ||
        (entry.text = mtb_arena_copy_text(&recording->arena, text, length)) == NULL) {
        return NULL;
    }
    if (!define_string(recording, fresh, &entry, &cause)) {
        mtb_arena_undo(&recording->arena, before);
        return NULL;
    }
    recording->names[recording->n_names++] = entry;
    recording->n_texts += use == USE_TEXT;
    recording->own_bytes += words * 8;
    mtb_idmap_add(&recording->name_map, hash, fresh); /* there is room */
    *id = fresh;
    return &recording->names[recording->n_names - 1];
}

uint32_t mtprof__recording_name(mtprof__recording *recording, const char *text, size_t length)
{
    if (length > MTPROF__TEXT_MAX) {
        return 0;
    }
    uint32_t id = 0;
    mtb_lock_acquire(&mtprof__names_lock);
    add_name(recording, USE_NAME, text, length, mtb_hash_bytes(text, length), &id);
    mtb_lock_release(&mtprof__names_lock);
    return id;
}

bool mtprof__define_thread(mtprof__recording *recording, const mtprof__writer *w, uint32_t *cause)
{
    uint32_t name = 0;
    size_t length = strlen(w->name);
    if (length > 0) {
        mtb_lock_acquire(&mtprof__names_lock);
        if (add_name(recording, USE_TEXT, w->name, length, mtb_hash_bytes(w->name, length),
                     &name) == NULL) {
            mtprof__store_count(recording->store, MTPROF_HEALTH_TEXTS_CUT, 1);
        }
        mtb_lock_release(&mtprof__names_lock);
    }
    uint64_t record[4] = {mtprof__word0(MTPROF_REC_DEF_THREAD, 4, 0, w->thread), w->os_id,
                          w->pthread_id, name};
    return mtprof__definition_append(recording, record, 4, cause);
}

/* A string's id by this thread's cache, or the recording's table. */
static uint32_t find_string(mtprof__writer *w, enum use use, const char *text, size_t length)
{
    if (length > MTPROF__TEXT_MAX) {
        return 0;
    }
    uint64_t hash = mtb_hash_bytes(text, length);
    if (w->names == NULL) {
        w->names = mtb_pages_take(sizeof *w->names);
    }
    size_t at = hash & (NAME_CACHE - 1);
    if (w->names != NULL && w->names->at[at].hash == hash && w->names->at[at].length == length &&
        w->names->at[at].text != NULL && memcmp(w->names->at[at].text, text, length) == 0) {
        return w->names->at[at].id;
    }
    if (mtb_locks_held()) {
        return 0;
    }
    uint32_t id;
    mtb_lock_acquire(&mtprof__names_lock);
    const mtprof__text_entry *entry = add_name(w->recording, use, text, length, hash, &id);
    if (entry != NULL && w->names != NULL) {
        w->names->at[at].hash = hash;
        w->names->at[at].text = entry->text;
        w->names->at[at].length = entry->length;
        w->names->at[at].id = id;
    }
    mtb_lock_release(&mtprof__names_lock);
    return entry != NULL ? id : 0;
}

uint32_t mtprof__dynamic_name(mtprof__writer *w, const char *text, size_t length)
{
    return find_string(w, USE_NAME, text, length);
}

uint32_t mtprof__dynamic_text(mtprof__writer *w, const char *text, size_t length)
{
    return find_string(w, USE_TEXT, text, length);
}

uint32_t mtprof_intern_here(const char *text, size_t length)
{
    uint64_t state;
    mtprof__writer *w = text != NULL && mtprof__load_state() != 0 && !mtb_locks_held()
                            ? mtprof__enter_attached(&state, 0)
                            : NULL;
    if (w == NULL) {
        return 0;
    }
    bool cut = length > MTPROF__TEXT_MAX;
    uint32_t id = mtprof__dynamic_text(w, text, cut ? MTPROF__TEXT_MAX : length);
    uint32_t tag = (uint32_t)w->recording->serial & MTPROF__TAG_MASK;
    mtprof__leave(w);
    if (cut || id == 0) {
        mtprof__count(MTPROF_HEALTH_TEXTS_CUT, 1);
    }
    return id != 0 ? id | tag << MTPROF__TAG_SHIFT : 0;
}

void mtprof__names_cache_reset(mtprof__writer *w)
{
    if (w->names != NULL) {
        memset(w->names, 0, sizeof *w->names);
    }
}
