/* SPDX-License-Identifier: Apache-2.0
 *
 * The report's flame graph: the tree of paths with what was spent below each node, largest first.
 * Nodes below a share of the whole that would not be a pixel wide are left out; where there are
 * still too many, the share grows.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/export/path_tree.h"
#include "mtprof/export/report/report_impl.h"

#include <string.h>

/* What is below a node, itself with it. Children have higher numbers than their parents. */
static void sum_up(mtprof__path_tree *tree)
{
    for (size_t i = tree->n_nodes; i-- > 1;) {
        mtprof__path_node *above = &tree->nodes[tree->nodes[i].parent];
        for (size_t k = 0; k < MTPROF__PATH_VALUES; k++) {
            above->values[k] = mtb_add_sat(above->values[k], tree->nodes[i].values[k]);
        }
    }
}

static bool is_kept(const mtprof__path_tree *tree, size_t node, double share)
{
    const mtprof__path_node *root = &tree->nodes[0];
    const mtprof__path_node *n = &tree->nodes[node];
    for (size_t k = MTPROF__PATH_HOST_NS; k < MTPROF__PATH_VALUES; k++) {
        if (n->values[k] > 0 && (double)n->values[k] >= share * (double)root->values[k]) {
            return true;
        }
    }
    return false;
}

static size_t count_kept(const mtprof__path_tree *tree, double share)
{
    size_t n = 0;
    for (size_t i = 1; i < tree->n_nodes; i++) {
        n += is_kept(tree, i, share);
    }
    return n;
}

/* numbers: by node, the place in the page; 0: left out. A kept node's parent is kept: it has no
 * less. */
static void write_nodes(mtprof__report *r, const mtprof__path_tree *tree, double share,
                        uint32_t *numbers, uint32_t *parts)
{
    mtb_writer *writer = r->job->writer;
    uint32_t n_parts = 0;
    uint32_t n = 0;
    mtb_write_literal(writer, "\"flame_nodes\": [");
    for (size_t i = 0; i < tree->n_nodes; i++) {
        const mtprof__path_node *node = &tree->nodes[i];
        if (i > 0 && !is_kept(tree, i, share)) {
            continue;
        }
        numbers[i] = n++;
        if (i > 0 && parts[node->part] == 0) {
            parts[node->part] = ++n_parts;
        }
        mtb_write_format(writer, "%s%u,%u,%lld,%lld,%lld,%lld", i > 0 ? ",\n" : "",
                         numbers[node->parent], i > 0 ? parts[node->part] : 0,
                         (long long)node->values[MTPROF__PATH_COUNT],
                         (long long)node->values[MTPROF__PATH_HOST_NS],
                         (long long)node->values[MTPROF__PATH_DEVICE_NS],
                         (long long)node->values[MTPROF__PATH_ALLOCATED]);
    }
    mtb_write_literal(writer, "],\n\"flame_names\": [\"all\"");
    uint32_t written = 0;
    for (size_t i = 1; i < tree->n_nodes && written < n_parts; i++) {
        uint32_t part = tree->nodes[i].part;
        if (parts[part] == written + 1) { /* in the order in which they were numbered */
            written++;
            mtb_write_literal(writer, ",\n");
            mtprof__report_name(r, tree->parts[part - 1].text);
        }
    }
    mtb_write_literal(writer, "],\n");
}

static int write_flame(mtprof__report *r, mtprof__path_tree *tree)
{
    double share = 0.0002;
    sum_up(tree);
    while (count_kept(tree, share) > MTPROF__REPORT_NODES) {
        share *= 1.5;
    }
    r->job->report.left_out += tree->n_nodes - 1 - count_kept(tree, share);
    uint32_t *numbers = mtb_calloc(tree->n_nodes, sizeof *numbers);
    uint32_t *parts = mtb_calloc(tree->n_parts + 1, sizeof *parts);
    int status = MTPROF_OK;
    if (numbers == NULL || parts == NULL) {
        status = mtb_fail(MTPROF_ENOMEM, "export report: no memory for the flame graph");
    } else {
        mtb_write_literal(r->job->writer, "\"flame_share\": ");
        mtb_write_double(r->job->writer, share);
        mtb_write_literal(r->job->writer, ", ");
        write_nodes(r, tree, share, numbers, parts);
    }
    mtb_free(numbers);
    mtb_free(parts);
    return status;
}

int mtprof__report_flame(mtprof__report *r)
{
    mtprof__path_tree tree;
    uint64_t events = r->job->report.events;
    int status = mtprof__path_tree_init(&tree, r->job);
    if (status == MTPROF_OK) {
        status = mtprof__path_tree_add_host(&tree);
    }
    if (status == MTPROF_OK && r->job->info.device_type != NULL) {
        status = mtprof__path_tree_add_device(&tree, NULL);
    }
    if (status == MTPROF_OK) {
        status = write_flame(r, &tree);
    }
    r->job->report.events = events; /* they were counted with the rows */
    mtprof__path_tree_fini(&tree);
    return status;
}
