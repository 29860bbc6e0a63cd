/* SPDX-License-Identifier: Apache-2.0
 *
 * The pass over the events: from names to bases, and adding up (averages_impl.h has the drawing).
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/saturate.h"
#include "base/struct_size.h"
#include "mtprof/analyze/averages/averages_impl.h"
#include "mtprof/model/model_impl.h"

#include <mtprof/status.h>

#include <string.h>

enum {
    NOT_SEEN = -1,
    MOST_SLOTS = 32 << 20, /* beyond that bases are hashed */
    ASK_EVERY = 1 << 20    /* events; a multiple of MTPROF__GROUP_BLOCK */
};

/* ---- columns --------------------------------------------------------------------------------- */

/* What was not recorded is NULL. */
static int get_columns(mtprof_model *model, mtprof__source_columns *c)
{
    const mtprof__wanted_column wanted[] = {
        {MTPROF_COLUMN_START_NS, (const void **)&c->start_ns},
        {MTPROF_COLUMN_END_NS, (const void **)&c->end_ns},
        {MTPROF_COLUMN_SELF_NS, (const void **)&c->self_ns},
        {MTPROF_COLUMN_PARENT, (const void **)&c->parent},
        {MTPROF_COLUMN_NAME, (const void **)&c->name},
        {MTPROF_COLUMN_TRACK, (const void **)&c->track},
        {MTPROF_COLUMN_STEP, (const void **)&c->step},
        {MTPROF_COLUMN_KIND, (const void **)&c->kind},
        {MTPROF_COLUMN_DEVICE, (const void **)&c->device},
        {MTPROF_COLUMN_FLAGS, (const void **)&c->flags},
        {MTPROF_COLUMN_INPUTS, (const void **)&c->inputs},
        {MTPROF_COLUMN_STACK, (const void **)&c->stack},
        {MTPROF_COLUMN_OVERLOAD, (const void **)&c->overload},
        {MTPROF_COLUMN_MODULE, (const void **)&c->module},
        {MTPROF_COLUMN_RECORD_SCOPE, (const void **)&c->record_scope},
        {MTPROF_COLUMN_FLOPS, (const void **)&c->flops},
        {MTPROF_COLUMN_ALLOCATED_SELF_CPU, (const void **)&c->self_cpu_memory},
        {MTPROF_COLUMN_ALLOCATED_CPU, (const void **)&c->cpu_memory},
        {MTPROF_COLUMN_ALLOCATED_SELF_DEVICE, (const void **)&c->self_device_memory},
        {MTPROF_COLUMN_ALLOCATED_DEVICE, (const void **)&c->device_memory},
    };
    /* Made from others: not worth it where there was no device. */
    const mtprof__wanted_column derived[] = {
        {MTPROF_COLUMN_DEVICE_NS, (const void **)&c->device_ns},
        {MTPROF_COLUMN_SELF_DEVICE_NS, (const void **)&c->self_device_ns},
    };
    mtprof_model_info info = {.struct_size = sizeof info};
    uint64_t n = 0;
    MT_TRY(mtprof__model_get_columns(model, wanted, MT_COUNT(wanted), &n));
    c->n = (size_t)n;
    MT_TRY(mtprof_model_get_info(model, &info)); /* devices are known once there are columns */
    return info.device_type != NULL
               ? mtprof__model_get_columns(model, derived, MT_COUNT(derived), &n)
               : 0;
}

/* ---- classes --------------------------------------------------------------------------------- */

/* Events whose time is that of a device. Calls of the host for a device, also those that a source
 * reported, are host time. */
static bool is_device_kind(uint32_t kind)
{
    return kind >= MTPROF_EVENT_KIND_KERNEL && kind < MTPROF_EVENT_KIND_OVERHEAD &&
           kind != MTPROF_EVENT_KIND_CALL;
}

static bool is_annotation_kind(uint32_t kind)
{
    return kind == MTPROF_EVENT_KIND_SCOPE || kind == MTPROF_EVENT_KIND_STEP ||
           kind == MTPROF_EVENT_KIND_ANNOTATION;
}

static void choose_functions(mtprof__grouper *grouper)
{
    const mtprof__source_columns *c = &grouper->columns;
    if (grouper->options.functions == MTPROF_FUNCTIONS_WITHOUT_OPS) {
        bool has_ops = c->n != 0 && memchr(c->kind, MTPROF_EVENT_KIND_OP, c->n) != NULL;
        grouper->options.functions = has_ops ? MTPROF_FUNCTIONS_NONE : MTPROF_FUNCTIONS_ALL;
    }
}

static bool is_counted_kind(const mtprof__grouper *grouper, uint32_t kind)
{
    if (kind == MTPROF_EVENT_KIND_FUNCTION) {
        return grouper->options.functions != MTPROF_FUNCTIONS_NONE;
    }
    return kind < MTPROF_EVENT_KIND_INSTANT;
}

/* Devices of the same type make one class. The class of a kind on a device, made where there is
 * none; 0 when there are too many. */
static uint32_t find_class(mtprof__grouper *grouper, const mtprof__event_class *wanted)
{
    for (uint32_t i = 1; i < grouper->n_classes; i++) {
        const mtprof__event_class *have = &grouper->classes[i];
        if (have->device_type == wanted->device_type && have->special == wanted->special &&
            have->is_annotation == wanted->is_annotation) {
            return i;
        }
    }
    if (grouper->n_classes == MTPROF__CLASSES) {
        return 0;
    }
    grouper->classes[grouper->n_classes] = *wanted;
    return grouper->n_classes++;
}

/* The first device with the type of this one. */
static uint32_t first_of_type(const mtprof_model *model, uint32_t device)
{
    mtprof_device wanted, other;
    if (!mtprof_model_device(model, device, &wanted)) {
        return 0;
    }
    for (uint32_t i = 1; i < device; i++) {
        if (mtprof_model_device(model, i, &other) && other.type.length == wanted.type.length &&
            memcmp(other.type.bytes, wanted.type.bytes, wanted.type.length) == 0) {
            return i;
        }
    }
    return device;
}

static void make_classes(mtprof__grouper *grouper)
{
    grouper->n_classes = 1;
    for (uint32_t device = 0; device < MTPROF__DEVICES; device++) {
        mtprof_device known;
        bool is_known = mtprof_model_device(grouper->model, device, &known);
        uint32_t type = device != 0 && is_known ? first_of_type(grouper->model, device) : 0;
        for (uint32_t kind = 0; kind < MTPROF__KINDS; kind++) {
            mtprof__event_class wanted = {.is_annotation = is_annotation_kind(kind)};
            if (is_device_kind(kind)) {
                wanted.device_type = type;
                wanted.device = (uint8_t)type;
            }
            if (kind == MTPROF_EVENT_KIND_MEMORY || kind == MTPROF_EVENT_KIND_OUT_OF_MEMORY) {
                wanted.special = (uint8_t)kind;
            }
            grouper->class_of[kind][device] =
                is_counted_kind(grouper, kind) ? (uint16_t)find_class(grouper, &wanted) : 0;
        }
    }
}

/* ---- bases ----------------------------------------------------------------------------------- */

bool mtprof_averages_lists(mtprof_text name)
{
    static const char *const dropped[] = {
        "profiler::_record_function_enter",
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit",
        "aten::is_leaf",
        "aten::output_nr",
        "aten::_version",
    };
    for (size_t i = 0; i < MT_COUNT(dropped); i++) {
        if (strlen(dropped[i]) == name.length && memcmp(dropped[i], name.bytes, name.length) == 0) {
            return false;
        }
    }
    return true;
}

int mtprof__group_add(mtprof__grouper *grouper, uint32_t base, uint32_t event, uint32_t *group)
{
    void *block = grouper->groups;
    if (!mtb_grow(&block, &grouper->groups_capacity, grouper->n_groups + 1,
                  sizeof grouper->groups[0])) {
        return mtb_fail(MTPROF_ENOMEM, "averages: no memory for another row");
    }
    grouper->groups = block;
    grouper->groups[grouper->n_groups] = (mtprof__group){
        .base = base, .first_event = event, .min_ns = INT64_MAX, .max_ns = INT64_MIN};
    *group = (uint32_t)grouper->n_groups++;
    return 0;
}

static bool same_base(const void *context, uint32_t id, const void *key)
{
    const mtprof__grouper *grouper = context;
    const mtprof__base *wanted = key;
    const mtprof__base *have = &grouper->bases[id];
    return have->name == wanted->name && have->class == wanted->class;
}

static int find_base(mtprof__grouper *grouper, const mtprof__base *wanted, uint32_t event,
                     uint32_t *base)
{
    uint64_t hash = mtb_mix(wanted->name, wanted->class);
    *base = mtb_idmap_find(&grouper->base_map, hash, same_base, grouper, wanted);
    if (*base != 0) {
        return 0;
    }
    void *block = grouper->bases;
    if (!mtb_idmap_reserve(&grouper->base_map) ||
        !mtb_grow(&block, &grouper->bases_capacity, grouper->n_bases + 1,
                  sizeof grouper->bases[0])) {
        return mtb_fail(MTPROF_ENOMEM, "averages: no memory for another name");
    }
    grouper->bases = block;
    if (!grouper->has_keys) {
        uint32_t group;
        MT_TRY(mtprof__group_add(grouper, (uint32_t)grouper->n_bases, event, &group));
        MT_ASSERT(group == grouper->n_bases);
    }
    *base = (uint32_t)grouper->n_bases;
    grouper->bases[grouper->n_bases++] = *wanted;
    mtb_idmap_add(&grouper->base_map, hash, *base);
    return 0;
}

/* The base of a name and class that was not seen before; 0 for what is left out. */
static MT_NOINLINE int open_slot(mtprof__grouper *grouper, uint32_t name, uint32_t class,
                                 uint32_t event, uint32_t *base)
{
    const mtprof__event_class *known = &grouper->classes[class];
    mtprof_text text = mtprof_model_name(grouper->model, name);
    mtprof__base wanted = {.class = class};
    *base = 0;
    if (class == 0) {
        return 0;
    }
    if (known->special != 0) {
        wanted.name = UINT32_MAX;
        wanted.key = known->special == MTPROF_EVENT_KIND_MEMORY
                         ? (mtprof_text){"[memory]", 8}
                         : (mtprof_text){"[OutOfMemory]", 13};
        text = wanted.key;
    } else {
        wanted.name = mtprof_model_name_key(grouper->model, name);
        wanted.key = mtprof_model_name(grouper->model, wanted.name);
    }
    const char *pattern = grouper->options.name;
    if (!mtprof_averages_lists(text) ||
        (pattern != NULL && !mtprof__pattern_matches(pattern, text) &&
         !mtprof__pattern_matches(pattern, wanted.key))) {
        return 0;
    }
    return find_base(grouper, &wanted, event, base);
}

/* One multiplication and two lookups an event. */
static int base_rows(mtprof__grouper *grouper, size_t first, size_t n, uint32_t *rows)
{
    const uint32_t *name = grouper->columns.name + first;
    const uint8_t *kind = grouper->columns.kind + first;
    const uint8_t *device = grouper->columns.device + first;
    size_t n_classes = grouper->n_classes;
    uint32_t *slots = grouper->slots;
    for (size_t i = 0; i < n; i++) {
        uint32_t class = grouper->class_of[kind[i] & (MTPROF__KINDS - 1)][device[i]];
        uint32_t *slot = &slots[name[i] * n_classes + class];
        if (MT_UNLIKELY(*slot == (uint32_t)NOT_SEEN)) {
            MT_TRY(open_slot(grouper, name[i], class, (uint32_t)(first + i), slot));
        }
        rows[i] = *slot;
    }
    return 0;
}

static int base_rows_hashed(mtprof__grouper *grouper, size_t first, size_t n, uint32_t *rows)
{
    const mtprof__source_columns *c = &grouper->columns;
    for (size_t i = 0; i < n; i++) {
        size_t event = first + i;
        uint32_t class = grouper->class_of[c->kind[event] & (MTPROF__KINDS - 1)][c->device[event]];
        MT_TRY(open_slot(grouper, c->name[event], class, (uint32_t)event, &rows[i]));
    }
    return 0;
}

int mtprof__grouper_rows(mtprof__grouper *grouper, size_t first, size_t n, bool bases,
                         uint32_t *rows)
{
    MT_TRY(grouper->slots != NULL ? base_rows(grouper, first, n, rows)
                                  : base_rows_hashed(grouper, first, n, rows));
    if (grouper->has_filter) {
        mtprof__filter_rows(grouper, first, n, rows);
    }
    return grouper->has_keys && !bases ? mtprof__key_rows(grouper, first, n, rows) : 0;
}

int mtprof__grouper_ask(const mtprof__grouper *grouper, size_t first)
{
    bool now = first > 0 && first % ASK_EVERY == 0;
    return now ? mtprof__model_ask(grouper->model, "grouping") : 0;
}

/* ---- adding up ------------------------------------------------------------------------------- */

/* Hostile traces may have any times: sums wrap instead of overflowing. */
MT_INLINE int64_t sum_of(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static void add_times(mtprof__grouper *grouper, size_t first, size_t n, const uint32_t *rows)
{
    const int64_t *start = grouper->columns.start_ns + first;
    const int64_t *end = grouper->columns.end_ns + first;
    const int64_t *self = grouper->columns.self_ns + first;
    const uint16_t *flags = grouper->columns.flags + first;
    mtprof__group *groups = grouper->groups;
    for (size_t i = 0; i < n; i++) {
        mtprof__group *group = &groups[rows[i]];
        int64_t duration = mtb_sub_sat(end[i], start[i]);
        group->count++;
        group->cpu_ns = sum_of(group->cpu_ns, duration);
        group->self_ns = sum_of(group->self_ns, self[i]);
        group->loose_ns = sum_of(group->loose_ns, mtprof__is_loose(flags[i]) ? duration : 0);
        group->min_ns = duration < group->min_ns ? duration : group->min_ns;
        group->max_ns = duration > group->max_ns ? duration : group->max_ns;
    }
}

/* One of the columns that need not be there, added to the member at this offset. */
static void add_column(mtprof__grouper *grouper, const int64_t *column, size_t member, size_t first,
                       size_t n, const uint32_t *rows)
{
    if (column == NULL) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        char *group = (char *)&grouper->groups[rows[i]];
        int64_t *sum = (int64_t *)(void *)(group + member);
        *sum = sum_of(*sum, column[first + i]);
    }
}

static void add_block(mtprof__grouper *grouper, size_t first, size_t n, const uint32_t *rows)
{
    const mtprof__source_columns *c = &grouper->columns;
    const struct {
        const int64_t *column;
        size_t member;
    } further[] = {
        {c->device_ns, offsetof(mtprof__group, device_ns)},
        {c->self_device_ns, offsetof(mtprof__group, self_device_ns)},
        {c->cpu_memory, offsetof(mtprof__group, cpu_memory)},
        {c->self_cpu_memory, offsetof(mtprof__group, self_cpu_memory)},
        {c->device_memory, offsetof(mtprof__group, device_memory)},
        {c->self_device_memory, offsetof(mtprof__group, self_device_memory)},
        {(const int64_t *)c->flops, offsetof(mtprof__group, flops)},
    };
    add_times(grouper, first, n, rows);
    for (size_t i = 0; i < MT_COUNT(further); i++) {
        add_column(grouper, further[i].column, further[i].member, first, n, rows);
    }
}

/* The time of device work is the device's alone. */
static void move_device_times(mtprof__grouper *grouper)
{
    for (size_t i = 1; i < grouper->n_groups; i++) {
        mtprof__group *group = &grouper->groups[i];
        if (grouper->classes[grouper->bases[group->base].class].device_type != 0) {
            group->device_ns = group->self_device_ns = group->cpu_ns;
            group->cpu_ns = group->self_ns = group->loose_ns = 0;
        }
    }
}

int mtprof__grouper_run(mtprof__grouper *grouper)
{
    uint32_t rows[MTPROF__GROUP_BLOCK];
    for (size_t first = 0; first < grouper->columns.n; first += MTPROF__GROUP_BLOCK) {
        size_t rest = grouper->columns.n - first;
        size_t n = rest < MTPROF__GROUP_BLOCK ? rest : MTPROF__GROUP_BLOCK;
        MT_TRY(mtprof__grouper_ask(grouper, first));
        MT_TRY(mtprof__grouper_rows(grouper, first, n, false, rows));
        add_block(grouper, first, n, rows);
    }
    move_device_times(grouper);
    return 0;
}

/* ---- making one ------------------------------------------------------------------------------ */

static int check_options(const mtprof_averages_options *options)
{
    const uint32_t known = MTPROF_GROUP_SHAPES | MTPROF_GROUP_OVERLOAD | MTPROF_GROUP_MODULE |
                           MTPROF_GROUP_STEP | MTPROF_GROUP_THREAD | MTPROF_GROUP_CAPTURE;
    if ((options->group & ~known) != 0) {
        return mtb_fail(MTPROF_EINVAL, "averages: group is 0x%x, known are 0x%x",
                        (unsigned)options->group, (unsigned)known);
    }
    if (options->functions > MTPROF_FUNCTIONS_WITHOUT_OPS) {
        return mtb_fail(MTPROF_EINVAL, "averages: functions %u, known are 0 to %u",
                        (unsigned)options->functions, (unsigned)MTPROF_FUNCTIONS_WITHOUT_OPS);
    }
    if (options->steps_given != 0 && options->first_step > options->last_step) {
        return mtb_fail(MTPROF_EINVAL, "averages: steps %d to %d", (int)options->first_step,
                        (int)options->last_step);
    }
    return 0;
}

static int make_slots(mtprof__grouper *grouper)
{
    uint32_t most = mtprof__largest(grouper->columns.name, grouper->columns.n);
    uint64_t n_slots = ((uint64_t)most + 1) * grouper->n_classes;
    if (n_slots > MOST_SLOTS) {
        return 0;
    }
    grouper->slots = mtb_resize(NULL, n_slots, sizeof grouper->slots[0]);
    if (grouper->slots == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "averages: no memory for the table of names");
    }
    memset(grouper->slots, 0xFF, n_slots * sizeof grouper->slots[0]);
    return 0;
}

int mtprof__grouper_init(mtprof__grouper *grouper, mtprof_model *model,
                         const mtprof_averages_options *options)
{
    *grouper = (mtprof__grouper){.model = model};
    if (model == NULL) {
        return mtb_fail(MTPROF_EINVAL, "averages: no model");
    }
    if (options != NULL) {
        if (options->struct_size < 2 * sizeof(uint32_t)) {
            return mtb_fail(MTPROF_EINVAL, "averages: struct_size of the options is %u",
                            options->struct_size);
        }
        mtb_read_struct(&grouper->options, options);
    }
    MT_TRY(check_options(&grouper->options));
    if (grouper->options.name != NULL) { /* it may be needed later (AV3), the others not */
        const char *name = grouper->options.name;
        grouper->options.name = mtb_arena_copy_text(&grouper->texts, name, strlen(name));
        if (grouper->options.name == NULL) {
            return mtb_fail(MTPROF_ENOMEM, "averages: no memory for a pattern");
        }
    }
    MT_TRY(get_columns(model, &grouper->columns));
    MT_TRY(mtprof__use_captured_names(grouper));
    choose_functions(grouper);
    make_classes(grouper);
    MT_TRY(mtprof__filter_init(grouper));
    MT_TRY(mtprof__key_init(grouper));
    grouper->options.thread = grouper->options.module_name = NULL;
    MT_TRY(make_slots(grouper));
    /* Group 0 and base 0 (AV1). */
    uint32_t none;
    grouper->bases = mtb_calloc(1, sizeof grouper->bases[0]);
    if (grouper->bases == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "averages: no memory for another name");
    }
    grouper->n_bases = grouper->bases_capacity = 1;
    return mtprof__group_add(grouper, 0, 0, &none);
}

void mtprof__grouper_fini(mtprof__grouper *grouper)
{
    mtb_free(grouper->slots);
    mtb_free(grouper->own_names);
    mtb_free(grouper->bases);
    mtb_idmap_reset(&grouper->base_map);
    mtb_free(grouper->track_passes);
    mtb_free(grouper->module_passes);
    mtb_free(grouper->groups);
    mtb_free(grouper->keys);
    mtb_idmap_reset(&grouper->group_map);
    mtb_arena_reset(&grouper->texts);
    mtb_free(grouper->shapes);
    mtb_idmap_reset(&grouper->shapes_map);
    mtb_free(grouper->shapes_of);
    mtb_free(grouper->stacks);
    mtb_idmap_reset(&grouper->stacks_map);
    mtb_free(grouper->stack_of);
    mtb_free(grouper->frames);
    *grouper = (mtprof__grouper){0};
}
