/* SPDX-License-Identifier: Apache-2.0
 *
 * Input lists (docs/format.md section 5) as text: the JSON arrays that torch writes with an op,
 * and the text by which rows are grouped.
 *
 *   IT1  Each function reads within n_words and n_scalars whatever the words say: a list that ends
 *        early is shown as far as it goes, a scalar whose value is missing is shown as none.
 *   IT2  Positional inputs are items of the arrays; keyword inputs are in none of them and come
 *        under their own names (mtprof__write_keyword_inputs).
 *   IT3  What is written is valid JSON for any words and any strings.
 */
#ifndef MTPROF_MODEL_TEXT_INPUTS_TEXT_H
#define MTPROF_MODEL_TEXT_INPUTS_TEXT_H

#include "base/text_writer.h"
#include "mtprof/model/events/event.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct mtprof__inputs_view {
    const mtprof_model *model; /* for type names, keywords and strings */
    const uint64_t *words;
    const uint64_t *scalars;
    uint32_t n_words, n_scalars;
} mtprof__inputs_view;

/* The inputs of a payload that has some. */
mtprof__inputs_view mtprof__inputs_of(const mtprof_model *model, const mtprof__payload *payload);

/* What a list has, wherever in it. */
enum mtprof__inputs_fact {
    MTPROF__INPUTS_TENSORS = 1 << 0,
    MTPROF__INPUTS_STRIDES = 1 << 1,  /* at least one tensor came with strides */
    MTPROF__INPUTS_SCALARS = 1 << 2,  /* values in SCALARS: equal lists may have different ones */
    MTPROF__INPUTS_KEYWORDS = 1 << 3, /* at the top level */
    MTPROF__INPUTS_KEYWORD_SCALARS = 1 << 4
};
uint32_t mtprof__inputs_facts(const uint64_t *words, uint32_t n_words);

/* "Input Dims": [[4, 4], [], [[2], [3]]]: a tensor its sizes, a list of tensors theirs (none past
 * 30 tensors), everything else []. */
void mtprof__write_input_dims(mtb_writer *writer, const mtprof__inputs_view *view);
/* "Input Strides": the same with strides; [] for a tensor without. */
void mtprof__write_input_strides(mtb_writer *writer, const mtprof__inputs_view *view);
/* "Input type": ["float", "Scalar", "ScalarList", "TensorList", ""]. */
void mtprof__write_input_types(mtb_writer *writer, const mtprof__inputs_view *view);
/* "Concrete Inputs": ["", "1", "0.5", "[2, 4]", "False"]: scalars and lists of at most 30 scalars
 * as Python shows them, except that doubles have 17 digits and no zero after the point; strings as
 * they are; "" for all others. */
void mtprof__write_concrete_inputs(mtb_writer *writer, const mtprof__inputs_view *view);

/* Keyword inputs as members of a JSON object, each with ", " before it: , "stream": 7, "grid": [1].
 * Numbers as numbers, strings as strings, a tensor as its sizes, none as null. `skip` (may be NULL)
 * says which keys are taken. */
void mtprof__write_keyword_inputs(mtb_writer *writer, const mtprof__inputs_view *view,
                                  bool (*skip)(const void *context, mtprof_text key),
                                  const void *context);

/* Python's str(input_shapes): "[[2, 3], []]": tensors their sizes, everything else [], also lists
 * of tensors. */
void mtprof__write_input_shapes(mtb_writer *writer, const mtprof__inputs_view *view);

#endif /* MTPROF_MODEL_TEXT_INPUTS_TEXT_H */
