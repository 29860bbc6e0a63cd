/* SPDX-License-Identifier: Apache-2.0
 *
 * Both passes over the event stream, see memory_timeline.h.
 */
#include "mtprof/export/memory/memory_timeline.h"

#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/model/text/tensor_words.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *const mtprof__memory_labels[] = {
    "Parameters",  "Optimizer state", "Inputs",          "Temporaries",
    "Activations", "Gradients",       "Autograd detail", "Unknown",
};
static_assert(sizeof mtprof__memory_labels / sizeof mtprof__memory_labels[0] ==
                  MTPROF__MEMORY_CATEGORY_COUNT,
              "a label per category");

/* ---- second pass ----------------------------------------------------------------------------- */

static int tell(mtprof__memory_replay *r, const mtprof__live_block *entry, uint8_t verb, int sign)
{
    if (entry->device != r->device) {
        return 0;
    }
    mtprof__memory_action action = {
        .time_ns = verb == MTPROF__MEMORY_PREEXISTING ? -1 : r->last_ns,
        .bytes = sign < 0 ? mtb_sub_sat(0, entry->bytes) : entry->bytes,
        .verb = verb,
        .category = entry->category,
        .allocated = r->allocated,
        .owner = r->owner,
    };
    return r->sink(r->context, &action);
}

static int add_found(mtprof__memory_replay *r, size_t index, uint8_t verb)
{
    const mtprof__found_block *found = &r->plan->found[index];
    mtprof__live_block *entry = mtprof__addresses_add(&r->live, found->device, found->address);
    if (entry == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "memory export: no memory for %zu addresses",
                        r->live.count + 1);
    }
    entry->state = MTPROF__LIVE_YES;
    entry->bytes = found->bytes;
    entry->block = (uint32_t)index | MTPROF__BLOCK_FOUND;
    entry->category = found->category;
    return tell(r, entry, verb, 1);
}

int mtprof__replay_start(mtprof__memory_replay *r)
{
    r->last_ns = INT64_MIN;
    r->allocated = -1;
    for (size_t i = 0; i < r->plan->n_found; i++) {
        if (r->plan->found[i].ordinal == 0) {
            MT_TRY(add_found(r, i, MTPROF__MEMORY_PREEXISTING));
        }
    }
    return 0;
}

/* Changes and finds of this edge. */
static int tell_planned(mtprof__memory_replay *r)
{
    const mtprof__memory_plan *plan = r->plan;
    while (r->next_found < plan->n_found && plan->found[r->next_found].ordinal <= r->ordinal) {
        if (plan->found[r->next_found].ordinal != 0) {
            MT_TRY(add_found(r, r->next_found, MTPROF__MEMORY_CREATE));
        }
        r->next_found++;
    }
    while (r->next_change < plan->n_changes &&
           plan->changes[r->next_change].ordinal <= r->ordinal) {
        const mtprof__block_change *change = &plan->changes[r->next_change++];
        mtprof__live_block *entry =
            mtprof__addresses_find(&r->live, change->device, change->address);
        if (entry == NULL || entry->state != MTPROF__LIVE_YES || entry->block != change->block) {
            continue;
        }
        MT_TRY(tell(r, entry, MTPROF__MEMORY_INCREMENT_VERSION, -1));
        entry->category = change->category;
        MT_TRY(tell(r, entry, MTPROF__MEMORY_INCREMENT_VERSION, 1));
    }
    return 0;
}

static int end_block(mtprof__memory_replay *r, mtprof__live_block *entry)
{
    entry->state = MTPROF__LIVE_DEAD;
    return tell(r, entry, MTPROF__MEMORY_DESTROY, -1);
}

static int take_alloc(mtprof__memory_replay *r, const mtprof__event *event)
{
    mtprof__live_block *entry = mtprof__addresses_add(&r->live, event->device, event->value);
    if (entry == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "memory export: no memory for %zu addresses",
                        r->live.count + 1);
    }
    if (entry->state == MTPROF__LIVE_YES) {
        MT_TRY(end_block(r, entry)); /* its release was not seen */
    }
    if (r->next_block >= r->plan->n_blocks) {
        return 0; /* a live trace that grew since the first pass */
    }
    entry->state = MTPROF__LIVE_YES;
    entry->bytes = event->bytes;
    entry->block = (uint32_t)r->next_block;
    entry->category = r->plan->categories[r->next_block++];
    return tell(r, entry, MTPROF__MEMORY_CREATE, 1);
}

static int64_t edge_time(const mtprof__event *event)
{
    return event->edge == MTPROF__EDGE_END ? event->end_ns : event->start_ns;
}

int mtprof__replay_feed(mtprof__memory_replay *r, const mtprof__event *event)
{
    r->ordinal++;
    if (event->edge == MTPROF__EDGE_SPAN) {
        return 0;
    }
    int64_t now = mtb_add_sat(edge_time(event), r->offset_ns);
    bool alloc = event->edge == MTPROF__EDGE_POINT && event->kind == MTPROF_EVENT_KIND_ALLOC;
    r->owner = event->owner;
    if (alloc && event->device == r->device) {
        r->allocated = event->allocated;
    }
    r->last_ns = now > r->last_ns ? now : r->last_ns; /* TL2 */
    MT_TRY(tell_planned(r));
    if (!alloc) {
        return 0;
    }
    if (event->bytes > 0) {
        return take_alloc(r, event);
    }
    mtprof__live_block *entry = mtprof__addresses_find(&r->live, event->device, event->value);
    return event->bytes == 0 || entry == NULL || entry->state != MTPROF__LIVE_YES
               ? 0
               : end_block(r, entry);
}

void mtprof__replay_fini(mtprof__memory_replay *r)
{
    mtprof__addresses_fini(&r->live);
}

typedef struct replay_reading {
    mtprof__memory_replay replay;
    void (*steps)(void *context, const mtprof__event *event);
} replay_reading;

static int replay_event(void *context, const mtprof__event *event)
{
    replay_reading *reading = context;
    if (reading->steps != NULL && event->kind == MTPROF_EVENT_KIND_STEP &&
        event->edge == MTPROF__EDGE_BEGIN) {
        reading->steps(reading->replay.context, event);
    }
    return mtprof__replay_feed(&reading->replay, event);
}

int mtprof__memory_run(mtprof__memory_timeline *timeline, mtprof__memory_sink *sink,
                       void (*steps)(void *context, const mtprof__event *event), void *context)
{
    mtprof__export_job *job = timeline->job;
    replay_reading reading = {.replay = {.plan = &timeline->plan,
                                         .offset_ns = job->info.real_offset_ns,
                                         .device = (uint8_t)timeline->device,
                                         .sink = sink,
                                         .context = context},
                              .steps = steps};
    int status = mtprof__replay_start(&reading.replay);
    if (status == 0) {
        status = mtprof__export_events(job, replay_event, &reading, NULL);
    }
    mtprof__replay_fini(&reading.replay);
    return status;
}

/* ---- first pass ------------------------------------------------------------------------------ */

bool mtprof__memory_is_recorded(const mtprof_model_info *info, char *missing, size_t size)
{
    static const struct {
        const char *flag;
        uint64_t all, any;
    } needs[] = {
        {"record_shapes=True", MTPROF_WANT_INPUTS | MTPROF_WANT_TENSORS, 0},
        {"profile_memory=True", MTPROF_WANT_ALLOCS, 0},
        {"with_stack=True", 0, MTPROF_WANT_STACKS | MTPROF_WANT_NATIVE_STACKS},
    };
    size_t used = 0;
    if (info->foreign != 0) {
        (void)snprintf(missing, size,
                       "memory timeline: a Chrome trace does not tell which tensors "
                       "ops worked on; it needs a .mtt trace");
        return false;
    }
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
        bool there = (info->wants & needs[i].all) == needs[i].all &&
                     (needs[i].any == 0 || (info->wants & needs[i].any) != 0);
        if (!there) {
            used += (size_t)snprintf(missing + used, size - used, "%s%s", used == 0 ? "" : ", ",
                                     needs[i].flag);
        }
    }
    if (used != 0) {
        (void)snprintf(missing + used, size - used, " required for memory profiling.");
    }
    return used == 0;
}

/* "npu" is "npu:0", "cpu:0" is "cpu". */
static bool device_is(const char *name, const char *asked)
{
    if (strcasecmp(name, asked) == 0) {
        return true;
    }
    size_t stem = strcspn(name, ":");
    size_t asked_stem = strcspn(asked, ":");
    return stem == asked_stem && strncasecmp(name, asked, stem) == 0 &&
           (name[stem] == '\0' || strcmp(name + stem, ":0") == 0) &&
           (asked[stem] == '\0' || strcmp(asked + stem, ":0") == 0);
}

/* torch-contract 6.2.2: the requested one, else the first accelerator, else the host. */
static int choose_device(mtprof__memory_timeline *timeline)
{
    const mtprof_model *model = timeline->job->model;
    const char *asked = timeline->job->options.device;
    mtprof_device device;
    char names[256] = "";
    size_t used = 0;
    bool found = false;
    for (uint32_t i = 0; i <= UINT8_MAX && mtprof_model_device(model, i, &device); i++) {
        char name[sizeof timeline->device_name];
        mtprof__device_text(&device, name, sizeof name);
        bool fits = asked != NULL ? device_is(name, asked) : i == 0 || timeline->device == 0;
        if (fits && (!found || asked == NULL)) {
            timeline->device = i;
            memcpy(timeline->device_name, name, sizeof name);
            found = true;
        }
        if (used < sizeof names - sizeof name - 2) {
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : ", ",
                                     name);
        }
    }
    return found ? 0
                 : mtb_fail(MTPROF_EINVAL, "memory export: no device \"%.64s\", there are: %s",
                            asked == NULL ? "cpu" : asked, names);
}

static void note_time(mtprof__memory_timeline *timeline, const mtprof__event *event)
{
    if (event->kind != MTPROF_EVENT_KIND_ALLOC) {
        return;
    }
    int64_t now = mtb_add_sat(event->start_ns, timeline->job->info.real_offset_ns);
    timeline->first_ns = now < timeline->first_ns ? now : timeline->first_ns;
    timeline->last_ns = now > timeline->last_ns ? now : timeline->last_ns;
}

static int classify_event(void *context, const mtprof__event *event)
{
    mtprof__memory_timeline *timeline = context;
    note_time(timeline, event);
    timeline->spans += event->edge == MTPROF__EDGE_END || event->edge == MTPROF__EDGE_SPAN;
    return mtprof__classifier_feed(timeline->classifier, event);
}

int mtprof__memory_prepare(mtprof__export_job *job, mtprof__memory_timeline *timeline)
{
    *timeline = (mtprof__memory_timeline){.job = job, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
    char missing[MTPROF__MEMORY_MISSING_BYTES];
    if (!mtprof__memory_is_recorded(&job->info, missing, sizeof missing)) {
        return mtb_fail(MTPROF_ENOTSUP, "%s", missing);
    }
    MT_TRY(mtprof__classifier_new(job->model, &timeline->classifier));
    int status = mtprof__export_events(job, classify_event, timeline, NULL);
    if (status == 0) {
        mtprof__classifier_finish(timeline->classifier, &timeline->plan);
        status = choose_device(timeline);
        job->report.events = timeline->spans;
        job->report.left_out += mtprof__classifier_left_out(timeline->classifier);
    }
    mtprof__classifier_free(timeline->classifier);
    timeline->classifier = NULL;
    if (timeline->first_ns > timeline->last_ns) {
        timeline->first_ns = timeline->last_ns =
            mtb_add_sat(job->info.start_ns, job->info.real_offset_ns);
    }
    return status;
}

void mtprof__memory_timeline_fini(mtprof__memory_timeline *timeline)
{
    mtprof__memory_plan_fini(&timeline->plan);
}
