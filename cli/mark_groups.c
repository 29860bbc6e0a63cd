/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks in groups, see mark_groups.h. A group is kept for each name that occurs, nothing for each
 * mark.
 */
#include "cli/mark_groups.h"

#include "cli/commands/info_facts.h"
#include "cli/term.h"
#include "cli/units.h"

#include <math.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum section {
    SECTION_COUNTERS = 0,
    SECTION_INSTANTS,
    SECTION_FLOWS,
    SECTION_METADATA,
    SECTION_COUNT
};

enum {
    NUMBER = 11, /* columns of a number, with the blank before it */
    LEAST_NAME = 16
};

typedef struct group {
    mtprof_text name, key; /* key: METADATA; texts are the group's */
    uint64_t count, starts, ends;
    double least, most, sum, last;
    int64_t first_ns, last_ns;
    mtprof_text value; /* METADATA: the first one as text */
    uint32_t section;
    bool differs, is_number;
} group;

typedef struct gathering {
    mtprof_model *model;
    void *tree; /* of groups, by section, name and key */
    group **groups;
    size_t n, room;
    int64_t start_ns;
    bool no_memory;
} gathering;

/* ---- groups ---------------------------------------------------------------------------------- */

static int compare_texts(mtprof_text a, mtprof_text b)
{
    size_t both = a.length < b.length ? a.length : b.length;
    int order = both > 0 ? memcmp(a.bytes, b.bytes, both) : 0;
    return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

static int compare_groups(const void *a, const void *b)
{
    const group *x = a, *y = b;
    if (x->section != y->section) {
        return x->section < y->section ? -1 : 1;
    }
    int order = compare_texts(x->name, y->name);
    return order != 0 ? order : compare_texts(x->key, y->key);
}

static bool copy_text(mtprof_text *text)
{
    char *copy = malloc(text->length + 1);
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, text->bytes, text->length);
    copy[text->length] = '\0';
    text->bytes = copy;
    return true;
}

static void free_group(group *g)
{
    free((void *)(uintptr_t)g->name.bytes);
    free((void *)(uintptr_t)g->key.bytes);
    free((void *)(uintptr_t)g->value.bytes);
    free(g);
}

static group *new_group(gathering *all, const group *key)
{
    if (all->n == all->room) {
        size_t room = all->room == 0 ? 64 : 2 * all->room;
        group **groups = realloc(all->groups, room * sizeof(group *));
        if (groups == NULL) {
            return NULL;
        }
        all->groups = groups;
        all->room = room;
    }
    group *g = calloc(1, sizeof *g);
    if (g == NULL) {
        return NULL;
    }
    *g = (group){.section = key->section,
                 .name = key->name,
                 .key = key->key,
                 .least = INFINITY,
                 .most = -INFINITY,
                 .is_number = true};
    if (!copy_text(&g->name) || !copy_text(&g->key) ||
        tsearch(g, &all->tree, compare_groups) == NULL) {
        free_group(g);
        return NULL;
    }
    all->groups[all->n++] = g;
    return g;
}

static group *get_group(gathering *all, enum section section, mtprof_text name, mtprof_text key)
{
    group wanted = {.section = section, .name = name, .key = key};
    group **found = tfind(&wanted, &all->tree, compare_groups);
    return found != NULL ? *found : new_group(all, &wanted);
}

static void add_number(group *g, double value)
{
    g->least = fmin(g->least, value);
    g->most = fmax(g->most, value);
    g->sum += value;
    g->last = value;
}

static void free_all(gathering *all)
{
    for (size_t i = 0; i < all->n; i++) {
        (void)tdelete(all->groups[i], &all->tree, compare_groups);
        free_group(all->groups[i]);
    }
    free(all->groups);
}

/* ---- gathering ------------------------------------------------------------------------------- */

static double number_of(uint64_t bits, bool is_real)
{
    double real = 0;
    memcpy(&real, &bits, sizeof real);
    return is_real ? real : (double)(int64_t)bits;
}

static int add_mark(void *user, const mtprof_mark *mark)
{
    gathering *all = user;
    enum section section = mark->kind == MTPROF_EVENT_KIND_COUNTER   ? SECTION_COUNTERS
                           : mark->kind == MTPROF_EVENT_KIND_INSTANT ? SECTION_INSTANTS
                                                                     : SECTION_FLOWS;
    group *g = get_group(all, section, mark->name, (mtprof_text){"", 0});
    if (g == NULL) {
        all->no_memory = true;
        return 1;
    }
    if (g->count++ == 0) {
        g->first_ns = mark->time_ns;
    }
    g->last_ns = mark->time_ns;
    if (section == SECTION_COUNTERS) {
        add_number(g, number_of(mark->value, mark->phase == 1));
    } else if (section == SECTION_FLOWS) {
        g->starts += mark->phase == 0;
        g->ends += mark->phase == 2;
    }
    return 0;
}

static bool add_metadatum(gathering *all, mtprof_text name, const mtprof_metadatum *m)
{
    group *g = get_group(all, SECTION_METADATA, name, m->key);
    if (g == NULL) {
        return false;
    }
    cli_metadatum room;
    mtprof_text text = cli_metadatum_text(m, &room);
    if (g->count++ == 0) {
        g->value = text;
        if (!copy_text(&g->value)) {
            return false;
        }
    }
    g->differs = g->differs || compare_texts(g->value, text) != 0;
    g->is_number = g->is_number && (m->type == MTPROF_META_INT || m->type == MTPROF_META_UINT ||
                                    m->type == MTPROF_META_REAL);
    if (g->is_number) {
        add_number(g, number_of(m->value, m->type == MTPROF_META_REAL));
    }
    return true;
}

/* Keys that profilers themselves set for a trace or a scope; 'mtprof info' lists the former. */
static bool is_own_key(mtprof_text key)
{
    static const char *const own[] = {
        "mtprof_version",    "process_name",    "host_name",     "trace_id",
        "profile_memory",    "with_stack",      "with_modules",  "record_shapes",
        "with_flops",        "distributedInfo", "schemaVersion", "traceName",
        "deviceProperties",  "displayTimeUnit", "mtprof_health", "baseTimeNanoseconds",
        "Record function id"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (compare_texts(key, cli_text(own[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Whose metadata is the program's. Other tools give their own facts with everything but scopes. */
static bool is_of_program(uint8_t kind, bool foreign)
{
    return kind == MTPROF_EVENT_KIND_SCOPE || kind == MTPROF_EVENT_KIND_STEP ||
           (kind == MTPROF_EVENT_KIND_OP && !foreign);
}

static bool add_metadata(gathering *all, bool foreign)
{
    mtprof_metadatum m;
    uint64_t count;
    const uint32_t *name = cli_column(all->model, MTPROF_COLUMN_NAME, &count);
    const uint8_t *kind = cli_column(all->model, MTPROF_COLUMN_KIND, &count);
    const uint32_t *id = cli_column(all->model, MTPROF_COLUMN_METADATA, &count);
    for (uint32_t i = 0; !foreign && mtprof_model_metadata(all->model, i, &m); i++) {
        if (!is_own_key(m.key) && !add_metadatum(all, cli_text("(trace)"), &m)) {
            return false;
        }
    }
    for (uint64_t i = 0; name != NULL && kind != NULL && i < count; i++) {
        if (id[i] == 0 || !is_of_program(kind[i], foreign)) {
            continue;
        }
        uint32_t key = mtprof_model_name_key(all->model, name[i]);
        for (uint32_t k = 0; mtprof_model_event_metadata(all->model, id[i], k, &m); k++) {
            if (!is_own_key(m.key) && !add_metadatum(all, mtprof_model_name(all->model, key), &m)) {
                return false;
            }
        }
    }
    return true;
}

/* ---- printing -------------------------------------------------------------------------------- */

static cli_quantity number_text(double value)
{
    cli_quantity q;
    if (fabs(value) < 1e15 && value == round(value)) {
        (void)snprintf(q.text, sizeof q.text, "%.0f", value == 0 ? 0.0 : value);
    } else {
        (void)snprintf(q.text, sizeof q.text, "%.4g", value);
    }
    return q;
}

static void print_number(double value)
{
    printf(" %*s", NUMBER - 1, number_text(value).text);
}

static void print_metadata_values(const group *g, size_t width)
{
    if (g->differs && g->is_number) {
        printf("  %s to %s\n", number_text(g->least).text, number_text(g->most).text);
        return;
    }
    fputs("  ", stdout);
    size_t room = width - (g->differs ? 8 : 0);
    cli_print_text(stdout, g->value, cli_text_width(g->value) > room ? room : 0);
    puts(g->differs ? ", others" : "");
}

static void print_group(const gathering *all, const group *g, size_t name_width, size_t width)
{
    cli_print_two(g->name, g->key, name_width);
    printf(" %*s", NUMBER - 1, cli_count(g->count).text);
    switch (g->section) {
    case SECTION_COUNTERS:
        print_number(g->least);
        print_number(g->sum / (double)g->count);
        print_number(g->most);
        print_number(g->last);
        break;
    case SECTION_INSTANTS:
        printf(" %*s", NUMBER - 1, cli_duration((double)g->first_ns - (double)all->start_ns).text);
        printf(" %*s", NUMBER - 1, cli_duration((double)g->last_ns - (double)all->start_ns).text);
        break;
    case SECTION_FLOWS:
        printf(" %*s %*s", NUMBER - 1, cli_count(g->starts).text, NUMBER - 1,
               cli_count(g->ends).text);
        break;
    default: print_metadata_values(g, width - name_width - NUMBER - 2); return;
    }
    putchar('\n');
}

static void print_section(const gathering *all, enum section section, size_t width, size_t most)
{
    static const struct {
        const char *name, *numbers;
        size_t n_numbers;
    } heads[SECTION_COUNT] = {
        {"Counter", "    Samples      Least       Mean       Most       Last", 5},
        {"Instant", "      Times      First       Last", 3},
        {"Flow", "     Points    Started      Ended", 3},
        {"Metadata", "     Events  Value", 2},
    };
    size_t n = 0, name = 0;
    for (size_t i = 0; i < all->n; i++) {
        const group *g = all->groups[i];
        if (g->section == (uint32_t)section) {
            size_t length = cli_two_width(g->name, g->key);
            name = length > name ? length : name;
            n++;
        }
    }
    if (n == 0) {
        return;
    }
    size_t fixed = heads[section].n_numbers * NUMBER + (section == SECTION_METADATA ? 8 : 0);
    name = cli_fit_column(name, LEAST_NAME, fixed, width);
    printf("\n%s%-*s%s%s\n", cli_style(CLI_BOLD), (int)name, heads[section].name,
           heads[section].numbers, cli_style(CLI_PLAIN));
    size_t shown = 0;
    for (size_t i = 0; i < all->n && shown < most; i++) {
        if (all->groups[i]->section == (uint32_t)section) {
            print_group(all, all->groups[i], name, width);
            shown++;
        }
    }
    cli_print_more(n - shown, "");
}

/* Whether there can be marks. A closed trace has counted what is no scope: with none of that the
 * pass over it is not needed. */
static bool may_have_marks(mtprof_model *model, const mtprof_model_info *info)
{
    mtprof_health health = {.struct_size = sizeof health};
    if ((info->wants & MTPROF_WANT_MARKS) == 0) {
        return false;
    }
    return info->foreign != 0 || info->closed == 0 ||
           mtprof_model_get_health(model, &health) != MTPROF_OK || health.others > 0;
}

bool cli_print_marks(mtprof_model *model, const char *path, size_t width, size_t most)
{
    gathering all = {.model = model};
    mtprof_model_info info = {.struct_size = sizeof info};
    (void)mtprof_model_get_info(model, &info);
    all.start_ns = info.start_ns;
    mtprof_status status = MTPROF_OK;
    if (may_have_marks(model, &info)) {
        status = mtprof_model_visit_marks(model, add_mark, &all);
    }
    bool whole = status == MTPROF_OK && add_metadata(&all, info.foreign != 0);
    all.no_memory = all.no_memory || (status == MTPROF_OK && !whole);
    cli_progress_end();
    for (int section = 0; whole && section < SECTION_COUNT; section++) {
        print_section(&all, (enum section)section, width, most);
    }
    if (all.no_memory) {
        cli_error("%s: no memory for the marks", path);
    } else if (!whole) {
        (void)cli_library_error(path, status);
    }
    free_all(&all);
    return whole;
}

static int count_mark(void *user, const mtprof_mark *mark)
{
    cli_mark_counts *counts = user;
    counts->instants += mark->kind == MTPROF_EVENT_KIND_INSTANT;
    counts->counters += mark->kind == MTPROF_EVENT_KIND_COUNTER;
    counts->flows += mark->kind == MTPROF_EVENT_KIND_FLOW;
    return 0;
}

mtprof_status cli_count_marks(mtprof_model *model, cli_mark_counts *counts)
{
    mtprof_model_info info = {.struct_size = sizeof info};
    *counts = (cli_mark_counts){0};
    (void)mtprof_model_get_info(model, &info);
    return may_have_marks(model, &info) ? mtprof_model_visit_marks(model, count_mark, counts)
                                        : MTPROF_OK;
}
