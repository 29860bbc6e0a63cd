/* SPDX-License-Identifier: Apache-2.0
 *
 * Which events are collectives, by their names (collectives.def).
 */
#include "base/compiler.h"

#include <mtprof/jobs/ranks.h>

#include <assert.h>
#include <string.h>

enum {
    NAME_BYTES = 96 /* of a name that are looked at */
};

typedef struct layer_row {
    uint32_t layer;
    bool on_device;
    const char *prefix;
} layer_row;

static const layer_row layers[] = {
#define L(LAYER, on_device, prefix) {MTPROF_LAYER_##LAYER, on_device, prefix},
#define S(part)
#define N(part)
#include "mtprof/ranks/collectives.def"
#undef L
#undef S
#undef N
};

static const char *const synchronising[] = {
#define L(LAYER, on_device, prefix)
#define S(part) part,
#define N(part)
#include "mtprof/ranks/collectives.def"
#undef L
#undef S
#undef N
};

static const char *const others[] = {
#define L(LAYER, on_device, prefix)
#define S(part)
#define N(part) part,
#include "mtprof/ranks/collectives.def"
#undef L
#undef S
#undef N
};

const char *mtprof_layer_name(uint32_t layer)
{
    static const char *const names[] = {"none", "call", "library", "device"};
    static_assert(MT_COUNT(names) == MTPROF_LAYER_COUNT, "a name for each");
    return names[layer < MTPROF_LAYER_COUNT ? layer : MTPROF_LAYER_NONE];
}

static bool contains_any(const char *text, const char *const *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strstr(text, parts[i]) != NULL) {
            return true;
        }
    }
    return false;
}

uint32_t mtprof_collective_layer_of(mtprof_text name, uint32_t event_kind, bool *synchronises)
{
    char text[NAME_BYTES + 1];
    size_t n = name.length < NAME_BYTES ? name.length : NAME_BYTES;
    bool kernel = event_kind == MTPROF_EVENT_KIND_KERNEL;
    for (size_t i = 0; i < n; i++) {
        char c = name.bytes[i];
        text[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c == '\0' ? '?' : c);
    }
    text[n] = '\0';
    if (synchronises != NULL) {
        *synchronises = contains_any(text, synchronising, MT_COUNT(synchronising)) &&
                        !contains_any(text, others, MT_COUNT(others));
    }
    for (size_t i = 0; i < MT_COUNT(layers); i++) {
        if (layers[i].on_device == kernel &&
            strncmp(text, layers[i].prefix, strlen(layers[i].prefix)) == 0) {
            return layers[i].layer;
        }
    }
    if (synchronises != NULL) {
        *synchronises = false;
    }
    return MTPROF_LAYER_NONE;
}
