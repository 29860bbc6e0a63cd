/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows of an image as columns (im2col) and back (col2im), shuffles of pixels and channels,
 * instance_norm.
 *
 *     im2col   [N, C, H, W] -> [N, C kh kw, oh ow]: a view with strides, copied
 *     col2im   the sum of all windows at their places: as many additions as a window has elements
 */
#include "mindtorch/ops/image/op_image.h"

enum {
    KERNEL,
    DILATION,
    PADDING,
    STRIDE,
    N_LISTS
};

typedef struct columns_plan {
    int64_t pairs[N_LISTS][2];
    int64_t out[2]; /* windows in each direction */
    int64_t image[2];
} columns_plan;

static int make_plan(const mt__call *call, const mt_value *lists, const int64_t image[2],
                     columns_plan *p)
{
    static const char *const names[] = {"kernel_size", "dilation", "padding", "stride"};
    for (uint32_t i = 0; i < N_LISTS; i++) {
        if (!mt__image_pair(&lists[i], 2, 0, p->pairs[i])) {
            return mtb_fail(MT_ERUNTIME, "It is expected %s equals to 2, but got size %u", names[i],
                            lists[i].count);
        }
        MT_TRY(mt__image_limit(call, p->pairs[i], 2));
        for (uint32_t d = 0; d < 2; d++) {
            if (p->pairs[i][d] < (i == PADDING ? 0 : 1)) {
                return mtb_fail(MT_ERUNTIME, "%s should be greater than zero, but got %lld",
                                names[i], (long long)p->pairs[i][d]);
            }
        }
    }
    for (uint32_t d = 0; d < 2; d++) {
        int64_t wide = p->pairs[DILATION][d] * (p->pairs[KERNEL][d] - 1) + 1;
        int64_t room = image[d] + 2 * p->pairs[PADDING][d] - wide;
        p->image[d] = image[d];
        p->out[d] = room < 0 ? 0 : room / p->pairs[STRIDE][d] + 1;
        if (p->out[d] < 1) {
            return mtb_fail(MT_ERUNTIME,
                            "Given an image of %lld x %lld and a kernel of %lld x %lld, the "
                            "calculated shape of the array of sliding blocks is too small",
                            (long long)image[0], (long long)image[1],
                            (long long)p->pairs[KERNEL][0], (long long)p->pairs[KERNEL][1]);
        }
    }
    return MT_OK;
}

/* The argument with a batch, which belongs to the call; `dims` of one sample. */
static int with_batch(mt__call *call, uint32_t dims, mt_tensor **out)
{
    mt_tensor *self = call->args[0].of.tensor;
    char text[MT_SHAPE_TEXT];
    *out = self;
    bool fits = self->n_dims == dims || self->n_dims == dims + 1;
    for (uint32_t i = self->n_dims - (fits ? dims : 0U); fits && i < self->n_dims; i++) {
        fits = self->sizes[i] > 0;
    }
    if (!fits) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected %uD or %uD (batch mode) tensor with possibly 0 batch size and "
                        "other non-zero dimensions for input, but got: %s",
                        dims, dims + 1, mt__shape_text(self->sizes, self->n_dims, text));
    }
    if (self->n_dims == dims + 1) {
        return MT_OK;
    }
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt_unsqueeze(self, 0, place));
    *out = *place;
    return MT_OK;
}

/* Numbers with a fraction, or bool. */
static int need_type(const mt__call *call, const char *kernel)
{
    const mt_tensor *self = call->args[0].of.tensor;
    return self->dtype == MT_DTYPE_BOOL ? MT_OK : mt__need_pooled_type(self, kernel);
}

/* A padded image [N, C, H, W] as all its windows [N, C, kh, kw, oh, ow], without a copy. */
static int windows_of(mt__call *call, const columns_plan *p, mt_tensor *image, mt_tensor **out)
{
    const int64_t *s = image->strides;
    const int64_t sizes[6] = {image->sizes[0],     image->sizes[1], p->pairs[KERNEL][0],
                              p->pairs[KERNEL][1], p->out[0],       p->out[1]};
    const int64_t strides[6] = {s[0],
                                s[1],
                                s[2] * p->pairs[DILATION][0],
                                s[3] * p->pairs[DILATION][1],
                                s[2] * p->pairs[STRIDE][0],
                                s[3] * p->pairs[STRIDE][1]};
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt__tensor_view(image, sizes, strides, 6, image->offset, false, place));
    *out = *place;
    return MT_OK;
}

int mt__run_im2col(mt__call *call)
{
    mt_tensor *image = NULL;
    mt_tensor *windows = NULL;
    mt_tensor *out = NULL;
    columns_plan p = {.image = {0}};
    MT_TRY(with_batch(call, 3, &image));
    MT_TRY(make_plan(call, &call->args[1], &image->sizes[2], &p));
    MT_TRY(need_type(call, "im2col_out_cpu"));
    if (p.pairs[PADDING][0] != 0 || p.pairs[PADDING][1] != 0) {
        mt_tensor **padded = mt__temp(call);
        const int64_t pad[4] = {p.pairs[PADDING][1], p.pairs[PADDING][1], p.pairs[PADDING][0],
                                p.pairs[PADDING][0]};
        MT_TRY(mt_constant_pad_nd(image, pad, 4, mt_int(0), padded));
        image = *padded;
    }
    MT_TRY(windows_of(call, &p, image, &windows));
    int64_t rows = image->sizes[1] * p.pairs[KERNEL][0] * p.pairs[KERNEL][1];
    mt__shape shape = {.n_dims = 3, .sizes = {image->sizes[0], rows, p.out[0] * p.out[1]}};
    if (call->args[0].of.tensor->n_dims == 3) {
        shape = (mt__shape){.n_dims = 2, .sizes = {rows, p.out[0] * p.out[1]}};
    }
    MT_TRY(mt__result_new(call, 0, (mt_dtype)image->dtype, &shape, &out));
    mt_tensor **apart = mt__temp(call);
    MT_TRY(mt_view(out, windows->sizes, 6, apart));
    return mt__copy_elements(*apart, windows);
}

/* Adds element (y, x) of every window to the padded image. */
static int add_element(const columns_plan *p, mt_tensor *padded, mt_tensor *windows, int64_t y,
                       int64_t x)
{
    mt_tensor *to = NULL;
    mt_tensor *from = NULL;
    mt_tensor *row = NULL;
    const int64_t *s = padded->strides;
    const int64_t sizes[4] = {padded->sizes[0], padded->sizes[1], p->out[0], p->out[1]};
    const int64_t strides[4] = {s[0], s[1], s[2] * p->pairs[STRIDE][0], s[3] * p->pairs[STRIDE][1]};
    int64_t start =
        padded->offset + y * p->pairs[DILATION][0] * s[2] + x * p->pairs[DILATION][1] * s[3];
    int status = mt__tensor_view(padded, sizes, strides, 4, start, false, &to);
    if (status == MT_OK) {
        status = mt_select(windows, 2, y, &row);
    }
    if (status == MT_OK) {
        status = mt_select(row, 2, x, &from);
    }
    if (status == MT_OK) {
        status = mt_add_(to, from);
    }
    mt_tensor_release(to);
    mt_tensor_release(row);
    mt_tensor_release(from);
    return status;
}

int mt__run_col2im(mt__call *call)
{
    mt_tensor *columns = NULL;
    const mt_value *size = &call->args[1];
    columns_plan p = {.image = {0}};
    if (size->count != 2) {
        return mtb_fail(MT_ERUNTIME, "It is expected output_size equals to 2, but got size %u",
                        size->count);
    }
    MT_TRY(with_batch(call, 2, &columns));
    MT_TRY(make_plan(call, &call->args[2], size->of.ints, &p));
    MT_TRY(need_type(call, "col2im_out_cpu"));
    int64_t area = p.pairs[KERNEL][0] * p.pairs[KERNEL][1];
    int64_t blocks = p.out[0] * p.out[1];
    if (area <= 0 || columns->sizes[1] % area != 0 || columns->sizes[2] != blocks) {
        char text[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME,
                        "Expected size of input's dimension 1 to be divisible by the product of "
                        "kernel_size (%lld) and of dimension 2 to be the number of sliding blocks "
                        "(%lld), but got input of size %s",
                        (long long)area, (long long)blocks,
                        mt__shape_text(columns->sizes, columns->n_dims, text));
    }
    int64_t channels = columns->sizes[1] / area;
    const int64_t apart[6] = {columns->sizes[0],  channels, p.pairs[KERNEL][0],
                              p.pairs[KERNEL][1], p.out[0], p.out[1]};
    const int64_t whole[4] = {columns->sizes[0], channels, p.image[0] + 2 * p.pairs[PADDING][0],
                              p.image[1] + 2 * p.pairs[PADDING][1]};
    mt_tensor **windows = mt__temp(call);
    mt_tensor **padded = mt__temp(call);
    mt_tensor **rows = mt__temp(call);
    mt_tensor **inside = mt__temp(call);
    MT_TRY(mt_reshape(columns, apart, 6, windows));
    MT_TRY(mt_zeros_with(whole, 4, (mt_dtype)columns->dtype, columns->device, padded));
    for (int64_t i = 0; i < area; i++) {
        MT_TRY(add_element(&p, *padded, *windows, i / p.pairs[KERNEL][1], i % p.pairs[KERNEL][1]));
    }
    MT_TRY(mt_narrow(*padded, 2, p.pairs[PADDING][0], p.image[0], rows));
    MT_TRY(mt_narrow(*rows, 3, p.pairs[PADDING][1], p.image[1], inside));
    mt__shape shape = mt__tensor_shape(*inside);
    mt_tensor *out = NULL;
    bool batched = call->args[0].of.tensor->n_dims == 3;
    mt__shape given = shape;
    if (!batched) {
        given = (mt__shape){.n_dims = 3, .sizes = {shape.sizes[1], shape.sizes[2], shape.sizes[3]}};
    }
    MT_TRY(mt__result_new(call, 0, (mt_dtype)columns->dtype, &given, &out));
    mt_tensor **image = mt__temp(call);
    MT_TRY(mt_view(out, shape.sizes, 4, image));
    return mt__copy_elements(*image, *inside);
}

/* ---- shuffles -------------------------------------------------------------------------------- */

/* The input as [*, a, b, c, ...] (from dimension n - 3 on), permuted there, then joined again. */
static int run_shuffle(mt__call *call, const int64_t *parts, uint32_t n_parts, const int64_t *order,
                       const int64_t joined[3])
{
    mt_tensor *self = call->args[0].of.tensor;
    uint32_t lead = self->n_dims - 3U;
    int64_t sizes[MT_MAX_DIMS];
    int64_t dims[MT_MAX_DIMS];
    if (lead + n_parts > MT_MAX_DIMS) {
        return mtb_fail(MT_ERUNTIME, "%s(): an input of %u dimensions has too many",
                        mt__op_name(call), (unsigned)self->n_dims);
    }
    for (uint32_t i = 0; i < lead + n_parts; i++) {
        sizes[i] = i < lead ? self->sizes[i] : parts[i - lead];
        dims[i] = i < lead ? i : lead + order[i - lead];
    }
    mt_tensor **apart = mt__temp(call);
    mt_tensor **turned = mt__temp(call);
    MT_TRY(mt_reshape(self, sizes, lead + n_parts, apart));
    MT_TRY(mt_permute(*apart, dims, lead + n_parts, turned));
    for (uint32_t i = 0; i < 3; i++) {
        sizes[lead + i] = joined[i];
    }
    return mt_reshape(*turned, sizes, lead + 3, mt__result_place(call, 0));
}

static int check_shuffle(const mt__call *call, int64_t factor, const char *name)
{
    const mt_tensor *self = call->args[0].of.tensor;
    if (self->n_dims < 3) {
        return mtb_fail(MT_ERUNTIME,
                        "%s expects input to have at least 3 dimensions, but got input with %u "
                        "dimension(s)",
                        mt__op_name(call), (unsigned)self->n_dims);
    }
    if (factor <= 0) {
        return mtb_fail(MT_ERUNTIME, "%s expects a positive %s, but got %lld", mt__op_name(call),
                        name, (long long)factor);
    }
    return MT_OK;
}

int mt__run_pixel_shuffle(mt__call *call)
{
    const mt_tensor *self = call->args[0].of.tensor;
    int64_t r = mt__arg_int(call, 1);
    MT_TRY(check_shuffle(call, r, "upscale_factor"));
    const int64_t *s = &self->sizes[self->n_dims - 3];
    int64_t square = r > INT32_MAX ? 0 : r * r;
    if (square == 0 || s[0] % square != 0) {
        return mtb_fail(MT_ERUNTIME,
                        "pixel_shuffle expects its input's 'channel' dimension to be divisible by "
                        "the square of upscale_factor, but input.size(-3)=%lld is not divisible by "
                        "%lld",
                        (long long)s[0], (long long)square);
    }
    const int64_t parts[] = {s[0] / (r * r), r, r, s[1], s[2]};
    static const int64_t order[] = {0, 3, 1, 4, 2};
    const int64_t joined[] = {s[0] / (r * r), s[1] * r, s[2] * r};
    return run_shuffle(call, parts, 5, order, joined);
}

int mt__run_pixel_unshuffle(mt__call *call)
{
    const mt_tensor *self = call->args[0].of.tensor;
    int64_t r = mt__arg_int(call, 1);
    MT_TRY(check_shuffle(call, r, "downscale_factor"));
    const int64_t *s = &self->sizes[self->n_dims - 3];
    if (s[1] % r != 0 || s[2] % r != 0) {
        return mtb_fail(MT_ERUNTIME,
                        "pixel_unshuffle expects %s to be divisible by downscale_factor, but "
                        "input.size(-%d)=%lld is not divisible by %lld",
                        s[1] % r != 0 ? "height" : "width", s[1] % r != 0 ? 2 : 1,
                        (long long)(s[1] % r != 0 ? s[1] : s[2]), (long long)r);
    }
    const int64_t parts[] = {s[0], s[1] / r, r, s[2] / r, r};
    static const int64_t order[] = {0, 2, 4, 1, 3};
    const int64_t joined[] = {s[0] * r * r, s[1] / r, s[2] / r};
    return run_shuffle(call, parts, 5, order, joined);
}

int mt__run_channel_shuffle(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    int64_t groups = mt__arg_int(call, 1);
    int64_t sizes[MT_MAX_DIMS];
    if (self->n_dims < 3) {
        return mtb_fail(MT_ERUNTIME,
                        "channel_shuffle expects input with > 2 dims, but got input with sizes of "
                        "%u dimension(s)",
                        (unsigned)self->n_dims);
    }
    if (groups <= 0 || self->sizes[1] % groups != 0) {
        return mtb_fail(MT_ERUNTIME,
                        "Number of channels must be divisible by groups. Got %lld channels and "
                        "%lld groups.",
                        (long long)self->sizes[1], (long long)groups);
    }
    sizes[0] = self->sizes[0];
    sizes[1] = groups;
    sizes[2] = self->sizes[1] / groups;
    for (uint32_t i = 2; i < self->n_dims; i++) {
        sizes[i + 1] = self->sizes[i];
    }
    mt_tensor **apart = mt__temp(call);
    mt_tensor **turned = mt__temp(call);
    MT_TRY(mt_reshape(self, sizes, self->n_dims + 1U, apart));
    MT_TRY(mt_transpose(*apart, 1, 2, turned));
    return mt_reshape(*turned, self->sizes, self->n_dims, mt__result_place(call, 0));
}

/* ---- instance_norm --------------------------------------------------------------------------- */

/* A vector of channels once for each image; NULL where it is absent. */
static int each_image(mt__call *call, uint32_t arg, int64_t images, mt_tensor **out)
{
    mt_tensor *vector = mt__arg_tensor(call, arg);
    *out = NULL;
    if (vector == NULL) {
        return MT_OK;
    }
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt_repeat(vector, &images, 1, place));
    *out = *place;
    return MT_OK;
}

/* Running statistics become the means over images of what the batch norm made of them. */
static int write_running(mt__call *call, uint32_t arg, mt_tensor *repeated, int64_t images)
{
    mt_tensor *running = mt__arg_tensor(call, arg);
    if (running == NULL) {
        return MT_OK;
    }
    const int64_t sizes[2] = {images, running->numel};
    static const int64_t by_image = 0;
    mt_tensor **apart = mt__temp(call);
    mt_tensor **mean = mt__temp(call);
    MT_TRY(mt_view(repeated, sizes, 2, apart));
    MT_TRY(mt_mean(*apart, &by_image, 1, false, mean));
    return mt_copy_(running, *mean, false);
}

/* batch_norm of [1, N C, *]: every image has its own statistics. */
int mt__run_instance_norm(mt__call *call)
{
    mt_tensor *input = call->args[0].of.tensor;
    bool own = mt__arg_bool(call, 5);
    int64_t sizes[MT_MAX_DIMS] = {1};
    mt_tensor *vectors[4];
    if (input->n_dims < 2) {
        return mtb_fail(MT_ERUNTIME,
                        "instance_norm(): expected an input of 2 dimensions or more, "
                        "got %u",
                        (unsigned)input->n_dims);
    }
    if (!own && !(mt__arg_given(call, 3) && mt__arg_given(call, 4))) {
        return mtb_fail(MT_ERUNTIME, "Expected running_mean and running_var to be defined when "
                                     "use_input_stats is false");
    }
    int64_t images = input->sizes[0];
    sizes[1] = images * input->sizes[1];
    for (uint32_t i = 2; i < input->n_dims; i++) {
        sizes[i] = input->sizes[i];
    }
    for (uint32_t i = 0; i < 4; i++) {
        MT_TRY(each_image(call, i + 1, images, &vectors[i]));
    }
    mt_tensor **joined = mt__temp(call);
    mt_tensor **made = mt__temp(call);
    MT_TRY(mt_reshape(input, sizes, input->n_dims, joined));
    MT_TRY(mt_batch_norm(*joined, vectors[0], vectors[1], vectors[2], vectors[3], own,
                         mt__arg_real(call, 6), mt__arg_real(call, 7), made));
    if (own) {
        MT_TRY(write_running(call, 3, vectors[2], images));
        MT_TRY(write_running(call, 4, vectors[3], images));
    }
    return mt_view(*made, input->sizes, input->n_dims, mt__result_place(call, 0));
}
