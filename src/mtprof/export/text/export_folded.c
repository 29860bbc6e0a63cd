/* SPDX-License-Identifier: Apache-2.0
 *
 * Folded stacks for flame graphs: "main.py(3):_main;aten::add 1234", one line for each distinct
 * path (path_tree.h), with the nanoseconds that were spent there and not deeper, sorted by bytes.
 *
 *   FO1  A line has a whole path, so what is written grows with the square of the depth (PT1).
 *   FO2  Equal traces give equal bytes: the order of lines does not depend on threads or hashes.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/export/path_tree.h"
#include "mtprof/export/text/export_text.h"
#include "mtprof/format/texts.h"

#include <stdlib.h>

enum {
    PARTS_BETWEEN = 1 << 16 /* parts of paths written between two looks at the progress function */
};

typedef struct folded {
    mtprof__path_tree tree;
    enum mtprof__path_value value; /* that lines have */
    uint64_t written;              /* parts, since the progress function was called */
} folded;

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct child_order {
    mtprof_text text;
    uint32_t node;
} child_order;

static int compare(const void *a, const void *b)
{
    const child_order *x = a;
    const child_order *y = b;
    return mtprof__text_order(x->text, y->text);
}

/* Puts the children of a node into the order of their texts. */
static int sort_children(folded *f, uint32_t node, child_order **order, size_t *capacity)
{
    size_t n = 0;
    for (uint32_t child = f->tree.nodes[node].first; child != 0;
         child = f->tree.nodes[child].next) {
        if (!mtb_grow((void **)order, capacity, n + 1, sizeof **order)) {
            return mtb_fail(MTPROF_ENOMEM, "export folded: no memory for sorting");
        }
        (*order)[n++] = (child_order){f->tree.parts[f->tree.nodes[child].part - 1].text, child};
    }
    if (n < 2) {
        return 0;
    }
    qsort(*order, n, sizeof **order, compare);
    f->tree.nodes[node].first = (*order)[0].node;
    for (size_t i = 0; i < n; i++) {
        f->tree.nodes[(*order)[i].node].next = i + 1 < n ? (*order)[i + 1].node : 0;
    }
    return 0;
}

/* The path is found by going up, and written by going down it again. */
static int write_node(folded *f, uint32_t node, uint32_t **path, size_t *capacity)
{
    mtb_writer *writer = f->tree.job->writer;
    size_t n = 0;
    for (uint32_t at = node; at != 0; at = f->tree.nodes[at].parent) {
        if (!mtb_grow((void **)path, capacity, n + 1, sizeof **path)) {
            return mtb_fail(MTPROF_ENOMEM, "export folded: no memory for a path");
        }
        (*path)[n++] = f->tree.nodes[at].part;
    }
    f->written += n;
    while (n-- > 0) {
        const mtprof_text *text = &f->tree.parts[(*path)[n] - 1].text;
        mtprof__write_folded(writer, text->bytes, text->length);
        mtb_write(writer, ";", n > 0);
    }
    mtb_write_literal(writer, " ");
    mtb_write_i64(writer, f->tree.nodes[node].values[f->value]);
    mtb_write_literal(writer, "\n");
    if (f->written < PARTS_BETWEEN) {
        return 0;
    }
    f->written = 0;
    return mtprof__export_report_progress(f->tree.job, NULL);
}

/* In depth, children in order; without recursion, since stacks may be deep. */
static int write_tree(folded *f)
{
    child_order *order = NULL;
    uint32_t *path = NULL;
    size_t order_capacity = 0;
    size_t path_capacity = 0;
    uint32_t node = 0;
    int status = sort_children(f, 0, &order, &order_capacity);
    while (status == 0) {
        uint32_t next = f->tree.nodes[node].first;
        while (next == 0 && node != 0) {
            next = f->tree.nodes[node].next;
            node = f->tree.nodes[node].parent;
        }
        if (next == 0) {
            break;
        }
        node = next;
        if (f->tree.nodes[node].values[f->value] > 0) {
            status = write_node(f, node, &path, &path_capacity);
        }
        if (status == 0) {
            status = sort_children(f, node, &order, &order_capacity);
        }
    }
    mtb_free(order);
    mtb_free(path);
    return status;
}

int mtprof__export_folded(mtprof__export_job *job)
{
    bool device = false;
    folded f;
    MT_TRY(mtprof__export_metric(job, &device));
    f.written = 0;
    f.value = device ? MTPROF__PATH_DEVICE_NS : MTPROF__PATH_HOST_NS;
    int status = mtprof__path_tree_init(&f.tree, job);
    if (status == 0) {
        status = device ? mtprof__path_tree_add_device(&f.tree, &job->report.events)
                        : mtprof__path_tree_add_host(&f.tree);
    }
    if (status == 0) {
        status = write_tree(&f);
    }
    mtprof__path_tree_fini(&f.tree);
    return status;
}
