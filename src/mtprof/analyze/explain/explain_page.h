/* SPDX-License-Identifier: Apache-2.0
 *
 * What the forms of an explanation share: how much of it is shown, and sentences.
 */
#ifndef MTPROF_ANALYZE_EXPLAIN_EXPLAIN_PAGE_H
#define MTPROF_ANALYZE_EXPLAIN_EXPLAIN_PAGE_H

#include "base/text_writer.h"
#include "mtprof/analyze/explain/explain_impl.h"

/* What one attempt shows. */
typedef struct mtprof__explain_page {
    const mtprof_explain *e;
    mtb_writer *to;
    size_t width;
    size_t column; /* text: where the next word goes */
    uint32_t n_findings, n_evidence;
} mtprof__explain_page;

enum {
    MTPROF__SENTENCE_BYTES = 600 /* room that each sentence needs */
};

/* How many pieces of evidence of a finding are shown. */
uint32_t mtprof__explain_shown(const mtprof__explain_page *p, size_t finding);
void mtprof__explain_say_facts(const mtprof_explain *e, char *out);
/* False where there is nothing to say. */
bool mtprof__explain_say_gain(const mtprof_explain *e, const mtprof_explain_finding *of, char *out);
bool mtprof__explain_say_left_out(const mtprof__explain_page *p, char *out);
/* What is said where there is no finding. */
const char *mtprof__explain_clean(const mtprof_explain *e);

/* explain_html.c */
void mtprof__explain_html(mtprof__explain_page *p);

#endif /* MTPROF_ANALYZE_EXPLAIN_EXPLAIN_PAGE_H */
