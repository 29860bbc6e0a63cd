/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of the control protocol, see control_line.h. The members of each kind of line are a table,
 * which writing and reading share.
 */
#include "mtprof/remote/control_line.h"

#include "base/compiler.h"
#include "base/fail.h"
#include "base/json/json_strict.h"

#include <mtprof/version.h>

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum member_type {
    MEMBER_TEXT,
    MEMBER_U32,
    MEMBER_U64,
    MEMBER_I64,
    MEMBER_BIT, /* true or false: a bit of a uint32_t */
    MEMBER_TYPE_COUNT
};

typedef struct member {
    const char *key;
    uint8_t type;    /* enum member_type */
    uint32_t offset; /* of its place in the struct */
    uint32_t size;   /* TEXT: room in bytes; BIT: the bit */
} member;

/* A request before its words are understood. */
typedef struct raw_request {
    char command[16];
    char path[MTPROF_CONTROL_PATH_BYTES];
    char reason[MTPROF_CONTROL_TEXT_BYTES];
    uint64_t ring_bytes;
    uint32_t details;
} raw_request;

#define TEXT(type_, key_, field)                                             \
    {                                                                        \
        key_, MEMBER_TEXT, offsetof(type_, field), sizeof((type_ *)0)->field \
    }
#define NUMBER(kind, type_, key_, field)      \
    {                                         \
        key_, kind, offsetof(type_, field), 0 \
    }
#define BIT(type_, key_, field, bit)                  \
    {                                                 \
        key_, MEMBER_BIT, offsetof(type_, field), bit \
    }

static const member request_members[] = {
    TEXT(raw_request, "do", command),
    TEXT(raw_request, "path", path),
    TEXT(raw_request, "reason", reason),
    NUMBER(MEMBER_U64, raw_request, "ring_bytes", ring_bytes),
    BIT(raw_request, "shapes", details, MTPROF_CONTROL_SHAPES),
    BIT(raw_request, "stacks", details, MTPROF_CONTROL_STACKS),
    BIT(raw_request, "memory", details, MTPROF_CONTROL_MEMORY),
    BIT(raw_request, "calls", details, MTPROF_CONTROL_CALLS),
};

#define STATE(kind, key) NUMBER(kind, mtprof_control_state, #key, key)

static const member state_members[] = {
    STATE(MEMBER_I64, pid),
    TEXT(mtprof_control_state, "version", version),
    TEXT(mtprof_control_state, "program", program),
    TEXT(mtprof_control_state, "rank", rank),
    STATE(MEMBER_U32, recording),
    BIT(mtprof_control_state, "by_control", by_control, 1),
    TEXT(mtprof_control_state, "path", path),
    STATE(MEMBER_U64, since_us),
    STATE(MEMBER_U64, wants),
    STATE(MEMBER_U64, begins),
    STATE(MEMBER_U64, others),
    STATE(MEMBER_U64, lost),
    STATE(MEMBER_U64, evicted),
    STATE(MEMBER_U64, truncated),
    STATE(MEMBER_U64, bytes),
    STATE(MEMBER_U32, threads),
    STATE(MEMBER_U64, refused),
    STATE(MEMBER_U64, dropped),
    TEXT(mtprof_control_state, "dump", dump),
};

typedef struct raw_failure {
    uint32_t ok;
    char status[16];
    char error[MTPROF_CONTROL_TEXT_BYTES];
} raw_failure;

static const member failure_members[] = {
    BIT(raw_failure, "ok", ok, 1),
    TEXT(raw_failure, "status", status),
    TEXT(raw_failure, "error", error),
};

static const member hello_members[] = {
    TEXT(mtprof__control_hello, "mtprof", version),
    NUMBER(MEMBER_U64, mtprof__control_hello, "control", protocol),
    NUMBER(MEMBER_I64, mtprof__control_hello, "pid", pid),
};

static const char *const commands[] = {"status", "start", "stop", "dump"};
static_assert(MT_COUNT(commands) == MTPROF_CONTROL_COMMAND_COUNT, "a word for each");

static const struct status_word {
    const char *word;
    mtprof_status status;
} status_words[] = {
#define X(name, value, text) {#name, value},
#include <mtprof/status.def>
#undef X
};

/* ---- reading --------------------------------------------------------------------------------- */

static mtprof_status read_text(const member *m, const mtb_slice *value, char *to)
{
    if (value->length >= m->size) {
        return mtb_fail(MTPROF_EINVAL, "control: \"%s\" has %u bytes, at most %u are allowed",
                        m->key, value->length, m->size - 1);
    }
    size_t length = mtb_slice_decode(value, to);
    to[length] = '\0';
    if (strlen(to) != length) {
        return mtb_fail(MTPROF_EINVAL, "control: \"%s\" has a zero byte in it", m->key); /* CTL2 */
    }
    return MTPROF_OK;
}

static mtprof_status read_value(const member *m, const mtb_slice *value, char *base)
{
    static const char *const wanted[] = {"a text", "a number from 0 to 4294967295",
                                         "a number that is not negative", "a whole number",
                                         "true or false"};
    static_assert(MT_COUNT(wanted) == MEMBER_TYPE_COUNT, "one for each");
    char *to = base + m->offset;
    bool whole = value->type == MTB_SLICE_INT;
    switch ((enum member_type)m->type) {
    case MEMBER_TEXT:
        if (value->type == MTB_SLICE_STRING) {
            return read_text(m, value, to);
        }
        break;
    case MEMBER_U32:
        if (whole && value->integer >= 0 && value->integer <= UINT32_MAX) {
            *(uint32_t *)(void *)to = (uint32_t)value->integer;
            return MTPROF_OK;
        }
        break;
    case MEMBER_U64:
        if (whole && value->integer >= 0) {
            *(uint64_t *)(void *)to = (uint64_t)value->integer;
            return MTPROF_OK;
        }
        break;
    case MEMBER_I64:
        if (whole) {
            *(int64_t *)(void *)to = value->integer;
            return MTPROF_OK;
        }
        break;
    case MEMBER_BIT:
        if (value->type == MTB_SLICE_TRUE || value->type == MTB_SLICE_FALSE) {
            uint32_t *bits = (uint32_t *)(void *)to;
            *bits = value->type == MTB_SLICE_TRUE ? *bits | m->size : *bits & ~m->size;
            return MTPROF_OK;
        }
        break;
    case MEMBER_TYPE_COUNT: break;
    }
    return mtb_fail(MTPROF_EINVAL, "control: \"%s\" must be %s", m->key,
                    m->type < MEMBER_TYPE_COUNT ? wanted[m->type] : "another value");
}

static const member *find_member(const member *members, size_t n, const mtb_slice *key)
{
    for (size_t i = 0; i < n; i++) {
        if (mtb_slice_is(key, members[i].key, strlen(members[i].key))) {
            return &members[i];
        }
    }
    return NULL;
}

/* Reads the members of a line's object that the table has. strict: others are refused (CTL3). */
static mtprof_status read_object(char *line, size_t length, const member *members, size_t n,
                                 void *to, bool strict)
{
    enum {
        DEPTH = 8,
        SHOWN = 40
    };
    if (!mtb_json_is_valid(line, length, DEPTH)) {
        return mtb_fail(MTPROF_EINVAL, "control: the line of %zu bytes is not JSON", length);
    }
    line[length] = '"'; /* CTL1 */
    memset(line + length + 1, 0, MTB_SCAN_PAD);
    mtb_scan scan = {.at = line, .end = line + length};
    mtb_slice object = {0};
    mtb_walk walk;
    mtb_slice key = {0};
    mtb_slice value = {0};
    (void)mtb_scan_value(&scan, &object);
    if (object.type != MTB_SLICE_OBJECT || !mtb_walk_begin(&walk, &object)) {
        return mtb_fail(MTPROF_EINVAL, "control: the line is not an object");
    }
    while (mtb_walk_next(&walk, &key, &value)) {
        const member *m = find_member(members, n, &key);
        if (m != NULL) {
            MT_TRY(read_value(m, &value, to));
        } else if (strict) {
            return mtb_fail(MTPROF_EINVAL, "control: a member \"%.*s\" is not known",
                            key.length < SHOWN ? (int)key.length : SHOWN, key.bytes);
        }
    }
    return MTPROF_OK;
}

mtprof_status mtprof__control_check(const mtprof_control_request *r)
{
    bool writes = r->command == MTPROF_CONTROL_START ||
                  (r->command == MTPROF_CONTROL_DUMP && r->path != NULL);
    if (r->command >= MTPROF_CONTROL_COMMAND_COUNT) {
        return mtb_fail(MTPROF_EINVAL, "control: command is %u, it must be less than %d",
                        r->command, MTPROF_CONTROL_COMMAND_COUNT);
    }
    if (writes && (r->path == NULL || r->path[0] != '/')) {
        return mtb_fail(MTPROF_EINVAL, "control: %s needs an absolute path, not \"%s\"",
                        commands[r->command], r->path != NULL ? r->path : "");
    }
    if (r->details >> 4 != 0) {
        return mtb_fail(MTPROF_EINVAL, "control: details is 0x%x, bits above 3 are unknown",
                        r->details);
    }
    return MTPROF_OK;
}

mtprof_status mtprof__control_read_request(char *line, size_t length, mtprof__control_asked *out)
{
    raw_request raw = {0};
    MT_TRY(read_object(line, length, request_members, MT_COUNT(request_members), &raw, true));
    uint32_t command = 0;
    while (command < MTPROF_CONTROL_COMMAND_COUNT && strcmp(raw.command, commands[command]) != 0) {
        command++;
    }
    if (command == MTPROF_CONTROL_COMMAND_COUNT) {
        return mtb_fail(MTPROF_EINVAL,
                        "control: \"do\" is \"%s\", it must be status, start, stop or dump",
                        raw.command);
    }
    memcpy(out->path, raw.path, sizeof out->path);
    memcpy(out->reason, raw.reason, sizeof out->reason);
    out->request = (mtprof_control_request){.struct_size = sizeof out->request,
                                            .command = command,
                                            .path = out->path[0] != '\0' ? out->path : NULL,
                                            .reason = out->reason[0] != '\0' ? out->reason : NULL,
                                            .ring_bytes = raw.ring_bytes,
                                            .details = raw.details};
    return mtprof__control_check(&out->request);
}

static mtprof_status status_of(const char *word)
{
    for (size_t i = 0; i < MT_COUNT(status_words); i++) {
        if (strcmp(word, status_words[i].word) == 0 && status_words[i].status != MTPROF_OK) {
            return status_words[i].status;
        }
    }
    return MTPROF_EIO; /* of a newer version */
}

/* What a process says is not our caller's fault. */
static mtprof_status as_format(mtprof_status status)
{
    char why[MTB_MESSAGE_BYTES];
    if (status == MTPROF_OK) {
        return MTPROF_OK;
    }
    memcpy(why, mtb_last_failure()->message, sizeof why);
    return mtb_fail(MTPROF_EFORMAT, "control: an answer that is none: %s", why);
}

mtprof_status mtprof__control_read_answer(char *line, size_t length, mtprof_control_state *out)
{
    raw_failure failure = {0};
    MT_TRY(as_format(
        read_object(line, length, failure_members, MT_COUNT(failure_members), &failure, false)));
    if (failure.ok == 0) {
        return mtb_fail(status_of(failure.status), "%s",
                        failure.error[0] != '\0' ? failure.error : "control: refused");
    }
    memset(out, 0, sizeof *out);
    out->struct_size = sizeof *out;
    MT_TRY(
        as_format(read_object(line, length, state_members, MT_COUNT(state_members), out, false)));
    return out->recording <= MTPROF_CONTROL_PAUSED
               ? MTPROF_OK
               : mtb_fail(MTPROF_EFORMAT, "control: an answer that is none: \"recording\" is %u",
                          out->recording);
}

mtprof_status mtprof__control_read_hello(char *line, size_t length, mtprof__control_hello *out)
{
    memset(out, 0, sizeof *out);
    MT_TRY(
        as_format(read_object(line, length, hello_members, MT_COUNT(hello_members), out, false)));
    return out->protocol == MTPROF_CONTROL_VERSION
               ? MTPROF_OK
               : mtb_fail(MTPROF_EVERSION,
                          "control: the process speaks version %" PRIu64 " of the protocol, this "
                          "is version %d",
                          out->protocol, MTPROF_CONTROL_VERSION);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_members(mtb_writer *w, const member *members, size_t n, const void *from)
{
    for (size_t i = 0; i < n; i++) {
        const member *m = &members[i];
        const char *at = (const char *)from + m->offset;
        mtb_write_format(w, "%s\"%s\":", i != 0 ? "," : "", m->key);
        switch ((enum member_type)m->type) {
        case MEMBER_TEXT: mtb_write_json(w, at, strlen(at)); break;
        case MEMBER_U32: mtb_write_u64(w, *(const uint32_t *)(const void *)at); break;
        case MEMBER_U64: mtb_write_u64(w, *(const uint64_t *)(const void *)at); break;
        case MEMBER_I64: mtb_write_i64(w, *(const int64_t *)(const void *)at); break;
        case MEMBER_BIT:
            mtb_write_text(w,
                           (*(const uint32_t *)(const void *)at & m->size) != 0 ? "true" : "false");
            break;
        case MEMBER_TYPE_COUNT: break;
        }
    }
}

void mtprof__control_write_request(mtb_writer *writer, const mtprof_control_request *request)
{
    raw_request raw = {.ring_bytes = request->ring_bytes, .details = request->details};
    memcpy(raw.command, commands[request->command], strlen(commands[request->command]) + 1);
    if (request->path != NULL) {
        memcpy(raw.path, request->path, strlen(request->path) + 1);
    }
    if (request->reason != NULL) {
        memcpy(raw.reason, request->reason, strlen(request->reason) + 1);
    }
    mtb_write_literal(writer, "{");
    write_members(writer, request_members, MT_COUNT(request_members), &raw);
    mtb_write_literal(writer, "}\n");
}

void mtprof__control_write_answer(mtb_writer *writer, const mtprof_control_state *state)
{
    mtb_write_literal(writer, "{\"ok\":true,");
    write_members(writer, state_members, MT_COUNT(state_members), state);
    mtb_write_literal(writer, "}\n");
}

void mtprof__control_write_failure(mtb_writer *writer, mtprof_status status, const char *message)
{
    const char *word = "EIO";
    for (size_t i = 0; i < MT_COUNT(status_words); i++) {
        word = status_words[i].status == status ? status_words[i].word : word;
    }
    mtb_write_format(writer, "{\"ok\":false,\"status\":\"%s\"", word);
    mtb_write_member_json(writer, "error", message, strlen(message));
    mtb_write_literal(writer, "}\n");
}

void mtprof__control_write_hello(mtb_writer *writer, int64_t pid)
{
    mtprof__control_hello hello = {.protocol = MTPROF_CONTROL_VERSION, .pid = pid};
    strncpy(hello.version, mtprof_version_string(), sizeof hello.version - 1);
    mtb_write_literal(writer, "{");
    write_members(writer, hello_members, MT_COUNT(hello_members), &hello);
    mtb_write_literal(writer, "}\n");
}
