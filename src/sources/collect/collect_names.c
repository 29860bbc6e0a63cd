/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of ranges: texts to sites, see collect.h.
 */
#include "base/alloc.h"
#include "base/hash.h"
#include "base/lock.h"
#include "sources/collect/collect.h"

#include <string.h>

enum {
    BUCKETS = 4096
};

static struct {
    mtb_lock lock;
    collect_name *buckets[BUCKETS];
    uint32_t count;
} names = {.lock = MTB_LOCK_INIT(MTB_RANK_COLLECT_NAMES)};

static collect_name *make_name(const char *text, size_t length)
{
    collect_name *name = mtb_calloc(1, sizeof *name + length + 1);
    if (name == NULL) {
        return NULL;
    }
    char *copy = (char *)(name + 1);
    memcpy(copy, text, length);
    name->text = copy;
    name->length = length;
    name->scope = (mtprof_site){
        .flags = MTPROF_KIND_SCOPE, .struct_size = sizeof(mtprof_site), .name = copy, .file = ""};
    name->op = name->ranged = name->scope;
    name->op.flags = MTPROF_KIND_OP;
    name->ranged.flags = MTPROF_KIND_SCOPE | MTPROF_FLAG_ASYNC;
    return name;
}

collect_name *collect_name_of(const char *text, size_t length, void (*dress)(collect_name *name))
{
    mtb_lock_acquire(&names.lock);
    collect_name **bucket = &names.buckets[mtb_hash_bytes(text, length) % BUCKETS];
    collect_name *name = *bucket;
    while (name != NULL && (name->length != length || memcmp(name->text, text, length) != 0)) {
        name = name->next;
    }
    if (name == NULL) {
        name = make_name(text, length);
        if (name != NULL) {
            /* A site each would be written into every recording. */
            name->has_sites = names.count++ < COLLECT_MOST_NAMES;
            if (dress != NULL) {
                dress(name);
            }
            name->next = *bucket;
            *bucket = name;
        }
    }
    mtb_lock_release(&names.lock);
    return name;
}

void collect_names_after_fork(void)
{
    mtb_lock_reset(&names.lock); /* a name is complete before it is in the table */
}

/* ---- wide texts ---- */

static size_t put_utf8(char *to, uint32_t c)
{
    if (c >= 0x110000u || (c >= 0xD800u && c < 0xE000u)) {
        c = 0xFFFDu;
    }
    if (c < 0x80u) {
        to[0] = (char)c;
        return 1;
    }
    size_t length = c < 0x800u ? 2 : c < 0x10000u ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = length - 1; i > 0; i--, c >>= 6) {
        to[i] = (char)(0x80u | (c & 0x3Fu));
    }
    to[0] = (char)(first[length] | c);
    return length;
}

void collect_text_init(collect_text *text, const wchar_t *wide)
{
    static_assert(sizeof(wchar_t) == 4, "a wide character is a code point");
    size_t count = wcslen(wide);
    text->text = count < sizeof text->room / 4 ? text->room : mtb_calloc(count + 1, 4);
    text->length = 0;
    for (size_t i = 0; text->text != NULL && i < count; i++) {
        text->length += put_utf8(text->text + text->length, (uint32_t)wide[i]);
    }
    if (text->text != NULL) {
        text->text[text->length] = 0;
    }
}

void collect_text_fini(collect_text *text)
{
    if (text->text != text->room) {
        mtb_free(text->text);
    }
}
