/* SPDX-License-Identifier: Apache-2.0
 *
 * CUPTI's records to activities of libmtprof, with torch's names and keys.
 *
 *   CV1  A record is used only if its times and its device make sense: what we do not know the
 *        layout of is counted and left out.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "sources/cupti/cupti_impl.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

cp__counts cp__count;

enum {
    MOST_DEVICES = 1024,
    NO_STREAM = 0xFFFFFFFFu /* of a wait for the whole context */
};

/* ---- keys of metadata ---- */

enum meta_key {
    KEY_CONTEXT,
    KEY_REGISTERS,
    KEY_SHARED,
    KEY_BLOCKS,
    KEY_WARPS,
    KEY_GRID,
    KEY_BLOCK,
    KEY_OCCUPANCY,
    KEY_GRAPH_NODE,
    KEY_CAPTURED_OP,
    KEY_CAPTURED_MODULE,
    KEY_DEPENDENCIES,
    KEY_COUNT
};

static uint32_t keys[KEY_COUNT];
static pthread_once_t keys_once = PTHREAD_ONCE_INIT;

static void make_keys(void)
{
    static const char *const texts[KEY_COUNT] = {
        [KEY_CONTEXT] = "context",
        [KEY_REGISTERS] = "registers per thread",
        [KEY_SHARED] = "shared memory",
        [KEY_BLOCKS] = "blocks per SM",
        [KEY_WARPS] = "warps per SM",
        [KEY_GRID] = "grid",
        [KEY_BLOCK] = "block",
        [KEY_OCCUPANCY] = "est. achieved occupancy %",
        [KEY_GRAPH_NODE] = "graph node id",
        [KEY_CAPTURED_OP] = "captured op",
        [KEY_CAPTURED_MODULE] = "captured module",
        [KEY_DEPENDENCIES] = "graph dependencies",
    };
    for (size_t i = 0; i < KEY_COUNT; i++) {
        keys[i] = mtprof_intern(texts[i], strlen(texts[i]));
    }
}

typedef struct meta_list {
    mtprof_activity_meta items[KEY_COUNT];
    uint32_t count;
} meta_list;

static void add(meta_list *list, enum meta_key key, uint32_t type, uint64_t value)
{
    list->items[list->count++] = (mtprof_activity_meta){keys[key], type, value};
}

static void add_real(meta_list *list, enum meta_key key, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add(list, key, MTPROF_META_REAL, bits);
}

/* ---- what all have ---- */

typedef struct common {
    uint64_t start, end;
    uint32_t device, context, stream, correlation;
    uint64_t graph_node;
} common;

#define COMMON(record)                                                             \
    ((common){(record)->start, (record)->end, (record)->device, (record)->context, \
              (record)->stream, (record)->correlation, (record)->graph_node})

/* CV1 */
static bool makes_sense(const common *c)
{
    bool good = c->start != 0 && c->end >= c->start && c->device < MOST_DEVICES;
    if (!good) {
        cp__add(&cp__count.unreadable, 1);
    }
    return good;
}

static uint64_t within[2] = {0, UINT64_MAX}; /* atomic */

void cp__records_within(uint64_t from_ns, uint64_t until_ns)
{
    __atomic_store_n(&within[0], from_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&within[1], until_ns, __ATOMIC_RELAXED);
}

static bool is_within(uint64_t ns)
{
    return ns >= __atomic_load_n(&within[0], __ATOMIC_RELAXED) &&
           ns <= __atomic_load_n(&within[1], __ATOMIC_RELAXED);
}

/* A replay launched it; who captured the node, and what it waits for, is told beside. */
static void add_node(meta_list *meta, uint64_t number)
{
    cp__node_facts known = cp__node_known(number);
    add(meta, KEY_GRAPH_NODE, MTPROF_META_UINT, number);
    if (known.op != 0) {
        add(meta, KEY_CAPTURED_OP, MTPROF_META_STRING, known.op);
    }
    if (known.module != 0) {
        add(meta, KEY_CAPTURED_MODULE, MTPROF_META_STRING, known.module);
    }
    if (known.dependencies != 0) {
        add(meta, KEY_DEPENDENCIES, MTPROF_META_STRING, known.dependencies);
    }
    cp__add(&cp__count.replayed, 1);
    cp__add(&cp__count.replayed_unknown, known.op == 0);
}

static void push(mtprof_source *source, uint32_t kind, const char *name, const common *c,
                 uint64_t bytes, meta_list *meta)
{
    mtprof_activity activity = {
        .struct_size = sizeof activity,
        .kind = kind,
        .name = name,
        .name_length = strlen(name),
        .start = c->start,
        .end = c->end,
        .launch_key = cp__join_find(c->correlation),
        .device = c->device,
        .queue = c->stream,
        .correlation = c->correlation,
        .bytes = bytes,
        .meta = meta->items,
    };
    if (activity.launch_key == 0 && !is_within(c->start)) {
        return;
    }
    if (c->graph_node != 0) {
        add_node(meta, c->graph_node);
    }
    activity.n_meta = meta->count;
    cp__add(&cp__count.records, 1);
    cp__add(&cp__count.unjoined, activity.launch_key == 0);
    mtprof_push_activity(source, &activity);
}

/* ---- the kinds ---- */

/* What is the same for all launches of a kernel of one shape, and what it is made of. */
typedef struct kernel_facts {
    const char *mangled; /* a copy that stays; NULL: not remembered */
    const char *plain;
    int32_t grid[3], block[3];
    int32_t static_shared, dynamic_shared;
    uint32_t device;
    uint16_t registers;
    bool device_known;
    uint32_t grid_id, block_id; /* 0: there are too many */
    uint64_t occupancy;
    double blocks, warps; /* of a processor */
} kernel_facts;

enum {
    MEMO_BITS = 7
};

struct cp__kernel_memo {
    kernel_facts items[1 << MEMO_BITS];
};

cp__kernel_memo *cp__kernel_memo_new(void)
{
    return mtb_calloc(1, sizeof(cp__kernel_memo));
}

static bool is_of(const kernel_facts *facts, const cp__kernel *kernel)
{
    return facts->mangled != NULL && memcmp(facts->grid, kernel->grid, sizeof facts->grid) == 0 &&
           memcmp(facts->block, kernel->block, sizeof facts->block) == 0 &&
           facts->static_shared == kernel->static_shared &&
           facts->dynamic_shared == kernel->dynamic_shared && facts->device == kernel->device &&
           facts->registers == kernel->registers && strcmp(facts->mangled, kernel->name) == 0;
}

static void find_facts(const cp__kernel *kernel, kernel_facts *facts)
{
    *facts = (kernel_facts){.static_shared = kernel->static_shared,
                            .dynamic_shared = kernel->dynamic_shared,
                            .device = kernel->device,
                            .registers = kernel->registers,
                            .plain = "unknown kernel"};
    memcpy(facts->grid, kernel->grid, sizeof facts->grid);
    memcpy(facts->block, kernel->block, sizeof facts->block);
    if (kernel->name != NULL) {
        facts->plain = cp__kernel_name(kernel->name, &facts->mangled);
    }
    const cp__device *device = cp__device_of(kernel->device);
    if (device != NULL) {
        double blocks = (double)kernel->grid[0] * kernel->grid[1] * kernel->grid[2];
        double threads = (double)kernel->block[0] * kernel->block[1] * kernel->block[2];
        facts->device_known = true;
        facts->blocks = blocks / device->processors;
        facts->warps = device->warp > 0 ? facts->blocks * threads / device->warp : 0;
        facts->occupancy = (uint64_t)(cp__occupancy(device, kernel) + 0.5);
    }
    facts->grid_id = cp__list_id(kernel->grid);
    facts->block_id = cp__list_id(kernel->block);
}

/* The place of a kernel's facts: by what is cheap to look at. */
static kernel_facts *place_of(cp__kernel_memo *memo, const cp__kernel *kernel)
{
    uint64_t mixed = (uint64_t)(uintptr_t)kernel->name ^ (uint64_t)(uint32_t)kernel->grid[0] << 20 ^
                     (uint64_t)(uint32_t)kernel->block[0] << 44;
    return &memo->items[mixed * 0x9E3779B97F4A7C15u >> (64 - MEMO_BITS)];
}

static void read_kernel(mtprof_source *source, const cp__kernel *kernel, cp__kernel_memo *memo)
{
    common c = COMMON(kernel);
    kernel_facts own;
    if (!makes_sense(&c)) {
        return;
    }
    kernel_facts *facts = memo != NULL && kernel->name != NULL ? place_of(memo, kernel) : &own;
    if (facts == &own || !is_of(facts, kernel)) {
        find_facts(kernel, facts);
    }
    meta_list meta = {.count = 0};
    add(&meta, KEY_CONTEXT, MTPROF_META_UINT, c.context);
    add(&meta, KEY_REGISTERS, MTPROF_META_UINT, kernel->registers);
    add(&meta, KEY_SHARED, MTPROF_META_INT,
        (uint64_t)((int64_t)kernel->static_shared + kernel->dynamic_shared));
    if (facts->device_known) {
        add_real(&meta, KEY_BLOCKS, facts->blocks);
        add_real(&meta, KEY_WARPS, facts->warps);
    }
    if (facts->grid_id != 0 && facts->block_id != 0) {
        add(&meta, KEY_GRID, MTPROF_META_STRING, facts->grid_id);
        add(&meta, KEY_BLOCK, MTPROF_META_STRING, facts->block_id);
    }
    if (facts->device_known) {
        add(&meta, KEY_OCCUPANCY, MTPROF_META_UINT, facts->occupancy);
    }
    push(source, MTPROF_ACTIVITY_KERNEL, facts->plain, &c, 0, &meta);
}

static const char *memory_name(uint32_t kind)
{
    static const char *const names[] = {"Unknown", "Pageable", "Pinned",        "Device",
                                        "Array",   "Managed",  "Device Static", "Managed Static"};
    return kind < MT_COUNT(names) ? names[kind] : "Unknown";
}

static void push_copy(mtprof_source *source, const common *c, uint32_t kind, uint32_t from,
                      uint32_t to, uint64_t bytes)
{
    static const char *const directions[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                             "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
    char name[64];
    meta_list meta = {.count = 0};
    snprintf(name, sizeof name, "Memcpy %s (%s -> %s)",
             directions[kind < MT_COUNT(directions) ? kind : 0], memory_name(from),
             memory_name(to));
    add(&meta, KEY_CONTEXT, MTPROF_META_UINT, c->context);
    push(source, MTPROF_ACTIVITY_COPY, name, c, bytes, &meta);
}

static void read_copy(mtprof_source *source, const cp__copy *copy)
{
    common c = COMMON(copy);
    if (makes_sense(&c)) {
        push_copy(source, &c, copy->copy_kind, copy->from_kind, copy->to_kind, copy->bytes);
    }
}

static void read_peer_copy(mtprof_source *source, const cp__peer_copy *copy)
{
    common c = COMMON(copy);
    if (makes_sense(&c)) {
        push_copy(source, &c, copy->copy_kind, copy->from_kind, copy->to_kind, copy->bytes);
    }
}

static void read_set(mtprof_source *source, const cp__set *set)
{
    common c = COMMON(set);
    char name[64];
    if (!makes_sense(&c)) {
        return;
    }
    meta_list meta = {.count = 0};
    snprintf(name, sizeof name, "Memset (%s)", memory_name(set->memory_kind));
    add(&meta, KEY_CONTEXT, MTPROF_META_UINT, c.context);
    push(source, MTPROF_ACTIVITY_SET, name, &c, set->bytes, &meta);
}

/* A wait has no device; contexts are numbered as they are made, one a device in most programs. That
 * of the last work in the context is the one. */
enum {
    CONTEXTS = 256
};
static uint32_t context_devices[CONTEXTS]; /* atomic */

static void note_device(uint32_t context, uint32_t device)
{
    if (context < CONTEXTS) {
        __atomic_store_n(&context_devices[context], device, __ATOMIC_RELAXED);
    }
}

static void read_wait(mtprof_source *source, const cp__wait *wait)
{
    static const char *const names[] = {
        [CP_SYNC_EVENT] = "Event Sync",
        [CP_SYNC_STREAM_WAIT] = "Stream Wait Event",
        [CP_SYNC_STREAM] = "Stream Sync",
    };
    if (wait->type >= MT_COUNT(names) || names[wait->type] == NULL || wait->stream == NO_STREAM) {
        return; /* a wait for the context is no stream's: its call is a scope */
    }
    uint32_t device = wait->context < CONTEXTS
                          ? __atomic_load_n(&context_devices[wait->context], __ATOMIC_RELAXED)
                          : 0;
    common c = {wait->start, wait->end, device, wait->context, wait->stream, wait->correlation, 0};
    if (!makes_sense(&c)) {
        return;
    }
    meta_list meta = {.count = 0};
    add(&meta, KEY_CONTEXT, MTPROF_META_UINT, c.context);
    push(source, MTPROF_ACTIVITY_SYNC, names[wait->type], &c, 0, &meta);
}

uint64_t cp__record_start(const void *record)
{
    uint32_t kind;
    memcpy(&kind, record, sizeof kind);
    switch (kind) {
    case CP_KIND_KERNEL:
    case CP_KIND_KERNEL_SERIAL: return ((const cp__kernel *)record)->start;
    case CP_KIND_MEMCPY: return ((const cp__copy *)record)->start;
    case CP_KIND_MEMCPY_PEER: return ((const cp__peer_copy *)record)->start;
    case CP_KIND_MEMSET: return ((const cp__set *)record)->start;
    case CP_KIND_SYNCHRONIZATION: return ((const cp__wait *)record)->start;
    default: return 0;
    }
}

void cp__read_record(mtprof_source *source, const void *record, cp__kernel_memo *memo)
{
    uint32_t kind;
    (void)pthread_once(&keys_once, make_keys);
    memcpy(&kind, record, sizeof kind);
    switch (kind) {
    case CP_KIND_KERNEL:
    case CP_KIND_KERNEL_SERIAL:
        note_device(((const cp__kernel *)record)->context, ((const cp__kernel *)record)->device);
        read_kernel(source, record, memo);
        break;
    case CP_KIND_MEMCPY: read_copy(source, record); break;
    case CP_KIND_MEMCPY_PEER: read_peer_copy(source, record); break;
    case CP_KIND_MEMSET: read_set(source, record); break;
    case CP_KIND_SYNCHRONIZATION: read_wait(source, record); break;
    default: cp__add(&cp__count.unreadable, 1); break; /* not asked for */
    }
}
