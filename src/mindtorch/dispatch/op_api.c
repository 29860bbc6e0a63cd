/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops by number and by name (op.h).
 */
#include "base/fail.h"
#include "base/struct_size.h"
#include "mindtorch/dispatch/dispatch.h"
#include "mindtorch/dispatch/schema.h"
#include "mindtorch/dispatch/user_ops.h"

#include <string.h>

const mt__op_row *mt__op_row_of(mt_op op)
{
    return op < mt__n_op_rows ? &mt__op_rows[op] : mt__user_row(op - mt__n_op_rows);
}

uint32_t mt_op_count(void)
{
    return mt__n_op_rows + mt__user_row_count();
}

mt_status mt_op_get_info(mt_op op, mt_op_info *info)
{
    const mt__op_row *row = mt__op_row_of(op);
    if (row == NULL || info == NULL) {
        return mtb_fail(MT_EVALUE, "op_info_of(): no op has the number %u (there are %u)", op,
                        mt_op_count());
    }
    mt_op_info full = {
        .flags = row->flags & MT_OP_PUBLIC,
        .name = row->name,
        .overload = row->overload,
        .trace_name = row->trace_name,
        .schema = row->schema,
        .n_params = row->n_params,
        .n_results = row->n_results,
        .differentiable =
            row->derivative != NULL && (row->derivative->run != NULL || row->user_backward != NULL),
    };
    mtb_write_struct(info, &full);
    return MT_OK;
}

/* The schema of a row, and the row; for bindings, which ask once. */
static int schema_of(const char *who, mt_op op, uint32_t index, bool result, const mt__op_row **row,
                     mt__schema *schema)
{
    *row = mt__op_row_of(op);
    if (*row == NULL) {
        return mtb_fail(MT_EVALUE, "%s(): no op has the number %u (there are %u)", who, op,
                        mt_op_count());
    }
    uint32_t count = result ? (*row)->n_results : (*row)->n_params;
    if (index >= count) {
        return mtb_fail(MT_EVALUE, "%s(): %s has no %s %u (there are %u)", who, (*row)->name,
                        result ? "result" : "parameter", index, count);
    }
    return mt__schema_parse((*row)->schema, schema);
}

mt_status mt_op_get_param(mt_op op, uint32_t index, mt_op_param *param)
{
    const mt__op_row *row;
    mt__schema schema;
    MT_TRY(schema_of("op_param_of", op, index, false, &row, &schema));
    if (param == NULL) {
        return mtb_fail(MT_EVALUE, "op_param_of(): a place for the answer must be given");
    }
    const mt__param *told = &schema.params[index];
    mt_op_param full = {
        .accepts = row->params[index].accepts,
        .name = row->params[index].name,
        .type = mt__type_name((mt__type)told->type),
        .optional = told->optional,
        .keyword_only = told->keyword,
        .has_default = row->params[index].has_default,
        .value = row->params[index].value,
    };
    mtb_write_struct(param, &full);
    return MT_OK;
}

mt_status mt_op_get_result(mt_op op, uint32_t index, mt_op_result *result)
{
    static const mt_kind kinds[MT_TYPE_COUNT] = {
        [MT_TYPE_TENSOR] = MT_KIND_TENSOR,
        [MT_TYPE_TENSORS] = MT_KIND_TENSORS,
        [MT_TYPE_BOOL] = MT_KIND_BOOL,
        [MT_TYPE_INT] = MT_KIND_INT,
    };
    const mt__op_row *row;
    mt__schema schema;
    MT_TRY(schema_of("op_result_of", op, index, true, &row, &schema));
    if (result == NULL) {
        return mtb_fail(MT_EVALUE, "op_result_of(): a place for the answer must be given");
    }
    mt_op_result full = {.kind = kinds[schema.result_types[index]]};
    memcpy(full.name, schema.result_names[index], sizeof(full.name));
    mtb_write_struct(result, &full);
    return MT_OK;
}

/* "max.dim" against name and overload; users' ops by their full name. */
static bool row_is(const mt__op_row *row, const char *name)
{
    if ((row->flags & MT_OP_USER) != 0) {
        return strcmp(row->trace_name, name) == 0;
    }
    if (strncmp(name, "aten::", 6) == 0) {
        name += 6;
    }
    size_t length = strlen(row->name);
    if (strncmp(row->name, name, length) != 0) {
        return false;
    }
    if (name[length] == '\0') {
        return row->overload[0] == '\0';
    }
    return name[length] == '.' && strcmp(name + length + 1, row->overload) == 0;
}

bool mt_op_find(const char *name, mt_op *op)
{
    uint32_t count = name != NULL ? mt_op_count() : 0;
    for (mt_op at = 0; at < count; at++) {
        if (row_is(mt__op_row_of(at), name)) {
            *op = at;
            return true;
        }
    }
    return false;
}

mt_status mt_call(mt_op op, const mt_value *args, uint32_t n_args, mt_value *results,
                  uint32_t n_results)
{
    const mt__op_row *row = mt__op_row_of(op);
    if (row == NULL) {
        return mtb_fail(MT_ENOTSUP, "call(): no op has the number %u (there are %u)", op,
                        mt_op_count());
    }
    for (uint32_t i = 0; i < n_results && results != NULL; i++) {
        results[i].kind = MT_KIND_NONE;
    }
    if (n_results != row->n_results || (n_results > 0 && results == NULL)) {
        return mtb_fail(MT_EVALUE, "%s(): gives %u results, %u are asked for", row->name,
                        row->n_results, n_results);
    }
    if (n_args > row->n_params || n_args < row->n_required || (n_args > 0 && args == NULL)) {
        return mtb_fail(MT_ETYPE, "%s(): takes %u to %u arguments, %u given; schema %s", row->name,
                        row->n_required, row->n_params, n_args, row->schema);
    }
    if (n_args == row->n_params) {
        return mt__dispatch(row, args, results);
    }
    mt_value all[MT_MAX_PARAMS];
    for (uint32_t i = 0; i < row->n_params; i++) {
        all[i] = i < n_args ? args[i] : row->params[i].value;
    }
    return mt__dispatch(row, all, results);
}
