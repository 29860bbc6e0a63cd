/* SPDX-License-Identifier: Apache-2.0
 *
 * Typed functions. One op may have several: a "Tensor|Scalar" parameter makes one for tensors and
 * one for numbers (mt_add, mt_add_scalar), keyword parameters with defaults make a short one and
 * one that has them all (mt_sum, mt_sum_with).
 */
#include "opgen.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* One function of an op. */
typedef struct form {
    const op_text *op;
    uint32_t scalars; /* a bit for each parameter that is a number although it may be a tensor */
    bool keywords;    /* keyword parameters are parameters */
    bool suffix_with;
} form;

typedef void form_fn(const form *f);

static const mt__param *param_of(const form *f, uint32_t i)
{
    return &f->op->schema.params[i];
}

static bool is_shown(const form *f, uint32_t i)
{
    return !param_of(f, i)->keyword || f->keywords;
}

static void print_name(const form *f)
{
    const mt__schema *schema = &f->op->schema;
    size_t length = strlen(schema->name);
    bool written = schema->name[length - 1] == '_'; /* mt_add_scalar_: the mark stays at the end */
    printf("mt_%.*s", (int)(length - written), schema->name);
    if (schema->overload[0] != '\0') {
        putchar('_');
        for (const char *c = schema->overload; *c != '\0'; c++) {
            putchar(tolower((unsigned char)*c));
        }
    }
    uint32_t either = 0;
    for (uint32_t i = 0; i < schema->n_params; i++) {
        either += schema->params[i].type == MT_TYPE_TENSOR_OR_SCALAR;
    }
    for (uint32_t i = 0; f->scalars != 0 && i < schema->n_params; i++) {
        if (schema->params[i].type == MT_TYPE_TENSOR_OR_SCALAR) {
            bool scalar = (f->scalars >> i & 1) != 0;
            printf("%s", scalar ? "_scalar" : either > 1 ? "_tensor" : "");
        }
    }
    printf("%s%s", f->suffix_with ? "_with" : "", written ? "_" : "");
}

/* "const int64_t *dim, size_t n_dim" */
static void print_param(const form *f, uint32_t i)
{
    const mt__param *param = param_of(f, i);
    const char *name = param->name;
    switch ((mt__type)param->type) {
    case MT_TYPE_TENSOR_OR_SCALAR:
        if ((f->scalars >> i & 1) != 0) {
            printf("mt_scalar %s", name);
        } else {
            printf("mt_tensor *%s", name);
        }
        break;
    case MT_TYPE_TENSOR: printf("mt_tensor *%s", name); break;
    case MT_TYPE_TENSORS:
    case MT_TYPE_OPTIONAL_TENSORS: printf("mt_tensor *const *%s, size_t n_%s", name, name); break;
    case MT_TYPE_SCALAR:
        printf(param->optional ? "const mt_scalar *%s" : "mt_scalar %s", name);
        break;
    case MT_TYPE_INT: printf(param->optional ? "const int64_t *%s" : "int64_t %s", name); break;
    case MT_TYPE_INTS: printf("const int64_t *%s, size_t n_%s", name, name); break;
    case MT_TYPE_FLOAT: printf(param->optional ? "const double *%s" : "double %s", name); break;
    case MT_TYPE_BOOL: printf(param->optional ? "const bool *%s" : "bool %s", name); break;
    case MT_TYPE_TEXT: printf("const char *%s", name); break;
    case MT_TYPE_DTYPE: printf("mt_dtype %s", name); break;
    case MT_TYPE_DEVICE: printf("mt_device %s", name); break;
    case MT_TYPE_GENERATOR: printf("mt_generator *%s", name); break;
    case MT_TYPE_COUNT: break;
    }
}

static const char *result_name(const mt__schema *schema, uint32_t i)
{
    if (schema->n_results > 1 && schema->result_names[i][0] != '\0') {
        return schema->result_names[i];
    }
    return "out";
}

static void print_prototype(const form *f)
{
    const mt__schema *schema = &f->op->schema;
    printf("mt_status ");
    print_name(f);
    printf("(");
    const char *comma = "";
    for (uint32_t i = 0; i < schema->n_params; i++) {
        if (is_shown(f, i)) {
            printf("%s", comma);
            print_param(f, i);
            comma = ", ";
        }
    }
    for (uint32_t i = 0; i < schema->n_results && (f->op->flags & MT_OP_INPLACE) == 0; i++) {
        static const char *const types[MT_TYPE_COUNT] = {
            [MT_TYPE_TENSOR] = "mt_tensor **",
            [MT_TYPE_TENSORS] = "mt_value *",
            [MT_TYPE_SCALAR] = "mt_scalar *",
            [MT_TYPE_BOOL] = "bool *",
        };
        const char *type = types[schema->result_types[i]];
        printf("%s%s%s", comma, type == NULL ? "?" : type, result_name(schema, i));
        comma = ", ";
    }
    printf(")");
}

void opgen_default(FILE *out, const mt__param *param)
{
    const mt_value *value = &param->value;
    switch ((mt_kind)value->kind) {
    case MT_KIND_BOOL:
        fprintf(out, "mt__box_bool(%s)", value->of.integer != 0 ? "true" : "false");
        break;
    case MT_KIND_INT: fprintf(out, "mt__box_int(%lld)", (long long)value->of.integer); break;
    case MT_KIND_REAL: fprintf(out, "mt__box_real(%.17g)", value->of.real); break;
    case MT_KIND_TEXT: fprintf(out, "mt__box_text(\"%s\")", value->of.text); break;
    case MT_KIND_INTS:
        fprintf(out, "mt__box_ints((const int64_t[]){");
        for (uint32_t i = 0; i < value->count; i++) {
            fprintf(out, "%lld, ", (long long)value->of.ints[i]);
        }
        fprintf(out, "%s}, %u)", value->count == 0 ? "0" : "", value->count);
        break;
    default: fprintf(out, "mt__box_none()"); break;
    }
}

static void print_boxed(const form *f, uint32_t i)
{
    static const char *const boxes[MT_TYPE_COUNT][2] = {
        [MT_TYPE_TENSOR] = {"tensor", "tensor"},
        [MT_TYPE_TENSORS] = {"tensors", "tensors"},
        [MT_TYPE_OPTIONAL_TENSORS] = {"tensors", "tensors"},
        [MT_TYPE_SCALAR] = {"scalar", "optional_scalar"},
        [MT_TYPE_INT] = {"int", "optional_int"},
        [MT_TYPE_INTS] = {"ints", "optional_ints"},
        [MT_TYPE_FLOAT] = {"real", "optional_real"},
        [MT_TYPE_BOOL] = {"bool", "optional_bool"},
        [MT_TYPE_TEXT] = {"text", "text"},
        [MT_TYPE_DTYPE] = {"dtype", "dtype"},
        [MT_TYPE_DEVICE] = {"device", "device"},
        [MT_TYPE_GENERATOR] = {"generator", "generator"},
    };
    const mt__param *param = param_of(f, i);
    if (!is_shown(f, i)) {
        opgen_default(stdout, param);
        return;
    }
    const char *box = boxes[param->type][param->optional];
    if (param->type == MT_TYPE_TENSOR_OR_SCALAR) {
        box = (f->scalars >> i & 1) != 0 ? "scalar" : "tensor";
    }
    bool list = param->type == MT_TYPE_TENSORS || param->type == MT_TYPE_OPTIONAL_TENSORS ||
                param->type == MT_TYPE_INTS;
    printf("mt__box_%s(%s", box, param->name);
    if (list) {
        printf(", n_%s", param->name);
    }
    printf(")");
}

static void print_body(const form *f)
{
    const mt__schema *schema = &f->op->schema;
    print_prototype(f);
    printf("\n{\n    const mt_value args[] = {");
    for (uint32_t i = 0; i < schema->n_params; i++) {
        printf("%s", i > 0 ? ", " : "");
        print_boxed(f, i);
    }
    printf("};\n    return mt__dispatch_");
    const char *row = f->op->id;
    if ((f->op->flags & MT_OP_INPLACE) != 0 || schema->n_results == 0) {
        printf("nothing(&mt__op_rows[MT__OP_%s], args);\n}\n\n", row);
        return;
    }
    if (schema->n_results > 1) {
        printf("tensors(&mt__op_rows[MT__OP_%s], args, (mt_tensor **const[]){", row);
        for (uint32_t i = 0; i < schema->n_results; i++) {
            printf("%s%s", i > 0 ? ", " : "", schema->result_names[i]);
        }
        printf("});\n}\n\n");
        return;
    }
    static const char *const ways[MT_TYPE_COUNT] = {
        [MT_TYPE_TENSOR] = "tensor",
        [MT_TYPE_TENSORS] = "value",
        [MT_TYPE_SCALAR] = "value",
        [MT_TYPE_BOOL] = "bool",
    };
    printf("%s(&mt__op_rows[MT__OP_%s], args, out);\n}\n\n", ways[schema->result_types[0]], row);
}

/* Calls `write` for each function of an op. */
static void each_form(const op_text *op, form_fn *write)
{
    const mt__schema *schema = &op->schema;
    uint32_t either = 0;
    uint32_t tensors = 0;
    bool keywords = false;
    bool short_form = true;
    for (uint32_t i = 0; i < schema->n_params; i++) {
        either |= (uint32_t)(schema->params[i].type == MT_TYPE_TENSOR_OR_SCALAR) << i;
        tensors += schema->params[i].type == MT_TYPE_TENSOR;
        keywords |= schema->params[i].keyword;
        short_form &= !schema->params[i].keyword || schema->params[i].has_default;
    }
    for (uint32_t scalars = 0; scalars <= either; scalars++) {
        bool all = scalars == either && either != 0;
        if ((scalars & ~either) != 0 || (all && tensors == 0)) {
            continue; /* an op of numbers alone makes no tensor */
        }
        if (short_form) {
            write(&(form){.op = op, .scalars = scalars});
        }
        if (keywords) {
            write(
                &(form){.op = op, .scalars = scalars, .keywords = true, .suffix_with = short_form});
        }
    }
}

/* torch's private ops (_softmax) are not part of the C API: their functions are hidden. */
static bool is_private(const op_text *op)
{
    return op->schema.name[0] == '_';
}

static void print_declaration(const form *f)
{
    printf("%s", is_private(f->op) ? "" : "MT_API ");
    print_prototype(f);
    printf(";\n");
}

static void print_declarations(const op_text *ops, size_t count, bool private)
{
    for (size_t i = 0; i < count; i++) {
        if (is_private(&ops[i]) == private) {
            printf("\n/** %s */\n", ops[i].schema_text);
            each_form(&ops[i], print_declaration);
        }
    }
}

void opgen_header(const op_text *ops, size_t count)
{
    printf(
        "/* SPDX-License-Identifier: Apache-2.0\n"
        " *\n"
        " * Every op as a C function. Made from the op table (src/mindtorch/ops) by tools/opgen.\n"
        " *\n"
        " * NULL stands for an argument that is not given where the schema has a question mark;\n"
        " * so do MT_DTYPE_NONE and MT_DEVICE_NONE. Functions that end in _with take the keyword\n"
        " * arguments too, those in _scalar a number in the place of a tensor. Lists of tensors are\n"
        " * given as one value: mt_value_clear() releases them. On failure results are NULL.\n"
        " */\n"
        "#ifndef MINDTORCH_OPS_H\n#define MINDTORCH_OPS_H\n\n"
        "#include <mindtorch/status.h>\n#include <mindtorch/value.h>\n\nMT_BEGIN_DECLS\n");
    print_declarations(ops, count, false);
    printf("\nMT_END_DECLS\n\n#endif /* MINDTORCH_OPS_H */\n");
}

void opgen_private(const op_text *ops, size_t count)
{
    printf(
        "/* SPDX-License-Identifier: Apache-2.0\n *\n"
        " * Ops whose names begin with an underscore, for the library itself. Made by tools/opgen. */\n"
        "#ifndef PRIVATE_OPS_H\n#define PRIVATE_OPS_H\n\n#include <mindtorch/ops.h>\n");
    print_declarations(ops, count, true);
    printf("\n#endif /* PRIVATE_OPS_H */\n");
}

void opgen_calls(const op_text *ops, size_t count)
{
    printf("/* SPDX-License-Identifier: Apache-2.0\n *\n * Made by tools/opgen. */\n"
           "#include \"mindtorch/dispatch/boxing.h\"\n"
           "#include \"mindtorch/dispatch/dispatch.h\"\n"
           "#include \"mindtorch/ops/op_support.h\"\n\n"
           "#include \"private_ops.h\"\n\n#include <mindtorch/ops.h>\n\n");
    for (size_t i = 0; i < count; i++) {
        each_form(&ops[i], print_body);
    }
}
