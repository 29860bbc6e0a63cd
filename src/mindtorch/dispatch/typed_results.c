/* SPDX-License-Identifier: Apache-2.0
 *
 * From boxed results to C types, for the typed functions.
 */
#include "base/compiler.h"
#include "base/fail.h"
#include "mindtorch/dispatch/dispatch.h"

#include <mindtorch/tensor.h>

#include <string.h>

int mt__dispatch_nothing(const mt__op_row *row, const mt_value *args)
{
    mt_value results[MT_MAX_RESULTS];
    MT_TRY(mt__dispatch(row, args, results));
    for (uint32_t i = 0; i < row->n_results; i++) {
        mt_value_clear(&results[i]);
    }
    return MT_OK;
}

int mt__dispatch_tensor(const mt__op_row *row, const mt_value *args, mt_tensor **out)
{
    if (MT_UNLIKELY(out == NULL)) {
        return mtb_fail(MT_EVALUE, "%s(): no place for the result", row->name);
    }
    *out = NULL;
    mt_value result;
    MT_TRY(mt__dispatch(row, args, &result));
    *out = result.of.tensor;
    return MT_OK;
}

int mt__dispatch_tensors(const mt__op_row *row, const mt_value *args, mt_tensor **const *outs)
{
    for (uint32_t i = 0; i < row->n_results; i++) {
        if (outs[i] != NULL) {
            *outs[i] = NULL;
        }
    }
    mt_value results[MT_MAX_RESULTS];
    MT_TRY(mt__dispatch(row, args, results));
    for (uint32_t i = 0; i < row->n_results; i++) {
        if (outs[i] == NULL) {
            mt_value_clear(&results[i]); /* not wanted */
        } else if (results[i].kind == MT_KIND_TENSOR) {
            *outs[i] = results[i].of.tensor;
        }
    }
    return MT_OK;
}

int mt__dispatch_value(const mt__op_row *row, const mt_value *args, mt_value *out)
{
    if (MT_UNLIKELY(out == NULL)) {
        return mtb_fail(MT_EVALUE, "%s(): no place for the result", row->name);
    }
    memset(out, 0, sizeof(*out));
    return mt__dispatch(row, args, out);
}

int mt__dispatch_bool(const mt__op_row *row, const mt_value *args, bool *out)
{
    mt_value value;
    if (out != NULL) {
        *out = false;
    }
    MT_TRY(mt__dispatch_value(row, args, &value));
    if (out != NULL) {
        *out = value.of.integer != 0;
    }
    return MT_OK;
}
