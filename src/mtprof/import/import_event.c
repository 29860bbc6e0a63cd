/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/import/import_event.h"

#include <string.h>

static_assert(MTPROF__ARG_COUNT <= 64, "mtprof__raw_event.known has a bit for each");

typedef struct known_key {
    const char *text;
    size_t length;
} known_key;

static const known_key keys[] = {
#define MTPROF__I_KEY(name, key) {key, sizeof(key) - 1},
    MTPROF__ARGS(MTPROF__I_KEY)
#undef MTPROF__I_KEY
};
static_assert(MT_COUNT(keys) == MTPROF__ARG_COUNT, "a key for each argument");

/* One case of the switch below: the first key that fits. */
static unsigned pick(const char *key, size_t length, const uint8_t *candidates, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const known_key *known = &keys[candidates[i]];
        if (known->length == length && memcmp(known->text, key, length) == 0) {
            return candidates[i];
        }
    }
    return MTPROF__ARG_COUNT;
}

#define PICK(...)                                     \
    pick(key, length, (const uint8_t[]){__VA_ARGS__}, \
         sizeof((const uint8_t[]){__VA_ARGS__}) / sizeof(uint8_t))

/* By length: no length has more than a few keys. test_import_event walks all of them. */
unsigned mtprof__arg_of(const char *key, size_t length)
{
    switch (length) {
    case 4: return PICK(MTPROF__ARG_STEP, MTPROF__ARG_NAME, MTPROF__ARG_MEMORY_ADDRESS);
    case 5:
        return PICK(MTPROF__ARG_BYTES, MTPROF__ARG_MEMORY_BYTES, MTPROF__ARG_STACK,
                    MTPROF__ARG_FLOPS, MTPROF__ARG_ASYNC);
    case 6:
        return PICK(MTPROF__ARG_INDEX, MTPROF__ARG_DEVICE, MTPROF__ARG_STREAM, MTPROF__ARG_MODULE,
                    MTPROF__ARG_LABELS);
    case 7: return PICK(MTPROF__ARG_SAMPLED);
    case 8: return PICK(MTPROF__ARG_FINISHED);
    case 9: return PICK(MTPROF__ARG_PARENT_ID, MTPROF__ARG_MEMORY_DEVICE_ID);
    case 10:
        return PICK(MTPROF__ARG_DIMS, MTPROF__ARG_TYPES, MTPROF__ARG_CALL_STACK,
                    MTPROF__ARG_SORT_INDEX);
    case 11:
        return PICK(MTPROF__ARG_EXTERNAL_ID, MTPROF__ARG_CORRELATION, MTPROF__ARG_DEVICE_KIND,
                    MTPROF__ARG_RUNTIME_TID, MTPROF__ARG_MEMORY_DEVICE_TYPE,
                    MTPROF__ARG_RECORDED_TS, MTPROF__ARG_EXTERNAL_ID_OLD);
    case 12:
        return PICK(MTPROF__ARG_SHAPES, MTPROF__ARG_RUNTIME_NAME, MTPROF__ARG_RECORDED_DUR,
                    MTPROF__ARG_RECORD_SCOPE);
    case 13: return PICK(MTPROF__ARG_STRIDES, MTPROF__ARG_FORWARD_THREAD, MTPROF__ARG_OVERLOAD);
    case 14: return PICK(MTPROF__ARG_CORRELATION_ID, MTPROF__ARG_MEMORY_RESERVED);
    case 15: return PICK(MTPROF__ARG_CONCRETE, MTPROF__ARG_SEQUENCE, MTPROF__ARG_MEMORY_ALLOCATED);
    case 16: return PICK(MTPROF__ARG_HIERARCHY);
    case 18: return PICK(MTPROF__ARG_RECORD_FUNCTION);
    case 26:
        return PICK(MTPROF__ARG_CPU_AFTER, MTPROF__ARG_NPU_AFTER, MTPROF__ARG_CPU_DELTA,
                    MTPROF__ARG_NPU_DELTA);
    case 27: return PICK(MTPROF__ARG_CPU_BEFORE, MTPROF__ARG_NPU_BEFORE);
    default: return MTPROF__ARG_COUNT;
    }
}

mtprof_text mtprof__arg_key(unsigned arg)
{
    return (mtprof_text){keys[arg].text, keys[arg].length};
}

/* What comes before a member of an object, or its end. */
enum {
    MEMBER_NEXT = 0x100,
    MEMBER_LAST = 0x101
};

/* Goes to the next member: MEMBER_NEXT with its key, MEMBER_LAST after the closing brace, or an
 * enum mtb_scan_status. A comma before the closing brace is accepted. */
static int next_member(mtb_scan *scan, mtb_slice *key, bool first)
{
    const char *p = mtb_skip_space(scan->at);
    if (!first && *p == ',' && p < scan->end) {
        p = mtb_skip_space(p + 1);
        first = true;
    }
    scan->at = p;
    if (*p == '}' && p < scan->end) {
        scan->at = p + 1;
        return MEMBER_LAST;
    }
    if (!first) {
        scan->wanted = "',' or '}'";
        return p >= scan->end ? MTB_SCAN_MORE : MTB_SCAN_BAD;
    }
    int status = mtb_scan_string(scan, key);
    if (status == MTB_SCAN_OK) {
        status = mtb_scan_expect(scan, ':', "':'");
    }
    return status == MTB_SCAN_OK ? MEMBER_NEXT : status;
}

static int scan_args(mtb_scan *scan, mtprof__raw_event *event)
{
    scan->at = mtb_skip_space(scan->at);
    if (*scan->at != '{' || scan->at >= scan->end) {
        mtb_slice ignored;
        return mtb_scan_value(scan, &ignored);
    }
    scan->at++;
    mtprof__other_arg other;
    for (bool first = true;; first = false) {
        int status = next_member(scan, &other.key, first);
        if (status != MEMBER_NEXT) {
            return status == MEMBER_LAST ? MTB_SCAN_OK : status;
        }
        unsigned arg = mtprof__arg_of(other.key.bytes, other.key.length);
        mtb_slice *value = arg < MTPROF__ARG_COUNT ? &event->args[arg] : &other.value;
        status = mtb_scan_value(scan, value);
        if (MT_UNLIKELY(status != MTB_SCAN_OK)) {
            return status;
        }
        if (arg < MTPROF__ARG_COUNT) {
            event->known |= (uint64_t)1 << arg;
        } else if (event->n_others < MTPROF__OTHER_ARGS) {
            event->others[event->n_others++] = other;
        } else {
            event->others_dropped++;
        }
    }
}

static char first_char(const mtb_slice *slice)
{
    return slice->type == MTB_SLICE_STRING && slice->length == 1 ? slice->bytes[0] : 0;
}

static int scan_char(mtb_scan *scan, char *out)
{
    mtb_slice slice;
    int status = mtb_scan_value(scan, &slice);
    *out = status == MTB_SCAN_OK ? first_char(&slice) : 0;
    return status;
}

static bool key_is(const mtb_slice *key, const char *text, size_t length)
{
    return key->length == length && memcmp(key->bytes, text, length) == 0;
}
#define KEY_IS(key, literal) key_is((key), (literal), sizeof(literal) - 1)

static int scan_member(mtb_scan *scan, const mtb_slice *key, mtprof__raw_event *event)
{
    switch (key->length) {
    case 1:
        if (key->bytes[0] == 's') {
            return scan_char(scan, &event->scope);
        }
        break;
    case 2:
        if (KEY_IS(key, "ph")) {
            return scan_char(scan, &event->phase);
        }
        if (KEY_IS(key, "ts")) {
            return mtb_scan_time(scan, &event->ts_ns, &event->has_ts);
        }
        if (KEY_IS(key, "id")) {
            return mtb_scan_value(scan, &event->id);
        }
        break;
    case 3:
        if (KEY_IS(key, "cat")) {
            return mtb_scan_value(scan, &event->category);
        }
        if (KEY_IS(key, "pid")) {
            return mtb_scan_value(scan, &event->pid);
        }
        if (KEY_IS(key, "tid")) {
            return mtb_scan_value(scan, &event->tid);
        }
        if (KEY_IS(key, "dur")) {
            return mtb_scan_time(scan, &event->dur_ns, &event->has_dur);
        }
        if (KEY_IS(key, "id2")) {
            return mtb_scan_value(scan, &event->id);
        }
        break;
    case 4:
        if (KEY_IS(key, "name")) {
            return mtb_scan_value(scan, &event->name);
        }
        if (KEY_IS(key, "args")) {
            return scan_args(scan, event);
        }
        break;
    default: break;
    }
    mtb_slice ignored;
    return mtb_scan_value(scan, &ignored);
}

int mtprof__scan_event(mtb_scan *scan, mtprof__raw_event *event)
{
    event->name = event->category = (mtb_slice){.type = MTB_SLICE_NONE};
    event->pid = event->tid = event->id = event->name;
    event->has_ts = event->has_dur = false;
    event->ts_ns = event->dur_ns = 0;
    event->phase = event->scope = 0;
    event->n_others = event->others_dropped = 0;
    event->known = 0;
    scan->at++;
    mtb_slice key;
    for (bool first = true;; first = false) {
        int status = next_member(scan, &key, first);
        if (status != MEMBER_NEXT) {
            return status == MEMBER_LAST ? MTB_SCAN_OK : status;
        }
        status = scan_member(scan, &key, event);
        if (MT_UNLIKELY(status != MTB_SCAN_OK)) {
            return status;
        }
    }
}
