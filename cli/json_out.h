/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON on standard output, for --json. Any bytes become valid JSON: what is no UTF-8 is U+FFFD.
 */
#ifndef CLI_JSON_OUT_H
#define CLI_JSON_OUT_H

#include <mtprof/model.h>

#include <stdbool.h>
#include <stdint.h>

/* Key NULL inside arrays and for the outermost value. */
void cli_json_object(const char *key);
void cli_json_array(const char *key);
void cli_json_end_object(void);
void cli_json_end_array(void);
void cli_json_text(const char *key, mtprof_text value);
void cli_json_string(const char *key, const char *value); /* NULL: null */
void cli_json_int(const char *key, int64_t value);
void cli_json_uint(const char *key, uint64_t value);
void cli_json_real(const char *key, double value); /* not finite: null */
void cli_json_bool(const char *key, bool value);
void cli_json_null(const char *key);
/* {"size": true}: a member whose key is any text. */
void cli_json_member(mtprof_text key);
/* Members "device_type" and "device_index" of a device of the model; none where it has none. */
void cli_json_device(const mtprof_model *model, uint32_t index);

#endif /* CLI_JSON_OUT_H */
