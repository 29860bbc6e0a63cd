/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/model/text/inputs_text.h"

#include <math.h>
#include <stdio.h>

enum {
    LIST_MOST = 30,   /* items of a list that are still shown */
    DEPTH_MOST = 32,  /* of lists inside keyword values */
    STRIDES_FLAG = 1, /* of a tensor's word: strides follow */
    REAL_BYTES = 48
};

/* Where in a list one is: the next word, and the next value of SCALARS. */
typedef struct place {
    uint32_t word, scalar;
} place;

static unsigned kind_of(uint64_t word)
{
    return (unsigned)(word & 0xFF);
}

static uint32_t dims_of(uint64_t word)
{
    return (uint32_t)(word >> 8 & 0xFF);
}

static bool has_strides(uint64_t word)
{
    return (word >> 16 & STRIDES_FLAG) != 0;
}

static uint32_t upper_of(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static bool is_scalar(unsigned kind)
{
    return kind >= MTPROF_INPUT_INT && kind <= MTPROF_INPUT_STRING;
}

/* Steps over a word and its sizes. */
static void pass_word(const mtprof__inputs_view *view, place *at)
{
    uint64_t word = view->words[at->word++];
    if (kind_of(word) == MTPROF_INPUT_TENSOR) {
        uint32_t sizes = dims_of(word) * (has_strides(word) ? 2u : 1u);
        uint32_t left = view->n_words - at->word;
        at->word += sizes < left ? sizes : left;
    } else if (is_scalar(kind_of(word))) {
        at->scalar++;
    }
}

/* Steps over a value with all that is in it. Without recursion: a list adds to what is pending. */
static void pass_value(const mtprof__inputs_view *view, place *at)
{
    uint64_t pending = 1;
    while (pending > 0 && at->word < view->n_words) {
        uint64_t word = view->words[at->word];
        pending--;
        if (kind_of(word) == MTPROF_INPUT_LIST) {
            pending += upper_of(word);
        } else if (kind_of(word) == MTPROF_INPUT_KEYWORD) {
            pending++;
        }
        pass_word(view, at);
    }
}

uint32_t mtprof__inputs_facts(const uint64_t *words, uint32_t n_words)
{
    const mtprof__inputs_view view = {.words = words, .n_words = n_words};
    uint32_t facts = 0;
    place at = {0, 0};
    uint32_t keyword_end = 0; /* words before it are a keyword's value */
    uint32_t value_end = 0;   /* words before it are inside a value of the top level */
    while (at.word < n_words) {
        uint64_t word = words[at.word];
        bool top = at.word >= value_end;
        if (top) {
            place end = at;
            pass_value(&view, &end);
            value_end = end.word;
        }
        if (kind_of(word) == MTPROF_INPUT_TENSOR) {
            facts |= MTPROF__INPUTS_TENSORS | (has_strides(word) ? MTPROF__INPUTS_STRIDES : 0u);
        } else if (is_scalar(kind_of(word))) {
            facts |=
                at.word < keyword_end ? MTPROF__INPUTS_KEYWORD_SCALARS : MTPROF__INPUTS_SCALARS;
        } else if (kind_of(word) == MTPROF_INPUT_KEYWORD && top) {
            facts |= MTPROF__INPUTS_KEYWORDS;
            keyword_end = value_end;
        }
        pass_word(&view, &at);
    }
    return facts;
}

/* ---- arrays of sizes ------------------------------------------------------------------------- */

/* The sizes (or strides) of the tensor at `at`. */
static void write_sizes(mtb_writer *writer, const mtprof__inputs_view *view, place at, bool strides)
{
    uint64_t word = view->words[at.word];
    uint32_t n = dims_of(word);
    uint32_t from = at.word + 1 + (strides ? n : 0);
    mtb_write_literal(writer, "[");
    if (!strides || has_strides(word)) {
        for (uint32_t i = 0; i < n && from + i < view->n_words; i++) {
            char *p = mtb_writer_room(writer, 32);
            if (i > 0) {
                *p++ = ',';
                *p++ = ' ';
            }
            mtb_writer_took(writer, mtb_put_i64(p, (int64_t)view->words[from + i]));
        }
    }
    mtb_write_literal(writer, "]");
}

typedef enum list_kind {
    LIST_SCALARS,
    LIST_TENSORS,
    LIST_MIXED
} list_kind;

/* What kind of list stands at `at`; *items is how many it really has. */
static list_kind look_at_list(const mtprof__inputs_view *view, place at, uint32_t *items)
{
    uint32_t count = upper_of(view->words[at.word++]);
    uint32_t scalars = 0;
    uint32_t tensors = 0;
    uint32_t others = 0;
    uint32_t n = 0;
    for (; n < count && at.word < view->n_words; n++) {
        unsigned kind = kind_of(view->words[at.word]);
        if (kind == MTPROF_INPUT_TENSOR) {
            tensors++;
        } else if (is_scalar(kind)) {
            scalars++;
        } else if (kind != MTPROF_INPUT_NONE) {
            others++;
        }
        pass_value(view, &at);
    }
    *items = n;
    if (others == 0 && tensors == 0) {
        return LIST_SCALARS;
    }
    return others == 0 && scalars == 0 ? LIST_TENSORS : LIST_MIXED;
}

static void write_tensor_list(mtb_writer *writer, const mtprof__inputs_view *view, place at,
                              bool strides)
{
    uint32_t items = 0;
    mtb_write_literal(writer, "[");
    if (look_at_list(view, at, &items) == LIST_TENSORS && items <= LIST_MOST) {
        at.word++;
        for (uint32_t i = 0; i < items; i++) {
            if (i > 0) {
                mtb_write_literal(writer, ", ");
            }
            if (kind_of(view->words[at.word]) == MTPROF_INPUT_TENSOR) {
                write_sizes(writer, view, at, strides);
            } else {
                mtb_write_literal(writer, "[]");
            }
            pass_value(view, &at);
        }
    }
    mtb_write_literal(writer, "]");
}

typedef enum sizes_form {
    FORM_DIMS,
    FORM_STRIDES,
    FORM_SHAPES
} sizes_form;

static void write_all_sizes(mtb_writer *writer, const mtprof__inputs_view *view, sizes_form form)
{
    const char *between = "";
    mtb_write_literal(writer, "[");
    for (place at = {0, 0}; at.word < view->n_words; pass_value(view, &at)) {
        unsigned kind = kind_of(view->words[at.word]);
        if (kind == MTPROF_INPUT_KEYWORD) {
            continue;
        }
        mtb_write_text(writer, between);
        between = ", ";
        if (kind == MTPROF_INPUT_TENSOR) {
            write_sizes(writer, view, at, form == FORM_STRIDES);
        } else if (kind == MTPROF_INPUT_LIST && form != FORM_SHAPES) {
            write_tensor_list(writer, view, at, form == FORM_STRIDES);
        } else {
            mtb_write_literal(writer, "[]");
        }
    }
    mtb_write_literal(writer, "]");
}

void mtprof__write_input_dims(mtb_writer *writer, const mtprof__inputs_view *view)
{
    write_all_sizes(writer, view, FORM_DIMS);
}

void mtprof__write_input_strides(mtb_writer *writer, const mtprof__inputs_view *view)
{
    write_all_sizes(writer, view, FORM_STRIDES);
}

void mtprof__write_input_shapes(mtb_writer *writer, const mtprof__inputs_view *view)
{
    write_all_sizes(writer, view, FORM_SHAPES);
}

/* ---- types ----------------------------------------------------------------------------------- */

static void write_type(mtb_writer *writer, const mtprof__inputs_view *view, place at)
{
    uint64_t word = view->words[at.word];
    uint32_t items = 0;
    switch (kind_of(word)) {
    case MTPROF_INPUT_TENSOR: {
        mtprof_text type = mtprof_model_string(view->model, upper_of(word));
        mtb_write_json(writer, type.bytes, type.length);
        break;
    }
    case MTPROF_INPUT_INT:
    case MTPROF_INPUT_DOUBLE:
    case MTPROF_INPUT_BOOL: mtb_write_literal(writer, "\"Scalar\""); break;
    case MTPROF_INPUT_LIST:
        switch (look_at_list(view, at, &items)) {
        case LIST_SCALARS: mtb_write_literal(writer, "\"ScalarList\""); break;
        case LIST_TENSORS: mtb_write_literal(writer, "\"TensorList\""); break;
        default: mtb_write_literal(writer, "\"\""); break;
        }
        break;
    default: mtb_write_literal(writer, "\"\""); break;
    }
}

void mtprof__write_input_types(mtb_writer *writer, const mtprof__inputs_view *view)
{
    const char *between = "";
    mtb_write_literal(writer, "[");
    for (place at = {0, 0}; at.word < view->n_words; pass_value(view, &at)) {
        if (kind_of(view->words[at.word]) == MTPROF_INPUT_KEYWORD) {
            continue;
        }
        mtb_write_text(writer, between);
        between = ", ";
        write_type(writer, view, at);
    }
    mtb_write_literal(writer, "]");
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
static void write_concrete(mtb_writer *writer, const mtprof__inputs_view *view, place at)
{
    if (at.scalar >= view->n_scalars) {
        return;
    }
    uint64_t value = view->scalars[at.scalar];
    switch (kind_of(view->words[at.word])) {
    case MTPROF_INPUT_INT: mtb_write_i64(writer, (int64_t)value); break;
    case MTPROF_INPUT_DOUBLE: write_real(writer, value); break;
    case MTPROF_INPUT_BOOL: mtb_write_text(writer, value != 0 ? "True" : "False"); break;
    case MTPROF_INPUT_STRING: {
        mtprof_text text = mtprof_model_string(view->model, (uint32_t)value);
        mtb_write_json_inner(writer, text.bytes, text.length);
        break;
    }
    default: break;
    }
}

static void write_concrete_list(mtb_writer *writer, const mtprof__inputs_view *view, place at)
{
    uint32_t items = 0;
    if (look_at_list(view, at, &items) != LIST_SCALARS || items > LIST_MOST) {
        return;
    }
    at.word++;
    mtb_write_literal(writer, "[");
    for (uint32_t i = 0; i < items; i++) {
        if (i > 0) {
            mtb_write_literal(writer, ", ");
        }
        if (kind_of(view->words[at.word]) == MTPROF_INPUT_NONE) {
            mtb_write_literal(writer, "None");
        } else {
            write_concrete(writer, view, at);
        }
        pass_value(view, &at);
    }
    mtb_write_literal(writer, "]");
}

void mtprof__write_concrete_inputs(mtb_writer *writer, const mtprof__inputs_view *view)
{
    const char *open = "[\"";
    place at = {0, 0};
    for (; at.word < view->n_words; pass_value(view, &at)) {
        unsigned kind = kind_of(view->words[at.word]);
        if (kind == MTPROF_INPUT_KEYWORD) {
            continue;
        }
        mtb_write_text(writer, open);
        open = ", \"";
        if (kind == MTPROF_INPUT_LIST) {
            write_concrete_list(writer, view, at);
        } else {
            write_concrete(writer, view, at);
        }
        mtb_write_literal(writer, "\"");
    }
    mtb_write_text(writer, *open == '[' ? "[]" : "]");
}

/* ---- keywords -------------------------------------------------------------------------------- */

static void write_json_scalar(mtb_writer *writer, const mtprof__inputs_view *view, place at)
{
    if (at.scalar >= view->n_scalars) {
        mtb_write_literal(writer, "null");
        return;
    }
    uint64_t value = view->scalars[at.scalar];
    switch (kind_of(view->words[at.word])) {
    case MTPROF_INPUT_INT: mtb_write_i64(writer, (int64_t)value); break;
    case MTPROF_INPUT_DOUBLE: {
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

/* A value of any depth as JSON. Lists that are open are kept in an array, so nothing recurses. */
static void write_json_value(mtb_writer *writer, const mtprof__inputs_view *view, place *at)
{
    uint32_t left[DEPTH_MOST]; /* items still to come of each open list */
    unsigned depth = 0;
    const uint32_t end = view->n_words;
    do {
        bool opened = false;
        if (at->word >= end) {
            mtb_write_literal(writer, "null");
        } else {
            uint64_t word = view->words[at->word];
            unsigned kind = kind_of(word);
            if (kind == MTPROF_INPUT_LIST && upper_of(word) > 0 && depth < DEPTH_MOST) {
                left[depth++] = upper_of(word);
                at->word++;
                mtb_write_literal(writer, "[");
                opened = true;
            } else if (kind == MTPROF_INPUT_TENSOR) {
                write_sizes(writer, view, *at, false);
                pass_value(view, at);
            } else if (is_scalar(kind)) {
                write_json_scalar(writer, view, *at);
                pass_value(view, at);
            } else {
                mtb_write_text(writer, kind == MTPROF_INPUT_LIST ? "[]" : "null");
                pass_value(view, at);
            }
        }
        while (!opened && depth > 0) {
            left[depth - 1] = at->word < end ? left[depth - 1] - 1 : 0;
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
    for (place at = {0, 0}; at.word < view->n_words; pass_value(view, &at)) {
        uint64_t word = view->words[at.word];
        if (kind_of(word) != MTPROF_INPUT_KEYWORD) {
            continue;
        }
        mtprof_text key = mtprof_model_string(view->model, upper_of(word));
        if (skip != NULL && skip(context, key)) {
            continue;
        }
        mtb_write_literal(writer, ", ");
        mtb_write_json(writer, key.bytes, key.length);
        mtb_write_literal(writer, ": ");
        place value = {at.word + 1, at.scalar};
        write_json_value(writer, view, &value);
    }
}
