/* SPDX-License-Identifier: Apache-2.0
 *
 * The dispatcher's table and the profiler's sites.
 */
#include "opgen.h"

#include <stdio.h>

static void print_default_value(const op_text *op, uint32_t i)
{
    const mt_value *value = &op->schema.params[i].value;
    switch ((mt_kind)value->kind) {
    case MT_KIND_BOOL:
    case MT_KIND_INT:
        printf("{.kind = %u, .of.integer = %lld}", value->kind, (long long)value->of.integer);
        break;
    case MT_KIND_REAL: printf("{.kind = MT_KIND_REAL, .of.real = %.17g}", value->of.real); break;
    case MT_KIND_TEXT: printf("{.kind = MT_KIND_TEXT, .of.text = \"%s\"}", value->of.text); break;
    case MT_KIND_INTS:
        printf("{.kind = MT_KIND_INTS, .count = %u, .of.ints = (const int64_t[]){", value->count);
        for (uint32_t k = 0; k < value->count; k++) {
            printf("%lld, ", (long long)value->of.ints[k]);
        }
        printf("%s}}", value->count == 0 ? "0" : "");
        break;
    default: printf("{.kind = MT_KIND_NONE}"); break;
    }
}

static void print_params(const op_text *op)
{
    const mt__schema *schema = &op->schema;
    printf("static const mt__row_param params_%s[] = {\n", op->id);
    for (uint32_t i = 0; i < schema->n_params; i++) {
        const mt__param *param = &schema->params[i];
        printf("    {\"%s\", 0x%x, %s, %s, ", param->name, mt__param_accepts(param),
               param->has_default ? "true" : "false",
               param->type == MT_TYPE_OPTIONAL_TENSORS ? "true" : "false");
        print_default_value(op, i);
        printf("},\n");
    }
    printf("};\n");
}

static uint32_t count_required(const mt__schema *schema)
{
    uint32_t required = 0;
    for (uint32_t i = 0; i < schema->n_params; i++) {
        if (!schema->params[i].has_default) {
            required = i + 1;
        }
    }
    return required;
}

/* The formula and what it looks at. */
static void print_derivative(const op_text *op)
{
    const op_line *line = op->derivative;
    if (line == NULL) {
        return;
    }
    printf("static const mt__derivative derivative_%s = {\n"
           "    .name = \"%s\", .run = %s, .saves = 0x%x, .saved_if = {",
           op->id, line->text, op->derive, op->saves);
    for (uint32_t i = 0; i < MT_RULED_ARGS; i++) {
        printf("%u, ", op->saved_if[i]);
    }
    printf("}};\n");
}

static void print_reported(const op_text *op)
{
    if (op->n_reported == 0) {
        return;
    }
    printf("static const mt__shown reported_%s[] = {\n", op->id);
    for (uint32_t i = 0; i < op->n_reported; i++) {
        const mt__shown *reported = &op->reported[i]->reported;
        printf("    {.when = %u, .argument = %u, .codes = {", reported->when, reported->argument);
        for (uint32_t k = 0; k < MT_SHOWN_MAX; k++) {
            printf("0x%x, ", reported->codes[k]);
        }
        printf("}},\n");
    }
    printf("    {.when = MT_SHOWN_NEVER},\n};\n");
}

/* The NODE_IF lines of all ops; returns how many there are. */
static uint32_t print_node_names(const op_text *ops, size_t count, bool print)
{
    uint32_t n = 0;
    for (size_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < ops[i].n_node_if; k++, n++) {
            const op_line *line = ops[i].node_if[k];
            if (print) {
                printf("    {\"%s\", MT__OP_%s, %u, MT_NODE_IF_%s},\n", line->text, ops[i].id,
                       line->argument, line->condition);
            }
        }
    }
    return n;
}

static void print_row(const op_text *op, size_t number)
{
    const mt__schema *schema = &op->schema;
    printf("    {.name = \"%s\", .overload = \"%s\", .trace_name = \"aten::%s\",\n"
           "     .schema = \"%s\",\n"
           "     .flags = 0x%x, .n_params = %u, .n_required = %u, .n_results = %u, .op = %zu,\n"
           "     .run = %s, .params = params_%s,\n",
           schema->name, schema->overload, schema->name, op->schema_text, op->flags,
           schema->n_params, count_required(schema), schema->n_results, number, op->run, op->id);
    if (op->derivative != NULL) {
        printf("     .derivative = &derivative_%s,\n", op->id);
    }
    if (op->target[0] != '\0') {
        printf("     .target = MT__OP_%s,\n", op->target);
    }
    if (op->n_reported > 0) {
        printf("     .reported = reported_%s,\n", op->id);
    }
    printf("    },\n");
}

void opgen_rows(const op_text *ops, size_t count)
{
    printf("/* SPDX-License-Identifier: Apache-2.0\n *\n * Made by tools/opgen. */\n"
           "#include \"op_numbers.h\"\n\n");
    for (size_t i = 0; i < count; i++) {
        print_params(&ops[i]);
        print_derivative(&ops[i]);
        print_reported(&ops[i]);
    }
    printf("\nconst mt__op_row mt__op_rows[] = {\n");
    for (size_t i = 0; i < count; i++) {
        print_row(&ops[i], i);
    }
    printf("};\nconst uint32_t mt__n_op_rows = %zu;\n", count);
    printf("\nconst mt__node_if mt__node_names[] = {\n");
    print_node_names(ops, count, true);
    printf("};\n");
}

void opgen_numbers(const op_text *ops, size_t count)
{
    printf(
        "/* SPDX-License-Identifier: Apache-2.0\n *\n"
        " * Our ops by number: mt_call(MT__OP_ADD, ...), and what they run. Made by tools/opgen. */\n"
        "#ifndef OP_NUMBERS_H\n#define OP_NUMBERS_H\n\n"
        "#include \"mindtorch/dispatch/op_row.h\"\n\nenum mt__op_id {\n");
    for (size_t i = 0; i < count; i++) {
        printf("    MT__OP_%s,\n", ops[i].id);
    }
    printf("    MT__OP_COUNT\n};\n\nenum {\n    MT_NAME_VARIANTS = %u\n};\n\n",
           print_node_names(ops, count, false));
    for (size_t i = 0; i < count; i++) {
        printf("mt__run_fn %s;\n", ops[i].run);
        if (ops[i].derivative != NULL) {
            printf("mt__backward_fn %s;\n", ops[i].derive);
        }
    }
    printf("\n#endif /* OP_NUMBERS_H */\n");
}

void opgen_sites(const op_text *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        printf("OP_SITE(\"aten::%s\"),\n", ops[i].schema.name);
    }
}
