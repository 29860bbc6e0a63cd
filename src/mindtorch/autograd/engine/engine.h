/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of the engine. See engine.c; run_backward.c calls it.
 */
#ifndef MINDTORCH_AUTOGRAD_ENGINE_ENGINE_H
#define MINDTORCH_AUTOGRAD_ENGINE_ENGINE_H

#include "mindtorch/autograd/graph/meta.h"

typedef struct mt__root {
    mt__edge edge;   /* retained by the caller for the time of the run */
    mt_tensor *grad; /* likewise */
} mt__root;

typedef struct mt__capture {
    mt__edge edge;   /* retained by the caller */
    mt_tensor *grad; /* the result, one reference; NULL: nothing came */
} mt__capture;

typedef struct mt__engine_job {
    const mt__root *roots;
    size_t n_roots;
    mt__capture *captures; /* NULL: gradients go to the leaves */
    size_t n_captures;
    bool retain;
    bool create_graph;
} mt__engine_job;

int mt__engine_run(const mt__engine_job *job);

#endif /* MINDTORCH_AUTOGRAD_ENGINE_ENGINE_H */
