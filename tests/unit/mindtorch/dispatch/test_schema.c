/* SPDX-License-Identifier: Apache-2.0
 *
 * Schemas: what parses, into what, and what is refused with which words.
 */
#include "harness/mt_test.h"
#include "mindtorch/dispatch/call.h"
#include "mindtorch/dispatch/schema.h"

#include <mindtorch/status.h>

#include <string.h>

TEST(a_schema_with_everything)
{
    static mt__schema s;
    REQUIRE_OK(
        mt__schema_parse("my::op.over(Tensor a, Tensor? b, Tensor|Scalar c=2, int[] d=[1, -2], "
                         "*, float e=1e-05, str f='none', bool g=True, dtype? h=None, "
                         "Tensor?[] i, Generator? j=None) -> (Tensor x, Tensor[] y)",
                         &s));
    CHECK_EQ_STR(s.space, "my");
    CHECK_EQ_STR(s.name, "op");
    CHECK_EQ_STR(s.overload, "over");
    REQUIRE_EQ_U64(s.n_params, 10);
    REQUIRE_EQ_U64(s.n_results, 2);
    CHECK_EQ_U64(s.params[0].type, MT_TYPE_TENSOR);
    CHECK(s.params[1].optional);
    CHECK_EQ_U64(s.params[2].type, MT_TYPE_TENSOR_OR_SCALAR);
    CHECK_EQ_I64(s.params[2].value.of.integer, 2);
    REQUIRE_EQ_U64(s.params[3].value.count, 2);
    CHECK_EQ_I64(s.params[3].value.of.ints[1], -2);
    CHECK(!s.params[3].keyword);
    CHECK(s.params[4].keyword);
    CHECK_EQ_F64(s.params[4].value.of.real, 1e-05);
    CHECK_EQ_STR(s.params[5].value.of.text, "none");
    CHECK_EQ_I64(s.params[6].value.of.integer, 1);
    CHECK_EQ_U64(s.params[7].value.kind, MT_KIND_NONE);
    CHECK_EQ_U64(s.params[8].type, MT_TYPE_OPTIONAL_TENSORS);
    CHECK(!s.params[8].optional);
    CHECK_EQ_STR(s.result_names[1], "y");
    CHECK_EQ_U64(s.result_types[1], MT_TYPE_TENSORS);
}

TEST(integers_in_the_place_of_floats_are_floats)
{
    static mt__schema s;
    REQUIRE_OK(mt__schema_parse("f(float a=0, Scalar b=0) -> ()", &s));
    CHECK_EQ_U64(s.params[0].value.kind, MT_KIND_REAL);
    CHECK_EQ_U64(s.params[1].value.kind, MT_KIND_INT);
    CHECK_EQ_U64(s.n_results, 0);
}

TEST(what_does_not_parse_is_named)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "expected a name"},
        {"f", "expected '('"},
        {"f(", "expected a type"},
        {"f(Tensor) -> Tensor", "expected a name"},
        {"f(Tensr a) -> Tensor", "expected a type at 'Tensr a"},
        {"f(Tensor a Tensor b) -> Tensor", "expected ',' or ')'"},
        {"f(Tensor a)", "expected '->'"},
        {"f(Tensor a) -> Tensor and more", "expected the end"},
        {"f(int a=x) -> Tensor", "expected a default value"},
        {"f(int[] a=[1, 2, 3, 4, 5]) -> Tensor", "at most four integers"},
        {"f(str a='a text that is too long for this') -> Tensor", "a short text"},
        {"f(Tensor a) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
         "at most 8 results"},
        {"f(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j, int k, int l, "
         "int m, int n, int o, int p, int q) -> Tensor",
         "at most 16 parameters"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        static mt__schema s;
        CHECK_EQ_I64(mt__schema_parse(bad[i].text, &s), MT_EVALUE);
        if (strstr(mt_last_error()->message, bad[i].says) == NULL) {
            FAIL("'%s' says: %s", bad[i].text, mt_last_error()->message);
        }
    }
}

/* What opgen made of the table is what the parser makes of it now. */
TEST(rows_fit_their_schemas)
{
    for (uint32_t i = 0; i < mt__n_op_rows; i++) {
        static mt__schema s;
        const mt__op_row *row = &mt__op_rows[i];
        REQUIRE_OK(mt__schema_parse(row->schema, &s));
        CHECK_EQ_STR(row->name, s.name);
        CHECK_EQ_STR(row->overload, s.overload);
        CHECK_EQ_U64(row->op, i);
        REQUIRE_EQ_U64(row->n_params, s.n_params);
        CHECK_EQ_U64(row->n_results, s.n_results);
        for (uint32_t k = 0; k < s.n_params; k++) {
            CHECK_EQ_STR(row->params[k].name, s.params[k].name);
            CHECK_EQ_U64(row->params[k].accepts, mt__param_accepts(&s.params[k]));
            CHECK_EQ_U64(row->params[k].has_default, s.params[k].has_default);
            CHECK_EQ_U64(row->params[k].has_gaps, s.params[k].type == MT_TYPE_OPTIONAL_TENSORS);
            CHECK_EQ_U64(row->params[k].value.kind, s.params[k].value.kind);
        }
    }
}

/* Flags that speak of certain arguments. */
TEST(flags_fit_the_parameters)
{
    for (uint32_t i = 0; i < mt__n_op_rows; i++) {
        const mt__op_row *row = &mt__op_rows[i];
        bool has_grads = row->n_params > MT_FUSED_GRADS &&
                         strcmp(row->params[MT_FUSED_GRADS].name, "grads") == 0;
        CHECK_EQ_U64((row->flags & MT_OP_FUSED) != 0, has_grads);
        if ((row->flags & (MT_OP_LIKE | MT_OP_INPLACE)) != 0) {
            CHECK_EQ_STR(row->params[0].name, "self");
        }
    }
}
