/* SPDX-License-Identifier: Apache-2.0
 *
 * Explanations as text, JSON and Markdown (HTML: explain_html.c), of bounded size: what does not
 * fit is left out and counted. The output is made in memory, with less and less in it until it
 * fits.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "mtprof/analyze/explain/explain_impl.h"
#include "mtprof/analyze/explain/explain_page.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    DEFAULT_BYTES = 4096,
    HTML_BYTES = 64 * 1024,
    DEFAULT_WIDTH = 80,
    WIDTH_LEAST = 40,
    EVIDENCE_MOST = 16 /* more than any finding has */
};

uint32_t mtprof__explain_shown(const mtprof__explain_page *p, size_t finding)
{
    size_t n = p->e->findings[finding].n_evidence;
    return n < p->n_evidence ? (uint32_t)n : p->n_evidence;
}

static void count_left_out(const mtprof__explain_page *p, size_t *findings, size_t *evidence)
{
    *findings = p->e->n_findings - p->n_findings;
    *evidence = 0;
    for (uint32_t i = 0; i < p->n_findings; i++) {
        *evidence += p->e->findings[i].n_evidence - mtprof__explain_shown(p, i);
    }
}

/* ---- sentences that text, Markdown and HTML share -------------------------------------------- */

void mtprof__explain_say_facts(const mtprof_explain *e, char *out)
{
    mtprof__amount wall = mtprof__duration((double)e->wall_ns);
    int n;
    if (e->has_steps) {
        n = snprintf(out, MTPROF__SENTENCE_BYTES, "%zu step%s of %s, %s in all", e->n_steps,
                     e->n_steps == 1 ? "" : "s", mtprof__duration((double)e->median_ns).text,
                     wall.text);
    } else {
        n = snprintf(out, MTPROF__SENTENCE_BYTES, "%s recorded, not divided into steps", wall.text);
    }
    if (e->has_device) {
        (void)snprintf(out + n, MTPROF__SENTENCE_BYTES - (size_t)n,
                       "; the device is busy for %s of it.",
                       mtprof__percent(e, (double)e->busy_ns).text);
    } else {
        (void)snprintf(out + n, MTPROF__SENTENCE_BYTES - (size_t)n, "; no device was recorded.");
    }
}

/* The parts from a hundredth on, in order of their size. */
static void say_parts(const mtprof_explain *e, char *out)
{
    bool is_said[MTPROF_PART_COUNT] = {false};
    size_t used = (size_t)snprintf(out, MTPROF__SENTENCE_BYTES, "Where the time went:");
    const char *joint = " ";
    for (;;) {
        int best = -1;
        for (int p = 0; p < MTPROF_PART_COUNT; p++) {
            best = !is_said[p] && (best < 0 || e->parts[p] > e->parts[best]) ? p : best;
        }
        if (best < 0 || e->parts[best] <= e->wall_ns / 100) {
            break;
        }
        is_said[best] = true;
        used += (size_t)snprintf(out + used, MTPROF__SENTENCE_BYTES - used, "%s%s %s", joint,
                                 mtprof_part_title((uint32_t)best),
                                 mtprof__percent(e, (double)e->parts[best]).text);
        joint = ", ";
    }
    (void)snprintf(out + used, MTPROF__SENTENCE_BYTES - used, "%s", used > 21 ? "." : " nothing.");
}

bool mtprof__explain_say_gain(const mtprof_explain *e, const mtprof_explain_finding *of, char *out)
{
    if (of->gain_ns == 0) {
        return false;
    }
    (void)snprintf(
        out, MTPROF__SENTENCE_BYTES, "Costs %s of the time: without it, up to %s of %s less%s.",
        mtprof__percent(e, (double)of->gain_ns).text, mtprof__duration((double)of->gain_ns).text,
        mtprof__duration((double)e->wall_ns).text,
        of->confidence == MTPROF_CONFIDENCE_MEDIUM ? " (an estimate)" : "");
    return true;
}

bool mtprof__explain_say_left_out(const mtprof__explain_page *p, char *out)
{
    size_t findings;
    size_t evidence;
    count_left_out(p, &findings, &evidence);
    if (findings + evidence == 0) {
        return false;
    }
    (void)snprintf(out, MTPROF__SENTENCE_BYTES,
                   "Left out to keep this short: %zu finding%s, %zu piece%s of evidence.", findings,
                   findings == 1 ? "" : "s", evidence, evidence == 1 ? "" : "s");
    return true;
}

const char *mtprof__explain_clean(const mtprof_explain *e)
{
    return e->wall_ns < MTPROF__EXPLAIN_LEAST_NS
               ? "Less than 1 ms was recorded: too little to explain."
               : "Clean: nothing passes the threshold of a finding.";
}

/* ---- text ------------------------------------------------------------------------------------ */

static size_t columns_of(const char *text, size_t length)
{
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        n += ((unsigned char)text[i] & 0xC0) != 0x80;
    }
    return n;
}

/* Up to the next blank where a line may end: not between a number and its unit. */
static size_t word_length(const char *text)
{
    size_t n = strcspn(text, " ");
    while (n > 0 && text[n] == ' ' && text[n - 1] >= '0' && text[n - 1] <= '9') {
        n += 1 + strcspn(text + n + 1, " ");
    }
    return n;
}

/* Words, broken to the width; lines after the first are indented. */
static void wrap(mtprof__explain_page *p, const char *text, size_t indent)
{
    while (*text != '\0') {
        size_t length = word_length(text);
        size_t columns = columns_of(text, length);
        if (p->column > indent && p->column + 1 + columns > p->width) {
            mtb_write_format(p->to, "\n%*s", (int)indent, "");
            p->column = indent;
        } else if (p->column > indent) {
            mtb_write_literal(p->to, " ");
            p->column++;
        }
        mtb_write(p->to, text, length);
        p->column += columns;
        text += length;
        text += *text == ' ';
    }
    mtb_write_literal(p->to, "\n");
    p->column = 0;
}

static void write_line(mtprof__explain_page *p, const char *start, size_t indent, const char *text)
{
    mtb_write_text(p->to, start);
    p->column = indent;
    wrap(p, text, indent);
}

static void write_text_finding(mtprof__explain_page *p, uint32_t index)
{
    const mtprof__finding *f = &p->e->findings[index];
    char sentence[MTPROF__SENTENCE_BYTES];
    int n = snprintf(sentence, sizeof sentence, "\n%u. ", index + 1);
    size_t used = columns_of(f->of.title.bytes, f->of.title.length) + (size_t)n - 1;
    size_t id = strlen(f->of.id) + 2;
    mtb_write(p->to, sentence, (size_t)n);
    if (used + 2 + id <= p->width) {
        mtb_write_format(p->to, "%s%*s[%s]\n", f->of.title.bytes, (int)(p->width - used - id), "",
                         f->of.id);
    } else {
        p->column = 3;
        wrap(p, f->of.title.bytes, 3);
        mtb_write_format(p->to, "   [%s]\n", f->of.id);
    }
    if (mtprof__explain_say_gain(p->e, &f->of, sentence)) {
        write_line(p, "   ", 3, sentence);
    }
    for (uint32_t i = 0; i < mtprof__explain_shown(p, index); i++) {
        write_line(p, "   - ", 5, f->evidence[i].text.bytes);
    }
    mtb_write_literal(p->to, "   What to do:");
    p->column = 14;
    wrap(p, f->of.advice.bytes, 3);
}

static void write_text(mtprof__explain_page *p)
{
    char sentence[MTPROF__SENTENCE_BYTES];
    mtprof__explain_say_facts(p->e, sentence);
    write_line(p, "", 0, sentence);
    say_parts(p->e, sentence);
    write_line(p, "", 0, sentence);
    if (p->e->n_findings == 0) {
        mtb_write_format(p->to, "\n%s\n", mtprof__explain_clean(p->e));
    }
    for (uint32_t i = 0; i < p->n_findings; i++) {
        write_text_finding(p, i);
    }
    if (mtprof__explain_say_left_out(p, sentence)) {
        mtb_write_literal(p->to, "\n");
        write_line(p, "", 0, sentence);
    }
}

/* ---- Markdown -------------------------------------------------------------------------------- */

/* What Markdown or HTML would take for a mark is escaped: names may be anything. */
static void write_escaped(mtb_writer *to, mtprof_text text)
{
    for (size_t i = 0; i < text.length; i++) {
        char c = text.bytes[i];
        if (c == '<' || c == '&' || c == '>') {
            mtb_write_text(to, c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&amp;");
        } else {
            if (strchr("\\`*_[]#|~!", c) != NULL) {
                mtb_write_literal(to, "\\");
            }
            mtb_write(to, &c, 1);
        }
    }
}

static void write_paragraph(mtb_writer *to, const char *start, const char *text)
{
    mtb_write_text(to, start);
    write_escaped(to, (mtprof_text){text, strlen(text)});
    mtb_write_literal(to, "\n");
}

static void write_markdown(mtprof__explain_page *p)
{
    char sentence[MTPROF__SENTENCE_BYTES];
    mtprof__explain_say_facts(p->e, sentence);
    write_paragraph(p->to, "", sentence);
    say_parts(p->e, sentence);
    write_paragraph(p->to, "", sentence);
    if (p->e->n_findings == 0) {
        mtb_write_format(p->to, "\n**%s**\n", mtprof__explain_clean(p->e));
    }
    for (uint32_t i = 0; i < p->n_findings; i++) {
        const mtprof__finding *f = &p->e->findings[i];
        mtb_write_format(p->to, "\n### %u. %s (`%s`)\n\n", i + 1, f->of.title.bytes, f->of.id);
        if (mtprof__explain_say_gain(p->e, &f->of, sentence)) {
            write_paragraph(p->to, "", sentence);
            mtb_write_literal(p->to, "\n");
        }
        for (uint32_t k = 0; k < mtprof__explain_shown(p, i); k++) {
            write_paragraph(p->to, "- ", f->evidence[k].text.bytes);
        }
        write_paragraph(p->to, "\n**What to do:** ", f->of.advice.bytes);
    }
    if (mtprof__explain_say_left_out(p, sentence)) {
        write_paragraph(p->to, "\n", sentence);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void write_seconds(mtb_writer *to, int64_t ns)
{
    mtb_write_double(to, (double)ns / 1e9);
}

static void write_member_text(mtb_writer *to, const char *key, mtprof_text text)
{
    mtb_write_format(to, ", \"%s\": ", key);
    mtb_write_json(to, text.bytes, text.length);
}

static void write_member_shown(mtb_writer *to, const char *key, mtprof_text text)
{
    if (text.length > 0) {
        mtprof__shown shown = mtprof__shown_text(text);
        write_member_text(to, key, (mtprof_text){shown.text, strlen(shown.text)});
    }
}

static void write_json_evidence(mtb_writer *to, const mtprof_explain_evidence *item)
{
    mtb_write_format(to, "{\"kind\": \"%s\"", mtprof_evidence_kind_name(item->kind));
    write_member_text(to, "text", item->text);
    write_member_shown(to, "name", item->name);
    if (item->event != MTPROF_NO_EVENT) {
        mtb_write_member_u64(to, "event", item->event);
    }
    if (item->step >= 0) {
        mtb_write_member_i64(to, "step", item->step);
    }
    if (item->line > 0) {
        write_member_shown(to, "file", item->file);
        mtb_write_member_u64(to, "line", item->line);
    }
    write_member_shown(to, "module", item->module);
    if (item->count > 0) {
        mtb_write_member_u64(to, "count", item->count);
    }
    if (item->ns != 0) {
        mtb_write_member(to, "s");
        write_seconds(to, item->ns);
    }
    if (item->bytes != 0) {
        mtb_write_member_i64(to, "bytes", item->bytes);
    }
    mtb_write_literal(to, "}");
}

static void write_json_finding(const mtprof__explain_page *p, uint32_t index)
{
    const mtprof__finding *f = &p->e->findings[index];
    mtb_write_format(p->to, "%s\n{\"id\": \"%s\"", index > 0 ? "," : "", f->of.id);
    write_member_text(p->to, "title", f->of.title);
    mtb_write_format(p->to, ", \"share\": %.4f, \"gain_s\": ", f->of.share);
    write_seconds(p->to, f->of.gain_ns);
    mtb_write_format(p->to, ", \"confidence\": \"%s\", \"evidence\": [",
                     f->of.confidence == MTPROF_CONFIDENCE_HIGH ? "high" : "medium");
    for (uint32_t i = 0; i < mtprof__explain_shown(p, index); i++) {
        mtb_write_text(p->to, i > 0 ? ",\n " : "\n ");
        write_json_evidence(p->to, &f->evidence[i]);
    }
    mtb_write_literal(p->to, "]");
    write_member_text(p->to, "advice", f->of.advice);
    mtb_write_literal(p->to, "}");
}

static void write_json(mtprof__explain_page *p)
{
    const mtprof_explain *e = p->e;
    size_t findings;
    size_t evidence;
    count_left_out(p, &findings, &evidence);
    mtb_write_format(p->to, "{\"schema\": 1, \"trace\": {\"events\": %zu, \"steps\": %zu",
                     e->columns.n, e->has_steps ? e->n_steps : (size_t)0);
    mtb_write_member(p->to, "wall_s");
    write_seconds(p->to, e->wall_ns);
    mtb_write_member(p->to, "step_s");
    write_seconds(p->to, e->median_ns);
    mtb_write_member(p->to, "device_busy_s");
    if (e->has_device) {
        write_seconds(p->to, e->busy_ns);
    } else {
        mtb_write_literal(p->to, "null");
    }
    mtb_write_member_u64(p->to, "kernels", e->n_kernels);
    mtb_write_literal(p->to, "},\n\"parts\": {");
    for (uint32_t i = 0; i < MTPROF_PART_COUNT; i++) {
        mtb_write_format(p->to, "%s\"%s\": ", i > 0 ? ", " : "", mtprof_part_name(i));
        write_seconds(p->to, e->parts[i]);
    }
    mtb_write_literal(p->to, "},\n\"findings\": [");
    for (uint32_t i = 0; i < p->n_findings; i++) {
        write_json_finding(p, i);
    }
    mtb_write_format(p->to,
                     "],\n\"clean\": %s, \"left_out\": {\"findings\": %zu, \"evidence\": %zu}}\n",
                     e->n_findings == 0 ? "true" : "false", findings, evidence);
}

/* ---- attempts -------------------------------------------------------------------------------- */

typedef struct memory {
    char *bytes;
    size_t n, capacity;
} memory;

static int keep(void *context, const void *bytes, size_t length)
{
    memory *m = context;
    void *block = m->bytes;
    if (!mtb_grow(&block, &m->capacity, m->n + length + 1, 1)) {
        return ENOMEM;
    }
    m->bytes = block;
    memcpy(m->bytes + m->n, bytes, length);
    m->n += length;
    return 0;
}

static int attempt(mtprof__explain_page *p, uint32_t format, memory *out)
{
    mtb_writer writer;
    out->n = 0;
    if (mtb_writer_init(&writer, keep, out)) {
        p->to = &writer;
        p->column = 0;
        if (format == MTPROF_EXPLAIN_JSON) {
            write_json(p);
        } else if (format == MTPROF_EXPLAIN_MARKDOWN) {
            write_markdown(p);
        } else if (format == MTPROF_EXPLAIN_HTML) {
            mtprof__explain_html(p);
        } else {
            write_text(p);
        }
    }
    p->to = NULL;
    return mtb_writer_finish(&writer) == 0 ? MTPROF_OK : mtprof__explain_no_memory("the output");
}

static int fit(mtprof__explain_page *p, const mtprof_explain_write_options *o, memory *out)
{
    uint64_t most = o->max_bytes != 0                  ? o->max_bytes
                    : o->format == MTPROF_EXPLAIN_HTML ? HTML_BYTES
                                                       : DEFAULT_BYTES;
    MT_TRY(attempt(p, o->format, out));
    while (out->n > most && (p->n_evidence > 1 || p->n_findings > 1 || p->n_evidence > 0)) {
        if (p->n_evidence > 1) {
            p->n_evidence--;
        } else if (p->n_findings > 1) {
            p->n_findings--;
        } else {
            p->n_evidence = 0;
        }
        MT_TRY(attempt(p, o->format, out));
    }
    return MTPROF_OK;
}

static int check(const mtprof_explain *explain, const mtprof_explain_write_options *o,
                 const mtprof_output *output)
{
    if (explain == NULL || output == NULL || output->struct_size < sizeof *output ||
        output->write == NULL) {
        return mtb_fail(MTPROF_EINVAL, "explain_write: no %s",
                        explain == NULL ? "explanation" : "output to write to");
    }
    if (o->format > MTPROF_EXPLAIN_HTML) {
        return mtb_fail(MTPROF_EINVAL, "explain_write: format %u, expected 0 to %d", o->format,
                        MTPROF_EXPLAIN_HTML);
    }
    if (o->width != 0 && o->width < WIDTH_LEAST) {
        return mtb_fail(MTPROF_EINVAL, "explain_write: width %u, expected %d or more", o->width,
                        WIDTH_LEAST);
    }
    return MTPROF_OK;
}

mtprof_status mtprof_explain_write(const mtprof_explain *explain,
                                   const mtprof_explain_write_options *options,
                                   const mtprof_output *output)
{
    mtprof_explain_write_options o = {0};
    memory out = {0};
    if (options != NULL) {
        mtb_read_struct(&o, options);
    }
    MT_TRY(check(explain, &o, output));
    mtprof__explain_page p = {.e = explain,
                              .width = o.width != 0 ? o.width : DEFAULT_WIDTH,
                              .n_findings = (uint32_t)explain->n_findings,
                              .n_evidence = EVIDENCE_MOST};
    if (o.findings != 0 && o.findings < p.n_findings) {
        p.n_findings = o.findings;
    }
    int status = fit(&p, &o, &out);
    if (status == MTPROF_OK) {
        int error = output->write(output->context, out.bytes, out.n);
        if (error != 0) {
            status = mtb_fail_errno(error == ENOSPC ? MTPROF_ENOSPC : MTPROF_EIO, error,
                                    "explain_write: the output did not take the text");
        }
    }
    mtb_free(out.bytes);
    return status;
}
