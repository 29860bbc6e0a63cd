/* SPDX-License-Identifier: Apache-2.0
 *
 * Derived columns, against what their descriptions in model.h say, computed the long way round;
 * over trees in any order.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "mtprof/model/columns/assemble_impl.h"
#include "support/traces/run_maker.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    EVENTS = 60,
    QUEUE = RM_THREADS
};

/* Columns as assembling leaves them, but with parents before or after their children. */
static mtprof_model *random_model(uint64_t *seed, bool ordered)
{
    mtprof_model *model = rm_model(true);
    mtprof__run run = {.order = 1};
    uint32_t shuffled[EVENTS];
    for (uint32_t i = 0; i < EVENTS; i++) {
        uint32_t other = (uint32_t)(mt_test_random(seed) % (i + 1));
        shuffled[i] = i;
        shuffled[i] = shuffled[other];
        shuffled[other] = i;
    }
    for (uint32_t i = 0; i < EVENTS; i++) {
        bool device = mt_test_random(seed) % 4 == 0;
        rm_add(&run,
               &(rm_event){
                   .start = (int64_t)i,
                   .end = (int64_t)(i + mt_test_random(seed) % 9),
                   .track = device ? QUEUE : 0,
                   .device = device,
                   .kind = device ? (uint8_t)(8 + mt_test_random(seed) % 8)
                                  : (uint8_t)(mt_test_random(seed) % 6),
                   .flags = (uint16_t)(mt_test_random(seed) % 8 == 0 ? MTPROF_EVENT_FLAG_ASYNC : 0),
                   .index = i});
    }
    mtprof__columns *columns = &run.columns;
    void *link;
    void *allocated;
    void *sequences;
    void *threads;
    REQUIRE_OK(mtprof__columns_extra(columns, MTPROF_COLUMN_SEQUENCE, &sequences));
    REQUIRE_OK(mtprof__columns_extra(columns, MTPROF_COLUMN_FORWARD_THREAD, &threads));
    REQUIRE_OK(mtprof__columns_extra(columns, MTPROF_COLUMN_LINK, &link));
    REQUIRE_OK(mtprof__columns_extra(columns, MTPROF_COLUMN_ALLOCATED_SELF_CPU, &allocated));
    for (uint32_t i = 0; i < EVENTS; i++) {
        uint32_t host = (uint32_t)(mt_test_random(seed) % EVENTS);
        ((int64_t *)sequences)[i] = (int64_t)(mt_test_random(seed) % 4) - 1;
        ((uint32_t *)threads)[i] = (uint32_t)(mt_test_random(seed) % 2);
        ((int64_t *)allocated)[i] = (int64_t)(mt_test_random(seed) % 2000) - 1000;
        if (mtprof__kind_in(columns->kind[i], MTPROF__KINDS_DEVICE)) {
            ((uint32_t *)link)[i] =
                mtprof__kind_in(columns->kind[host], MTPROF__KINDS_DEVICE) ? MTPROF_NO_EVENT : host;
        } else if (mt_test_random(seed) % 5 != 0) {
            for (uint32_t p = 0; p < EVENTS && columns->parent[i] == MTPROF_NO_EVENT; p++) {
                bool above = ordered ? host < i : shuffled[host] < shuffled[i];
                if (above && !mtprof__kind_in(columns->kind[host], MTPROF__KINDS_DEVICE)) {
                    columns->parent[i] = host;
                }
                host = (host + 1) % EVENTS;
            }
        }
    }
    model->columns = *columns;
    return model;
}

static const void *derived(mtprof_model *model, uint32_t id)
{
    const void *column = NULL;
    REQUIRE_OK(mtprof__model_derive(model, id, &column));
    REQUIRE(column != NULL);
    return column;
}

/* ---- the long way round ---------------------------------------------------------------------- */

static int64_t duration(const mtprof__columns *c, uint32_t i)
{
    return c->end_ns[i] - c->start_ns[i];
}

/* Whether what `i` has counts for `top`: it is the same, or every step on the way up nests. */
static bool counts_for(const mtprof__columns *c, uint32_t i, uint32_t top)
{
    while (i != top) {
        if (i == MTPROF_NO_EVENT ||
            (c->flags[i] & (MTPROF_EVENT_FLAG_ASYNC | MTPROF_EVENT_FLAG_OVERLAP |
                            MTPROF_EVENT_FLAG_FOREIGN_PARENT)) != 0) {
            return false;
        }
        i = c->parent[i];
    }
    return true;
}

static int64_t own_device_ns(const mtprof__columns *c, uint32_t i)
{
    const uint32_t *link = c->extra[MTPROF_COLUMN_LINK];
    int64_t sum = 0;
    if (mtprof__kind_in(c->kind[i], MTPROF__KINDS_DEVICE)) {
        return duration(c, i);
    }
    for (uint32_t k = 0; k < c->n; k++) {
        bool work = c->kind[k] == MTPROF_EVENT_KIND_KERNEL ||
                    c->kind[k] == MTPROF_EVENT_KIND_COPY || c->kind[k] == MTPROF_EVENT_KIND_SET;
        sum += work && link[k] == i ? duration(c, k) : 0;
    }
    return sum;
}

static void check_event(mtprof_model *model, uint32_t i)
{
    const mtprof__columns *c = &model->columns;
    const int64_t *own = c->extra[MTPROF_COLUMN_ALLOCATED_SELF_CPU];
    const uint32_t *first = derived(model, MTPROF_COLUMN_FIRST_CHILD);
    const uint32_t *next = derived(model, MTPROF_COLUMN_NEXT_SIBLING);
    uint32_t depth = 0;
    int64_t allocated = 0;
    int64_t device = 0;
    uint32_t child = first[i];
    for (uint32_t at = c->parent[i]; at != MTPROF_NO_EVENT; at = c->parent[at]) {
        depth++;
    }
    for (uint32_t k = 0; k < c->n; k++) {
        if (counts_for(c, k, i)) {
            allocated += own[k];
            device += own_device_ns(c, k);
        }
        if (c->parent[k] == i) {
            CHECK_EQ_U64(child, k);
            child = next[k];
        }
    }
    CHECK_EQ_U64(child, MTPROF_NO_EVENT);
    CHECK_EQ_U64(((const uint32_t *)derived(model, MTPROF_COLUMN_DEPTH))[i], depth);
    CHECK_EQ_I64(((const int64_t *)derived(model, MTPROF_COLUMN_SELF_DEVICE_NS))[i],
                 own_device_ns(c, i));
    CHECK_EQ_I64(((const int64_t *)derived(model, MTPROF_COLUMN_DEVICE_NS))[i], device);
    CHECK_EQ_I64(((const int64_t *)derived(model, MTPROF_COLUMN_ALLOCATED_CPU))[i], allocated);
}

TEST(random_trees)
{
    uint64_t seed = mt_test_seed();
    for (int round = 0; round < 200; round++) {
        mtprof_model *model = random_model(&seed, round % 2 == 0);
        for (uint32_t i = 0; i < EVENTS; i++) {
            check_event(model, i);
        }
        rm_free(model);
    }
}

TEST(t3_device_time_is_that_of_the_kernels)
{
    uint64_t seed = mt_test_seed();
    mtprof_model *model = random_model(&seed, true);
    const mtprof__columns *c = &model->columns;
    const int64_t *self = derived(model, MTPROF_COLUMN_SELF_DEVICE_NS);
    const uint32_t *link = c->extra[MTPROF_COLUMN_LINK];
    int64_t of_hosts = 0;
    int64_t of_kernels = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        bool device = mtprof__kind_in(c->kind[i], MTPROF__KINDS_DEVICE);
        bool tied = mtprof__kind_in(c->kind[i], MTPROF__KINDS_WORK) && link[i] != MTPROF_NO_EVENT;
        of_hosts += device ? 0 : self[i];
        of_kernels += tied ? duration(c, i) : 0;
    }
    CHECK(of_kernels > 0);
    CHECK_EQ_I64(of_hosts, of_kernels);
    rm_free(model);
}

TEST(a_deep_tree_takes_no_stack)
{
    enum {
        DEEP = 500000
    };
    for (int backwards = 0; backwards < 2; backwards++) {
        mtprof_model *model = rm_model(true);
        mtprof__run run = {.order = 1};
        void *allocated;
        for (uint32_t i = 0; i < DEEP; i++) {
            uint32_t parent = backwards ? (i + 2) % (DEEP + 1) : i; /* + 1; the last has none */
            rm_add(&run, &(rm_event){.start = (int64_t)i, .end = (int64_t)i, .parent = parent});
        }
        REQUIRE_OK(
            mtprof__columns_extra(&run.columns, MTPROF_COLUMN_ALLOCATED_SELF_DEVICE, &allocated));
        for (uint32_t i = 0; i < DEEP; i++) {
            ((int64_t *)allocated)[i] = 1;
        }
        model->columns = run.columns;
        uint32_t deepest = backwards ? 0 : DEEP - 1;
        const uint32_t *depth = derived(model, MTPROF_COLUMN_DEPTH);
        const int64_t *sums = derived(model, MTPROF_COLUMN_ALLOCATED_DEVICE);
        CHECK_EQ_U64(depth[deepest], DEEP - 1);
        CHECK_EQ_U64(depth[DEEP - 1 - deepest], 0);
        CHECK_EQ_I64(sums[deepest], 1);
        CHECK_EQ_I64(sums[DEEP - 1 - deepest], DEEP);
        rm_free(model);
    }
}

TEST(sums_of_any_bytes_wrap)
{
    mtprof_model *model = rm_model(true);
    mtprof__run run = {.order = 1};
    void *allocated;
    rm_add(&run, &(rm_event){.start = 0});
    rm_add(&run, &(rm_event){.start = 0, .parent = 1});
    REQUIRE_OK(mtprof__columns_extra(&run.columns, MTPROF_COLUMN_ALLOCATED_SELF_CPU, &allocated));
    ((int64_t *)allocated)[0] = INT64_MAX;
    ((int64_t *)allocated)[1] = 1;
    model->columns = run.columns;
    CHECK_EQ_I64(((const int64_t *)derived(model, MTPROF_COLUMN_ALLOCATED_CPU))[0], INT64_MIN);
    rm_free(model);
}

/* ---- ids ------------------------------------------------------------------------------------- */

TEST(correlation_ids_come_from_the_epochs)
{
    mtprof_model *model = rm_model(true);
    mtprof__run runs[2] = {{.order = 1}, {.order = 2}};
    /* Two epochs: INDEX 0 and 1 are ids 500 and 501, INDEX 2 to 4 are 40, 41, 42. */
    model->n_epochs = 3;
    model->epochs = calloc(3, sizeof *model->epochs);
    REQUIRE(model->epochs != NULL);
    model->epochs[0] = (mtprof__epoch_block){.first_index = 0, .count = 2, .first_id = 500};
    model->epochs[1] = (mtprof__epoch_block){.first_index = 2, .count = 0, .first_id = 9};
    model->epochs[2] = (mtprof__epoch_block){.first_index = 2, .count = 3, .first_id = 40};
    for (uint32_t i = 0; i < 5; i++) {
        rm_add(&runs[0], &(rm_event){.start = (int64_t)(10 * i),
                                     .end = (int64_t)(10 * i + 5),
                                     .self = 5,
                                     .flags = MTPROF_EVENT_FLAG_TOP,
                                     .name = i,
                                     .index = i});
    }
    mtprof__links_add(&runs[0].hosts, 7, 3);
    rm_add(&runs[1], &(rm_event){.start = 33, .end = 90, .kind = 8, .device = 1, .track = QUEUE});
    rm_add(&runs[1], &(rm_event){.start = 99, .end = 99, .kind = 8, .device = 1, .track = QUEUE});
    mtprof__links_add(&runs[1].works, 7, 0);
    mtprof__links_add(&runs[1].works, 8, 1);
    REQUIRE_OK(mtprof__model_assemble(model, runs, 2));
    const uint64_t *ids = derived(model, MTPROF_COLUMN_CORRELATION);
    /* Four hosts by start, the twin and the kernel of the last of them, the last host, an orphan.
     */
    const uint64_t expected[] = {500, 501, 40, 41, 41, 41, 42, 0};
    REQUIRE_EQ_U64(model->columns.n, 8);
    CHECK_EQ_MEM(ids, expected, sizeof expected);
    rm_free(model);
}

TEST(what_was_not_recorded_is_absent)
{
    mtprof_model *model = rm_model(false);
    const void *column = model;
    REQUIRE_OK(mtprof__model_assemble(model, NULL, 0));
    CHECK_OK(mtprof__model_derive(model, MTPROF_COLUMN_CORRELATION, &column));
    CHECK_EQ_PTR(column, NULL);
    column = model;
    CHECK_OK(mtprof__model_derive(model, MTPROF_COLUMN_ALLOCATED_CPU, &column));
    CHECK_EQ_PTR(column, NULL);
    CHECK_EQ_I64(mtprof__model_derive(model, MTPROF_COLUMN_START_NS, &column), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof__model_derive(model, MTPROF_COLUMN_COUNT, &column), MTPROF_EINVAL);
    CHECK(derived(model, MTPROF_COLUMN_LINK) != NULL); /* also of no events */
    CHECK(derived(model, MTPROF_COLUMN_DEPTH) != NULL);
    CHECK(derived(model, MTPROF_COLUMN_DEVICE_NS) != NULL);
    rm_free(model);
}

/* ---- threads and refusals -------------------------------------------------------------------- */

static void *ask_for_all(void *context)
{
    mtprof_model *model = context;
    for (uint32_t id = MTPROF_COLUMN_DEPTH; id < MTPROF_COLUMN_COUNT; id++) {
        const void *column = NULL;
        if (id != MTPROF_COLUMN_CORRELATION && id != MTPROF_COLUMN_ALLOCATED_DEVICE) {
            CHECK_OK(mtprof__model_derive(model, id, &column));
            CHECK(column != NULL);
        }
    }
    return NULL;
}

TEST(threads_ask_at_once)
{
    uint64_t seed = mt_test_seed();
    for (int round = 0; round < 20; round++) {
        mtprof_model *model = random_model(&seed, false);
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) {
            REQUIRE(pthread_create(&threads[i], NULL, ask_for_all, model) == 0);
        }
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
        }
        check_event(model, 0);
        rm_free(model);
    }
}

TEST(a_refused_column_can_be_asked_for_again)
{
    uint64_t seed = mt_test_seed();
    for (uint32_t id = MTPROF_COLUMN_DEPTH; id < MTPROF_COLUMN_COUNT; id++) {
        for (uint64_t nth = 1; nth < 20; nth++) {
            mtprof_model *model = random_model(&seed, false);
            const void *column = NULL;
            mtb_fail_nth(nth, false);
            int status = mtprof__model_derive(model, id, &column);
            mtb_fail_nth(0, false);
            bool recorded = id != MTPROF_COLUMN_CORRELATION && id != MTPROF_COLUMN_ALLOCATED_CPU &&
                            id != MTPROF_COLUMN_ALLOCATED_DEVICE && id != MTPROF_COLUMN_FORWARD;
            CHECK(status == MTPROF_OK || status == MTPROF_ENOMEM);
            CHECK(status == MTPROF_OK ? column != NULL || !recorded : column == NULL);
            if (status == MTPROF_ENOMEM) {
                CHECK_OK(mtprof__model_derive(model, id, &column));
            }
            rm_free(model);
            if (status != MTPROF_ENOMEM) {
                break;
            }
        }
    }
}
