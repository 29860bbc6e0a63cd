/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/model/text/inputs_text.h"

#include "mtprof/format/input_words.h"

#include <math.h>
#include <stdio.h>

enum {
    LIST_MOST = 30, /* items of a list that are still shown */
    REAL_BYTES = 48
};

mtprof__inputs_view mtprof__inputs_of(const mtprof_model *model, const mtprof__payload *payload)
{
    static const uint64_t none[1] = {0};
    bool scalars = (payload->fields & MTPROF__HAS_SCALARS) != 0 && payload->n_scalars > 0;
    return (mtprof__inputs_view){.model = model,
                                 .words = payload->input_words,
                                 .n_words = payload->n_input_words,
                                 .scalars = scalars ? payload->scalars : none,
                                 .n_scalars = scalars ? payload->n_scalars : 0};
}

static mtprof_input_walk walk_over(const mtprof__inputs_view *view)
{
    return mtprof__input_walk(view->words, view->n_words);
}

/* The value of the scalar that the walk has come to; false: it is missing. */
static bool scalar_at(const mtprof__inputs_view *view, const mtprof_input_walk *walk,
                      uint64_t *value)
{
    bool known = walk->n_scalars <= view->n_scalars;
    *value = known ? view->scalars[walk->n_scalars - 1] : 0;
    return known;
}

uint32_t mtprof__inputs_facts(const uint64_t *words, uint32_t n_words)
{
    mtprof_input_walk walk = mtprof__input_walk(words, n_words);
    uint32_t facts = 0;
    for (bool more = mtprof__input_next(&walk); more;) {
        bool keyword = walk.kind == MTPROF_INPUT_KEYWORD;
        mtprof_input_walk end = walk; /* of the value of the top level, with all that is in it */
        mtprof__input_skip(&end);
        facts |= keyword ? MTPROF__INPUTS_KEYWORDS : 0u;
        do {
            if (walk.kind == MTPROF_INPUT_TENSOR) {
                facts |= MTPROF__INPUTS_TENSORS;
                facts |= walk.strides != NULL ? MTPROF__INPUTS_STRIDES : 0u;
            } else if (mtprof__input_is_scalar(walk.kind)) {
                facts |= keyword ? MTPROF__INPUTS_KEYWORD_SCALARS : MTPROF__INPUTS_SCALARS;
            }
            more = mtprof__input_next(&walk);
        } while (more && walk.word <= end.word);
    }
    return facts;
}

/* ---- arrays of sizes ------------------------------------------------------------------------- */

/* The sizes (or strides) of a tensor. */
static void write_sizes(mtb_writer *writer, const mtprof_input_walk *tensor, bool strides)
{
    const uint64_t *sizes = strides ? tensor->strides : tensor->sizes;
    uint32_t n = strides ? tensor->n_strides : tensor->n_sizes;
    mtb_write_literal(writer, "[");
    for (uint32_t i = 0; i < n; i++) {
        char *p = mtb_writer_room(writer, 32);
        if (i > 0) {
            *p++ = ',';
            *p++ = ' ';
        }
        mtb_writer_took(writer, mtb_put_i64(p, (int64_t)sizes[i]));
    }
    mtb_write_literal(writer, "]");
}

typedef enum list_kind {
    LIST_SCALARS,
    LIST_TENSORS,
    LIST_MIXED
} list_kind;

/* What kind of list the walk has come to; *items is how many it really has. */
static list_kind look_at_list(mtprof_input_walk walk, uint32_t *items)
{
    uint32_t count = walk.count;
    uint32_t scalars = 0;
    uint32_t tensors = 0;
    uint32_t others = 0;
    uint32_t n = 0;
    for (; n < count && mtprof__input_next(&walk); n++) {
        if (walk.kind == MTPROF_INPUT_TENSOR) {
            tensors++;
        } else if (mtprof__input_is_scalar(walk.kind)) {
            scalars++;
        } else if (walk.kind != MTPROF_INPUT_NONE) {
            others++;
        }
        mtprof__input_skip(&walk);
    }
    *items = n;
    if (others == 0 && tensors == 0) {
        return LIST_SCALARS;
    }
    return others == 0 && scalars == 0 ? LIST_TENSORS : LIST_MIXED;
}

static void write_tensor_list(mtb_writer *writer, mtprof_input_walk walk, bool strides)
{
    uint32_t items = 0;
    mtb_write_literal(writer, "[");
    if (look_at_list(walk, &items) == LIST_TENSORS && items <= LIST_MOST) {
        for (uint32_t i = 0; i < items && mtprof__input_next(&walk); i++) {
            mtb_write_text(writer, i > 0 ? ", " : "");
            write_sizes(writer, &walk, strides); /* a value that is none has no sizes */
        }
    }
    mtb_write_literal(writer, "]");
}

/* ---- types ----------------------------------------------------------------------------------- */

static void write_type(mtb_writer *writer, const mtprof__inputs_view *view,
                       const mtprof_input_walk *walk)
{
    uint32_t items = 0;
    switch (walk->kind) {
    case MTPROF_INPUT_TENSOR: {
        mtprof_text type = mtprof_model_string(view->model, walk->string);
        mtb_write_json(writer, type.bytes, type.length);
        break;
    }
    case MTPROF_INPUT_INT:
    case MTPROF_INPUT_REAL:
    case MTPROF_INPUT_BOOL: mtb_write_literal(writer, "\"Scalar\""); break;
    case MTPROF_INPUT_LIST:
        switch (look_at_list(*walk, &items)) {
        case LIST_SCALARS: mtb_write_literal(writer, "\"ScalarList\""); break;
        case LIST_TENSORS: mtb_write_literal(writer, "\"TensorList\""); break;
        default: mtb_write_literal(writer, "\"\""); break;
        }
        break;
    default: mtb_write_literal(writer, "\"\""); break;
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

/* 17 digits, "2." for 2: how torch shows them. The locale's point becomes a point again. */
static void write_real(mtb_writer *writer, uint64_t bits)
{
    char text[REAL_BYTES];
    double value;
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value)) {
        mtb_write_text(writer, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    int n = snprintf(text, sizeof text - 1, "%.17g", value);
    bool whole = true;
    for (int i = 0; i < n; i++) {
        if (text[i] == 'e') {
            whole = false;
        } else if (text[i] != '-' && text[i] != '+' && (text[i] < '0' || text[i] > '9')) {
            text[i] = '.';
            whole = false;
        }
    }
    if (whole) {
        text[n++] = '.';
    }
    mtb_write(writer, text, (size_t)n);
}

/* A scalar inside a JSON string, strings without quotes of their own. */
static void write_concrete(mtb_writer *writer, const mtprof__inputs_view *view,
                           const mtprof_input_walk *walk)
{
    uint64_t value = 0;
    if (!mtprof__input_is_scalar(walk->kind) || !scalar_at(view, walk, &value)) {
        return;
    }
    switch (walk->kind) {
    case MTPROF_INPUT_INT: mtb_write_i64(writer, (int64_t)value); break;
    case MTPROF_INPUT_REAL: write_real(writer, value); break;
    case MTPROF_INPUT_BOOL: mtb_write_text(writer, value != 0 ? "True" : "False"); break;
    case MTPROF_INPUT_STRING: {
        mtprof_text text = mtprof_model_string(view->model, (uint32_t)value);
        mtb_write_json_inner(writer, text.bytes, text.length);
        break;
    }
    default: break;
    }
}

static void write_concrete_list(mtb_writer *writer, const mtprof__inputs_view *view,
                                mtprof_input_walk walk)
{
    uint32_t items = 0;
    if (look_at_list(walk, &items) != LIST_SCALARS || items > LIST_MOST) {
        return;
    }
    mtb_write_literal(writer, "[");
    for (uint32_t i = 0; i < items && mtprof__input_next(&walk); i++) {
        mtb_write_text(writer, i > 0 ? ", " : "");
        if (walk.kind == MTPROF_INPUT_NONE) {
            mtb_write_literal(writer, "None");
        } else {
            write_concrete(writer, view, &walk);
        }
    }
    mtb_write_literal(writer, "]");
}

/* ---- the arrays ------------------------------------------------------------------------------ */

typedef enum array_form {
    FORM_DIMS,
    FORM_STRIDES,
    FORM_SHAPES,
    FORM_TYPES,
    FORM_CONCRETE
} array_form;

static void write_item(mtb_writer *writer, const mtprof__inputs_view *view,
                       const mtprof_input_walk *walk, array_form form)
{
    bool list = walk->kind == MTPROF_INPUT_LIST;
    if (form == FORM_TYPES) {
        write_type(writer, view, walk);
    } else if (form == FORM_CONCRETE) {
        mtb_write_literal(writer, "\"");
        if (list) {
            write_concrete_list(writer, view, *walk);
        } else {
            write_concrete(writer, view, walk);
        }
        mtb_write_literal(writer, "\"");
    } else if (list && form != FORM_SHAPES) {
        write_tensor_list(writer, *walk, form == FORM_STRIDES);
    } else {
        write_sizes(writer, walk, form == FORM_STRIDES); /* only tensors have some */
    }
}

static void write_array(mtb_writer *writer, const mtprof__inputs_view *view, array_form form)
{
    const char *between = "";
    mtb_write_literal(writer, "[");
    for (mtprof_input_walk walk = walk_over(view); mtprof__input_next(&walk);
         mtprof__input_skip(&walk)) {
        if (walk.kind != MTPROF_INPUT_KEYWORD) { /* IT2 */
            mtb_write_text(writer, between);
            between = ", ";
            write_item(writer, view, &walk, form);
        }
    }
    mtb_write_literal(writer, "]");
}

void mtprof__write_input_dims(mtb_writer *writer, const mtprof__inputs_view *view)
{
    write_array(writer, view, FORM_DIMS);
}

void mtprof__write_input_strides(mtb_writer *writer, const mtprof__inputs_view *view)
{
    write_array(writer, view, FORM_STRIDES);
}

void mtprof__write_input_shapes(mtb_writer *writer, const mtprof__inputs_view *view)
{
    write_array(writer, view, FORM_SHAPES);
}

void mtprof__write_input_types(mtb_writer *writer, const mtprof__inputs_view *view)
{
    write_array(writer, view, FORM_TYPES);
}

void mtprof__write_concrete_inputs(mtb_writer *writer, const mtprof__inputs_view *view)
{
    write_array(writer, view, FORM_CONCRETE);
}

/* ---- keywords -------------------------------------------------------------------------------- */

static void write_json_scalar(mtb_writer *writer, const mtprof__inputs_view *view,
                              const mtprof_input_walk *walk)
{
    uint64_t value = 0;
    if (!scalar_at(view, walk, &value)) {
        mtb_write_literal(writer, "null");
        return;
    }
    switch (walk->kind) {
    case MTPROF_INPUT_INT: mtb_write_i64(writer, (int64_t)value); break;
    case MTPROF_INPUT_REAL: {
        double real;
        memcpy(&real, &value, sizeof real);
        mtb_write_double(writer, real);
        break;
    }
    case MTPROF_INPUT_BOOL: mtb_write_text(writer, value != 0 ? "true" : "false"); break;
    default: {
        mtprof_text text = mtprof_model_string(view->model, (uint32_t)value);
        mtb_write_json(writer, text.bytes, text.length);
        break;
    }
    }
}

/* The next value, of any depth, as JSON. Lists that are open are kept in an array, so nothing
 * recurses. */
static void write_json_value(mtb_writer *writer, const mtprof__inputs_view *view,
                             mtprof_input_walk walk)
{
    uint32_t left[MTPROF__LIST_DEPTH]; /* items still to come of each open list */
    unsigned depth = 0;
    do {
        bool opened = false;
        if (!mtprof__input_next(&walk)) {
            mtb_write_literal(writer, "null");
        } else if (walk.count > 0 && depth < MTPROF__LIST_DEPTH) {
            left[depth++] = walk.count;
            mtb_write_literal(writer, "[");
            opened = true;
        } else {
            if (walk.kind == MTPROF_INPUT_TENSOR) {
                write_sizes(writer, &walk, false);
            } else if (mtprof__input_is_scalar(walk.kind)) {
                write_json_scalar(writer, view, &walk);
            } else {
                mtb_write_text(writer, walk.kind == MTPROF_INPUT_LIST ? "[]" : "null");
            }
            mtprof__input_skip(&walk);
        }
        while (!opened && depth > 0) {
            left[depth - 1] = walk.word < walk.n_words ? left[depth - 1] - 1 : 0;
            if (left[depth - 1] > 0) {
                mtb_write_literal(writer, ", ");
                break;
            }
            mtb_write_literal(writer, "]");
            depth--;
        }
    } while (depth > 0);
}

void mtprof__write_keyword_inputs(mtb_writer *writer, const mtprof__inputs_view *view,
                                  bool (*skip)(const void *context, mtprof_text key),
                                  const void *context)
{
    for (mtprof_input_walk walk = walk_over(view); mtprof__input_next(&walk);
         mtprof__input_skip(&walk)) {
        if (walk.kind != MTPROF_INPUT_KEYWORD) {
            continue;
        }
        mtprof_text key = mtprof_model_string(view->model, walk.string);
        if (skip != NULL && skip(context, key)) {
            continue;
        }
        mtb_write_literal(writer, ", ");
        mtb_write_json(writer, key.bytes, key.length);
        mtb_write_literal(writer, ": ");
        write_json_value(writer, view, walk);
    }
}
