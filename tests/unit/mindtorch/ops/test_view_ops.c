/* SPDX-License-Identifier: Apache-2.0
 *
 * View and index ops from C: nodes have torch's names, views share storage and version and cost one
 * small tensor, writing through a view's indices reaches the base, and a failure of any allocation
 * is an error that leaks nothing.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"

#include <mindtorch/autograd.h>
#include <mindtorch/ops.h>
#include <mindtorch/tensor.h>

/* x = 0..11 as [3, 4]. */
static mt_tensor *make_x(mt_dtype dtype, bool grad)
{
    float floats[12];
    int64_t longs[12];
    mt_tensor *x = NULL;
    for (int i = 0; i < 12; i++) {
        floats[i] = (float)i;
        longs[i] = i;
    }
    const void *data = dtype == MT_DTYPE_F32 ? (const void *)floats : (const void *)longs;
    REQUIRE_OK(mt_tensor_from_data(data, dtype, (const int64_t[]){3, 4}, 2, MT_CPU, &x));
    REQUIRE_OK(mt_tensor_set_requires_grad(x, grad));
    return x;
}

static mt_tensor *make_longs(const int64_t *values, const int64_t *sizes, size_t n_dims)
{
    mt_tensor *t = NULL;
    REQUIRE_OK(mt_tensor_from_data(values, MT_DTYPE_I64, sizes, n_dims, MT_CPU, &t));
    return t;
}

static void check_name(mt_tensor *result, const char *name)
{
    REQUIRE(mt_tensor_grad_fn(result) != NULL);
    CHECK_EQ_STR(mt_node_name(mt_tensor_grad_fn(result)), name);
    mt_tensor_release(result);
}

static void check_list(mt_value *list, const char *name)
{
    REQUIRE(list->kind == MT_KIND_TENSORS && list->count > 0);
    check_name(mt_tensor_retain(list->of.tensors[0]), name);
    mt_value_clear(list);
}

TEST(views_have_torchs_nodes)
{
    mt_tensor *x = make_x(MT_DTYPE_F32, true);
    mt_tensor *out = NULL;
    mt_value list;
    const int64_t twelve = 12;
    const int64_t swap[] = {1, 0};
    const int64_t wide[] = {2, 3, 4};
    REQUIRE_OK(mt_view(x, &twelve, 1, &out));
    check_name(out, "ViewBackward0");
    REQUIRE_OK(mt_permute(x, swap, 2, &out));
    check_name(out, "PermuteBackward0");
    REQUIRE_OK(mt_transpose(x, 0, 1, &out));
    check_name(out, "TransposeBackward0");
    REQUIRE_OK(mt_expand(x, wide, 3, &out));
    check_name(out, "ExpandBackward0");
    REQUIRE_OK(mt_squeeze(x, &out));
    check_name(out, "SqueezeBackward0");
    REQUIRE_OK(mt_squeeze_dim(x, 0, &out));
    check_name(out, "SqueezeBackward1");
    REQUIRE_OK(mt_unsqueeze(x, 0, &out));
    check_name(out, "UnsqueezeBackward0");
    REQUIRE_OK(mt_select(x, 0, 1, &out));
    check_name(out, "SelectBackward0");
    REQUIRE_OK(mt_narrow(x, 0, 1, 1, &out));
    check_name(out, "SliceBackward0");
    REQUIRE_OK(mt_diagonal(x, 0, 0, 1, &out));
    check_name(out, "DiagonalBackward0");
    REQUIRE_OK(mt_as_strided(x, swap, 2, swap, 2, NULL, &out));
    check_name(out, "AsStridedBackward0");
    REQUIRE_OK(mt_unfold(x, 0, 2, 1, &out));
    check_name(out, "UnfoldBackward0");
    REQUIRE_OK(mt_unbind(x, 0, &list));
    check_list(&list, "UnbindBackward0");
    REQUIRE_OK(mt_chunk(x, 2, 0, &list));
    check_list(&list, "SplitBackward0");
    REQUIRE_OK(mt_t(x, &out));
    mt_tensor *flat = NULL;
    REQUIRE_OK(mt_reshape(out, &twelve, 1, &flat));
    CHECK(!mt_tensor_is_view(flat)); /* a copy without another holder */
    check_name(flat, "UnsafeViewBackward0");
    check_name(out, "TBackward0");
    mt_tensor_release(x);
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}

TEST(picking_has_torchs_nodes)
{
    mt_tensor *x = make_x(MT_DTYPE_F32, true);
    mt_tensor *rows = make_longs((const int64_t[]){2, 0}, (const int64_t[]){2}, 1);
    mt_tensor *places = make_longs((const int64_t[]){0, 3, 1, 2, 2, 0}, (const int64_t[]){3, 2}, 2);
    mt_tensor *out = NULL;
    mt_tensor *mask = NULL;
    mt_tensor *const two[] = {x, x};
    REQUIRE_OK(mt_cat(two, 2, 0, &out));
    check_name(out, "CatBackward0");
    REQUIRE_OK(mt_stack(two, 2, 0, &out));
    check_name(out, "StackBackward0");
    REQUIRE_OK(mt_index_select(x, 0, rows, &out));
    check_name(out, "IndexSelectBackward0");
    REQUIRE_OK(mt_gather(x, 1, places, &out));
    check_name(out, "GatherBackward0");
    REQUIRE_OK(mt_scatter(x, 1, places, x, &out));
    check_name(out, "ScatterBackward0");
    REQUIRE_OK(mt_scatter_scalar(x, 1, places, mt_real(1), &out));
    check_name(out, "ScatterBackward1");
    REQUIRE_OK(mt_scatter_add(x, 1, places, x, &out));
    check_name(out, "ScatterAddBackward0");
    REQUIRE_OK(mt_index(x, &rows, 1, &out));
    check_name(out, "IndexBackward0");
    REQUIRE_OK(mt_gt_scalar(x, mt_int(5), &mask));
    REQUIRE_OK(mt_masked_select(x, mask, &out));
    check_name(out, "MaskedSelectBackward0");
    REQUIRE_OK(mt_masked_scatter(x, mask, x, &out));
    check_name(out, "MaskedScatterBackward0");
    REQUIRE_OK(mt_sort(x, 1, false, &out, NULL));
    check_name(out, "SortBackward0");
    REQUIRE_OK(mt_topk(x, 2, 1, true, true, &out, NULL));
    check_name(out, "TopkBackward0");
    REQUIRE_OK(mt_tril(x, 0, &out));
    check_name(out, "TrilBackward0");
    mt_tensor_release(x);
    mt_tensor_release(rows);
    mt_tensor_release(places);
    mt_tensor_release(mask);
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}

TEST(writing_through_views_reaches_the_base)
{
    mt_tensor *x = make_x(MT_DTYPE_I64, false);
    mt_tensor *view = NULL;
    mt_tensor *one = NULL;
    mt_tensor *index = make_longs((const int64_t[]){-1, 0}, (const int64_t[]){2}, 1);
    REQUIRE_OK(mt_transpose(x, 0, 1, &view)); /* [4, 3] */
    CHECK_EQ_U64(mt_tensor_storage_address(view), mt_tensor_storage_address(x));
    REQUIRE_OK(mt_full((const int64_t[]){3}, 1, mt_int(100), &one));
    uint32_t version = mt_tensor_version(x);
    CHECK_OK(mt_index_put_(view, &index, 1, one, true));
    CHECK(mt_tensor_version(x) > version);
    const int64_t expected[] = {100, 1, 2, 103, 104, 5, 6, 107, 108, 9, 10, 111};
    int64_t got[12];
    REQUIRE_OK(mt_tensor_read(x, got, sizeof(got)));
    CHECK_EQ_MEM(got, expected, sizeof(got));
    /* The source is part of the target: as if it had been copied first. */
    mt_tensor *two = NULL;
    int64_t end = 2;
    REQUIRE_OK(mt_slice(x, 0, NULL, &end, 1, &two));
    CHECK_OK(mt_index_put_(x, &index, 1, two, false));
    const int64_t moved[] = {104, 5, 6, 107, 104, 5, 6, 107, 100, 1, 2, 103};
    REQUIRE_OK(mt_tensor_read(x, got, sizeof(got)));
    CHECK_EQ_MEM(got, moved, sizeof(got));
    mt_tensor_release(two);
    mt_tensor_release(one);
    mt_tensor_release(view);
    mt_tensor_release(index);
    mt_tensor_release(x);
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}

/* ---- failures -------------------------------------------------------------------------------- */

typedef struct inputs {
    mt_tensor *x, *y, *rows, *places, *mask;
} inputs;

static int use_lists(const inputs *in)
{
    mt_value list = {.kind = MT_KIND_NONE};
    mt_tensor *out = NULL;
    mt_tensor *const many[] = {in->x, in->y, in->x, in->y, in->x, in->y, in->x, in->y, in->x,
                               in->y, in->x, in->y, in->x, in->y, in->x, in->y, in->x, in->y};
    int status = mt_unbind(in->x, 1, &list);
    mt_value_clear(&list);
    status = status != 0 ? status : mt_split(in->x, 1, 0, &list);
    mt_value_clear(&list);
    status = status != 0 ? status : mt_cat(many, 18, 0, &out);
    mt_tensor_release(out);
    out = NULL;
    status = status != 0 ? status : mt_stack(many, 18, 1, &out);
    mt_tensor_release(out);
    return status;
}

static int use_indices(const inputs *in)
{
    mt_tensor *out = NULL;
    mt_tensor *places = NULL;
    mt_tensor *const entries[] = {in->mask};
    int status = mt_index(in->x, entries, 1, &out);
    mt_tensor_release(out);
    out = NULL;
    status = status != 0 ? status : mt_scatter_scalar(in->x, 1, in->places, mt_real(2), &out);
    mt_tensor_release(out);
    out = NULL;
    status = status != 0 ? status : mt_sort(in->x, 0, true, &out, &places);
    mt_tensor_release(out);
    mt_tensor_release(places);
    out = NULL;
    status = status != 0 ? status : mt_flip(in->x, (const int64_t[]){0, 1}, 2, &out);
    mt_tensor_release(out);
    return status;
}

/* Gradients through views, lists, indices and overlaps. */
static int use_gradients(const inputs *in)
{
    mt_tensor *grad = NULL;
    mt_tensor *picked = NULL;
    mt_tensor *windows = NULL;
    mt_tensor *joined = NULL;
    mt_tensor *sum = NULL;
    const int64_t size[] = {3, 3};
    const int64_t stride[] = {1, 2};
    int status = mt_index(in->y, &in->rows, 1, &picked);
    status = status != 0 ? status : mt_as_strided(picked, size, 2, stride, 2, NULL, &windows);
    mt_tensor *const parts[] = {windows, windows};
    status = status != 0 ? status : mt_cat(parts, 2, 1, &joined);
    status = status != 0 ? status : mt_sum(joined, NULL, 0, false, &sum);
    status = status != 0 ? status : mt_grad(&sum, NULL, 1, &in->y, 1, 0, &grad);
    mt_tensor_release(grad);
    mt_tensor_release(sum);
    mt_tensor_release(joined);
    mt_tensor_release(windows);
    mt_tensor_release(picked);
    return status;
}

static void check_failures(int (*use)(const inputs *in), const char *what)
{
    inputs in = {.x = make_x(MT_DTYPE_F32, false), .y = make_x(MT_DTYPE_F32, true)};
    in.rows = make_longs((const int64_t[]){2, 0}, (const int64_t[]){2}, 1);
    in.places = make_longs((const int64_t[]){0, 3, 1, 2, 2, 0}, (const int64_t[]){3, 2}, 2);
    REQUIRE_OK(mt_gt_scalar(in.x, mt_int(5), &in.mask));
    REQUIRE_OK(use(&in));
    uint64_t alive = mt_tensors_alive();
    uint64_t n = 1;
    for (; n < 1000; n++) {
        mtb_fail_nth(n, false);
        int status = use(&in);
        uint64_t asked = mtb_fail_nth(0, false);
        if (mt_tensors_alive() != alive) {
            FAIL("%s: request %llu left %llu tensors", what, (unsigned long long)n,
                 (unsigned long long)(mt_tensors_alive() - alive));
            break;
        }
        if (status == 0 && asked < n) {
            break; /* there are no more requests */
        }
        if (status != 0) {
            CHECK_EQ_I64(status, MT_ENOMEM);
        }
    }
    CHECK(n < 1000);
    REQUIRE_OK(use(&in));
    mt_tensor_release(in.x);
    mt_tensor_release(in.y);
    mt_tensor_release(in.rows);
    mt_tensor_release(in.places);
    mt_tensor_release(in.mask);
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}

TEST(failing_allocations_leave_nothing)
{
    check_failures(use_lists, "lists");
    check_failures(use_indices, "indices");
    check_failures(use_gradients, "gradients");
}
