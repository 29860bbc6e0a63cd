/* SPDX-License-Identifier: Apache-2.0
 *
 * Checking files against the rules of the tools that read them, and recovering the trace of a
 * killed process.
 *
 * A check reads the whole file and reports everything that a reader would trip over: for a .mtt
 * trace the rules of docs/format.md, for a Chrome/kineto JSON trace (gzipped or not) those of JSON,
 * of the trace viewers and of the tools that join events by their args. A bad file
 * is a finding, not a failure of the check.
 */
#ifndef MTPROF_CHECK_H
#define MTPROF_CHECK_H

#include <mtprof/api.h>
#include <mtprof/model.h>
#include <mtprof/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MTPROF_BEGIN_DECLS

enum mtprof_check_severity {
    MTPROF_CHECK_NOTE = 0,    /**< worth knowing; nothing is wrong */
    MTPROF_CHECK_WARNING = 1, /**< some tool shows less, or something was lost while recording */
    MTPROF_CHECK_ERROR = 2    /**< breaks a rule: events are missing, wrong, or shown wrongly */
};

enum mtprof_check_format {
    MTPROF_CHECK_UNKNOWN = 0, /**< neither of them; there is a finding that says so */
    MTPROF_CHECK_MTT = 1,
    MTPROF_CHECK_CHROME = 2
};

/** One finding. Texts live until the callback returns, `rule` and `remedy` for ever. */
typedef struct mtprof_finding {
    uint32_t struct_size; /**< as large as the library knows it */
    uint32_t severity;    /**< enum mtprof_check_severity */
    uint64_t offset;      /**< byte in the file; of a gzipped one: in the text inside it */
    uint64_t line;        /**< of JSON, from 1; 0 for .mtt and for the file as a whole */
    uint64_t column;      /**< byte in the line, from 1; 0 where line is 0 */
    const char *rule;     /**< "json.syntax", "chrome.nesting", "mtt.record": stable names */
    const char *message;  /**< what was found, with the values */
    const char *remedy;   /**< what to do about it; NULL: nothing to say */
} mtprof_finding;

/** Gets findings in the order in which they are found. Not 0: cancel (ECALLBACK). */
typedef int mtprof_check_report(void *user, const mtprof_finding *finding);

/** Set struct_size, leave the rest zero for the defaults. */
typedef struct mtprof_check_options {
    uint32_t struct_size;
    uint32_t most_per_rule; /**< findings of one rule that are reported; the rest is counted, and a
                                 last finding of the rule says how many. 0: 20 */
    mtprof_check_report *report; /**< NULL: only the summary */
    mtprof_progress *progress;   /**< NULL: none */
    void *user;                  /**< of both */
} mtprof_check_options;

/** Set struct_size; no byte past it is written. Counts are of all findings, reported or not. */
typedef struct mtprof_check_summary {
    uint32_t struct_size;
    uint32_t format; /**< enum mtprof_check_format */
    uint64_t errors, warnings, notes;
    uint64_t file_bytes;
    uint64_t text_bytes; /**< JSON: after decompression */
    uint64_t events;     /**< .mtt: records; JSON: members of traceEvents */
    uint64_t spans;      /**< .mtt: begins; JSON: X events and pairs of B and E */
    uint64_t tracks;     /**< .mtt: streams of threads and sources; JSON: (pid, tid) with spans */
    uint32_t gzipped;    /**< 1: the file is compressed */
    uint32_t closed;     /**< .mtt: the recorder ended it */
} mtprof_check_summary;

/**
 * Checks a file; the content decides what it is. options and summary may be NULL.
 *
 * Fails with EIO (cannot be opened or read), ENOMEM, ECALLBACK, ENOTSUP (gzipped, and this build
 * cannot read that). A file that is bad, also one that is neither format, is reported and not a
 * failure.
 */
MTPROF_API mtprof_status mtprof_check(const char *path, const mtprof_check_options *options,
                                      mtprof_check_summary *summary);

/** What mtprof_recover() did. Set struct_size; no byte past it is written. */
typedef struct mtprof_recover_summary {
    uint32_t struct_size;
    uint32_t was_closed;      /**< 1: the recorder had ended the file */
    uint64_t bytes_read;      /**< size of the file that was read */
    uint64_t bytes_written;   /**< size of the one that was written */
    uint64_t chunks_kept;     /**< with every record that was published in them */
    uint64_t chunks_cut;      /**< kept up to a record that is impossible */
    uint64_t chunks_lost;     /**< left out: damaged, or not there */
    uint64_t records;         /**< kept */
    uint64_t begins;          /**< of these: begins of scopes and ops, and launches */
    uint64_t begins_lost;     /**< known to have been in what was left out; they are also added to
                                   the health counters of losses (disk, damage) */
    uint64_t open_scopes;     /**< begun and never ended: they stay so, readers truncate them */
    uint64_t problems;        /**< places that failed a check */
    int64_t start_ns, end_ns; /**< of the trace, on its own clock */
} mtprof_recover_summary;

/**
 * Reads what a killed process left at `in` and writes a clean, closed trace of the same format to
 * `out`: records that pass every check, all checksums set, the health counters unchanged. The
 * new file gets another name first and is then renamed; `in` is not touched. out NULL: `in` is
 * replaced in the same way.
 * A trace that is closed and sound is copied. summary may be NULL.
 *
 * Fails with EINVAL, EIO, EFORMAT and EVERSION (no trace can be opened there), EBUSY (a process is
 * recording into it), ENOSPC, ENOMEM. Nothing at `out` has changed then.
 */
MTPROF_API mtprof_status mtprof_recover(const char *in, const char *out,
                                        mtprof_recover_summary *summary);

MTPROF_END_DECLS

#endif /* MTPROF_CHECK_H */
