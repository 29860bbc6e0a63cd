/* SPDX-License-Identifier: Apache-2.0
 *
 * Tracers of the interpreter that are on while a profile's window is open: calls (call_tracer.c)
 * and garbage collections (gc_spans.c). profile_callbacks.c switches them, so that no interrupt
 * between two bytecodes can leave one on.
 */
#ifndef PYTHON_EXT_PROFILER_STACKS_TRACERS_H
#define PYTHON_EXT_PROFILER_STACKS_TRACERS_H

enum tracer {
    TRACER_CALLS = 1 << 0,
    TRACER_COLLECTIONS = 1 << 1
};

/*
 * Repeated calls change nothing. -1: an exception. After a start that failed the tracer is off, and
 * after a stop always.
 */
int call_tracer_start(void);
int call_tracer_stop(void);
int gc_spans_start(void);
int gc_spans_stop(void);

#endif /* PYTHON_EXT_PROFILER_STACKS_TRACERS_H */
