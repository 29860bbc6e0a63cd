/* SPDX-License-Identifier: Apache-2.0
 *
 * From a trace to what is kept of a rank: its place in the job and its calls of collectives.
 */
#include "base/fail.h"
#include "base/hash.h"
#include "mtprof/ranks/ranks_impl.h"

#include <mtprof/input_list.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WALL_CLOCK_LEAST INT64_C(1000000000000000000) /* 2001: earlier times are no wall clock's */
#define TIME_MOST        INT64_C(4600000000000000000)

int mtprof__ranks_no_memory(void)
{
    return mtb_fail(MTPROF_ENOMEM, "ranks: no memory");
}

int mtprof__ranks_leave_out(mtprof_ranks *r, const char *path, const char *format, ...)
{
    char why[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    mtprof__left_out item = {mtb_copy_text(path, strlen(path)), mtb_copy_text(why, strlen(why))};
    if (item.path == NULL || item.why == NULL ||
        !mtb_append(r->left_out, r->n_left_out, r->left_out_capacity, &item)) {
        mtb_free(item.path);
        mtb_free(item.why);
        return mtprof__ranks_no_memory();
    }
    return MTPROF_OK;
}

/* ---- whose trace it is ----------------------------------------------------------------------- */

static bool find_metadata(const mtprof_model *model, const char *key, mtprof_metadatum *out)
{
    for (uint32_t i = 0; mtprof_model_metadata(model, i, out); i++) {
        if (out->key.length == strlen(key) && memcmp(out->key.bytes, key, out->key.length) == 0) {
            return true;
        }
    }
    return false;
}

/* A whole number of a JSON object's own member; false: there is none. Members of objects inside it
 * do not count. */
static bool find_number(mtprof_text json, const char *key, uint32_t *out)
{
    size_t length = strlen(key), depth = 0;
    for (size_t i = 0; i < json.length; i++) {
        char c = json.bytes[i];
        depth += c == '{' || c == '[';
        depth -= (c == '}' || c == ']') && depth > 0;
        if (c != '"') {
            continue;
        }
        size_t first = ++i;
        while (i < json.length && json.bytes[i] != '"') {
            i += json.bytes[i] == '\\' ? 2 : 1;
        }
        if (depth != 1 || i >= json.length || i - first != length ||
            memcmp(json.bytes + first, key, length) != 0) {
            continue;
        }
        size_t at = i + 1;
        while (at < json.length && (json.bytes[at] == ' ' || json.bytes[at] == ':')) {
            at++;
        }
        uint64_t value = 0;
        size_t digits = at;
        while (digits < json.length && json.bytes[digits] >= '0' && json.bytes[digits] <= '9' &&
               value < INT32_MAX) {
            value = value * 10 + (uint64_t)(json.bytes[digits++] - '0');
        }
        *out = (uint32_t)value;
        return digits > at && value < INT32_MAX;
    }
    return false;
}

static int read_place(mtprof_ranks *r, const mtprof_model *model, mtprof__rank *rank)
{
    mtprof_metadatum item;
    rank->number = MTPROF__RANK_UNKNOWN;
    rank->job = (mtprof_text){"", 0};
    if (find_metadata(model, "distributedInfo", &item)) {
        uint32_t number;
        rank->number = find_number(item.text, "rank", &number) ? number : MTPROF__RANK_UNKNOWN;
        rank->world_size = find_number(item.text, "world_size", &number) ? number : 0;
    }
    if (find_metadata(model, "job_id", &item)) {
        char digits[32];
        mtprof_text text = item.text;
        if (item.type != MTPROF_META_TEXT) {
            int n = snprintf(digits, sizeof digits, "%lld", (long long)item.value);
            text = (mtprof_text){digits, (size_t)n};
        } else if (item.is_json != 0 && text.length >= 2 && text.bytes[0] == '"') {
            text = (mtprof_text){text.bytes + 1, text.length - 2}; /* a string */
        }
        rank->job.bytes = mtb_arena_copy_text(&r->texts, text.bytes, text.length);
        rank->job.length = text.length;
    }
    return rank->job.bytes != NULL ? MTPROF_OK : mtprof__ranks_no_memory();
}

/* ---- its calls ------------------------------------------------------------------------------- */

static bool same_kind(const void *context, uint32_t id, const void *key)
{
    const mtprof_ranks *r = context;
    const mtprof__call_kind *a = &r->kinds[id - 1], *b = key;
    return a->elements == b->elements && a->layer == b->layer && a->name.length == b->name.length &&
           memcmp(a->name.bytes, b->name.bytes, a->name.length) == 0;
}

static int intern_kind(mtprof_ranks *r, const mtprof__call_kind *kind, uint32_t *out)
{
    uint64_t hash = mtb_mix(mtb_hash_bytes(kind->name.bytes, kind->name.length),
                            kind->elements * 4 + kind->layer);
    uint32_t id = mtb_idmap_find(&r->kind_map, hash, same_kind, r, kind);
    if (id == 0) {
        mtprof__call_kind own = *kind;
        own.name.bytes = mtb_arena_copy_text(&r->texts, kind->name.bytes, kind->name.length);
        if (own.name.bytes == NULL ||
            !mtb_idmap_append(&r->kind_map, hash, r->kinds, r->n_kinds, r->kinds_capacity, &own)) {
            return mtprof__ranks_no_memory();
        }
        id = (uint32_t)r->n_kinds;
    }
    *out = id - 1;
    return MTPROF_OK;
}

/* Elements of all tensors of an input list. */
static uint64_t count_elements(const mtprof_model *model, uint32_t inputs)
{
    mtprof_input_walk walk = {.struct_size = sizeof walk};
    uint64_t sum = 0;
    if (inputs == 0 || !mtprof_model_inputs(model, inputs, &walk.words, &walk.n_words)) {
        return 0;
    }
    while (mtprof_input_next(&walk)) {
        uint64_t product = 1;
        for (uint32_t i = 0; walk.kind == MTPROF_INPUT_TENSOR && i < walk.n_sizes; i++) {
            product *= walk.sizes[i];
        }
        sum += walk.kind == MTPROF_INPUT_TENSOR ? product : 0;
    }
    return sum;
}

typedef struct source_columns {
    const int64_t *start, *end;
    const uint32_t *name, *inputs;
    const int32_t *step;
    const uint8_t *kind;
    uint64_t n;
} source_columns;

static int get_columns(mtprof_model *model, source_columns *c)
{
    const struct {
        enum mtprof_column_id id;
        const void **place;
    } wanted[] = {{MTPROF_COLUMN_START_NS, (const void **)&c->start},
                  {MTPROF_COLUMN_END_NS, (const void **)&c->end},
                  {MTPROF_COLUMN_NAME, (const void **)&c->name},
                  {MTPROF_COLUMN_STEP, (const void **)&c->step},
                  {MTPROF_COLUMN_KIND, (const void **)&c->kind},
                  {MTPROF_COLUMN_INPUTS, (const void **)&c->inputs}};
    for (size_t i = 0; i < MT_COUNT(wanted); i++) {
        mtprof_column column;
        MT_TRY(mtprof_model_get_column(model, wanted[i].id, &column));
        *wanted[i].place = column.data;
        c->n = i == 0 ? column.count : c->n;
    }
    return MTPROF_OK;
}

/* What is known of each name: 0 not looked at, 1 no collective, else 2 + layer, kernels apart. */
static int read_calls(mtprof_ranks *r, mtprof_model *model, mtprof__rank *rank)
{
    source_columns c = {0};
    mtprof_model_info info = {.struct_size = sizeof info};
    MT_TRY(get_columns(model, &c));
    MT_TRY(mtprof_model_get_info(model, &info));
    uint8_t *known = mtb_calloc((size_t)info.names * 2 + 2, 1);
    if (known == NULL) {
        return mtprof__ranks_no_memory();
    }
    int status = MTPROF_OK;
    for (uint64_t i = 0; i < c.n && status == MTPROF_OK; i++) {
        bool kernel = c.kind[i] == MTPROF_EVENT_KIND_KERNEL, synchronises = false;
        uint32_t name = c.name[i];
        uint8_t *look = &known[name < info.names ? (size_t)name * 2 + kernel : info.names * 2u];
        rank->has_steps = rank->has_steps || c.step[i] >= 0;
        if (*look == 1) {
            continue;
        }
        mtprof_text text = mtprof_model_name(model, name);
        uint32_t layer = mtprof_collective_layer_of(text, c.kind[i], &synchronises);
        *look = layer == MTPROF_LAYER_NONE ? 1 : 2;
        if (layer == MTPROF_LAYER_NONE || !synchronises || c.end[i] <= c.start[i]) {
            continue;
        }
        mtprof__call_kind kind = {text, c.inputs != NULL ? count_elements(model, c.inputs[i]) : 0,
                                  layer, synchronises};
        mtprof__call call = {.start_ns = (double)(c.start[i] - rank->origin_ns),
                             .end_ns = (double)(c.end[i] - rank->origin_ns),
                             .step = c.step[i]};
        status = intern_kind(r, &kind, &call.kind);
        if (status == MTPROF_OK &&
            !mtb_append(rank->calls, rank->n_calls, rank->calls_capacity, &call)) {
            status = mtprof__ranks_no_memory();
        }
    }
    mtb_free(known);
    return status;
}

static int read_rank(mtprof_ranks *r, mtprof_model *model, mtprof__rank *rank)
{
    mtprof_model_info info = {.struct_size = sizeof info};
    mtprof_health health = {.struct_size = sizeof health};
    MT_TRY(mtprof_model_get_info(model, &info));
    int64_t start = info.start_ns, offset = info.real_offset_ns;
    rank->origin_ns = start > -TIME_MOST && start < TIME_MOST ? start : 0;
    rank->end_ns = info.end_ns > rank->origin_ns ? info.end_ns : rank->origin_ns;
    rank->real_offset_ns = offset > -TIME_MOST && offset < TIME_MOST ? offset : 0;
    rank->has_wall_clock = rank->real_offset_ns + rank->origin_ns > WALL_CLOCK_LEAST;
    rank->pid = info.pid;
    MT_TRY(read_place(r, model, rank));
    MT_TRY(read_calls(r, model, rank));
    MT_TRY(mtprof_model_get_health(model, &health));
    rank->lost = health.lost;
    return MTPROF_OK;
}

static void rank_fini(mtprof__rank *rank)
{
    mtb_free(rank->path);
    mtb_free(rank->calls);
}

int mtprof__ranks_take(mtprof_ranks *r, const char *path)
{
    mtprof_model *model = NULL;
    mtprof_damage damage = {.struct_size = sizeof damage};
    mtprof__rank rank = {.path = NULL};
    if (access(path, F_OK) != 0) {
        return mtprof__ranks_leave_out(r, path, "no such file");
    }
    mtprof_model_options options = {
        .struct_size = sizeof options, .progress = r->options.progress, .user = r->options.user};
    int status = mtprof_model_open(path, &options, &model);
    if (status == MTPROF_OK) {
        status = mtprof_model_get_damage(model, &damage);
    }
    if (status == MTPROF_OK && damage.problems > 0 && r->options.keep_damaged == 0) {
        status = mtprof__ranks_leave_out(r, path, "damaged in %llu place%s, the first at byte %llu",
                                         (unsigned long long)damage.problems,
                                         damage.problems == 1 ? "" : "s",
                                         (unsigned long long)damage.offset);
        mtprof_model_free(model);
        return status;
    }
    if (status == MTPROF_OK) {
        status = read_rank(r, model, &rank);
    }
    mtprof_model_free(model);
    if (status == MTPROF_OK) {
        rank.path = mtb_copy_text(path, strlen(path));
        if (rank.path == NULL || !mtb_append(r->ranks, r->n, r->capacity, &rank)) {
            status = mtprof__ranks_no_memory();
        }
    }
    if (status != MTPROF_OK) {
        rank_fini(&rank);
    }
    if (status != MTPROF_OK && status != MTPROF_ENOMEM && status != MTPROF_ECALLBACK) {
        return mtprof__ranks_leave_out(r, path, "%s", mtb_last_failure()->message);
    }
    return status;
}

/* ---- which of them --------------------------------------------------------------------------- */

static bool same_job(const mtprof__rank *a, const mtprof__rank *b)
{
    return a->world_size == b->world_size && a->job.length == b->job.length &&
           memcmp(a->job.bytes, b->job.bytes, a->job.length) == 0;
}

static void drop(mtprof_ranks *r, size_t index)
{
    rank_fini(&r->ranks[index]);
    r->n--;
    memmove(&r->ranks[index], &r->ranks[index + 1], (r->n - index) * sizeof *r->ranks);
}

static int compare_ranks(const void *a, const void *b)
{
    const mtprof__rank *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* Of several jobs the one with the most traces stays; of equals the first. */
static int drop_other_jobs(mtprof_ranks *r)
{
    size_t best = 0, most = 0;
    for (size_t i = 0; i < r->n; i++) {
        size_t count = 0;
        for (size_t k = 0; k < r->n && (i == 0 || !same_job(&r->ranks[i], &r->ranks[best])); k++) {
            count += same_job(&r->ranks[i], &r->ranks[k]);
        }
        if (count > most) {
            best = i;
            most = count;
        }
    }
    mtprof__rank job = r->n > 0 ? r->ranks[best] : (mtprof__rank){.path = NULL};
    for (size_t i = 0; i < r->n;) {
        const mtprof__rank *rank = &r->ranks[i];
        if (same_job(rank, &job)) {
            i++;
            continue;
        }
        MT_TRY(mtprof__ranks_leave_out(
            r, rank->path, "of another job: %.*s of %u ranks, the others are job %.*s of %u ranks",
            (int)(rank->job.length < 60 ? rank->job.length : 60),
            rank->job.length > 0 ? rank->job.bytes : "none", rank->world_size,
            (int)(job.job.length < 60 ? job.job.length : 60),
            job.job.length > 0 ? job.job.bytes : "none", job.world_size));
        drop(r, i);
    }
    return MTPROF_OK;
}

int mtprof__ranks_choose(mtprof_ranks *r)
{
    bool any = false;
    MT_TRY(drop_other_jobs(r));
    for (size_t i = 0; i < r->n; i++) {
        any = any || r->ranks[i].number != MTPROF__RANK_UNKNOWN;
    }
    for (size_t i = 0; i < r->n;) {
        mtprof__rank *rank = &r->ranks[i];
        if (!any) {
            rank->number = (uint32_t)i; /* nobody says: by their order */
        }
        if (rank->number == MTPROF__RANK_UNKNOWN) {
            MT_TRY(mtprof__ranks_leave_out(r, rank->path, "it does not say which rank it is"));
            drop(r, i);
        } else {
            i++;
        }
    }
    if (r->n > 1) {
        qsort(r->ranks, r->n, sizeof *r->ranks, compare_ranks);
    }
    for (size_t i = 1; i < r->n;) {
        if (r->ranks[i].number == r->ranks[i - 1].number) {
            MT_TRY(mtprof__ranks_leave_out(r, r->ranks[i].path, "rank %u is there already: %s",
                                           r->ranks[i].number, r->ranks[i - 1].path));
            drop(r, i);
        } else {
            i++;
        }
    }
    return MTPROF_OK;
}
