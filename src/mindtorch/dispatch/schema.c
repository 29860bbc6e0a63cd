/* SPDX-License-Identifier: Apache-2.0
 *
 * A recursive descent parser of schemas, with one function per rule of the grammar.
 *
 *     schema   = [space "::"] name ["." overload] "(" [param {"," param}] ")" "->" results
 *     param    = "*" | type name ["=" default]
 *     type     = word ["?"] ["|Scalar"] ["[]"] ["?"]
 *     results  = "()" | result | "(" result {"," result} ")"
 *     result   = type [name]
 */
#include "mindtorch/dispatch/schema.h"

#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

typedef struct parser {
    const char *text;
    const char *at;
} parser;

static const struct {
    const char *text;
    uint8_t type;
} type_words[] = {
    {"Tensor|Scalar", MT_TYPE_TENSOR_OR_SCALAR},
    {"Tensor?[]", MT_TYPE_OPTIONAL_TENSORS},
    {"Tensor[]", MT_TYPE_TENSORS},
    {"Tensor", MT_TYPE_TENSOR},
    {"Scalar", MT_TYPE_SCALAR},
    {"int[]", MT_TYPE_INTS},
    {"int", MT_TYPE_INT},
    {"float", MT_TYPE_FLOAT},
    {"bool", MT_TYPE_BOOL},
    {"str", MT_TYPE_TEXT},
    {"dtype", MT_TYPE_DTYPE},
    {"device", MT_TYPE_DEVICE},
    {"Generator", MT_TYPE_GENERATOR},
};
static_assert(MT_COUNT(type_words) == MT_TYPE_COUNT, "a word for each type");

const char *mt__type_name(mt__type type)
{
    for (size_t i = 0; i < MT_COUNT(type_words); i++) {
        if (type_words[i].type == type) {
            return type_words[i].text;
        }
    }
    return "?";
}

static int refuse(const parser *p, const char *expected)
{
    return mtb_fail(MT_EVALUE, "schema '%s': expected %s at '%.20s'", p->text, expected, p->at);
}

static void skip_spaces(parser *p)
{
    while (*p->at == ' ' || *p->at == '\n') {
        p->at++;
    }
}

static bool accept(parser *p, const char *token)
{
    skip_spaces(p);
    size_t length = strlen(token);
    if (strncmp(p->at, token, length) != 0) {
        return false;
    }
    p->at += length;
    return true;
}

static bool is_word_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static int parse_word(parser *p, char word[MT_SCHEMA_TEXT])
{
    skip_spaces(p);
    size_t length = 0;
    while (is_word_byte(p->at[length])) {
        length++;
    }
    if (length == 0) {
        return refuse(p, "a name");
    }
    if (length >= MT_SCHEMA_TEXT) {
        return refuse(p, "a name of at most 63 bytes");
    }
    memcpy(word, p->at, length);
    word[length] = '\0';
    p->at += length;
    return MT_OK;
}

static int parse_type(parser *p, uint8_t *type, bool *optional)
{
    skip_spaces(p);
    for (size_t i = 0; i < MT_COUNT(type_words); i++) {
        const char *text = type_words[i].text;
        size_t length = strlen(text);
        if (strncmp(p->at, text, length) == 0 && !is_word_byte(p->at[length])) {
            p->at += length;
            *type = type_words[i].type;
            *optional = *p->at == '?';
            p->at += *optional;
            return MT_OK;
        }
    }
    return refuse(p, "a type");
}

static int parse_text_default(parser *p, mt__param *param)
{
    const char *end = strchr(p->at, '\'');
    if (end == NULL || (size_t)(end - p->at) >= sizeof(param->default_text)) {
        return refuse(p, "a short text and its closing quote");
    }
    memcpy(param->default_text, p->at, (size_t)(end - p->at));
    param->value = (mt_value){.kind = MT_KIND_TEXT, .of.text = param->default_text};
    p->at = end + 1;
    return MT_OK;
}

static int parse_list_default(parser *p, mt__param *param)
{
    uint32_t count = 0;
    while (!accept(p, "]")) {
        char *end = NULL;
        skip_spaces(p);
        int64_t item = strtoll(p->at, &end, 10);
        if (end == p->at || count == MT_COUNT(param->default_ints)) {
            return refuse(p, "at most four integers and ']'");
        }
        param->default_ints[count++] = item;
        p->at = end;
        (void)accept(p, ",");
    }
    param->value = (mt_value){.kind = MT_KIND_INTS, .count = count, .of.ints = param->default_ints};
    return MT_OK;
}

static int parse_number_default(parser *p, mt__param *param)
{
    char *end = NULL;
    int64_t integer = strtoll(p->at, &end, 10);
    if (end != p->at && *end != '.' && *end != 'e') {
        param->value = param->type == MT_TYPE_FLOAT
                           ? (mt_value){.kind = MT_KIND_REAL, .of.real = (double)integer}
                           : (mt_value){.kind = MT_KIND_INT, .of.integer = integer};
    } else {
        double real = strtod(p->at, &end);
        if (end == p->at) {
            return refuse(p, "a default value");
        }
        param->value = (mt_value){.kind = MT_KIND_REAL, .of.real = real};
    }
    p->at = end;
    return MT_OK;
}

static int parse_default(parser *p, mt__param *param)
{
    param->has_default = true;
    skip_spaces(p);
    if (accept(p, "None")) {
        param->value = (mt_value){.kind = MT_KIND_NONE};
        return MT_OK;
    }
    if (accept(p, "True")) {
        param->value = (mt_value){.kind = MT_KIND_BOOL, .of.integer = 1};
        return MT_OK;
    }
    if (accept(p, "False")) {
        param->value = (mt_value){.kind = MT_KIND_BOOL, .of.integer = 0};
        return MT_OK;
    }
    if (accept(p, "'")) {
        return parse_text_default(p, param);
    }
    if (accept(p, "[")) {
        return parse_list_default(p, param);
    }
    return parse_number_default(p, param);
}

static int parse_params(parser *p, mt__schema *schema)
{
    bool keyword = false;
    if (accept(p, ")")) {
        return MT_OK;
    }
    do {
        if (accept(p, "*")) {
            keyword = true;
            continue;
        }
        if (schema->n_params == MT_MAX_PARAMS) {
            return refuse(p, "at most 16 parameters");
        }
        mt__param *param = &schema->params[schema->n_params++];
        param->keyword = keyword;
        MT_TRY(parse_type(p, &param->type, &param->optional));
        MT_TRY(parse_word(p, param->name));
        if (accept(p, "=")) {
            MT_TRY(parse_default(p, param));
        }
    } while (accept(p, ","));
    return accept(p, ")") ? MT_OK : refuse(p, "',' or ')'");
}

static int parse_result(parser *p, mt__schema *schema)
{
    if (schema->n_results == MT_MAX_RESULTS) {
        return refuse(p, "at most 8 results");
    }
    uint32_t i = schema->n_results++;
    bool optional = false;
    MT_TRY(parse_type(p, &schema->result_types[i], &optional));
    skip_spaces(p);
    if (is_word_byte(*p->at)) {
        MT_TRY(parse_word(p, schema->result_names[i]));
    }
    return MT_OK;
}

static int parse_results(parser *p, mt__schema *schema)
{
    if (!accept(p, "->")) {
        return refuse(p, "'->'");
    }
    if (accept(p, "()")) {
        return MT_OK;
    }
    if (!accept(p, "(")) {
        return parse_result(p, schema);
    }
    do {
        MT_TRY(parse_result(p, schema));
    } while (accept(p, ","));
    return accept(p, ")") ? MT_OK : refuse(p, "',' or ')'");
}

int mt__schema_parse(const char *text, mt__schema *schema)
{
    parser p = {.text = text, .at = text};
    memset(schema, 0, sizeof(*schema));
    MT_TRY(parse_word(&p, schema->name));
    if (accept(&p, "::")) {
        memcpy(schema->space, schema->name, sizeof(schema->name));
        MT_TRY(parse_word(&p, schema->name));
    }
    if (accept(&p, ".")) {
        MT_TRY(parse_word(&p, schema->overload));
    }
    if (!accept(&p, "(")) {
        return refuse(&p, "'('");
    }
    MT_TRY(parse_params(&p, schema));
    MT_TRY(parse_results(&p, schema));
    skip_spaces(&p);
    return *p.at == '\0' ? MT_OK : refuse(&p, "the end");
}

uint32_t mt__param_accepts(const mt__param *param)
{
    enum {
        NUMBER = 1 << MT_KIND_BOOL | 1 << MT_KIND_INT | 1 << MT_KIND_REAL
    };
    static const uint32_t accepts[MT_TYPE_COUNT] = {
        [MT_TYPE_TENSOR] = 1 << MT_KIND_TENSOR,
        [MT_TYPE_TENSOR_OR_SCALAR] = 1 << MT_KIND_TENSOR | NUMBER,
        [MT_TYPE_TENSORS] = 1 << MT_KIND_TENSORS,
        [MT_TYPE_OPTIONAL_TENSORS] = 1 << MT_KIND_TENSORS,
        [MT_TYPE_SCALAR] = NUMBER,
        [MT_TYPE_INT] = 1 << MT_KIND_INT,
        [MT_TYPE_INTS] = 1 << MT_KIND_INTS,
        [MT_TYPE_FLOAT] = NUMBER,
        [MT_TYPE_BOOL] = 1 << MT_KIND_BOOL,
        [MT_TYPE_TEXT] = 1 << MT_KIND_TEXT,
        [MT_TYPE_DTYPE] = 1 << MT_KIND_DTYPE,
        [MT_TYPE_DEVICE] = 1 << MT_KIND_DEVICE,
        [MT_TYPE_GENERATOR] = 1 << MT_KIND_GENERATOR,
    };
    return accepts[param->type] | (param->optional ? 1U << MT_KIND_NONE : 0);
}
