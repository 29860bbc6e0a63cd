/* SPDX-License-Identifier: Apache-2.0
 *
 * The fixed parts of the memory timeline's page: lines without their ends, NULL after the last.
 */
#ifndef MTPROF_EXPORT_MEMORY_MEMORY_HTML_H
#define MTPROF_EXPORT_MEMORY_MEMORY_HTML_H

extern const char *const mtprof__memory_page_style[];
/* The place of the chart, and the text shown without JavaScript. */
extern const char *const mtprof__memory_page_chart[];
/* Draws DATA: labels, peak and rows ([ns, bytes by category …]), steps ([ns, name]). */
extern const char *const mtprof__memory_page_script[];

#endif /* MTPROF_EXPORT_MEMORY_MEMORY_HTML_H */
