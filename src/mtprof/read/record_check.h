/* SPDX-License-Identifier: Apache-2.0
 *
 * What can be said about one record from its own words: where it ends, and whether a writer could
 * have written it (docs/format.md 3 to 5).
 */
#ifndef MTPROF_READ_RECORD_CHECK_H
#define MTPROF_READ_RECORD_CHECK_H

#include "mtprof/format/input_words.h"
#include "mtprof/format/record_kinds.h"

#include <mtprof/reader.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Takes the record at words apart: kind, aux, arg, word, words, n_words. *total is its length.
 * Fails with EFORMAT if it has no length or one that goes past the words left; offset is that of
 * the record in the trace. left is at least 1.
 */
int mtprof__record_split(const uint64_t *words, size_t left, uint64_t offset, mtprof_record *record,
                         size_t *total);

/*
 * Checks a record of a known kind: stream, length, ranges, texts, lists. Fails with EFORMAT.
 *
 * exact: the trace is of the minor version this code was written for. Later ones may give new
 * values to fields, so for them only what memory safety and meaning need is checked.
 */
int mtprof__record_check(const mtprof_record *record, uint8_t stream, bool exact);

/*
 * Whether a record of a known kind is in the right stream and has its words: then its time and its
 * ordinal are known, whatever is wrong with its other fields.
 */
bool mtprof__record_is_whole(const mtprof_record *record, uint8_t stream);

/* Whether the words are an input list (section 5) from the first to the last. */
bool mtprof__input_list_check(const uint64_t *words, uint32_t n);

#endif /* MTPROF_READ_RECORD_CHECK_H */
