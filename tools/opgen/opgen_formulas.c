/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes C functions of the FORMULA lines; all_ops.def describes their language.
 *
 *     self: mul(grad, cos(self))      mt_tensor *s1 = NULL;
 *                                     MT_TRY(mt__bw_call(b, MT__OP_COS, {b->args[0]}, &s1));
 *                                     mt_tensor *s2 = NULL;
 *                                     MT_TRY(mt__bw_call(b, MT__OP_MUL, {grad, s1}, &s2));
 *                                     mt__bw_give(b, 0, s2);
 *
 * Arguments are computed from left to right: the profiler sees this order. What a formula reads is
 * what its node saves.
 */
#include "opgen.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_TEXT = 512,
    MAX_LOCALS = 16
};

/* The name of a step's result. */
typedef struct local {
    char name[MT_SCHEMA_TEXT];
    uint32_t step;
} local;

typedef struct compiler {
    const op_text *ops;
    size_t n_ops;
    op_text *op;
    const char *at; /* what has not been read yet */
    FILE *out;
    local locals[MAX_LOCALS];
    uint32_t n_locals;
    uint32_t n_steps;
    bool failed;
} compiler;

/* C text of a value. */
typedef struct value {
    char boxed[MAX_TEXT];  /* an mt_value */
    char tensor[MAX_TEXT]; /* an mt_tensor *; "" if it is none */
} value;

static void fail(compiler *c, const char *what)
{
    if (!c->failed) {
        fprintf(stderr, "opgen: %s: %s before '%s'\n", c->op->id, what, c->at);
    }
    c->failed = true;
}

/* Adds to a text; what does not fit is a failure. */
static void add_text(compiler *c, char text[MAX_TEXT], const char *format, ...)
{
    size_t length = strlen(text);
    va_list args;
    va_start(args, format);
    int more = vsnprintf(text + length, MAX_TEXT - length, format, args);
    va_end(args);
    if (more < 0 || (size_t)more >= MAX_TEXT - length) {
        fail(c, "too long a value");
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool sees(compiler *c, char mark)
{
    while (*c->at == ' ') {
        c->at++;
    }
    return *c->at == mark;
}

static bool takes(compiler *c, char mark)
{
    bool is = sees(c, mark);
    c->at += is;
    return is;
}

static void expect(compiler *c, char mark)
{
    if (!takes(c, mark)) {
        fail(c, (const char[]){'n', 'o', ' ', mark, '\0'});
    }
}

/* A name; "" if there is none. */
static void take_name(compiler *c, char name[MT_SCHEMA_TEXT])
{
    size_t n = 0;
    sees(c, '\0');
    while (isalnum((unsigned char)*c->at) || *c->at == '_') {
        if (n + 1 < MT_SCHEMA_TEXT) {
            name[n++] = *c->at;
        }
        c->at++;
    }
    name[n] = '\0';
}

static int find_param(const mt__schema *schema, const char *name)
{
    for (uint32_t i = 0; i < schema->n_params; i++) {
        if (strcmp(schema->params[i].name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* "squeeze" or, with its overload, "squeeze_dim". */
static const op_text *find_op(const compiler *c, const char *name)
{
    for (size_t i = 0; i < c->n_ops; i++) {
        const mt__schema *schema = &c->ops[i].schema;
        char full[2 * MT_SCHEMA_TEXT];
        snprintf(full, sizeof full, "%s%s%s", schema->name, schema->overload[0] != '\0' ? "_" : "",
                 schema->overload);
        for (char *at = full + strlen(schema->name); *at != '\0'; at++) {
            *at = (char)tolower((unsigned char)*at);
        }
        if (strcmp(full, name) == 0) {
            return &c->ops[i];
        }
    }
    return NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

static value take_value(compiler *c, const mt__param *into);
static value take_sequence(compiler *c);

static value step_value(compiler *c, uint32_t step)
{
    value made = {.boxed = ""};
    add_text(c, made.tensor, "s%u", step);
    add_text(c, made.boxed, "mt__box_tensor(s%u)", step);
    return made;
}

/* An argument of the forward call. */
static value param_value(compiler *c, uint32_t i, const mt__param *into)
{
    value made = {.boxed = ""};
    const mt__param *param = &c->op->schema.params[i];
    if (into != NULL && into->type == MT_TYPE_FLOAT) { /* integers are numbers as well */
        add_text(c, made.boxed, "mt__box_real(mt__scalar_real(&b->args[%u]))", i);
        return made;
    }
    add_text(c, made.boxed, "b->args[%u]", i);
    if (param->type == MT_TYPE_TENSOR || param->type == MT_TYPE_TENSOR_OR_SCALAR) {
        add_text(c, made.tensor, "b->args[%u].of.tensor", i);
    }
    if (param->type <= MT_TYPE_OPTIONAL_TENSORS) {
        c->op->saves |= (uint32_t)MT_SAVE_ARG << i;
    }
    return made;
}

static value result_value(compiler *c, uint32_t i)
{
    value made = {.boxed = ""};
    c->op->saves |= (uint32_t)MT_SAVE_RESULT << i;
    add_text(c, made.boxed, "b->results[%u]", i);
    add_text(c, made.tensor, "b->results[%u].of.tensor", i);
    return made;
}

static value named_value(compiler *c, const char *name, const mt__param *into)
{
    value made = {.boxed = ""};
    const mt__schema *schema = &c->op->schema;
    if (strcmp(name, "grad") == 0) { /* although an argument may be called so */
        add_text(c, made.boxed, "mt__box_tensor(b->grads[0])");
        add_text(c, made.tensor, "b->grads[0]");
        return made;
    }
    for (uint32_t i = 0; i < c->n_locals; i++) {
        if (strcmp(c->locals[i].name, name) == 0) {
            return step_value(c, c->locals[i].step);
        }
    }
    int param = find_param(schema, name);
    if (param >= 0) {
        return param_value(c, (uint32_t)param, into);
    }
    for (uint32_t i = 0; i < schema->n_results; i++) {
        if (strcmp(name, schema->n_results > 1 ? schema->result_names[i] : "result") == 0) {
            return result_value(c, i);
        }
    }
    if (strcmp(name, "true") == 0 || strcmp(name, "false") == 0) {
        add_text(c, made.boxed, "mt__box_bool(%s)", name);
    } else if (strcmp(name, "none") == 0) {
        add_text(c, made.boxed, "mt__box_none()");
    } else {
        fail(c, "no such name");
    }
    return made;
}

static value number_value(compiler *c, const mt__param *into)
{
    value made = {.boxed = ""};
    int length = (int)strspn(c->at, "-+.0123456789e");
    bool real = memchr(c->at, '.', (size_t)length) != NULL ||
                memchr(c->at, 'e', (size_t)length) != NULL ||
                (into != NULL && into->type == MT_TYPE_FLOAT);
    add_text(c, made.boxed, "mt_%s(%.*s)", real ? "real" : "int", length, c->at);
    c->at += length;
    return made;
}

static value text_value(compiler *c)
{
    value made = {.boxed = ""};
    int length = (int)strcspn(c->at + 1, "\"");
    add_text(c, made.boxed, "mt__box_text(\"%.*s\")", length, c->at + 1);
    c->at += length + 2;
    return made;
}

/* [dim]: a list of integers. */
static value list_value(compiler *c)
{
    value made = {.boxed = ""};
    uint32_t count = 0;
    if (takes(c, ']')) {
        add_text(c, made.boxed, "mt__box_ints(NULL, 0)");
        return made;
    }
    add_text(c, made.boxed, "mt__box_ints((const int64_t[]){");
    do {
        add_text(c, made.boxed, "%s(%s).of.integer", count++ > 0 ? ", " : "",
                 take_value(c, NULL).boxed);
    } while (!c->failed && takes(c, ','));
    expect(c, ']');
    add_text(c, made.boxed, "}, %u)", count);
    return made;
}

/* The number of an argument. */
static uint32_t number_of(compiler *c, const char *name)
{
    int param = find_param(&c->op->schema, name);
    if (param < 0) {
        fail(c, "no argument");
    }
    return param < 0 ? 0 : (uint32_t)param;
}

static uint32_t take_param(compiler *c)
{
    char name[MT_SCHEMA_TEXT];
    take_name(c, name);
    return number_of(c, name);
}

/* sizes(self): of an argument, which is not saved for it. */
static value sizes_value(compiler *c)
{
    value made = {.boxed = ""};
    add_text(c, made.boxed, "mt__bw_sizes(b, %u)", take_param(c));
    expect(c, ')');
    return made;
}

/* zeros_for(self), moved_to(self): of an argument's sizes, type, device. */
static value fitting_value(compiler *c, const char *name)
{
    uint32_t step = ++c->n_steps;
    fprintf(c->out, "    mt_tensor *s%u = NULL;\n    MT_TRY(mt__bw_%s(b, %u, &s%u));\n", step, name,
            take_param(c), step);
    expect(c, ')');
    return step_value(c, step);
}

/* ARG(0): by number, where the argument's name means something else. */
static value arg_value(compiler *c)
{
    uint32_t i = (uint32_t)strtoul(c->at, (char **)(uintptr_t)&c->at, 10);
    expect(c, ')');
    if (i >= c->op->schema.n_params) {
        fail(c, "no argument");
        i = 0;
    }
    return param_value(c, i, NULL);
}

/* The condition of a choice, "" if it is none; reads what it is about. */
static void take_condition(compiler *c, const char *name, char text[MAX_TEXT])
{
    if (strcmp(name, "if_graph") == 0) {
        add_text(c, text, "mt_grad_enabled()");
    } else if (strcmp(name, "if_given") == 0) {
        add_text(c, text, "b->args[%u].kind != MT_KIND_NONE", take_param(c));
        expect(c, ',');
    } else if (strcmp(name, "if_equal") == 0) {
        uint32_t param = take_param(c);
        expect(c, ',');
        sees(c, '"');
        int length = (int)strcspn(c->at + 1, "\"") + 2;
        add_text(c, text, "strcmp(b->args[%u].of.text, %.*s) == 0", param, length, c->at);
        c->at += length;
        expect(c, ',');
    }
}

/* One of two values; the other one is not computed. */
static value chosen_value(compiler *c, const char *condition)
{
    uint32_t step = ++c->n_steps;
    fprintf(c->out, "    mt_tensor *s%u = NULL;\n    if (%s) {\n", step, condition);
    fprintf(c->out, "    s%u = %s;\n    } else {\n", step, take_value(c, NULL).tensor);
    expect(c, ',');
    fprintf(c->out, "    s%u = %s;\n    }\n", step, take_value(c, NULL).tensor);
    expect(c, ')');
    return step_value(c, step);
}

/* A call of an op; of mt__bw_<name>() where there is no such op. */
static value call_value(compiler *c, const char *name)
{
    char args[MAX_TEXT] = "";
    const op_text *op = find_op(c, name);
    uint32_t n = 0;
    while (!c->failed && !takes(c, ')')) {
        bool unknown = op != NULL && n >= op->schema.n_params;
        if (unknown || (n > 0 && !takes(c, ','))) {
            fail(c, unknown ? "an argument too many" : "no comma");
            break;
        }
        add_text(c, args, "%s, ", take_value(c, op == NULL ? NULL : &op->schema.params[n]).boxed);
        n++;
    }
    uint32_t step = ++c->n_steps;
    fprintf(c->out, "    mt_tensor *s%u = NULL;\n", step);
    if (op == NULL) {
        fprintf(c->out, "    MT_TRY(mt__bw_%s(b, (const mt_value[]){%s}, &s%u));\n", name, args,
                step);
        return step_value(c, step);
    }
    fprintf(c->out, "    MT_TRY(mt__bw_call(b, MT__OP_%s, (const mt_value[]){%s", op->id, args);
    for (; n < op->schema.n_params; n++) {
        if (!op->schema.params[n].has_default) {
            fail(c, "an argument too few");
        }
        opgen_default(c->out, &op->schema.params[n]);
        fprintf(c->out, ", ");
    }
    fprintf(c->out, "}, &s%u));\n", step);
    if (op->schema.n_results != 1 || op->schema.result_types[0] != MT_TYPE_TENSOR) {
        fail(c, "a call without one tensor");
    }
    return step_value(c, step);
}

/* `into` is the parameter that gets it, or NULL. */
static value take_value(compiler *c, const mt__param *into)
{
    char name[MT_SCHEMA_TEXT];
    if (takes(c, '[')) {
        return list_value(c);
    }
    if (takes(c, '(')) {
        value made = take_sequence(c);
        expect(c, ')');
        return made;
    }
    if (sees(c, '"')) {
        return text_value(c);
    }
    if (isdigit((unsigned char)*c->at) || *c->at == '-') {
        return number_value(c, into);
    }
    take_name(c, name);
    if (!takes(c, '(')) {
        return named_value(c, name, into);
    }
    char condition[MAX_TEXT] = "";
    take_condition(c, name, condition);
    if (condition[0] != '\0') {
        return chosen_value(c, condition);
    }
    if (strcmp(name, "zeros_for") == 0 || strcmp(name, "moved_to") == 0) {
        return fitting_value(c, name);
    }
    return strcmp(name, "sizes") == 0 ? sizes_value(c)
           : strcmp(name, "ARG") == 0 ? arg_value(c)
                                      : call_value(c, name);
}

/* ---- statements ------------------------------------------------------------------------------ */

/* What comes after "name =". */
static void take_local(compiler *c, const char *name)
{
    value made = take_value(c, NULL);
    unsigned step = 0;
    if (c->n_locals == MAX_LOCALS || sscanf(made.tensor, "s%u", &step) != 1) {
        fail(c, "not a step with a name");
        return;
    }
    local *here = &c->locals[c->n_locals++];
    snprintf(here->name, sizeof here->name, "%s", name);
    here->step = step;
}

/* What comes after "name(": a step for some gradients alone. */
static void take_local_for(compiler *c, const char *name)
{
    uint32_t step = ++c->n_steps;
    const char *before = "";
    fprintf(c->out, "    mt_tensor *s%u = NULL;\n    if (", step);
    do {
        fprintf(c->out, "%smt__wants(b, %u)", before, take_param(c));
        before = " || ";
    } while (!c->failed && takes(c, ','));
    expect(c, ')');
    expect(c, '=');
    fprintf(c->out, ") {\n");
    take_local(c, name);
    if (!c->failed) {
        local *here = &c->locals[c->n_locals - 1];
        fprintf(c->out, "    s%u = s%u;\n    }\n", step, here->step);
        here->step = step;
    }
}

/* Steps with names, then a value: "t = tanh(self), mul(grad, t)". */
static value take_sequence(compiler *c)
{
    uint32_t n_locals = c->n_locals;
    char name[MT_SCHEMA_TEXT];
    const char *begin = c->at;
    take_name(c, name);
    while (!c->failed && takes(c, '=')) {
        take_local(c, name);
        expect(c, ',');
        begin = c->at;
        take_name(c, name);
    }
    c->at = begin;
    value made = take_value(c, NULL);
    c->n_locals = n_locals;
    return made;
}

/* Whether other gradients can be wanted as well; if not, this one is. */
static bool has_others(const compiler *c)
{
    uint32_t tensors = 0;
    for (uint32_t i = 0; i < c->op->schema.n_params; i++) {
        tensors += c->op->schema.params[i].type <= MT_TYPE_OPTIONAL_TENSORS;
    }
    return tensors > 1;
}

/* What comes after "argument:". */
static void take_gradient(compiler *c, const char *argument)
{
    uint32_t param = number_of(c, argument);
    if (has_others(c)) {
        fprintf(c->out, "    if (mt__wants(b, %u)) {\n", param);
    } else {
        fprintf(c->out, "    {\n");
    }
    value grad = take_sequence(c);
    fprintf(c->out, "    mt__bw_give(b, %u, %s);\n    }\n", param, grad.tensor);
    if (grad.tensor[0] == '\0') {
        fail(c, "not a tensor");
    }
}

static void take_statement(compiler *c)
{
    char name[MT_SCHEMA_TEXT];
    take_name(c, name);
    if (takes(c, ':')) {
        take_gradient(c, name);
    } else if (takes(c, '=')) {
        take_local(c, name);
    } else if (takes(c, '(')) {
        take_local_for(c, name);
    } else {
        fail(c, "no statement");
    }
}

bool opgen_formula(const op_text *ops, size_t count, op_text *op)
{
    compiler c = {.ops = ops, .n_ops = count, .op = op, .at = op->derivative->function};
    size_t size = 0;
    c.out = open_memstream(&op->formula, &size);
    if (c.out == NULL) {
        fprintf(stderr, "opgen: no memory\n");
        return false;
    }
    fprintf(c.out, "int %s(mt__backward *b)\n{\n", op->derive);
    if (op->schema.n_results > 1) { /* nothing may have depended on the first */
        fprintf(c.out, "    if (b->grads[0] == NULL) {\n        return MT_OK;\n    }\n");
    }
    do {
        take_statement(&c);
    } while (!c.failed && takes(&c, ';'));
    if (*c.at != '\0') {
        fail(&c, "no end");
    }
    fprintf(c.out, "    return MT_OK;\n}\n");
    return fclose(c.out) == 0 && !c.failed;
}

void opgen_formulas(const op_text *ops, size_t count)
{
    printf("/* SPDX-License-Identifier: Apache-2.0\n *\n * Made by tools/opgen. */\n"
           "#include \"mindtorch/autograd/formulas/formula.h\"\n"
           "#include \"mindtorch/dispatch/boxing.h\"\n"
           "#include \"mindtorch/dispatch/call.h\"\n\n#include <string.h>\n");
    for (size_t i = 0; i < count; i++) {
        if (ops[i].formula != NULL) {
            printf("\n%s", ops[i].formula);
        }
    }
}
