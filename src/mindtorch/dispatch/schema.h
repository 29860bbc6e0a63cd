/* SPDX-License-Identifier: Apache-2.0
 *
 * Schemas: "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)".
 * Parsed by the build (tools/opgen) for our ops and at run time for users'.
 */
#ifndef MINDTORCH_DISPATCH_SCHEMA_H
#define MINDTORCH_DISPATCH_SCHEMA_H

#include <mindtorch/op.h>

typedef enum mt__type {
    MT_TYPE_TENSOR,
    MT_TYPE_TENSOR_OR_SCALAR, /* "Tensor|Scalar" */
    MT_TYPE_TENSORS,          /* "Tensor[]" */
    MT_TYPE_OPTIONAL_TENSORS, /* "Tensor?[]": NULL entries */
    MT_TYPE_SCALAR,
    MT_TYPE_INT,
    MT_TYPE_INTS,
    MT_TYPE_FLOAT,
    MT_TYPE_BOOL,
    MT_TYPE_TEXT, /* "str" */
    MT_TYPE_DTYPE,
    MT_TYPE_DEVICE,
    MT_TYPE_GENERATOR,
    MT_TYPE_COUNT
} mt__type;

enum {
    MT_SCHEMA_TEXT = 64 /* bytes of a name, the zero included */
};

typedef struct mt__param {
    uint8_t type;  /* mt__type */
    bool optional; /* "?": NONE is accepted */
    bool keyword;  /* after "*" */
    bool has_default;
    mt_value value; /* the default; INTS point into default_ints, TEXT into default_text */
    int64_t default_ints[4];
    char default_text[16];
    char name[MT_SCHEMA_TEXT];
} mt__param;

typedef struct mt__schema {
    char space[MT_SCHEMA_TEXT]; /* "mylib", "" for ours */
    char name[MT_SCHEMA_TEXT];
    char overload[MT_SCHEMA_TEXT];
    uint32_t n_params;
    uint32_t n_results;
    mt__param params[MT_MAX_PARAMS];
    uint8_t result_types[MT_MAX_RESULTS]; /* TENSOR, TENSORS, SCALAR, BOOL, INT */
    char result_names[MT_MAX_RESULTS][MT_SCHEMA_TEXT];
} mt__schema;

/* MT_EVALUE names what does not parse and where. */
int mt__schema_parse(const char *text, mt__schema *schema);

/* A bit for each mt_kind that an argument may have. */
uint32_t mt__param_accepts(const mt__param *param);

/* "Tensor", "int[]" and so on. */
const char *mt__type_name(mt__type type);

#endif /* MINDTORCH_DISPATCH_SCHEMA_H */
