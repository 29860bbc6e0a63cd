/* SPDX-License-Identifier: Apache-2.0
 *
 * Exporters that are not written yet. Whoever writes one deletes its line here.
 */
#include "base/fail.h"
#include "mtprof/export/export_impl.h"

#define PENDING(function)                                                          \
    int function(mtprof__export_job *job)                                          \
    {                                                                              \
        (void)job;                                                                 \
        return mtb_fail(MTPROF_ENOTSUP, "export: " #function " is not there yet"); \
    }

PENDING(mtprof__export_perfetto)
PENDING(mtprof__export_stacks)
PENDING(mtprof__export_folded)
PENDING(mtprof__export_speedscope)
PENDING(mtprof__export_memory)
PENDING(mtprof__export_memory_raw)
PENDING(mtprof__export_memory_html)
PENDING(mtprof__export_csv)
PENDING(mtprof__export_execution)

/* Averages, until analyze/ has them: helper A deletes these. */
#define STAND_IN __attribute__((weak))

STAND_IN mtprof_model *mtprof_averages_model(const mtprof_averages *averages)
{
    (void)averages;
    return NULL;
}

STAND_IN uint32_t mtprof_averages_count(const mtprof_averages *averages)
{
    (void)averages;
    return 0;
}

STAND_IN mtprof_status mtprof_averages_row(const mtprof_averages *averages, uint32_t index,
                                           mtprof_row *row)
{
    (void)averages, (void)index, (void)row;
    return MTPROF_ENOTSUP;
}
