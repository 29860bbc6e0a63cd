/* SPDX-License-Identifier: Apache-2.0
 *
 * Stock PyTorch as a host, with a libtorch of our own whose layout can be wrong (fake_torch.h).
 * Real torch is compared with torch.profiler in tests/peers/torch_host.py.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "hosts/torch/torch_impl.h"
#include "support/fake_torch.h"
#include "support/traces/trace_view.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#ifdef __x86_64__

static const fake_torch *fake;

static void load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        FAIL("dlopen: %s", dlerror());
    }
    fake = dlsym(library, "fake_torch_face");
    REQUIRE(fake != NULL);
}

static void load_fake(void)
{
    load(FAKE_TORCH);
}

static mtprof_torch_info attach(void)
{
    mtprof_torch_info info = {.struct_size = sizeof info};
    REQUIRE_OK(mtprof_torch_attach(&info));
    return info;
}

static void run_op(const char *name, uint32_t scope, int64_t sequence, uint32_t n,
                   const fake_input *inputs)
{
    const fake_op op = {name, scope, sequence, sequence >= 0 && scope == 1, n, inputs, 0, NULL};
    fake->end(fake->begin(&op));
}

static const uint64_t all_wants = MTPROF_WANT_OPS | MTPROF_WANT_SCOPES | MTPROF_WANT_INPUTS |
                                  MTPROF_WANT_DETAILS | MTPROF_WANT_FLOPS | MTPROF_WANT_STRIDES;
static const int64_t sizes[] = {2, 5};
static const int64_t others[] = {5, 4};

/* ---- attaching ---- */

TEST(without_torch_it_says_so)
{
    mtprof_torch_info info = {.struct_size = sizeof info};
    CHECK_EQ_I64(mtprof_torch_attach(&info), MTPROF_ENOTSUP);
    CHECK(strstr(info.missing, "libtorch_cpu.so is not loaded") != NULL);
    CHECK_EQ_U64(info.tier, MTPROF_TORCH_NONE);
    CHECK_EQ_I64(mtprof_torch_attach(&(mtprof_torch_info){0}), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_torch_attach(NULL), MTPROF_ENOTSUP);
    mtprof_torch_detach();
    CHECK_EQ_STR(mtprof_torch_tier_name(MTPROF_TORCH_FULL), "full");
    CHECK_EQ_STR(mtprof_torch_tier_name(77), "unknown");
}

TEST(the_known_layout_is_the_full_tier)
{
    load_fake();
    mtprof_torch_info info = attach();
    CHECK_EQ_U64(info.tier, MTPROF_TORCH_FULL);
    CHECK(!info.memory); /* the fake has no libc10 */
    CHECK(strstr(info.missing, "allocations") != NULL);
    CHECK_EQ_U64(fake->n_observers(), 0); /* that of the check is gone */
}

TEST(the_head_of_objects_is_found)
{
    load_fake();
    fake->layout->object_head = 24;
    CHECK_EQ_U64(attach().tier, MTPROF_TORCH_FULL);
    CHECK_EQ_U64(th__fields.object_head, 24);
}

/* Ops are recorded by name, and nothing is read from records. */
static void check_names_only(const char *missing)
{
    mtprof_torch_info info = attach();
    CHECK_EQ_U64(info.tier, MTPROF_TORCH_NAMES);
    CHECK(strstr(info.missing, missing) != NULL);
    mtprof_session *s = tv_start(all_wants);
    CHECK(!fake->copies_inputs());
    const fake_input inputs[] = {{.kind = FAKE_TENSOR, .n = 2, .sizes = sizes}};
    run_op("aten::relu", 0, 3, 1, inputs);
    trace_view *v = tv_finish(s, NULL);
    const tv_span *span = tv_span_named(v, "aten::relu");
    REQUIRE(span != NULL);
    CHECK(span->end != NULL);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_INPUTS), 0);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_OPINFO), 0);
    tv_free(v);
}

TEST(shifted_fields_end_in_the_tier_of_names)
{
    load_fake();
    fake->layout->shift = 8;
    check_names_only("records of ops");
}

TEST(shifted_inputs_do_so_too)
{
    load_fake();
    fake->layout->inputs_shift = 16;
    check_names_only("records of ops");
}

TEST(inputs_that_point_nowhere_are_not_followed)
{
    load_fake();
    fake->layout->wild = true;
    check_names_only("records of ops");
}

TEST(another_head_of_objects_is_not_guessed)
{
    load_fake();
    fake->layout->object_head = 32;
    check_names_only("inputs of ops");
}

TEST(other_tensors_do_so_too)
{
    load_fake();
    fake->layout->other_tensors = true;
    check_names_only("tensors are not laid out");
}

TEST(a_libtorch_without_a_function_is_observed_by_names)
{
    load(FAKE_TORCH_WITHOUT);
    check_names_only("has no aoti_torch_scalar_to_tensor_float64");
}

TEST(ops_that_are_not_seen_prove_nothing)
{
    load_fake();
    fake->layout->silent = true;
    check_names_only("records of ops");
}

/* ---- other tiers ---- */

TEST(names_can_be_chosen)
{
    load_fake();
    CHECK_EQ_U64(attach().tier, MTPROF_TORCH_FULL);
    REQUIRE_OK(mtprof_torch_choose(MTPROF_TORCH_NAMES, NULL));
    check_names_only("");
    REQUIRE_OK(mtprof_torch_choose(MTPROF_TORCH_FULL, NULL));
    CHECK_EQ_U64(attach().tier, MTPROF_TORCH_FULL);
    CHECK_EQ_I64(mtprof_torch_choose(MTPROF_TORCH_NONE, NULL), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_torch_choose(77, NULL), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_torch_choose(MTPROF_TORCH_COMPILED, NULL), MTPROF_EINVAL);
    mtprof_session *s = tv_start(MTPROF_WANT_OPS);
    CHECK_EQ_I64(mtprof_torch_choose(MTPROF_TORCH_NAMES, NULL), MTPROF_ESTATE);
    mtprof_torch_detach();
    REQUIRE_OK(mtprof_torch_choose(MTPROF_TORCH_NAMES, NULL)); /* nobody reads records now */
    CHECK_EQ_U64(attach().tier, MTPROF_TORCH_NAMES);
    run_op("aten::relu", 0, -1, 0, NULL);
    trace_view *v = tv_finish(s, NULL);
    CHECK(tv_span_named(v, "aten::relu") != NULL); /* attached while it records */
    tv_free(v);
}

static void check_all_inputs(void);

TEST(a_shim_finds_shifted_fields)
{
    load_fake();
    fake->layout->shift = 8;
    fake->layout->shim_shift = 8;
    CHECK_EQ_U64(attach().tier, MTPROF_TORCH_NAMES);
    REQUIRE_OK(mtprof_torch_choose(MTPROF_TORCH_COMPILED, FAKE_TORCH));
    CHECK_EQ_U64(attach().tier, MTPROF_TORCH_COMPILED);
    CHECK(th__fields.identified);
    CHECK_EQ_STR(mtprof_torch_tier_name(MTPROF_TORCH_COMPILED), "compiled");
    check_all_inputs();
}

/* Nothing of a shim is believed: with wrong places the tier is the one without it. */
static void check_shim_is_left(const char *shim, uint32_t tier, const char *missing)
{
    REQUIRE_OK(mtprof_torch_choose(MTPROF_TORCH_COMPILED, shim));
    mtprof_torch_info info = attach();
    CHECK_EQ_U64(info.tier, tier);
    CHECK(strstr(info.missing, missing) != NULL);
}

TEST(a_shim_that_is_wrong_is_left)
{
    load_fake();
    check_shim_is_left("/no/such/file", MTPROF_TORCH_FULL, "could not be opened");
    fake->layout->shim_shift = 16;
    check_shim_is_left(FAKE_TORCH, MTPROF_TORCH_FULL, "records of ops");
    fake->layout->shim_shift = 4000;
    check_shim_is_left(FAKE_TORCH, MTPROF_TORCH_FULL, "places that no record has");
    fake->layout->no_shim = true;
    check_shim_is_left(FAKE_TORCH, MTPROF_TORCH_FULL, "did not find");
    fake->layout->shift = 8;
    check_shim_is_left(FAKE_TORCH, MTPROF_TORCH_NAMES, "records of ops");
}

/* ---- recording ---- */

static void check_all_inputs(void)
{
    attach();
    const fake_input items[] = {{.kind = FAKE_INT, .integer = 7}, {.kind = FAKE_REAL, .real = 0.5}};
    const fake_input inputs[] = {
        {.kind = FAKE_TENSOR, .n = 2, .sizes = sizes},
        {.kind = FAKE_TENSOR, .n = 2, .sizes = others},
        {.kind = FAKE_INT, .integer = -3},
        {.kind = FAKE_REAL, .real = 2.5},
        {.kind = FAKE_BOOL, .integer = 1},
        {.kind = FAKE_TEXT, .text = "trunc"},
        {.kind = FAKE_TEXT, .text = "a text that does not fit into a short string"},
        {.kind = FAKE_LIST, .n = 2, .items = items},
        {.kind = FAKE_NONE},
        {.kind = FAKE_OTHER},
    };
    mtprof_session *s = tv_start(all_wants);
    CHECK(fake->copies_inputs());
    for (int i = 0; i < 2; i++) {
        run_op("aten::mm", 0, 41, 10, inputs);
    }
    trace_view *v = tv_finish(s, NULL);
    for (size_t i = 0; i < 2; i++) {
        const tv_span *span = tv_span_nth(v, "aten::mm", i);
        REQUIRE(span != NULL);
        const tv_record *info = tv_payload(v, span->begin, MTPROF_REC_OPINFO, 0);
        const tv_record *scalars = tv_payload(v, span->begin, MTPROF_REC_SCALARS, 0);
        REQUIRE(info != NULL && scalars != NULL);
        CHECK_EQ_U64(info->r.aux, MTPROF_OP_SEQUENCE | MTPROF_OP_FLOPS);
        CHECK_EQ_U64(info->r.words[0], 41);
        CHECK_EQ_U64(info->r.words[1], 2 * 2 * 5 * 4);
        CHECK_EQ_U64(scalars->r.aux, 7);
        CHECK_EQ_U64(scalars->r.words[0], (uint64_t)-3);
        CHECK_EQ_STR(tv_string(v, scalars->r.words[3]), "trunc");
        CHECK_EQ_STR(tv_string(v, scalars->r.words[4]), inputs[6].text);
        CHECK_EQ_U64(scalars->r.words[5], 7);
    }
    tv_free(v);
    CHECK_EQ_U64(fake->n_observers(), 0);
    CHECK_EQ_U64(attach().unreadable, 0);
}

TEST(an_op_has_all_that_torch_knows)
{
    load_fake();
    check_all_inputs();
}

TEST(the_tags_of_older_versions_are_found)
{
    load_fake();
    fake->layout->old_tags = true;
    check_all_inputs();
    CHECK_EQ_U64(th__fields.tag_string, 11);
}

/* Calls with the same inputs, with other numbers, and with other shapes, one after another. */
TEST(inputs_that_are_known_are_recorded_as_others)
{
    load_fake();
    attach();
    CHECK(th__fields.plain_tensors);
    const uint64_t wants = MTPROF_WANT_OPS | MTPROF_WANT_INPUTS | MTPROF_WANT_STRIDES;
    mtprof_session *s = tv_start(wants);
    for (int i = 0; i < 40; i++) {
        const fake_input inputs[] = {
            {.kind = FAKE_TENSOR, .n = 2, .sizes = i % 4 < 2 ? sizes : others},
            {.kind = FAKE_TENSOR, .n = i % 8 < 7 ? 2 : 1, .sizes = others},
            {.kind = FAKE_INT, .integer = i},
            {.kind = i % 16 == 15 ? FAKE_NONE : FAKE_BOOL, .integer = i % 3},
            {.kind = FAKE_REAL, .real = 0.5 * i}};
        run_op("aten::add", 0, -1, 5, inputs);
    }
    trace_view *v = tv_finish(s, NULL);
    for (size_t i = 0; i < 40; i++) {
        const tv_span *span = tv_span_nth(v, "aten::add", i);
        REQUIRE(span != NULL);
        const tv_record *list = tv_payload(v, span->begin, MTPROF_REC_INPUTS, 0);
        const tv_record *scalars = tv_payload(v, span->begin, MTPROF_REC_SCALARS, 0);
        REQUIRE(list != NULL && scalars != NULL);
        double real = 0.5 * (double)i;
        uint64_t n = i % 16 == 15 ? 2 : 3;
        CHECK_EQ_U64(scalars->r.aux, n);
        CHECK_EQ_U64(scalars->r.words[0], i);
        CHECK_EQ_MEM(&scalars->r.words[n - 1], &real, sizeof real);
        CHECK(n == 2 || scalars->r.words[1] == (i % 3 != 0));
        for (size_t k = 0; k < i; k++) { /* equal lists have equal ids, others do not */
            const tv_span *other = tv_span_nth(v, "aten::add", k);
            const tv_record *before = tv_payload(v, other->begin, MTPROF_REC_INPUTS, 0);
            bool equal = (i % 4 < 2) == (k % 4 < 2) && (i % 8 < 7) == (k % 8 < 7) &&
                         (i % 16 == 15) == (k % 16 == 15);
            CHECK_EQ_U64(before->r.arg == list->r.arg, equal);
        }
    }
    tv_free(v);
}

TEST(tensors_that_keep_no_sizes_are_not_asked)
{
    load_fake();
    attach();
    const fake_input inputs[] = {{.kind = FAKE_TENSOR, .n = 2, .sizes = sizes, .kept = 2},
                                 {.kind = FAKE_TENSOR, .n = 2, .sizes = sizes, .kept = 1},
                                 {.kind = FAKE_INT, .integer = 5}};
    mtprof_session *s = tv_start(all_wants);
    run_op("aten::mm", 0, 3, 3, inputs);
    trace_view *v = tv_finish(s, NULL);
    const tv_span *span = tv_span_named(v, "aten::mm");
    REQUIRE(span != NULL);
    const tv_record *scalars = tv_payload(v, span->begin, MTPROF_REC_SCALARS, 0);
    REQUIRE(scalars != NULL);
    CHECK_EQ_U64(scalars->r.words[0], 5);
    CHECK_EQ_U64(fake->n_asked(), 0);
    CHECK_EQ_U64(attach().unreadable, 0);
    tv_free(v);
}

/* ---- identity of tensors ---- */

static const uint64_t identity = MTPROF_WANT_OPS | MTPROF_WANT_INPUTS | MTPROF_WANT_TENSORS;

typedef struct known_tensor {
    uint64_t tensor, storage, offset, version;
} known_tensor;

/* A tensor of an op's record of inputs (0) or outputs (1); the rest is checked elsewhere. */
static known_tensor tensor_of(const trace_view *v, const char *name, size_t nth, uint32_t outputs,
                              size_t index)
{
    const tv_span *span = tv_span_nth(v, name, nth);
    REQUIRE(span != NULL);
    for (size_t i = 0; i < 3; i++) {
        const tv_record *r = tv_payload(v, span->begin, MTPROF_REC_TENSORS, i);
        REQUIRE(r != NULL);
        if (r->r.aux == outputs) {
            const uint64_t *words = r->r.words + 4 * index;
            return (known_tensor){words[0], words[1], words[2], words[3] & UINT32_MAX};
        }
    }
    return (known_tensor){0};
}

TEST(tensors_are_told_apart)
{
    load_fake();
    attach();
    CHECK(th__fields.identified);
    void **a = fake->make(sizes, 0x1000, 0, 4);
    void **b = fake->make(others, 0x2000, 3, 0);
    void **none = fake->make(others, 0, 0, 0);
    const fake_input list[] = {{.kind = FAKE_TENSOR, .tensor = *b}, {.kind = FAKE_INT}};
    const fake_input inputs[] = {{.kind = FAKE_TENSOR, .tensor = *a},
                                 {.kind = FAKE_LIST, .n = 2, .items = list},
                                 {.kind = FAKE_TENSOR, .tensor = *none}};
    const fake_op op = {"aten::mm", 0, -1, 0, 3, inputs, 2, list};
    mtprof_session *s = tv_start(identity);
    CHECK(fake->copies_outputs());
    fake->end(fake->begin(&op));
    th__memory_freed(0x1000);
    fake->end(fake->begin(&op));
    trace_view *v = tv_finish(s, NULL);
    known_tensor first = tensor_of(v, "aten::mm", 0, 0, 0);
    known_tensor second = tensor_of(v, "aten::mm", 0, 0, 1);
    known_tensor made = tensor_of(v, "aten::mm", 0, 1, 0);
    CHECK(first.tensor != 0 && first.tensor != second.tensor);
    CHECK_EQ_U64(first.storage, 0x1000);
    CHECK_EQ_U64(first.version, 4);
    CHECK_EQ_U64(second.storage, 0x2000);
    CHECK_EQ_U64(second.offset, 3);
    CHECK_EQ_U64(made.tensor, second.tensor);
    CHECK_EQ_U64(tensor_of(v, "aten::mm", 0, 0, 2).tensor, 0);
    CHECK(tensor_of(v, "aten::mm", 1, 0, 0).tensor != first.tensor); /* its memory was freed */
    CHECK_EQ_U64(tensor_of(v, "aten::mm", 1, 0, 1).tensor, second.tensor);
    tv_free(v);
    fake->destroy(a);
    fake->destroy(b);
    fake->destroy(none);
}

TEST(many_freed_addresses_are_told_apart)
{
    load_fake();
    attach();
    void **a = fake->make(sizes, 0x1000, 0, 0);
    const fake_input inputs[] = {{.kind = FAKE_TENSOR, .tensor = *a}};
    mtprof_session *s = tv_start(identity);
    for (uint64_t i = 1; i <= 200000; i++) { /* more than the table holds */
        th__memory_freed(i << 16);
    }
    run_op("aten::relu", 0, -1, 1, inputs);
    th__memory_freed(0x1000);
    run_op("aten::relu", 0, -1, 1, inputs);
    trace_view *v = tv_finish(s, NULL);
    uint64_t first = tensor_of(v, "aten::relu", 0, 0, 0).tensor;
    CHECK(first != 0 && first != tensor_of(v, "aten::relu", 1, 0, 0).tensor);
    tv_free(v);
    fake->destroy(a);
}

/* Shapes are recorded as before, identities are not. */
static void check_no_identity(void)
{
    mtprof_torch_info info = attach();
    CHECK_EQ_U64(info.tier, MTPROF_TORCH_FULL);
    CHECK(!th__fields.identified);
    const fake_input inputs[] = {{.kind = FAKE_TENSOR, .n = 2, .sizes = sizes}};
    mtprof_session *s = tv_start(identity);
    CHECK(!fake->copies_outputs());
    run_op("aten::relu", 0, -1, 1, inputs);
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_INPUTS), 1);
    CHECK_EQ_U64(tensor_of(v, "aten::relu", 0, 0, 0).storage, 0);
    tv_free(v);
}

TEST(without_versions_there_is_no_identity)
{
    load_fake();
    fake->layout->no_versions = true;
    check_no_identity();
}

TEST(without_outputs_there_is_none)
{
    load_fake();
    fake->layout->no_outputs = true;
    check_no_identity();
}

/* ---- odd inputs ---- */

TEST(what_only_has_the_tag_of_a_text_is_not_followed)
{
    load_fake();
    attach();
    const fake_input inputs[] = {{.kind = FAKE_NO_TEXT, .integer = 16}};
    mtprof_session *s = tv_start(all_wants);
    run_op("aten::div", 0, -1, 1, inputs);
    tv_free(tv_finish(s, NULL));
    CHECK_EQ_U64(attach().unreadable, 1);
}

TEST(a_wrapper_has_the_number_of_its_node)
{
    load_fake();
    attach();
    mtprof_session *s = tv_start(all_wants);
    run_op("aten::mm", 0, 9, 0, NULL); /* this thread is known from now on */
    const fake_op wrapper = {
        "autograd::engine::evaluate_function: MmBackward0", 0, -1, 0, 0, NULL, 0, NULL};
    const fake_op node = {"MmBackward0", 1, 9, 1, 0, NULL, 0, NULL};
    fake_running *outer = fake->begin(&wrapper);
    fake->end(fake->begin(&node));
    fake->end(outer);
    trace_view *v = tv_finish(s, NULL);
    const tv_span *span = tv_span_named(v, wrapper.name);
    const tv_span *inside = tv_span_named(v, "MmBackward0");
    REQUIRE(span != NULL && inside != NULL);
    CHECK_EQ_STR(tv_parent_name(v, inside), wrapper.name);
    const tv_record *info = tv_payload(v, span->begin, MTPROF_REC_OPINFO, 0);
    REQUIRE(info != NULL);
    CHECK_EQ_U64(info->r.aux, MTPROF_OP_SEQUENCE | MTPROF_OP_FORWARD_THREAD);
    CHECK_EQ_U64(info->r.words[0], 9);
    tv_free(v);
}

TEST(users_scopes_are_scopes)
{
    load_fake();
    attach();
    mtprof_session *s = tv_start(all_wants);
    run_op("forward pass", TH_SCOPE_USER, -1, 0, NULL);
    run_op("aten::relu", TH_SCOPE_FUNCTION, -1, 0, NULL);
    run_op("static::op", TH_SCOPE_STATIC_OP, -1, 0, NULL);
    run_op("not observed", 3, -1, 0, NULL);
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(v->n_spans, 3);
    CHECK_EQ_U64(tv_span_named(v, "forward pass")->begin->r.aux & MTPROF_KIND_MASK,
                 MTPROF_KIND_SCOPE);
    CHECK_EQ_U64(tv_span_named(v, "static::op")->begin->r.aux & MTPROF_KIND_MASK, MTPROF_KIND_OP);
    tv_free(v);
}

/* An address may hold another name the next time. */
TEST(names_are_compared_by_their_text)
{
    load_fake();
    attach();
    char name[] = "NodeBackward0";
    mtprof_session *s = tv_start(MTPROF_WANT_OPS);
    for (int i = 0; i < 10; i++) {
        name[12] = (char)('0' + i);
        run_op(name, 1, -1, 0, NULL);
    }
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(v->n_spans, 10);
    for (int i = 0; i < 10; i++) {
        name[12] = (char)('0' + i);
        CHECK(tv_span_named(v, name) != NULL);
    }
    tv_free(v);
}

static void *end_elsewhere(void *running)
{
    fake->end(running);
    return NULL;
}

TEST(an_op_may_end_on_another_thread)
{
    load_fake();
    attach();
    const fake_op op = {"collective", 0, -1, 0, 0, NULL, 0, NULL};
    mtprof_session *s = tv_start(MTPROF_WANT_OPS);
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        fake_running *running = fake->begin(&op);
        REQUIRE(pthread_create(&thread, NULL, end_elsewhere, running) == 0);
        pthread_join(thread, NULL);
    }
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(v->n_spans, 3);
    for (size_t i = 0; i < v->n_spans; i++) {
        CHECK(v->spans[i].end != NULL);
    }
    tv_free(v);
}

enum {
    THREADS = 4,
    OPS = 2000
};

static void *many_ops(void *unused)
{
    (void)unused;
    const fake_input inputs[] = {{.kind = FAKE_TENSOR, .n = 2, .sizes = sizes}};
    for (int i = 0; i < OPS; i++) {
        run_op(i % 2 == 0 ? "aten::relu" : "aten::sin", 0, i, 1, inputs);
    }
    return NULL;
}

TEST(threads_record_side_by_side)
{
    load_fake();
    attach();
    pthread_t threads[THREADS];
    mtprof_session *s = tv_start(all_wants);
    for (int i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, many_ops, NULL) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(v->n_spans, THREADS * OPS);
    CHECK_EQ_U64(h.lost, 0);
    tv_free(v);
}

TEST(nothing_is_left_between_recordings)
{
    load_fake();
    attach();
    for (int i = 0; i < 200; i++) {
        mtprof_session *s = tv_start(all_wants);
        CHECK(fake->n_observers() > 0);
        run_op("aten::relu", 0, i, 0, NULL);
        tv_free(tv_finish(s, NULL));
        CHECK_EQ_U64(fake->n_observers(), 0);
    }
    mtprof_torch_detach();
    mtprof_session *s = tv_start(all_wants);
    CHECK_EQ_U64(fake->n_observers(), 0);
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(v->n_spans, 0);
    tv_free(v);
    CHECK_EQ_U64(attach().tier, MTPROF_TORCH_FULL);
}

TEST(ops_survive_every_refused_allocation)
{
    load_fake();
    attach();
    const fake_input inputs[] = {{.kind = FAKE_TENSOR, .n = 2, .sizes = sizes},
                                 {.kind = FAKE_TEXT, .text = "text"}};
    for (uint64_t n = 1; n < 12; n++) {
        mtprof_session *s = tv_start(all_wants);
        char name[32];
        snprintf(name, sizeof name, "aten::op%d", (int)n);
        mtb_fail_nth(n, true);
        run_op(name, 0, 1, 2, inputs);
        mtb_fail_nth(0, false);
        run_op("aten::relu", 0, 1, 2, inputs);
        trace_view *v = tv_finish(s, NULL);
        CHECK(tv_span_named(v, "aten::relu") != NULL);
        tv_free(v);
    }
}

#else

TEST(other_processors)
{
    SKIP("the way to torch's records is known for x86-64 alone");
}

#endif
