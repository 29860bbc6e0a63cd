/* SPDX-License-Identifier: Apache-2.0
 *
 * Explaining: findings, their evidence, and the texts of both.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "base/text_writer.h"
#include "mtprof/analyze/averages/averages_impl.h"
#include "mtprof/analyze/explain/explain_impl.h"
#include "mtprof/model/text/stack_text.h"

#include <mtprof/output.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define X(cause, id, title, share, advice) title,
const char *const mtprof__cause_titles[MTPROF_CAUSE_COUNT] = {
#include "mtprof/analyze/explain/causes.def"
};
#undef X
#define X(cause, id, title, share, advice) advice,
const char *const mtprof__cause_advice[MTPROF_CAUSE_COUNT] = {
#include "mtprof/analyze/explain/causes.def"
};
#undef X
#define X(cause, id, title, share, advice) share,
const double mtprof__cause_shares[MTPROF_CAUSE_COUNT] = {
#include "mtprof/analyze/explain/causes.def"
};
#undef X
#define X(cause, id, title, share, advice) \
    static_assert(MTPROF_CAUSE_##cause >= 0 && MTPROF_CAUSE_##cause < MTPROF_CAUSE_COUNT, id);
#include "mtprof/analyze/explain/causes.def"
#undef X

const char *mtprof_cause_id(uint32_t cause)
{
#define X(cause, id, title, share, advice) [MTPROF_CAUSE_##cause] = id,
    static const char *const ids[MTPROF_CAUSE_COUNT] = {
#include "mtprof/analyze/explain/causes.def"
    };
#undef X
    return cause < MTPROF_CAUSE_COUNT ? ids[cause] : "unknown";
}

/* ---- quantities and names -------------------------------------------------------------------- */

mtprof__amount mtprof__duration(double ns)
{
    mtprof__amount out;
    (void)mtprof_duration_text(ns, out.text);
    return out;
}

mtprof__amount mtprof__size(double bytes)
{
    mtprof__amount out;
    (void)mtprof_bytes_text(bytes, out.text);
    return out;
}

mtprof__amount mtprof__percent(const mtprof_explain *e, double ns)
{
    mtprof__amount out;
    double percent = e->wall_ns > 0 ? 100 * ns / (double)e->wall_ns : 0;
    (void)snprintf(out.text, sizeof out.text, "%.*f %%", percent > 0 && percent < 9.95 ? 1 : 0,
                   percent);
    return out;
}

/* Control characters become '?', what is no UTF-8 U+FFFD. */
mtprof__shown mtprof__shown_text(mtprof_text text)
{
    enum {
        CHARACTER = 4, /* bytes, at most */
        DOTS = 3       /* bytes of "…" */
    };
    mtprof__shown out;
    size_t used = 0;
    size_t at = 0;
    while (at < text.length && used + CHARACTER + DOTS < sizeof out.text) {
        unsigned bad = 1;
        unsigned length = mtb_utf8_length(text.bytes + at, text.length - at, &bad);
        unsigned char c = (unsigned char)text.bytes[at];
        if (length == 0) {
            memcpy(out.text + used, "\xef\xbf\xbd", 3);
            used += 3;
        } else if (length == 1) {
            out.text[used++] = c < ' ' || c == 0x7f ? '?' : (char)c;
        } else {
            memcpy(out.text + used, text.bytes + at, length);
            used += length;
        }
        at += length > 0 ? length : bad;
    }
    if (at < text.length) {
        memcpy(out.text + used, "…", DOTS);
        used += DOTS;
    }
    out.text[used] = '\0';
    return out;
}

static mtprof_text event_name(const mtprof_explain *e, uint32_t event)
{
    return event < e->columns.n ? mtprof_model_name(e->model, e->columns.name[event])
                                : (mtprof_text){"", 0};
}

mtprof__shown mtprof__shown_name(const mtprof_explain *e, uint32_t event)
{
    return mtprof__shown_text(event_name(e, event));
}

/* ---- lines of the program -------------------------------------------------------------------- */

static bool is_library(mtprof_text file)
{
    static const char *const patterns[] = {"*site-packages/*",
                                           "*dist-packages/*",
                                           "*mindtorch_v2/*",
                                           "*mtprof/*",
                                           "torch/*",
                                           "*/torch/*",
                                           "<*",
                                           "*/lib/python*"};
    for (size_t i = 0; i < MT_COUNT(patterns); i++) {
        if (mtprof__pattern_matches(patterns[i], file)) {
            return true;
        }
    }
    return file.length == 0;
}

/* A function's name as a frame, "file(line): function"; the line is where the function begins. */
static bool split_name(mtprof_text name, mtprof_frame *out)
{
    const char *open = memchr(name.bytes, '(', name.length);
    char *end = NULL;
    if (open == NULL || open[1] < '0' || open[1] > '9') {
        return false;
    }
    *out = (mtprof_frame){.file = {name.bytes, (size_t)(open - name.bytes)},
                          .line = strtoull(open + 1, &end, 10)};
    return end[0] == ')' && end[1] == ':'; /* names end with a zero */
}

/* Traces of other tools have calls of functions in place of stacks: the innermost that is no
 * library's around an event. */
static bool find_function(const mtprof_explain *e, uint32_t event, mtprof_frame *out)
{
    enum {
        LOOK_BACK = 1 << 20 /* events; a function that began before is far from the cause */
    };
    const mtprof__explain_columns *c = &e->columns;
    uint32_t at = event;
    uint32_t least = event > LOOK_BACK ? event - LOOK_BACK : 0;
    while (at > least && !(c->kind[at] == MTPROF_EVENT_KIND_FUNCTION &&
                           c->track[at] == c->track[event] && c->end_ns[at] >= c->end_ns[event])) {
        at--;
    }
    while (at < c->n && c->kind[at] == MTPROF_EVENT_KIND_FUNCTION) {
        if (split_name(mtprof_model_name(e->model, c->name[at]), out) && !is_library(out->file)) {
            return true;
        }
        at = c->parent[at] < at ? c->parent[at] : MTPROF_NO_EVENT;
    }
    return false;
}

/* The innermost frame that is no library's; else the innermost with a file. */
static bool find_line(const mtprof_explain *e, uint32_t event, mtprof_frame *out)
{
    mtprof_frame frame;
    bool found = false;
    uint32_t node = e->columns.stack != NULL && event < e->columns.n ? e->columns.stack[event] : 0;
    for (uint32_t depth = 0; node != 0 && depth < MTPROF__STACK_FRAMES; depth++) {
        if (!mtprof_model_stack(e->model, node, &node, &frame)) {
            break;
        }
        if (frame.file.length > 0 && !found) {
            *out = frame;
            found = true;
        }
        if (!is_library(frame.file)) {
            *out = frame;
            return true;
        }
    }
    return found || (e->n_functions > 0 && event < e->columns.n && find_function(e, event, out));
}

/* ---- building -------------------------------------------------------------------------------- */

static mtprof_text text_of(const char *text)
{
    return (mtprof_text){text, strlen(text)};
}

int mtprof__finding_add(mtprof_explain *e, enum mtprof_cause cause, int64_t gain_ns,
                        enum mtprof_confidence confidence)
{
    double share = e->wall_ns > 0 ? (double)gain_ns / (double)e->wall_ns : 0;
    const mtprof__finding finding = {.of = {.struct_size = sizeof finding.of,
                                            .cause = cause,
                                            .id = mtprof_cause_id(cause),
                                            .title = text_of(mtprof__cause_titles[cause]),
                                            .share = share,
                                            .gain_ns = gain_ns,
                                            .confidence = confidence,
                                            .advice = text_of(mtprof__cause_advice[cause])},
                                     .rank = share};
    return mtb_append(e->findings, e->n_findings, e->findings_capacity, &finding)
               ? MTPROF_OK
               : mtprof__explain_no_memory("findings");
}

static int format_text(mtprof_explain *e, const char *format, va_list arguments, mtprof_text *out)
{
    char buffer[512];
    int n = vsnprintf(buffer, sizeof buffer, format, arguments);
    size_t length = n < 0 ? 0 : (size_t)n < sizeof buffer ? (size_t)n : sizeof buffer - 1;
    char *copy = mtb_arena_copy_text(&e->texts, buffer, length);
    if (copy == NULL) {
        return mtprof__explain_no_memory("texts");
    }
    *out = (mtprof_text){copy, length};
    return MTPROF_OK;
}

int mtprof__finding_title(mtprof_explain *e, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int status = format_text(e, format, arguments, &e->findings[e->n_findings - 1].of.title);
    va_end(arguments);
    return status;
}

/* " (model.py:12)" after the text: lines are what a reader looks for first. */
static int add_line(mtprof_explain *e, const mtprof_frame *frame, mtprof_explain_evidence *item)
{
    char buffer[1024];
    const char *file = frame->file.bytes;
    for (size_t i = 0; i + 1 < frame->file.length; i++) {
        file = frame->file.bytes[i] == '/' ? frame->file.bytes + i + 1 : file;
    }
    mtprof__shown shown = mtprof__shown_text(
        (mtprof_text){file, frame->file.length - (size_t)(file - frame->file.bytes)});
    int n = snprintf(buffer, sizeof buffer, "%.600s (%s:%llu)", item->text.bytes, shown.text,
                     (unsigned long long)frame->line);
    char *copy = mtb_arena_copy_text(&e->texts, buffer, (size_t)n);
    if (copy == NULL) {
        return mtprof__explain_no_memory("texts");
    }
    item->text = (mtprof_text){copy, (size_t)n};
    item->file = frame->file;
    item->line = frame->line;
    return MTPROF_OK;
}

int mtprof__evidence_add(mtprof_explain *e, mtprof_explain_evidence item, const char *format, ...)
{
    mtprof__finding *finding = &e->findings[e->n_findings - 1];
    mtprof_frame frame;
    va_list arguments;
    item.struct_size = sizeof item;
    va_start(arguments, format);
    int status = format_text(e, format, arguments, &item.text);
    va_end(arguments);
    MT_TRY(status);
    bool is_fact = item.kind == MTPROF_EVIDENCE_FACT || item.kind == MTPROF_EVIDENCE_TRACK;
    item.event = is_fact ? MTPROF_NO_EVENT : item.event;
    item.module = (mtprof_text){"", 0};
    item.file = (mtprof_text){"", 0};
    item.name = item.name.bytes != NULL ? item.name : event_name(e, item.event);
    if (item.event < e->columns.n) {
        uint32_t module = e->columns.module != NULL ? e->columns.module[item.event] : 0;
        item.step = e->columns.step[item.event];
        item.module = module != 0 ? mtprof_model_name(e->model, module - 1) : item.module;
        if (find_line(e, item.event, &frame)) {
            MT_TRY(add_line(e, &frame, &item));
        }
    } else if (item.kind != MTPROF_EVIDENCE_STEP) {
        item.step = -1;
    }
    if (!mtb_append(finding->evidence, finding->n_evidence, finding->evidence_capacity, &item)) {
        return mtprof__explain_no_memory("evidence");
    }
    finding->of.evidence = (uint32_t)finding->n_evidence;
    return MTPROF_OK;
}

/* ---- charges --------------------------------------------------------------------------------- */

static const mtprof__charge *next_largest(const mtprof_explain *e, enum mtprof_part part,
                                          const mtprof__charge *before)
{
    const mtprof__charge *all = e->charges[part];
    const mtprof__charge *found = NULL;
    for (uint32_t i = 0; all != NULL && i < e->n_names; i++) {
        bool later = before == NULL || all[i].ns < before->ns ||
                     (all[i].ns == before->ns && &all[i] > before);
        if (all[i].ns > 0 && later && (found == NULL || all[i].ns > found->ns)) {
            found = &all[i];
        }
    }
    return found;
}

int mtprof__evidence_charges(mtprof_explain *e, enum mtprof_part part, uint32_t most)
{
    const mtprof__charge *charge = next_largest(e, part, NULL);
    for (uint32_t i = 0; i < most && charge != NULL; i++) {
        const mtprof_explain_evidence item = {.kind = MTPROF_EVIDENCE_OP,
                                              .event = charge->event,
                                              .count = charge->count,
                                              .ns = charge->ns};
        bool is_one = charge->count == 1;
        MT_TRY(mtprof__evidence_add(
            e, item, "%s: %s, %llu time%s%s%s", mtprof__shown_name(e, charge->event).text,
            mtprof__duration((double)charge->ns).text, (unsigned long long)charge->count,
            is_one ? "" : "s", is_one ? "" : ", the longest ",
            is_one ? "" : mtprof__duration((double)charge->most_ns).text));
        charge = next_largest(e, part, charge);
        if (charge != NULL && charge->ns < e->parts[part] / 20) {
            break; /* less than a twentieth says nothing */
        }
    }
    return MTPROF_OK;
}
