/* SPDX-License-Identifier: Apache-2.0
 *
 * The compiler of FORMULA lines (tools/opgen): calls that it makes, what it saves and refuses.
 */
#include "harness/mt_test.h"
#include "opgen.h"

#include <stdlib.h>
#include <string.h>

enum {
    MUL,
    COS,
    SQUEEZE_DIM,
    SUM,
    MAX_DIM,
    N_OPS
};

static op_text *make_ops(void)
{
    static const char *const schemas[N_OPS] = {
        [MUL] = "mul(Tensor self, Tensor|Scalar other) -> Tensor",
        [COS] = "cos(Tensor self) -> Tensor",
        [SQUEEZE_DIM] = "squeeze.Dim(Tensor self, int dim) -> Tensor",
        [SUM] = "sum(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
        [MAX_DIM] = "max.dim(Tensor self, int dim) -> (Tensor values, Tensor indices)",
    };
    static const char *const ids[N_OPS] = {"MUL", "COS", "SQUEEZE_DIM", "SUM", "MAX_DIM"};
    op_text *ops = calloc(N_OPS, sizeof(op_text));
    REQUIRE(ops != NULL);
    for (size_t i = 0; i < N_OPS; i++) {
        snprintf(ops[i].id, sizeof ops[i].id, "%s", ids[i]);
        snprintf(ops[i].derive, sizeof ops[i].derive, "derive");
        REQUIRE_OK(mt__schema_parse(schemas[i], &ops[i].schema));
    }
    return ops;
}

/* Compiles a formula of one of the ops; the text is the caller's, NULL if it was refused. */
static char *compile(int of, const char *formula, uint32_t *saves)
{
    op_text *ops = make_ops();
    const op_line line = {.kind = LINE_FORMULA, .function = formula};
    ops[of].derivative = &line;
    bool good = opgen_formula(ops, N_OPS, &ops[of]);
    char *text = ops[of].formula;
    *saves = ops[of].saves;
    free(ops);
    if (!good) {
        free(text);
        return NULL;
    }
    return text;
}

static void check(int of, const char *formula, uint32_t saves, const char *body)
{
    char whole[1024];
    uint32_t saved = 0;
    char *text = compile(of, formula, &saved);
    REQUIRE(text != NULL);
    snprintf(whole, sizeof whole, "int derive(mt__backward *b)\n{\n%s    return MT_OK;\n}\n", body);
    CHECK_EQ_STR(text, whole);
    CHECK_EQ_U64(saved, saves);
    free(text);
}

TEST(calls_are_made_from_left_to_right_and_what_is_read_is_saved)
{
    check(
        COS, "self: mul(cos(grad), mul(self, -2))", MT_SAVE_ARG,
        "    {\n"
        "    mt_tensor *s1 = NULL;\n"
        "    MT_TRY(mt__bw_call(b, MT__OP_COS, (const mt_value[]){mt__box_tensor(b->grads[0]), }, "
        "&s1));\n"
        "    mt_tensor *s2 = NULL;\n"
        "    MT_TRY(mt__bw_call(b, MT__OP_MUL, (const mt_value[]){b->args[0], mt_int(-2), }, "
        "&s2));\n"
        "    mt_tensor *s3 = NULL;\n"
        "    MT_TRY(mt__bw_call(b, MT__OP_MUL, (const mt_value[]){mt__box_tensor(s1), "
        "mt__box_tensor(s2), }, &s3));\n"
        "    mt__bw_give(b, 0, s3);\n"
        "    }\n");
}

TEST(a_named_step_is_made_once_and_only_if_it_is_wanted)
{
    check(MUL, "both(self, other) = cos(result); self: both; other: both", MT_SAVE_RESULT,
          "    mt_tensor *s1 = NULL;\n"
          "    if (mt__wants(b, 0) || mt__wants(b, 1)) {\n"
          "    mt_tensor *s2 = NULL;\n"
          "    MT_TRY(mt__bw_call(b, MT__OP_COS, (const mt_value[]){b->results[0], }, &s2));\n"
          "    s1 = s2;\n"
          "    }\n"
          "    if (mt__wants(b, 0)) {\n"
          "    mt__bw_give(b, 0, s1);\n"
          "    }\n"
          "    if (mt__wants(b, 1)) {\n"
          "    mt__bw_give(b, 1, s1);\n"
          "    }\n");
}

TEST(overloads_defaults_and_lists)
{
    check(SQUEEZE_DIM, "self: sum(squeeze_dim(grad, dim), [dim, 1])", 0,
          "    {\n"
          "    mt_tensor *s1 = NULL;\n"
          "    MT_TRY(mt__bw_call(b, MT__OP_SQUEEZE_DIM, (const "
          "mt_value[]){mt__box_tensor(b->grads[0]), b->args[1], }, &s1));\n"
          "    mt_tensor *s2 = NULL;\n"
          "    MT_TRY(mt__bw_call(b, MT__OP_SUM, (const mt_value[]){mt__box_tensor(s1), "
          "mt__box_ints((const int64_t[]){(b->args[1]).of.integer, (mt_int(1)).of.integer}, 2), "
          "mt__box_bool(false), }, &s2));\n"
          "    mt__bw_give(b, 0, s2);\n"
          "    }\n");
}

TEST(only_the_first_of_several_results_counts)
{
    check(MAX_DIM, "self: cos(indices)", (uint32_t)MT_SAVE_RESULT << 1,
          "    if (b->grads[0] == NULL) {\n"
          "        return MT_OK;\n"
          "    }\n"
          "    {\n"
          "    mt_tensor *s1 = NULL;\n"
          "    MT_TRY(mt__bw_call(b, MT__OP_COS, (const mt_value[]){b->results[1], }, &s1));\n"
          "    mt__bw_give(b, 0, s1);\n"
          "    }\n");
}

TEST(what_is_wrong_is_refused)
{
    static const char *const wrong[] = {
        "",
        "self",
        "self: ",
        "other: grad",                /* cos() has no such argument */
        "self: mul(grad, nobody)",    /* no such name */
        "self: mul(grad)",            /* too few */
        "self: cos(grad, grad)",      /* too many */
        "self: mul(grad grad)",       /* no comma */
        "self: cos(grad",             /* no end */
        "self: grad grad",            /* more than a value */
        "self: 2",                    /* a number is no gradient */
        "self: max_dim(grad, 1)",     /* two results */
        "x = 2; self: x",             /* a number is no step */
        "self: sizes(nobody)",        /* no such argument */
        "self: ARG(7)",               /* nor such a number */
        "self: if_given(self, grad)", /* one value to choose from */
    };
    for (size_t i = 0; i < MT_COUNT(wrong); i++) {
        uint32_t saves = 0;
        char *text = compile(COS, wrong[i], &saves);
        CHECK(text == NULL);
        if (text != NULL) {
            fprintf(stderr, "accepted: %s\n", wrong[i]);
        }
        free(text);
    }
}
