/* SPDX-License-Identifier: Apache-2.0
 *
 * mtprof_check(): what kind of file it is, its bytes, and the report of findings.
 */
#include "base/fail.h"
#include "base/struct_size.h"
#include "mtprof/check/check_impl.h"
#include "mtprof/read/any_file.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    MOST_PER_RULE = 20
};

static const struct rule {
    const char *name;
    const char *remedy;
    uint32_t severity;
} rules[] = {
#define X(id, name, severity, remedy) {name, remedy, MTPROF_CHECK_##severity},
#include "mtprof/check/check_rules.def"
#undef X
};
static_assert(MT_COUNT(rules) == MTPROF__RULE_COUNT, "one entry for each rule");

/* ---- findings -------------------------------------------------------------------------------- */

static void count(mtprof_check_summary *summary, uint32_t severity)
{
    summary->errors += severity == MTPROF_CHECK_ERROR;
    summary->warnings += severity == MTPROF_CHECK_WARNING;
    summary->notes += severity == MTPROF_CHECK_NOTE;
}

static int report(mtprof__check *check, const mtprof_finding *finding)
{
    const mtprof_check_options *options = &check->options;
    if (check->status == MTPROF_OK && options->report != NULL &&
        options->report(options->user, finding) != 0) {
        check->status =
            mtb_fail(MTPROF_ECALLBACK, "check: %s: the report callback gave up", check->path);
    }
    return check->status;
}

int mtprof__check_find(mtprof__check *check, enum mtprof__check_rule rule, mtb_json_place place,
                       const char *format, ...)
{
    char message[MTB_MESSAGE_BYTES];
    count(&check->summary, rules[rule].severity);
    if (check->found[rule]++ >= check->options.most_per_rule) {
        return check->status;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    const mtprof_finding finding = {
        .struct_size = sizeof finding,
        .severity = rules[rule].severity,
        .offset = place.offset,
        .line = place.line,
        .column = place.column,
        .rule = rules[rule].name,
        .message = message,
        .remedy = rules[rule].remedy,
    };
    return report(check, &finding);
}

/* Says how many findings of each rule were not reported. */
static int report_rest(mtprof__check *check)
{
    for (size_t i = 0; i < MTPROF__RULE_COUNT; i++) {
        char message[64];
        uint64_t most = check->options.most_per_rule;
        if (check->found[i] <= most) {
            continue;
        }
        snprintf(message, sizeof message, "%llu more like these",
                 (unsigned long long)(check->found[i] - most));
        const mtprof_finding finding = {
            .struct_size = sizeof finding,
            .severity = rules[i].severity,
            .rule = rules[i].name,
            .message = message,
        };
        MT_TRY(report(check, &finding));
    }
    return MTPROF_OK;
}

int mtprof__check_progress(mtprof__check *check, uint64_t done, uint64_t total)
{
    const mtprof_check_options *options = &check->options;
    if (check->status == MTPROF_OK && options->progress != NULL &&
        options->progress(options->user, "check", done, total) != 0) {
        check->status =
            mtb_fail(MTPROF_ECALLBACK, "check: %s: the progress callback gave up", check->path);
    }
    return check->status;
}

/* ---- the text of a JSON file, gzipped or not ------------------------------------------------- */

typedef struct text_input {
    mtprof__check *check;
    mtprof__any_file *file;
} text_input;

/* Damage ends the text where it is; what is wrong is reported at the end. */
static int64_t read_text(void *context, void *buffer, size_t length)
{
    const text_input *text = context;
    size_t made = 0;
    int status = mtprof__any_file_read(text->file, buffer, length, &made);
    if (status == MTPROF_OK || text->file->damaged) {
        status =
            mtprof__check_progress(text->check, text->file->read_bytes, text->file->file_bytes);
    }
    text->check->summary.text_bytes += made;
    return status != MTPROF_OK ? status : (int64_t)made;
}

static int check_gzip_end(mtprof__check *check, const mtprof__any_file *file)
{
    mtb_json_place place = {.offset = check->summary.text_bytes};
    if (file->inflate == NULL || (!file->damaged && mtb_inflate_is_whole(file->inflate))) {
        return MTPROF_OK;
    }
    return mtprof__check_find(
        check, MTPROF__RULE_FILE_GZIP, place, "the compressed data %s after %llu bytes of text",
        file->damaged ? "is damaged" : "ends in the middle,", (unsigned long long)place.offset);
}

static int check_text(mtprof__check *check, mtprof__any_file *file)
{
    text_input text = {.check = check, .file = file};
    mtb_json json;
    check->summary.format = MTPROF_CHECK_CHROME;
    check->summary.gzipped = file->kind == MTPROF__FILE_GZIP;
    MT_TRY(mtprof__any_file_begin(file));
    if (!mtb_json_init(&json, read_text, &text)) {
        return mtb_fail(MTPROF_ENOMEM, "check: no memory for %d bytes of text", MTB_JSON_BLOCK);
    }
    int status = mtprof__check_chrome(check, &json);
    if (status == MTPROF_OK) {
        status = check_gzip_end(check, file);
    }
    mtb_json_fini(&json);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int check_unknown(mtprof__check *check, const mtprof__any_file *file)
{
    mtb_json_place place = {.offset = 0};
    char shown[32] = "";
    for (size_t i = 0; i < file->n_head && i < 8; i++) {
        snprintf(shown + 3 * i, 4, " %02x", file->head[i]);
    }
    return file->n_head == 0
               ? mtprof__check_find(check, MTPROF__RULE_FILE_FORMAT, place, "the file is empty")
               : mtprof__check_find(check, MTPROF__RULE_FILE_FORMAT, place,
                                    "neither a .mtt trace nor JSON: it begins with%s", shown);
}

static int check_open_file(mtprof__check *check, mtprof__any_file *file)
{
    MT_TRY(mtprof__any_file_open(file, "check", check->path));
    check->summary.file_bytes = file->file_bytes;
    switch (file->kind) {
    case MTPROF__FILE_NATIVE:
        check->summary.format = MTPROF_CHECK_MTT;
        return mtprof__check_mtt(check);
    case MTPROF__FILE_JSON:
    case MTPROF__FILE_GZIP: return check_text(check, file);
    default: return check_unknown(check, file);
    }
}

static void take_options(mtprof__check *check, const mtprof_check_options *options)
{
    if (options != NULL) {
        mtb_read_struct(&check->options, options);
    }
    if (check->options.most_per_rule == 0) {
        check->options.most_per_rule = MOST_PER_RULE;
    }
}

mtprof_status mtprof_check(const char *path, const mtprof_check_options *options,
                           mtprof_check_summary *summary)
{
    if (path == NULL) {
        return mtb_fail(MTPROF_EINVAL, "check: the path is NULL");
    }
    if (summary != NULL && summary->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "check: struct_size of the summary is 0");
    }
    mtprof__check check = {.path = path};
    take_options(&check, options);
    const mtb_failure before = *mtb_last_failure();
    mtprof__any_file file;
    int status = check_open_file(&check, &file);
    mtprof__any_file_close(&file);
    if (status == MTPROF_OK) {
        status = report_rest(&check);
    }
    if (status == MTPROF_OK) {
        *mtb_last_failure() = before; /* a bad file is not a failure of this call */
        if (summary != NULL) {
            mtb_write_struct(summary, &check.summary);
        }
    }
    return status;
}
