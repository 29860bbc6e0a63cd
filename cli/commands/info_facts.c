/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts, see info_facts.h. The model describes the events; for .mtt files the reader describes
 * the file itself.
 */
#include "cli/commands/info_facts.h"

#include "cli/term.h"

#include <mtprof/averages.h>
#include <mtprof/format.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
    EARLIEST = 631152000 /* 1990, in seconds of Unix time */
};

static void write_when(cli_facts *f)
{
    int64_t real_ns = f->info.start_ns + f->info.real_offset_ns;
    time_t seconds = (time_t)(real_ns / 1000000000);
    struct tm utc;
    /* Some tools count from their own start. */
    if (seconds < EARLIEST || gmtime_r(&seconds, &utc) == NULL ||
        strftime(f->when, sizeof f->when, "%Y-%m-%d %H:%M:%S UTC", &utc) == 0) {
        (void)snprintf(f->when, sizeof f->when, "at an unknown time");
    }
}

static void write_uuid(cli_facts *f)
{
    const uint8_t *u = f->trace.uuid;
    (void)snprintf(f->uuid, sizeof f->uuid,
                   "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
                   u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
                   u[14], u[15]);
}

/* ---- the file -------------------------------------------------------------------------------- */

static cli_window *find_window(cli_facts *f, uint32_t number)
{
    if (f->n_windows > 0 && f->windows[f->n_windows - 1].number == number) {
        return &f->windows[f->n_windows - 1];
    }
    if ((f->n_windows & (f->n_windows + 1)) == 0) { /* grows at 0, 1, 3, 7 … */
        size_t room = 2 * f->n_windows + 1;
        cli_window *larger = realloc(f->windows, room * sizeof *larger);
        if (larger == NULL) {
            return NULL;
        }
        f->windows = larger;
    }
    cli_window *w = &f->windows[f->n_windows++];
    *w = (cli_window){.number = number};
    return w;
}

static bool gather_windows(cli_facts *f)
{
    mtprof_epoch_info epoch;
    for (uint32_t i = 0; mtprof_reader_epoch(f->reader, i, &epoch); i++) {
        cli_window *w = find_window(f, epoch.window);
        if (w == NULL) {
            return cli_no_memory(f->path);
        }
        w->step = w->parts == 0 ? epoch.step : w->step;
        w->parts++;
        int64_t ns = mtprof_reader_ns(f->reader, epoch.close_ticks) -
                     mtprof_reader_ns(f->reader, epoch.open_ticks);
        if (ns > 0 && __builtin_add_overflow(w->open_ns, ns, &w->open_ns)) {
            w->open_ns = INT64_MAX; /* a file may contain any times */
        }
        w->fate = epoch.close_kind == MTPROF_CLOSE_DISCARDED ? "discarded"
                  : epoch.close_kind == MTPROF_CLOSE_NONE    ? "not ended"
                                                             : "kept";
    }
    return true;
}

/* The names of which most was left out, most first. */
static void gather_sampled(cli_facts *f)
{
    mtprof_unrecorded_info info;
    for (uint32_t i = 0; mtprof_reader_unrecorded(f->reader, i, &info); i++) {
        cli_sampled one = {.left_out = info.count, .kept = info.kept};
        if (info.what != MTPROF_UNRECORDED_SAMPLED ||
            !mtprof_reader_string(f->reader, info.name, &one.name)) {
            continue;
        }
        for (size_t at = 0; at < CLI_SAMPLED; at++) {
            if (at == f->n_sampled) {
                f->sampled[f->n_sampled++] = one;
                break;
            }
            if (one.left_out > f->sampled[at].left_out) {
                cli_sampled less = f->sampled[at];
                f->sampled[at] = one;
                one = less;
            }
        }
    }
}

static bool gather_file(cli_facts *f)
{
    struct stat file;
    f->file_bytes = stat(f->path, &file) == 0 ? (uint64_t)file.st_size : 0;
    f->format = "Chrome JSON trace";
    if (f->info.foreign != 0) {
        return true;
    }
    f->format = ".mtt trace";
    if (!cli_ok(f->path, mtprof_reader_open(f->path, &f->reader))) {
        return false;
    }
    f->trace.struct_size = sizeof f->trace;
    (void)mtprof_reader_get_info(f->reader, &f->trace);
    write_uuid(f);
    gather_sampled(f);
    return gather_windows(f);
}

/* ---- the events ------------------------------------------------------------------------------ */

static bool gather_tracks(cli_facts *f)
{
    f->tracks = calloc((size_t)f->info.tracks + 1, sizeof *f->tracks);
    if (f->tracks == NULL) {
        return cli_no_memory(f->path);
    }
    while (f->n_tracks < f->info.tracks &&
           mtprof_model_track(f->model, f->n_tracks, &f->tracks[f->n_tracks].track)) {
        f->n_tracks++;
    }
    return true;
}

static int take_step(void *user, const mtprof_step_sum *sum)
{
    cli_facts *f = user;
    f->first_step = f->n_steps == 0 ? sum->step : f->first_step;
    f->last_step = sum->step;
    f->n_steps++;
    return 0;
}

static bool gather_steps(cli_facts *f)
{
    f->first_step = f->last_step = -1;
    return cli_ok(f->path, mtprof_model_visit_steps(f->model, take_step, f));
}

static bool gather_events(cli_facts *f)
{
    cli_columns c;
    if (!cli_load_columns(f->model, f->path, &c) || !gather_tracks(f)) {
        return false;
    }
    for (uint64_t i = 0; i < c.count; i++) {
        f->kinds[c.kind[i] < CLI_KINDS ? c.kind[i] : MTPROF_EVENT_KIND_OTHER]++;
        if (c.track[i] < f->n_tracks) {
            f->tracks[c.track[i]].events++;
        }
    }
    return gather_steps(f);
}

bool cli_gather_facts(mtprof_model *model, const char *path, cli_facts *out)
{
    memset(out, 0, sizeof *out);
    out->path = path;
    out->model = model;
    out->info.struct_size = sizeof out->info;
    out->findings.struct_size = sizeof out->findings;
    out->health.struct_size = sizeof out->health;
    /* Tracks and names, which the info counts, are known once the columns have been made. */
    if (!cli_ok(path, mtprof_model_get_findings(model, &out->findings)) ||
        !cli_ok(path, mtprof_model_get_health(model, &out->health)) ||
        !cli_ok(path, mtprof_model_get_info(model, &out->info)) ||
        !cli_ok(path, cli_count_marks(model, &out->marks))) {
        return false;
    }
    out->n_problems = out->findings.problems;
    write_when(out);
    return gather_file(out) && gather_events(out);
}

void cli_free_facts(cli_facts *facts)
{
    mtprof_reader_close(facts->reader);
    free(facts->windows);
    free(facts->tracks);
}

mtprof_text cli_metadatum_text(const mtprof_metadatum *m, cli_metadatum *room)
{
    double real;
    switch (m->type) {
    case MTPROF_META_TEXT: return m->text;
    case MTPROF_META_BOOL: return cli_text(m->value != 0 ? "true" : "false");
    case MTPROF_META_INT:
        (void)snprintf(room->text, sizeof room->text, "%" PRId64, (int64_t)m->value);
        break;
    case MTPROF_META_REAL:
        memcpy(&real, &m->value, sizeof real);
        (void)snprintf(room->text, sizeof room->text, "%g", real);
        break;
    default: (void)snprintf(room->text, sizeof room->text, "%" PRIu64, m->value); break;
    }
    return cli_text(room->text);
}
