/* SPDX-License-Identifier: Apache-2.0
 *
 * Models of texts in memory, for tests of the importer.
 */
#ifndef TESTS_UNIT_MTPROF_IMPORT_JSON_MODEL_H
#define TESTS_UNIT_MTPROF_IMPORT_JSON_MODEL_H

#include "harness/mt_test.h"
#include "mtprof/import/import_impl.h"

#include <string.h>

/* The status of importing a text; *out is NULL unless it is 0. */
static inline int import_bytes(const char *text, size_t length, mtprof_model **out)
{
    mtprof__source source;
    *out = NULL;
    int status = mtprof__source_open_memory(&source, "test.json", text, length);
    if (status == MTPROF_OK) {
        status = mtprof__import_source(&source, NULL, out);
    }
    mtprof__source_close(&source);
    return status;
}

static inline mtprof_model *import_text(const char *text)
{
    mtprof_model *model = NULL;
    REQUIRE_OK(import_bytes(text, strlen(text), &model));
    REQUIRE(model != NULL);
    return model;
}

static inline mtprof_model_findings import_findings(mtprof_model *model)
{
    mtprof_model_findings findings = {.struct_size = sizeof findings};
    REQUIRE_OK(mtprof_model_get_findings(model, &findings));
    return findings;
}

/* The event of a name; the case fails without one. */
static inline uint32_t event_of(mtprof_model *model, const char *name)
{
    const mtprof__columns *columns = &model->columns;
    for (uint32_t i = 0; i < columns->n; i++) {
        mtprof_text text = mtprof_model_name(model, columns->name[i]);
        if (text.length == strlen(name) && memcmp(text.bytes, name, text.length) == 0) {
            return i;
        }
    }
    FAIL("no event '%s'", name);
    mt_test_leave();
}

#endif /* TESTS_UNIT_MTPROF_IMPORT_JSON_MODEL_H */
