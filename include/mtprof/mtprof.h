/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything libmtprof offers.
 */
#ifndef MTPROF_MTPROF_H
#define MTPROF_MTPROF_H

#include <mtprof/arrow.h>
#include <mtprof/averages.h>
#include <mtprof/check.h>
#include <mtprof/clock.h>
#include <mtprof/compare.h>
#include <mtprof/control.h>
#include <mtprof/explain.h>
#include <mtprof/export.h>
#include <mtprof/flight.h>
#include <mtprof/health.h>
#include <mtprof/input_list.h>
#include <mtprof/jobs/ranks.h>
#include <mtprof/language.h>
#include <mtprof/live.h>
#include <mtprof/model.h>
#include <mtprof/op.h>
#include <mtprof/output.h>
#include <mtprof/profile.h>
#include <mtprof/reader.h>
#include <mtprof/schedule.h>
#include <mtprof/session.h>
#include <mtprof/source.h>
#include <mtprof/status.h>
#include <mtprof/trace.h>
#include <mtprof/version.h>

#endif /* MTPROF_MTPROF_H */
