/* SPDX-License-Identifier: Apache-2.0
 *
 * Registered ops: a growing list of rows. Readers take no lock: the rows are in blocks that never
 * move, and the count is published after the row (release, partner: mt__user_row_count).
 */
#include "mindtorch/dispatch/user_ops.h"

#include "base/alloc.h"
#include "base/lock.h"
#include "mindtorch/dispatch/schema.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    BLOCK_ROWS = 64,
    MAX_BLOCKS = 256
};

/* A row and what it points to. */
typedef struct user_row {
    mt__op_row row;
    mt__schema schema;
    mt__row_param params[MT_MAX_PARAMS];
    mt__derivative derivative;
    char node_name[MT_SCHEMA_TEXT + 16];
    char trace_name[2 * MT_SCHEMA_TEXT + 4];
} user_row;

static mtb_lock lock = MTB_LOCK_INIT(MTB_RANK_USER_OPS);
static user_row **blocks[MAX_BLOCKS];
static _Atomic uint32_t n_rows;

uint32_t mt__user_row_count(void)
{
    return atomic_load_explicit(&n_rows, memory_order_acquire);
}

const mt__op_row *mt__user_row(uint32_t index)
{
    if (index >= mt__user_row_count()) {
        return NULL;
    }
    return &blocks[index / BLOCK_ROWS][index % BLOCK_ROWS]->row;
}

int mt__user_results_check(const mt__call *call)
{
    const mt__schema *schema = &blocks[(call->row->op - mt__n_op_rows) / BLOCK_ROWS]
                                      [(call->row->op - mt__n_op_rows) % BLOCK_ROWS]
                                          ->schema;
    for (uint32_t i = 0; i < schema->n_results; i++) {
        mt__param expected = {.type = schema->result_types[i]};
        const mt_value *result = &call->results[i];
        bool fits = result->kind < MT_KIND_COUNT &&
                    (mt__param_accepts(&expected) >> result->kind & 1) != 0 &&
                    (result->kind != MT_KIND_TENSOR || result->of.tensor != NULL);
        if (!fits) {
            return mtb_fail(MT_ETYPE, "%s(): result %u is not what the schema says: %s",
                            call->row->trace_name, i, call->row->schema);
        }
    }
    return MT_OK;
}

static void fill_row(user_row *made, const char *schema_text)
{
    const mt__schema *schema = &made->schema;
    for (uint32_t i = 0; i < schema->n_params; i++) {
        const mt__param *param = &schema->params[i];
        made->params[i] = (mt__row_param){
            .name = param->name,
            .accepts = mt__param_accepts(param),
            .has_default = param->has_default,
            .has_gaps = param->type == MT_TYPE_OPTIONAL_TENSORS,
            .value = param->value,
        };
        if (!param->has_default) {
            made->row.n_required = (uint16_t)(i + 1);
        }
    }
    snprintf(made->trace_name, sizeof made->trace_name, "%s::%s", schema->space, schema->name);
    snprintf(made->node_name, sizeof made->node_name, "%sBackward", schema->name);
    made->derivative.name = made->node_name;
    made->derivative.saves = (1U << schema->n_params) - 1U;
    made->derivative.saves |= ((1U << schema->n_results) - 1U) << 16;
    made->row.name = schema->name;
    made->row.overload = schema->overload;
    made->row.trace_name = made->trace_name;
    made->row.schema = schema_text;
    made->row.flags = MT_OP_USER;
    made->row.n_params = (uint16_t)schema->n_params;
    made->row.n_results = (uint16_t)schema->n_results;
    made->row.params = made->params;
    made->row.derivative = &made->derivative;
}

static int make_row(user_row *made, const char *text)
{
    MT_TRY(mt__schema_parse(text, &made->schema));
    if (made->schema.space[0] == '\0') {
        return mtb_fail(MT_EVALUE, "op_register(): '%s' needs a name space: \"mylib::%s\"", text,
                        made->schema.name);
    }
    fill_row(made, text);
    return MT_OK;
}

/* Under the lock. */
static int publish(user_row *made, mt_op *op)
{
    uint32_t index = atomic_load_explicit(&n_rows, memory_order_relaxed);
    if (index == MAX_BLOCKS * BLOCK_ROWS) {
        return mtb_fail(MT_ERUNTIME, "op_register(): more than %d ops", MAX_BLOCKS * BLOCK_ROWS);
    }
    mt_op taken = 0;
    if (mt_op_find(made->trace_name, &taken)) {
        return mtb_fail(MT_EVALUE, "op_register(): %s is registered already", made->trace_name);
    }
    user_row ***block = &blocks[index / BLOCK_ROWS];
    if (*block == NULL) {
        *block = mtb_calloc(BLOCK_ROWS, sizeof(user_row *));
        if (*block == NULL) {
            return mtb_fail(MT_ENOMEM, "op_register(): no memory");
        }
    }
    made->row.op = (uint16_t)(mt__n_op_rows + index);
    (*block)[index % BLOCK_ROWS] = made;
    atomic_store_explicit(&n_rows, index + 1, memory_order_release);
    *op = made->row.op;
    return MT_OK;
}

mt_status mt_op_register(const char *schema, mt_op_run_fn *run, mt_op_backward_fn *backward,
                         void *context, mt_op *op)
{
    if (schema == NULL || run == NULL || op == NULL) {
        return mtb_fail(MT_EVALUE, "op_register(): schema, run and op must be given");
    }
    *op = 0;
    user_row *made = mtb_calloc(1, sizeof(user_row));
    char *text = mtb_copy_text(schema, strlen(schema));
    if (made == NULL || text == NULL) {
        mtb_free(made);
        mtb_free(text);
        return mtb_fail(MT_ENOMEM, "op_register(): no memory");
    }
    int status = make_row(made, text);
    if (status == MT_OK) {
        made->row.user_run = run;
        made->row.user_backward = backward;
        made->row.user_context = context;
        mtb_lock_acquire(&lock);
        status = publish(made, op);
        mtb_lock_release(&lock);
    }
    if (status != MT_OK) {
        mtb_free(made);
        mtb_free(text);
    }
    return status;
}
