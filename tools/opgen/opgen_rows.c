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

void opgen_rows(const op_text *ops, size_t count)
{
    printf("/* SPDX-License-Identifier: Apache-2.0\n *\n * Made by tools/opgen. */\n"
           "#include \"mindtorch/ops/op_support.h\"\n\n");
    for (size_t i = 0; i < count; i++) {
        print_params(&ops[i]);
    }
    printf("\nconst mt__op_row mt__op_rows[] = {\n");
    for (size_t i = 0; i < count; i++) {
        const mt__schema *schema = &ops[i].schema;
        printf("    {.name = \"%s\", .overload = \"%s\", .trace_name = \"aten::%s\",\n"
               "     .schema = \"%s\",\n"
               "     .flags = 0x%x, .n_params = %u, .n_required = %u, .n_results = %u, .op = %zu,\n"
               "     .run = %s, .params = params_%s, .derivative = &mt__derivatives[%zu]},\n",
               schema->name, schema->overload, schema->name, ops[i].schema_text, ops[i].flags,
               schema->n_params, count_required(schema), schema->n_results, i, ops[i].run,
               ops[i].id, i);
    }
    printf("};\nconst uint32_t mt__n_op_rows = %zu;\n", count);
}

void opgen_sites(const op_text *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        printf("OP_SITE(\"aten::%s\"),\n", ops[i].schema.name);
    }
}
