/* SPDX-License-Identifier: Apache-2.0
 *
 * An explanation as a piece of HTML for notebooks and pages: the parts of the time as a bar, the
 * steps as a chart, the findings. It has no script and no style sheet, so that it changes nothing
 * around it; colours of text and background are those of the page.
 */
#include "base/saturate.h"
#include "mtprof/analyze/explain/explain_page.h"

#include <string.h>

enum {
    BARS = 120,  /* of the chart */
    WIDE = 6000, /* of the chart, in its own units */
    HIGH = 1000,
    PERMILLE = 1000
};

static void write_text(mtb_writer *to, const char *text)
{
    mtb_write_html(to, text, strlen(text));
}

/* ---- parts ----------------------------------------------------------------------------------- */

static int64_t permille(const mtprof_explain *e, int64_t ns)
{
    return e->wall_ns > 0 ? (int64_t)((double)ns * PERMILLE / (double)e->wall_ns + 0.5) : 0;
}

static void write_bar(mtb_writer *to, const mtprof_explain *e)
{
    mtb_write_literal(to, "<div style=\"display:flex;height:18px;border-radius:4px;overflow:hidden;"
                          "margin:6px 0\">");
    for (uint32_t p = 0; p < MTPROF_PART_COUNT; p++) {
        int64_t share = permille(e, e->parts[p]);
        if (share > 0) {
            mtb_write_format(to,
                             "<span style=\"width:%lld.%lld%%;background:%s\" "
                             "title=\"%s: %s\"></span>",
                             (long long)share / 10, (long long)share % 10, mtprof_part_color(p),
                             mtprof_part_title(p), mtprof__duration((double)e->parts[p]).text);
        }
    }
    mtb_write_literal(to, "</div>\n<div style=\"display:flex;flex-wrap:wrap;gap:2px 14px\">");
    for (uint32_t p = 0; p < MTPROF_PART_COUNT; p++) {
        if (permille(e, e->parts[p]) > 0) {
            mtb_write_format(to,
                             "<span><span style=\"display:inline-block;width:10px;height:10px;"
                             "border-radius:2px;background:%s\"></span> %s %s</span>",
                             mtprof_part_color(p), mtprof_part_title(p),
                             mtprof__percent(e, (double)e->parts[p]).text);
        }
    }
    mtb_write_literal(to, "</div>\n");
}

/* ---- steps ----------------------------------------------------------------------------------- */

static int64_t step_ns(const mtprof_explain *e, uint32_t index)
{
    mtprof_explain_step step = {.struct_size = sizeof step};
    return mtprof_explain_get_step(e, index, &step) == MTPROF_OK
               ? mtb_sub_sat(step.end_ns, step.start_ns)
               : 0;
}

/* Of many steps a bar is the longest of some that follow each other. */
typedef struct bars {
    uint32_t steps[BARS];
    uint32_t n, each;
    int64_t most;
} bars;

static bars choose_bars(const mtprof_explain *e)
{
    uint32_t n = mtprof_explain_step_count(e);
    bars b = {.each = (n + BARS - 1) / BARS, .most = 1};
    for (uint32_t i = 0; i < n; i += b.each) {
        uint32_t longest = i;
        for (uint32_t k = i + 1; k < n && k < i + b.each; k++) {
            longest = step_ns(e, k) > step_ns(e, longest) ? k : longest;
        }
        b.most = step_ns(e, longest) > b.most ? step_ns(e, longest) : b.most;
        b.steps[b.n++] = longest;
    }
    return b;
}

static long long height_of(const bars *b, int64_t ns)
{
    return (long long)((double)ns * HIGH / (double)b->most + 0.5);
}

/* One path a part: a rectangle for each step that has it. */
static void write_part(mtb_writer *to, const mtprof_explain *e, const bars *b, uint32_t part)
{
    unsigned wide = WIDE / (b->n > 0 ? b->n : 1);
    bool open = false;
    for (uint32_t i = 0; i < b->n; i++) {
        int64_t below = 0;
        for (uint32_t p = 0; p < part; p++) {
            below += mtprof_explain_part_ns(e, b->steps[i], p);
        }
        long long from = height_of(b, below);
        long long high = height_of(b, below + mtprof_explain_part_ns(e, b->steps[i], part)) - from;
        if (high > 0) {
            mtb_write_text(to, open ? "" : "<path d=\"");
            mtb_write_format(to, "M%u %lldh%uv-%lldh-%uz", i * wide, HIGH - from,
                             wide > 12 ? wide - wide / 12 : wide, high,
                             wide > 12 ? wide - wide / 12 : wide);
            open = true;
        }
    }
    if (open) {
        mtb_write_format(to, "\" fill=\"%s\"><title>%s</title></path>", mtprof_part_color(part),
                         mtprof_part_title(part));
    }
}

static void write_steps(mtb_writer *to, const mtprof_explain *e)
{
    if (!e->has_steps || mtprof_explain_step_count(e) < 2) {
        return;
    }
    bars b = choose_bars(e);
    mtb_write_format(to,
                     "<svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\" "
                     "aria-label=\"Duration of each step by part\" "
                     "style=\"display:block;width:100%%;height:80px;margin:8px 0 0\">",
                     WIDE, HIGH);
    for (uint32_t part = 0; part < MTPROF_PART_COUNT; part++) {
        write_part(to, e, &b, part);
    }
    mtb_write_format(to, "</svg>\n<div style=\"opacity:.7\">%u steps, the longest %s",
                     mtprof_explain_step_count(e), mtprof__duration((double)b.most).text);
    if (b.each > 1) {
        mtb_write_format(to, "; a bar is the longest of %u", b.each);
    }
    mtb_write_literal(to, "</div>\n");
}

/* ---- findings -------------------------------------------------------------------------------- */

static void write_finding(mtprof__explain_page *p, uint32_t index)
{
    const mtprof__finding *f = &p->e->findings[index];
    char sentence[MTPROF__SENTENCE_BYTES];
    mtb_write_literal(p->to, "<div style=\"border-left:3px solid #c2780c;padding-left:8px;"
                             "margin:8px 0;overflow-wrap:anywhere\"><b>");
    write_text(p->to, f->of.title.bytes);
    mtb_write_format(p->to, "</b> <span style=\"opacity:.7\">%s</span>", f->of.id);
    if (mtprof__explain_say_gain(p->e, &f->of, sentence)) {
        mtb_write_literal(p->to, "<br>");
        write_text(p->to, sentence);
    }
    mtb_write_literal(p->to, "<ul style=\"margin:2px 0;padding-left:20px\">");
    for (uint32_t k = 0; k < mtprof__explain_shown(p, index); k++) {
        mtb_write_literal(p->to, "<li>");
        write_text(p->to, f->evidence[k].text.bytes);
        mtb_write_literal(p->to, "</li>");
    }
    mtb_write_literal(p->to, "</ul>");
    write_text(p->to, f->of.advice.bytes);
    mtb_write_literal(p->to, "</div>\n");
}

void mtprof__explain_html(mtprof__explain_page *p)
{
    char sentence[MTPROF__SENTENCE_BYTES];
    mtb_write_literal(p->to,
                      "<div style=\"max-width:960px;text-align:left;line-height:1.4\">\n<div>");
    mtprof__explain_say_facts(p->e, sentence);
    write_text(p->to, sentence);
    mtb_write_literal(p->to, "</div>\n");
    write_bar(p->to, p->e);
    write_steps(p->to, p->e);
    if (p->e->n_findings == 0) {
        mtb_write_format(p->to, "<div style=\"margin:8px 0\"><b>%s</b></div>\n",
                         mtprof__explain_clean(p->e));
    }
    for (uint32_t i = 0; i < p->n_findings; i++) {
        write_finding(p, i);
    }
    if (mtprof__explain_say_left_out(p, sentence)) {
        mtb_write_format(p->to, "<div style=\"opacity:.7\">%s</div>\n", sentence);
    }
    mtb_write_literal(p->to, "</div>\n");
}
