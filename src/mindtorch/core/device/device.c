/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices by name. What a backend must answer is in backends.c, memory in memory.c.
 */
#include "base/fail.h"
#include "mindtorch/core/device/backends.h"
#include "mindtorch/core/thread/thread_state.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    INDEXES = 256,
    NAME_BYTES = 8
};

static const struct device_word {
    const char *text;
    mt_device_type type;
} words[] = {
    {"cpu", MT_DEVICE_TYPE_CPU},
    {"npu", MT_DEVICE_TYPE_NPU},
    {"cuda", MT_DEVICE_TYPE_NPU}, /* torch's word for the accelerator */
    {"meta", MT_DEVICE_TYPE_META},
};

static pthread_once_t names_once = PTHREAD_ONCE_INIT;
static char names[INDEXES][NAME_BYTES];

static void make_names(void)
{
    for (unsigned i = 0; i < INDEXES; i++) {
        (void)snprintf(names[i], NAME_BYTES, "npu:%u", i);
    }
}

const char *mt_device_name(mt_device device)
{
    if (device == MT_CPU) {
        return "cpu";
    }
    if (device == MT_META) {
        return "meta";
    }
    if (device == MT_DEVICE_NONE) {
        return "none";
    }
    if (device < MT_NPU || device >= MT_NPU + INDEXES) {
        return "unknown";
    }
    pthread_once(&names_once, make_names);
    return names[mt__device_index(device)];
}

/* Digits without a sign or a leading zero, as torch requires; -1 otherwise. */
static int parse_index(const char *text)
{
    int index = 0;
    if (text[0] == '\0' || (text[0] == '0' && text[1] != '\0')) {
        return -1;
    }
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') {
            return -1;
        }
        index = index * 10 + (*text - '0');
        if (index >= INDEXES) {
            return -1;
        }
    }
    return index;
}

mt_status mt_device_parse(const char *text, mt_device *device)
{
    *device = MT_DEVICE_NONE;
    if (text == NULL || text[0] == '\0') {
        return mtb_fail(MT_ERUNTIME, "Device string must not be empty");
    }
    const char *colon = strchr(text, ':');
    size_t length = colon != NULL ? (size_t)(colon - text) : strlen(text);
    const struct device_word *word = NULL;
    for (size_t i = 0; i < MT_COUNT(words); i++) {
        if (strlen(words[i].text) == length && memcmp(words[i].text, text, length) == 0) {
            word = &words[i];
        }
    }
    if (word == NULL) {
        return mtb_fail(
            MT_ERUNTIME,
            "Expected one of cpu, npu, cuda, meta device type at start of device string: "
            "%.100s",
            text);
    }
    int index = colon != NULL                      ? parse_index(colon + 1)
                : word->type == MT_DEVICE_TYPE_NPU ? (int)mt__thread.device
                                                   : 0;
    if (index < 0 || (word->type != MT_DEVICE_TYPE_NPU && index != 0)) {
        return mtb_fail(MT_ERUNTIME, "Invalid device string: '%.100s'", text);
    }
    *device = (mt_device)((int)word->type << 8 | index);
    return MT_OK;
}
