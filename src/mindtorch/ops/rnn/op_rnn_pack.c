/* SPDX-License-Identifier: Apache-2.0
 *
 * Sequences of several lengths: padded to the longest, or packed step by step.
 *
 *     padded [T, B, *]     packed [rows, *], batch_sizes
 *     a b c                a b c
 *     a b .                a b        3, 2, 1 rows of the steps
 *     a . .                a
 *
 * Both directions pick rows by index, so that the derivative is index_select's.
 */
#include "base/alloc.h"
#include "mindtorch/ops/rnn/op_rnn.h"
#include "mindtorch/ops/type_names.h"

#include <string.h>

static const int64_t no_sizes;

int mt__rnn_sizes(mt__call *call, uint32_t arg, const int64_t **sizes, int64_t *count)
{
    mt_tensor *tensor = call->args[arg].of.tensor;
    mt_tensor *dense = NULL;
    if (tensor->dtype != MT_DTYPE_I64 || tensor->n_dims != 1) {
        return mtb_fail(MT_ERUNTIME,
                        "'%s' argument should be a 1D CPU int64 tensor, but got %u-D %s",
                        call->row->params[arg].name, (unsigned)tensor->n_dims,
                        mt_dtype_name((mt_dtype)tensor->dtype));
    }
    if (tensor->device != MT_CPU) {
        mt_tensor **home = mt__temp(call);
        MT_TRY(mt_to_with(tensor, MT_DTYPE_I64, MT_CPU, false, false, home));
        tensor = *home;
    }
    MT_TRY(mt__contiguous(call, tensor, &dense));
    const int64_t *numbers = mt_tensor_data(dense);
    if (numbers == NULL) {
        return mtb_fail(MT_ERUNTIME, "%s(): '%s' is empty", mt__op_name(call),
                        call->row->params[arg].name);
    }
    *sizes = numbers;
    *count = dense->numel;
    return MT_OK;
}

/* A vector of int64 on the data's device, which belongs to the call. Takes over `numbers`. */
static int vector_take(mt__call *call, int64_t *numbers, int64_t count, mt_device device,
                       mt_tensor **out)
{
    mt_tensor **place = mt__temp(call);
    int status = mt_tensor_from_data(numbers, MT_DTYPE_I64, &count, 1, device, place);
    mtb_free(numbers);
    *out = *place;
    return status;
}

/* `tensor` with its first two dimensions as one. */
static int join_rows(mt__call *call, mt_tensor *tensor, mt_tensor **out)
{
    int64_t sizes[MT_MAX_DIMS];
    sizes[0] = tensor->sizes[0] * tensor->sizes[1];
    for (uint32_t i = 2; i < tensor->n_dims; i++) {
        sizes[i - 1] = tensor->sizes[i];
    }
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt_reshape(tensor, sizes, tensor->n_dims - 1U, place));
    *out = *place;
    return MT_OK;
}

static int give_vector(mt__call *call, uint32_t result, int64_t *numbers, int64_t count)
{
    mt_tensor *vector = NULL;
    MT_TRY(vector_take(call, numbers, count, MT_CPU, &vector));
    mt__result_same(call, result, vector);
    return MT_OK;
}

static int no_memory(const mt__call *call, int64_t count)
{
    return mtb_fail(MT_ENOMEM, "%s(): no memory for %lld numbers", mt__op_name(call),
                    (long long)count);
}

/* ---- pack ------------------------------------------------------------------------------------ */

static int check_lengths(const int64_t *lengths, int64_t count, int64_t batch, int64_t *rows)
{
    if (count != batch) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected `len(lengths)` to be equal to batch_size, but got %lld "
                        "(batch_size=%lld)",
                        (long long)count, (long long)batch);
    }
    *rows = 0;
    for (int64_t i = 0; i < count; i++) {
        if (lengths[i] <= 0) {
            return mtb_fail(MT_ERUNTIME, "Length of all samples has to be greater than 0, but "
                                         "found an element in 'lengths' that is <= 0");
        }
        if (i > 0 && lengths[i] > lengths[i - 1]) {
            return mtb_fail(MT_ERUNTIME,
                            "`lengths` array must be sorted in decreasing order when "
                            "`enforce_sorted` is True. You can pass `enforce_sorted=False` to "
                            "pack_padded_sequence and/or pack_sequence to sidestep this "
                            "requirement if you do not need ONNX exportability.");
        }
        *rows += lengths[i];
    }
    return MT_OK;
}

/* Which rows of [T, B] are packed, and how many each step has. */
static int pack_rows(mt__call *call, mt_tensor *input, const int64_t *lengths, int64_t rows,
                     mt_tensor **index)
{
    int64_t batch = input->sizes[1];
    int64_t *picked = mtb_calloc((size_t)rows, sizeof(int64_t));
    int64_t *sizes = mtb_calloc((size_t)lengths[0], sizeof(int64_t));
    if (picked == NULL || sizes == NULL) {
        mtb_free(picked);
        mtb_free(sizes);
        return no_memory(call, rows);
    }
    int64_t done = 0;
    int64_t active = batch;
    for (int64_t at = 0; at < lengths[0]; at++) {
        while (lengths[active - 1] <= at) {
            active--;
        }
        sizes[at] = active;
        for (int64_t b = 0; b < active; b++) {
            picked[done++] = at * batch + b;
        }
    }
    int status = vector_take(call, picked, rows, input->device, index);
    if (status != MT_OK) {
        mtb_free(sizes);
        return status;
    }
    return give_vector(call, 1, sizes, lengths[0]);
}

int mt__run__pack_padded_sequence(mt__call *call)
{
    mt_tensor *input = call->args[0].of.tensor;
    const int64_t *lengths = &no_sizes;
    int64_t count = 0;
    int64_t rows = 0;
    call->device = input->device;
    MT_TRY(mt__rnn_sizes(call, 1, &lengths, &count));
    if (input->n_dims < 2 || input->numel == 0) {
        return mtb_fail(MT_ERUNTIME, "Cannot pack empty tensors.");
    }
    if (mt__arg_bool(call, 2)) {
        mt_tensor **turned = mt__temp(call);
        MT_TRY(mt_transpose(input, 0, 1, turned));
        input = *turned;
    }
    MT_TRY(check_lengths(lengths, count, input->sizes[1], &rows));
    if (lengths[0] > input->sizes[0]) {
        return mtb_fail(MT_ERUNTIME, "Expected `lengths` of at most %lld steps, but got %lld",
                        (long long)input->sizes[0], (long long)lengths[0]);
    }
    mt_tensor *index = NULL;
    mt_tensor *flat = NULL;
    MT_TRY(pack_rows(call, input, lengths, rows, &index));
    MT_TRY(join_rows(call, input, &flat));
    return mt_index_select(flat, 0, index, mt__result_place(call, 0));
}

/* ---- unpack ---------------------------------------------------------------------------------- */

/* The packed row of each place of [total, B], one more than the last one for padding; lengths. */
static int unpack_rows(mt__call *call, const int64_t *sizes, int64_t n_steps, int64_t total,
                       mt_tensor **index)
{
    int64_t batch = sizes[0];
    mt_tensor *data = call->args[0].of.tensor;
    int64_t *picked = mtb_calloc((size_t)(total * batch), sizeof(int64_t));
    int64_t *lengths = mtb_calloc((size_t)batch, sizeof(int64_t));
    if (picked == NULL || lengths == NULL) {
        mtb_free(picked);
        mtb_free(lengths);
        return no_memory(call, total * batch);
    }
    int64_t row = 0;
    for (int64_t at = 0; at < total; at++) {
        int64_t active = at < n_steps ? sizes[at] : 0;
        for (int64_t b = 0; b < batch; b++) {
            picked[at * batch + b] = b < active ? row++ : data->sizes[0];
            lengths[b] += b < active;
        }
    }
    int status = vector_take(call, picked, total * batch, data->device, index);
    if (status != MT_OK) {
        mtb_free(lengths);
        return status;
    }
    return give_vector(call, 1, lengths, batch);
}

static int check_steps(const mt_tensor *data, const int64_t *sizes, int64_t n_steps)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < n_steps; i++) {
        if (sizes[i] <= 0 || sizes[i] > sizes[0]) {
            return mtb_fail(MT_ERUNTIME, "_pad_packed_sequence(): batch_sizes has %lld at %lld",
                            (long long)sizes[i], (long long)i);
        }
        rows += sizes[i];
    }
    if (n_steps == 0 || data->n_dims == 0 || rows != data->sizes[0]) {
        return mtb_fail(MT_ERUNTIME,
                        "_pad_packed_sequence(): %lld rows of batch_sizes do not fit the data",
                        (long long)rows);
    }
    return MT_OK;
}

/* data and one row of padding below it. */
static int with_padding(mt__call *call, mt_tensor *data, mt_tensor **out)
{
    mt_tensor **row = mt__temp(call);
    mt_tensor **joined = mt__temp(call);
    mt__shape shape = mt__tensor_shape(data);
    shape.sizes[0] = 1;
    MT_TRY(mt_full_with(shape.sizes, shape.n_dims,
                        mt__number_as(&call->args[3], (mt_dtype)data->dtype), (mt_dtype)data->dtype,
                        data->device, row));
    MT_TRY(mt_cat((mt_tensor *const[]){data, *row}, 2, 0, joined));
    *out = *joined;
    return MT_OK;
}

int mt__run__pad_packed_sequence(mt__call *call)
{
    mt_tensor *data = call->args[0].of.tensor;
    const int64_t *sizes = &no_sizes;
    int64_t n_steps = 0;
    int64_t total = mt__arg_int(call, 4);
    call->device = data->device;
    MT_TRY(mt__rnn_sizes(call, 1, &sizes, &n_steps));
    MT_TRY(check_steps(data, sizes, n_steps));
    if (total > 0 && total < n_steps) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected total_length to be at least the length of the longest sequence "
                        "in input, but got total_length=%lld and max sequence length being %lld",
                        (long long)total, (long long)n_steps);
    }
    total = total > 0 ? total : n_steps;
    mt_tensor *index = NULL;
    mt_tensor *padded = NULL;
    mt_tensor **rows = mt__temp(call);
    MT_TRY(unpack_rows(call, sizes, n_steps, total, &index));
    MT_TRY(with_padding(call, data, &padded));
    MT_TRY(mt_index_select(padded, 0, index, rows));
    int64_t shape[MT_MAX_DIMS] = {total, sizes[0]};
    for (uint32_t i = 1; i < data->n_dims; i++) {
        shape[i + 1] = data->sizes[i];
    }
    if (!mt__arg_bool(call, 2)) {
        return mt_view(*rows, shape, data->n_dims + 1U, mt__result_place(call, 0));
    }
    mt_tensor **whole = mt__temp(call);
    MT_TRY(mt_view(*rows, shape, data->n_dims + 1U, whole));
    return mt_transpose(*whole, 0, 1, mt__result_place(call, 0));
}

/* ---- pad ------------------------------------------------------------------------------------- */

static int check_sequences(const mt_value *list, int64_t *longest)
{
    const mt_tensor *first = list->count == 0 ? NULL : list->of.tensors[0];
    *longest = 0;
    if (first == NULL) {
        return mtb_fail(MT_ERUNTIME, "received an empty list of sequences");
    }
    for (uint32_t i = 0; i < list->count; i++) {
        const mt_tensor *sequence = list->of.tensors[i];
        bool fits = sequence->n_dims == first->n_dims && first->n_dims > 0;
        for (uint32_t d = 1; fits && d < first->n_dims; d++) {
            fits = sequence->sizes[d] == first->sizes[d];
        }
        if (!fits) {
            char text[2][MT_SHAPE_TEXT];
            return mtb_fail(MT_ERUNTIME,
                            "pad_sequence(): sequences must agree in all sizes but the first, got "
                            "%s and %s",
                            mt__shape_text(first->sizes, first->n_dims, text[0]),
                            mt__shape_text(sequence->sizes, sequence->n_dims, text[1]));
        }
        *longest = sequence->sizes[0] > *longest ? sequence->sizes[0] : *longest;
    }
    return MT_OK;
}

/* Each of the first one's type. */
static int pad_each(mt__call *call, const mt_value *list, int64_t longest, mt_scalar value,
                    bool left, mt_tensor **padded)
{
    for (uint32_t i = 0; i < list->count; i++) {
        mt_tensor *sequence = list->of.tensors[i];
        if (sequence->dtype != list->of.tensors[0]->dtype) {
            mt_tensor **typed = mt__temp(call);
            MT_TRY(mt_to_with(sequence, (mt_dtype)list->of.tensors[0]->dtype, sequence->device,
                              false, false, typed));
            sequence = *typed;
        }
        int64_t missing = longest - sequence->sizes[0];
        int64_t pad[2 * MT_MAX_DIMS] = {0};
        uint32_t n = 2U * sequence->n_dims;
        pad[left ? n - 2 : n - 1] = missing;
        if (missing == 0) {
            padded[i] = mt_tensor_retain(sequence);
        } else {
            MT_TRY(mt_constant_pad_nd(sequence, pad, n, value, &padded[i]));
        }
    }
    return MT_OK;
}

int mt__run_pad_sequence(mt__call *call)
{
    const mt_value *list = &call->args[0];
    const char *side = call->args[3].of.text;
    int64_t longest = 0;
    MT_TRY(check_sequences(list, &longest));
    bool left = strcmp(side, "left") == 0;
    if (!left && strcmp(side, "right") != 0) {
        return mtb_fail(MT_ERUNTIME, "Expected padding_side to be one of left or right, but got %s",
                        side);
    }
    mt_tensor **padded = mtb_calloc(list->count, sizeof(mt_tensor *));
    if (padded == NULL) {
        return no_memory(call, list->count);
    }
    mt_scalar value = mt__number_as(&call->args[2], (mt_dtype)list->of.tensors[0]->dtype);
    int status = pad_each(call, list, longest, value, left, padded);
    if (status == MT_OK) {
        status =
            mt_stack(padded, list->count, mt__arg_bool(call, 1) ? 0 : 1, mt__result_place(call, 0));
    }
    for (uint32_t i = 0; i < list->count; i++) {
        mt_tensor_release(padded[i]);
    }
    mtb_free(padded);
    return status;
}
