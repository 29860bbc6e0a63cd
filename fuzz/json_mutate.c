/* SPDX-License-Identifier: Apache-2.0
 *
 * Mutations of Chrome and kineto JSON that know what an event is: whole events are added, copied
 * and taken away, keys and values are exchanged for ones that the importer looks for. The text
 * stays JSON where it was.
 *
 * One change in eight is left to libFuzzer, which knows nothing.
 */
#include "fuzz_random.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXT_MAX = 1 << 16,
    TOKENS_MAX = 4096,
    CHANGES_MAX = 4
};

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

#define PICK(list) ((list)[below(sizeof(list) / sizeof((list)[0]))])

/* ---- what such files contain ----------------------------------------------------------------- */

static const char *const keys[] = {"ph", "cat", "name", "pid",  "tid", "ts", "dur",
                                   "id", "id2", "s",    "args", "bp",  "tts"};

static const char *const arg_keys[] = {"External id",
                                       "Record function id",
                                       "Ev Idx",
                                       "Concrete Inputs",
                                       "Input Dims",
                                       "Input type",
                                       "Input Strides",
                                       "Sequence number",
                                       "Fwd thread id",
                                       "Call stack",
                                       "correlation",
                                       "stream",
                                       "device",
                                       "context",
                                       "bytes",
                                       "Bytes",
                                       "Addr",
                                       "Total Allocated",
                                       "Total Reserved",
                                       "Device Type",
                                       "Device Id",
                                       "Python id",
                                       "Python parent id",
                                       "Python module id",
                                       "name",
                                       "labels",
                                       "sort_index",
                                       "Module Hierarchy",
                                       "flops",
                                       "input_shapes",
                                       "stack",
                                       "overload",
                                       "step",
                                       "async",
                                       "recorded_ts",
                                       "recorded_dur",
                                       "sampled",
                                       "cpu_memory_allocated_before",
                                       "cpu_memory_allocated_after",
                                       "npu_memory_allocated_delta",
                                       "correlation_id",
                                       "op_name",
                                       "wait_on_stream",
                                       "Trace iteration",
                                       "Profiler Event Index",
                                       "value",
                                       "memory bandwidth (GB/s)"};

static const char *const categories[] = {"cpu_op",
                                         "user_annotation",
                                         "python_function",
                                         "kernel",
                                         "gpu_memcpy",
                                         "gpu_memset",
                                         "cuda_runtime",
                                         "cuda_driver",
                                         "gpu_user_annotation",
                                         "ac2g",
                                         "fwdbwd",
                                         "cpu_instant_event",
                                         "Trace",
                                         "overhead",
                                         "op",
                                         "scope",
                                         "runtime",
                                         "metadata",
                                         "async_cpu_to_gpu",
                                         "cuda_sync",
                                         "privateuse1_runtime",
                                         "other",
                                         ""};

static const char *const names[] = {"aten::add",
                                    "ProfilerStep#7",
                                    "[memory]",
                                    "[OutOfMemory]",
                                    "process_name",
                                    "thread_name",
                                    "process_labels",
                                    "thread_sort_index",
                                    "Record Window End",
                                    "PyTorch Profiler (0)",
                                    "x.py(7): f",
                                    "nn.Module: Linear_0",
                                    "aten::add.out",
                                    "Optimizer.step#SGD.step",
                                    "a\\u00e9\\ud83d\\n\\\"",
                                    "",
                                    "autograd::engine::evaluate_function: AddBackward0",
                                    "Iteration Start: PyTorch Profiler",
                                    "ProfilerStep#99999999999",
                                    "cudaLaunchKernel",
                                    "Memcpy HtoD",
                                    "thread 7 (python)"};

static const char *const values[] = {"0",
                                     "1",
                                     "-1",
                                     "7",
                                     "1.5",
                                     "0.001",
                                     "1e3",
                                     "-1e-9",
                                     "4611686018427387903",
                                     "4611686018427387904",
                                     "9223372036854775807",
                                     "-9223372036854775808",
                                     "18446744073709551615",
                                     "99999999999999999999",
                                     "1e400",
                                     "4611686018427387.903",
                                     "9223372036854775.807",
                                     "1234567890.123",
                                     "999999999999999.999",
                                     "-4611686018427387.9",
                                     "NaN",
                                     "-Infinity",
                                     "true",
                                     "false",
                                     "null",
                                     "\"\"",
                                     "\"7\"",
                                     "\"0x7f\"",
                                     "\"0xffffffffffffffff\"",
                                     "\"1.5\"",
                                     "[]",
                                     "{}",
                                     "[[]]",
                                     "[1, 2]",
                                     "[[4, 4], [4]]",
                                     "[[[2], [3]], []]",
                                     "[\"\", \"ScalarList\"]",
                                     "[\"float\", \"Scalar\", \"TensorList\"]",
                                     "[\"[1, 2]\", \"\", \"None\"]",
                                     "[\"True\", \"1.\", \"7\"]",
                                     "[\"ScalarList\"]",
                                     "[7, null]",
                                     "\"f.py(3): g;<built-in h>\"",
                                     "[\"f.py(3): g\", \"x\"]",
                                     "\"a.b\"",
                                     "[[-1, 9223372036854775807]]",
                                     "\"cpu\"",
                                     "\"npu\"",
                                     "2147483647",
                                     "4294967295",
                                     "65536"};

static const char phases[] = "XXXXXXXXBEbeniCMsfttPSTpFNODvR(";

/* ---- text ------------------------------------------------------------------------------------ */

typedef struct text {
    char bytes[TEXT_MAX];
    size_t length;
} text;

static text at_hand;

/* Puts n bytes in the place of `gone` ones. */
static void replace(size_t at, size_t gone, const char *bytes, size_t n)
{
    if (at_hand.length - gone + n > TEXT_MAX) {
        return;
    }
    memmove(at_hand.bytes + at + n, at_hand.bytes + at + gone, at_hand.length - at - gone);
    memcpy(at_hand.bytes + at, bytes, n);
    at_hand.length = at_hand.length - gone + n;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

typedef struct token {
    uint32_t at, length;
    char kind; /* " string, 0 number or word, or the sign itself */
} token;

static token tokens[TOKENS_MAX];
static size_t n_tokens;

static size_t string_length(const char *from, size_t left)
{
    for (size_t i = 1; i < left; i++) {
        if (from[i] == '\\') {
            i++;
        } else if (from[i] == '"') {
            return i + 1;
        }
    }
    return left;
}

static size_t word_length(const char *from, size_t left)
{
    size_t n = 1;
    while (n < left && strchr(" \n\r\t,:[]{}\"", from[n]) == NULL) {
        n++;
    }
    return n;
}

static void find_tokens(size_t from)
{
    n_tokens = 0;
    for (size_t at = from; at < at_hand.length && n_tokens < TOKENS_MAX;) {
        const char *p = at_hand.bytes + at;
        size_t left = at_hand.length - at;
        if (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') {
            at++;
            continue;
        }
        bool sign = *p != '\0' && strchr(",:[]{}", *p) != NULL;
        size_t length = sign ? 1 : *p == '"' ? string_length(p, left) : word_length(p, left);
        tokens[n_tokens++] =
            (token){(uint32_t)at, (uint32_t)length, sign ? *p : (char)(*p == '"' ? '"' : 0)};
        at += length;
    }
}

/* The token after the value that begins at token i. */
static size_t behind_value(size_t i)
{
    size_t depth = 0;
    for (; i < n_tokens; i++) {
        if (tokens[i].kind == '[' || tokens[i].kind == '{') {
            depth++;
        } else if (tokens[i].kind == ']' || tokens[i].kind == '}') {
            depth -= depth > 0;
        }
        if (depth == 0) {
            return i + 1;
        }
    }
    return n_tokens;
}

static size_t some_token(char kind)
{
    size_t first = (size_t)below(n_tokens);
    for (size_t i = 0; i < n_tokens; i++) {
        size_t at = (first + i) % n_tokens;
        if (tokens[at].kind == kind) {
            return at;
        }
    }
    return n_tokens;
}

static size_t end_of(size_t after)
{
    return after > 0 ? tokens[after - 1].at + tokens[after - 1].length : 0;
}

/* ---- making events --------------------------------------------------------------------------- */

/* A time that other events have, too, or a strange one. */
static void put_time(char *to, size_t room)
{
    if (below(5) == 0) {
        snprintf(to, room, "%s", PICK(values));
    } else {
        snprintf(to, room, "%u.%03u", (unsigned)below(60), (unsigned)below(4) * 250);
    }
}

static size_t make_args(char *to, size_t room)
{
    size_t n = 0;
    uint64_t many = below(6);
    for (uint64_t i = 0; i < many && n + 200 < room; i++) {
        n += (size_t)snprintf(to + n, room - n, "%s\"%s\":%s", i > 0 ? "," : "", PICK(arg_keys),
                              PICK(values));
    }
    return n;
}

static size_t make_event(char *to, size_t room)
{
    char ts[64];
    char dur[64];
    char args[2048] = "";
    put_time(ts, sizeof ts);
    put_time(dur, sizeof dur);
    make_args(args, sizeof args);
    char phase = PICK(phases);
    int n = snprintf(
        to, room,
        "{\"ph\":\"%c\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%s,\"tid\":%u,\"ts\":%s,"
        "\"dur\":%s,\"id\":%u,\"args\":{%s}}",
        phase != '\0' ? phase : 'X', PICK(categories), PICK(names),
        below(8) == 0 ? PICK(values) : "1", (unsigned)below(3), ts, dur, (unsigned)below(3), args);
    return n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

/* ---- changes --------------------------------------------------------------------------------- */

static void add_event(void)
{
    char event[4096];
    size_t n = 0;
    size_t at = some_token('{');
    bool first = at == n_tokens;
    size_t place = first ? at_hand.length : tokens[at].at;
    if (!first) {
        n = make_event(event, sizeof event - 2);
        event[n++] = ',';
    } else {
        n = make_event(event, sizeof event - 2);
    }
    replace(place, 0, event, n);
}

/* A value, or a member with its key, is copied elsewhere, or taken away. */
static void copy_value(void)
{
    static char copy[TEXT_MAX];
    size_t from = some_token(below(2) == 0 ? '{' : '[');
    if (from == n_tokens) {
        return;
    }
    size_t begin = tokens[from].at;
    size_t end = end_of(behind_value(from));
    size_t n = end - begin;
    if (below(3) == 0) { /* remove it and the comma after it */
        n += end < at_hand.length && at_hand.bytes[end] == ',';
        replace(begin, n, "", 0);
        return;
    }
    if (n > 4000) {
        return;
    }
    memcpy(copy, at_hand.bytes + begin, n);
    size_t to = some_token(tokens[from].kind);
    if (below(2) == 0) {
        copy[n++] = ',';
        replace(tokens[to].at, 0, copy, n);
    } else {
        replace(tokens[to].at, end_of(behind_value(to)) - tokens[to].at, copy, n);
    }
}

static void change_string(void)
{
    size_t at = some_token('"');
    char fresh[256];
    if (at == n_tokens) {
        return;
    }
    bool is_key = at + 1 < n_tokens && tokens[at + 1].kind == ':';
    if (is_key) {
        snprintf(fresh, sizeof fresh, "\"%s\"", below(3) == 0 ? PICK(keys) : PICK(arg_keys));
    } else {
        const char *word = below(3) == 0 ? PICK(categories) : PICK(names);
        char phase[2] = {PICK(phases), 0};
        snprintf(fresh, sizeof fresh, "\"%s\"", below(4) == 0 ? phase : word);
    }
    replace(tokens[at].at, tokens[at].length, fresh, strlen(fresh));
}

static void change_value(void)
{
    size_t at = below(3) == 0 ? some_token(':') : some_token('\0');
    if (at == n_tokens) {
        return;
    }
    at += tokens[at].kind == ':';
    if (at >= n_tokens) {
        return;
    }
    char time[64];
    put_time(time, sizeof time);
    const char *fresh = below(3) == 0 ? time : PICK(values);
    replace(tokens[at].at, end_of(behind_value(at)) - tokens[at].at, fresh, strlen(fresh));
}

static void add_argument(void)
{
    size_t at = some_token('{');
    char member[400];
    if (at == n_tokens) {
        return;
    }
    bool empty = at + 1 < n_tokens && tokens[at + 1].kind == '}';
    snprintf(member, sizeof member, "\"%s\":%s%s", below(5) == 0 ? PICK(keys) : PICK(arg_keys),
             PICK(values), empty ? "" : ",");
    replace(tokens[at].at + 1, 0, member, strlen(member));
}

static void change(void)
{
    find_tokens(1); /* the first byte is the target's */
    uint64_t dice = below(20);
    if (n_tokens == 0 || dice < 4) {
        add_event();
    } else if (dice < 8) {
        copy_value();
    } else if (dice < 11) {
        change_string();
    } else if (dice < 16) {
        change_value();
    } else {
        add_argument();
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    fuzz_random_state = seed;
    if (size > TEXT_MAX || below(8) == 0) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    memcpy(at_hand.bytes, data, size);
    at_hand.length = size;
    if (size == 0) {
        at_hand.bytes[at_hand.length++] = 1;
    }
    if (below(16) == 0) {
        at_hand.bytes[0] = (char)next_random();
    }
    for (uint64_t n = 1 + below(CHANGES_MAX); n > 0; n--) {
        change();
    }
    size_t made = at_hand.length < max_size ? at_hand.length : max_size;
    memcpy(data, at_hand.bytes, made);
    return made;
}
