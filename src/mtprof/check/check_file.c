/* SPDX-License-Identifier: Apache-2.0
 *
 * mtprof_check(): what kind of file it is, its bytes, and the report of findings.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/gzip.h"
#include "base/struct_size.h"
#include "mtprof/check/check_impl.h"

#include <mtprof/format.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_PER_RULE = 20,
    INPUT_BYTES = 64 * 1024,
    HEAD_BYTES = 16
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
    int fd;
    mtb_inflate *inflate; /* NULL: the file is plain */
    unsigned char *input; /* compressed bytes */
    size_t at, n;
    uint64_t n_read; /* of the file */
    int gzip_error;  /* what inflating said */
} text_input;

static int64_t read_file(text_input *text, void *buffer, size_t length)
{
    ssize_t n;
    do {
        n = read(text->fd, buffer, length);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return mtb_fail_errno(MTPROF_EIO, errno, "check: read %s", text->check->path);
    }
    text->n_read += (uint64_t)n;
    int status = mtprof__check_progress(text->check, text->n_read, text->check->summary.file_bytes);
    return status != MTPROF_OK ? status : n;
}

/* Damage ends the text where it is; what is wrong is reported at the end. */
static int64_t read_inflated(text_input *text, void *buffer, size_t length)
{
    size_t made = 0;
    while (made == 0 && text->gzip_error == 0) {
        if (text->at == text->n) {
            int64_t n = read_file(text, text->input, INPUT_BYTES);
            if (n < 0) {
                return n;
            }
            text->at = 0;
            text->n = (size_t)n;
        }
        bool end = text->n == 0;
        size_t taken = 0;
        text->gzip_error = mtb_inflate_run(text->inflate, text->input + text->at,
                                           text->n - text->at, &taken, buffer, length, &made);
        text->at += taken;
        if (text->gzip_error == 0 && end && made == 0) {
            text->gzip_error = mtb_inflate_is_whole(text->inflate) ? 0 : ENODATA;
            break;
        }
    }
    return (int64_t)made;
}

static int64_t read_text(void *context, void *buffer, size_t length)
{
    text_input *text = context;
    int64_t n = text->inflate == NULL ? read_file(text, buffer, length)
                                      : read_inflated(text, buffer, length);
    text->check->summary.text_bytes += n > 0 ? (uint64_t)n : 0;
    return n;
}

static int open_inflate(text_input *text)
{
    int error = mtb_inflate_open(&text->inflate);
    if (error != 0) {
        return mtb_fail_errno(error == ENOMEM ? MTPROF_ENOMEM : MTPROF_ENOTSUP, error,
                              "check: %s is gzipped", text->check->path);
    }
    text->input = mtb_resize(NULL, INPUT_BYTES, 1);
    return text->input != NULL ? MTPROF_OK
                               : mtb_fail(MTPROF_ENOMEM, "check: %s: no memory for %d bytes",
                                          text->check->path, INPUT_BYTES);
}

static int check_gzip_end(const text_input *text)
{
    mtb_json_place place = {.offset = text->check->summary.text_bytes};
    if (text->gzip_error == ENODATA) {
        return mtprof__check_find(
            text->check, MTPROF__RULE_FILE_GZIP, place,
            "the compressed data ends in the middle, after %llu bytes of text",
            (unsigned long long)place.offset);
    }
    if (text->gzip_error != 0) {
        return mtprof__check_find(text->check, MTPROF__RULE_FILE_GZIP, place,
                                  "the compressed data is damaged after %llu bytes of text",
                                  (unsigned long long)place.offset);
    }
    return MTPROF_OK;
}

static int check_text(mtprof__check *check, int fd, bool gzipped)
{
    text_input text = {.check = check, .fd = fd};
    mtb_json json = {.block = NULL};
    int status = gzipped ? open_inflate(&text) : MTPROF_OK;
    check->summary.format = MTPROF_CHECK_CHROME;
    check->summary.gzipped = gzipped;
    if (status == MTPROF_OK) {
        status =
            mtb_json_init(&json, read_text, &text)
                ? MTPROF_OK
                : mtb_fail(MTPROF_ENOMEM, "check: no memory for %d bytes of text", MTB_JSON_BLOCK);
    }
    if (status == MTPROF_OK) {
        status = mtprof__check_chrome(check, &json);
    }
    if (status == MTPROF_OK) {
        status = check_gzip_end(&text);
    }
    mtb_json_fini(&json);
    mtb_inflate_close(text.inflate);
    mtb_free(text.input);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Whether a text that begins like this can be JSON: white space, then a bracket. */
static bool looks_like_json(const unsigned char *head, size_t n)
{
    size_t i = 0;
    while (i < n && (head[i] == ' ' || head[i] == '\t' || head[i] == '\r' || head[i] == '\n')) {
        i++;
    }
    return i == n ? n == HEAD_BYTES : head[i] == '{' || head[i] == '[';
}

static int check_unknown(mtprof__check *check, const unsigned char *head, size_t n)
{
    mtb_json_place place = {.offset = 0};
    char shown[3 * HEAD_BYTES + 1] = "";
    for (size_t i = 0; i < n && i < 8; i++) {
        snprintf(shown + 3 * i, 4, " %02x", head[i]);
    }
    return n == 0 ? mtprof__check_find(check, MTPROF__RULE_FILE_FORMAT, place, "the file is empty")
                  : mtprof__check_find(check, MTPROF__RULE_FILE_FORMAT, place,
                                       "neither a .mtt trace nor JSON: it begins with%s", shown);
}

static int check_open_file(mtprof__check *check, int fd)
{
    unsigned char head[HEAD_BYTES];
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return mtb_fail_errno(MTPROF_EIO, errno, "check: %s", check->path);
    }
    if (!S_ISREG(info.st_mode)) {
        return mtb_fail(MTPROF_EIO, "check: %s is not a regular file", check->path);
    }
    check->summary.file_bytes = (uint64_t)info.st_size;
    ssize_t n = pread(fd, head, sizeof head, 0);
    if (n < 0) {
        return mtb_fail_errno(MTPROF_EIO, errno, "check: read %s", check->path);
    }
    const uint64_t magic = MTPROF_FILE_MAGIC;
    if (n >= 8 && memcmp(head, &magic, 8) == 0) {
        check->summary.format = MTPROF_CHECK_MTT;
        return mtprof__check_mtt(check);
    }
    bool gzipped = mtb_gzip_is(head, (size_t)n);
    if (gzipped || looks_like_json(head, (size_t)n)) {
        return check_text(check, fd, gzipped);
    }
    return check_unknown(check, head, (size_t)n);
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
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return mtb_fail_errno(MTPROF_EIO, errno, "check: open %s", path);
    }
    int status = check_open_file(&check, fd);
    close(fd);
    if (status == MTPROF_OK) {
        status = report_rest(&check);
    }
    if (status == MTPROF_OK) {
        *mtb_last_failure() = before; /* what is wrong with the file is no failure of this call */
        if (summary != NULL) {
            mtb_write_struct(summary, &check.summary);
        }
    }
    return status;
}
