/* SPDX-License-Identifier: Apache-2.0
 *
 * What a comparison needs of one trace: its rows, what makes them the same as the other's, and the
 * sum over all of them.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/analyze/compare/compare_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- keys: what makes a row of A and one of B the same --------------------------------------- */

typedef struct key_text {
    char *bytes;
    size_t n, capacity;
    bool failed;
} key_text;

static void put(key_text *text, const char *bytes, size_t length)
{
    text->failed = text->failed || !mtb_grow((void **)&text->bytes, &text->capacity,
                                             text->n + length + 1, sizeof *text->bytes);
    if (!text->failed && length > 0) {
        memcpy(text->bytes + text->n, bytes, length);
        text->n += length;
    }
}

static void put_text(key_text *text, const char *label, mtprof_text part)
{
    if (part.length > 0) {
        put(text, label, strlen(label));
        put(text, part.bytes, part.length);
    }
}

static void put_number(key_text *text, const char *label, long long number)
{
    char digits[48];
    int n = snprintf(digits, sizeof digits, "%s%lld", label, number);
    put(text, digits, (size_t)n);
}

static void put_stack(key_text *text, const mtprof_model *model, const mtprof_row *row)
{
    uint32_t node = row->stack;
    mtprof_frame frame;
    for (uint32_t i = 0; i < row->stack_n && node != 0; i++) {
        if (!mtprof_model_stack(model, node, &node, &frame)) {
            break;
        }
        put_text(text, i == 0 ? " at " : " < ", frame.function);
        put_text(text, " ", frame.file);
        put_number(text, ":", (long long)frame.line);
    }
}

/* What is grouped by, beyond the name, as it is shown. Threads go by name, else by number: ids
 * differ from run to run. */
static void put_detail(key_text *text, const mtprof_model *model, const mtprof_row *row)
{
    mtprof_track track;
    mtprof_device device;
    if (row->device != 0 && mtprof_model_device(model, row->device, &device)) {
        put_text(text, " on ", device.type); /* host and device may have the same name */
    }
    put_text(text, " ", row->input_shapes);
    put_text(text, ".", row->overload);
    put_text(text, " in ", row->module);
    put_stack(text, model, row);
    if (row->step != INT32_MIN) {
        put_number(text, " step ", row->step);
    }
    if (row->track != UINT32_MAX && mtprof_model_track(model, row->track, &track)) {
        if (track.name.length > 0) {
            put_text(text, " on ", track.name);
        } else {
            put_number(text, " on #", track.number);
        }
    }
}

/* Copies what was put into the comparison, and empties the text. */
static int keep(mtprof_compare *c, key_text *text, size_t from, mtprof_text *out)
{
    const char *copy = text->failed
                           ? NULL
                           : mtb_arena_copy_text(&c->texts, text->n > 0 ? text->bytes + from : "",
                                                 text->n > from ? text->n - from : 0);
    if (copy == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "compare: no memory for the rows' texts");
    }
    *out = (mtprof_text){copy, text->n > from ? text->n - from : 0};
    text->n = 0;
    return MTPROF_OK;
}

static int make_key(mtprof_compare *c, const mtprof_model *model, const mtprof_row *row,
                    key_text *text, mtprof__compare_item *item)
{
    mtprof_device device;
    put_detail(text, model, row);
    size_t blank = text->n > 0 && text->bytes[0] == ' ' ? 1 : 0;
    MT_TRY(keep(c, text, blank, &item->row.detail));
    bool known = mtprof_model_device(model, row->device, &device);
    put_text(text, "", known ? device.type : (mtprof_text){"?", 1});
    put(text, row->is_user_annotation != 0 ? " 1 " : " 0 ", 3);
    put_text(text, "", row->key);
    return keep(c, text, 0, &item->key);
}

static int compare_texts(mtprof_text a, mtprof_text b)
{
    size_t least = a.length < b.length ? a.length : b.length;
    int order = least > 0 ? memcmp(a.bytes, b.bytes, least) : 0;
    return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

int mtprof__compare_keys(const void *a, const void *b)
{
    const mtprof__compare_item *x = a;
    const mtprof__compare_item *y = b;
    int order = compare_texts(x->key, y->key);
    return order != 0 ? order : compare_texts(x->row.detail, y->row.detail);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int fill_side(const mtprof_compare *c, mtprof_averages *averages, uint32_t index,
                     const mtprof_row *row, mtprof_compare_side *out)
{
    mtprof_row_noise noise = {.struct_size = sizeof noise};
    double time = (double)(row->device != 0 ? row->self_device_ns : row->self_cpu_ns);
    double memory = (double)row->self_cpu_memory + (double)row->self_device_memory;
    double calls = row->count > 0 ? (double)row->count : 1;
    *out = (mtprof_compare_side){.there = 1,
                                 .ns = time / calls,
                                 .whole_ns = time,
                                 .calls = calls,
                                 .memory_bytes = memory / calls};
    if (c->facts.per_step == 0) {
        return MTPROF_OK;
    }
    MT_TRY(mtprof_averages_get_noise(averages, index, &noise));
    out->steps = noise.steps;
    out->ns = time;
    out->memory_bytes = memory;
    if (noise.steps > 0) {
        out->ns = noise.mean_ns;
        out->deviation_ns = noise.deviation_ns;
        out->calls = noise.mean_calls;
        out->memory_bytes /= noise.steps;
    }
    out->whole_ns = out->ns;
    return MTPROF_OK;
}

int mtprof__compare_load(mtprof_compare *c, mtprof_averages *averages, mtprof__compare_items *out)
{
    const mtprof_model *model = mtprof_averages_model(averages);
    uint32_t n = mtprof_averages_count(averages);
    key_text text = {0};
    int status = MTPROF_OK;
    out->items = mtb_calloc((size_t)n + 1, sizeof *out->items);
    if (out->items == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "compare: no memory for %u rows", n);
    }
    out->n = n;
    for (uint32_t i = 0; i < n && status == MTPROF_OK; i++) {
        mtprof_row row = {.struct_size = sizeof row};
        mtprof__compare_item *item = &out->items[i];
        status = mtprof_averages_get_row(averages, i, &row);
        if (status == MTPROF_OK) {
            status = make_key(c, model, &row, &text, item);
        }
        if (status == MTPROF_OK) {
            status = fill_side(c, averages, i, &row, &item->row.a);
        }
        item->row.name = row.key;
        item->row.on_device = row.device != 0;
    }
    mtb_free(text.bytes);
    if (status == MTPROF_OK) {
        qsort(out->items, n, sizeof *out->items, mtprof__compare_keys);
    }
    return status;
}

/* ---- the whole: per step, over all events of the host ---------------------------------------- */

/* Mean and squares of differences are kept from step to step (Welford). */
typedef struct step_total {
    const mtprof_averages_options *rows;
    uint32_t steps;
    double ns, events, mean, squares;
} step_total;

static int add_step(void *user, const mtprof_step_sum *sum)
{
    step_total *t = user;
    if (t->rows->steps_given != 0 &&
        (sum->step < t->rows->first_step || sum->step > t->rows->last_step)) {
        return 0;
    }
    double off = sum->self_ns - t->mean;
    t->steps++;
    t->ns += sum->self_ns;
    t->events += (double)sum->events;
    t->mean += off / t->steps;
    t->squares += off * (sum->self_ns - t->mean);
    return 0;
}

int mtprof__compare_sum(const mtprof_compare *c, mtprof_model *model, mtprof_compare_side *out)
{
    step_total t = {.rows = &c->rows};
    MT_TRY(mtprof_model_visit_steps(model, add_step, &t));
    *out = (mtprof_compare_side){.there = 1, .steps = t.steps, .ns = t.ns, .calls = t.events};
    if (t.steps >= 2) {
        out->ns = t.ns / t.steps;
        out->calls = t.events / t.steps;
        out->deviation_ns = sqrt(t.squares / (t.steps - 1));
    }
    out->whole_ns = out->ns;
    return MTPROF_OK;
}
