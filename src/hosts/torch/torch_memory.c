/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocations: torch's allocators report to the object that a thread has in its place for the
 * profiler's state. Ours is one object for all threads and lives as long as the process. Parts of
 * torch that are written in Python annotate what they do only where that place is taken.
 *
 *   HM1  It is put there only where the place is empty. Another profiler's stays, and the thread is
 *        counted (mtprof_torch_info.refused).
 *   HM2  It is taken away by the thread that has it, while nothing else is in its way; elsewhere it
 *        stays, and answers that it wants no reports.
 *   HM3  torch may take the object for a larger one of its own, with more functions and fields.
 *        They are there: functions that do nothing, and zeros.
 *   HM4  A shared pointer without a count behind it is one that nobody counts or frees.
 */
#include "base/compiler.h"
#include "hosts/torch/torch_impl.h"

#include <string.h>

enum {
    CHECKED_BYTES = 3 * 7 * 4,
    DEVICES = 256
};

uint64_t th__memory_refused;

static uint64_t host_allocated; /* atomic */
static bool checking;           /* with a tensor of CHECKED_BYTES */
static uint32_t n_checked;

uint32_t th__device_number(int32_t type, int32_t index)
{
    bool known = index >= 0 && index < DEVICES - 1;
    return type == th__torch.cpu ? 0 : (known ? (uint32_t)index + 1 : 1);
}

/* torch's c10::Device: a type in the lower byte, an index in the upper. */
static uint32_t device_number(uint16_t device)
{
    return th__device_number((uint8_t)device, (uint8_t)(device >> 8));
}

static void report(void *self, void *memory, int64_t bytes, size_t allocated, size_t reserved,
                   uint16_t device)
{
    (void)self;
    if (MT_UNLIKELY(checking)) {
        n_checked += bytes >= CHECKED_BYTES && bytes < 2 * CHECKED_BYTES + 64 && memory != NULL;
        return;
    }
    uint32_t number = device_number(device);
    if (number == 0) {
        __atomic_store_n(&host_allocated, allocated, __ATOMIC_RELAXED);
    }
    if (MT_UNLIKELY(bytes < 0 && mtprof_wants(MTPROF_WANT_TENSORS))) {
        th__memory_freed((uint64_t)(uintptr_t)memory);
    }
    mtprof_alloc(number, (uint64_t)(uintptr_t)memory, bytes, allocated, reserved);
}

static void report_out_of_memory(void *self, int64_t bytes, size_t allocated, size_t reserved,
                                 uint16_t device)
{
    (void)self;
    mtprof_out_of_memory(device_number(device), (uint64_t)bytes, allocated, reserved);
}

static bool is_enabled(const void *self)
{
    (void)self;
    return checking || mtprof_wants(MTPROF_WANT_ALLOCS);
}

static void destroy(void *self)
{
    (void)self;
}

/* HM3. The table is that of a C++ class; it begins at [2]. */
static void *table[64];
static struct {
    void *const *table;
    uint64_t zeros[511];
} info = {.table = &table[2]};

static void fill_table(void)
{
    void (*destroyers[2])(void *) = {destroy, destroy};
    void (*reporter)(void *, void *, int64_t, size_t, size_t, uint16_t) = report;
    void (*failure)(void *, int64_t, size_t, size_t, uint16_t) = report_out_of_memory;
    bool (*enabled)(const void *) = is_enabled;
    memcpy(&table[2], destroyers, sizeof destroyers);
    memcpy(&table[4], &reporter, sizeof reporter);
    memcpy(&table[5], &failure, sizeof failure);
    memcpy(&table[6], &enabled, sizeof enabled);
    for (size_t i = 7; i < sizeof table / sizeof table[0]; i++) {
        memcpy(&table[i], destroyers, sizeof destroyers[0]);
    }
}

static bool push(void)
{
    void *shared[2] = {&info, NULL}; /* HM4 */
    if (th__torch.debug_get(th__torch.debug_kind) != NULL) {
        return false;
    }
    th__torch.debug_push(th__torch.debug_kind, shared);
    return true;
}

void th__memory_leave(void)
{
    void *shared[2] = {NULL, NULL};
    if (th__torch.debug_get == NULL || th__torch.debug_get(th__torch.debug_kind) != &info) {
        return;
    }
    for (uint32_t i = 0; i < th__torch.n_debug_others; i++) {
        if (th__torch.debug_get(th__torch.debug_others[i]) != NULL) {
            return; /* HM2 */
        }
    }
    th__torch.debug_pop(shared, th__torch.debug_kind);
}

bool th__memory_check(void)
{
    const int64_t sizes[] = {3, 7};
    const int64_t strides[] = {7, 1};
    void *tensor = NULL;
    fill_table();
    if (th__torch.debug_get == NULL || !push()) {
        return th__torch.debug_get != NULL; /* another profiler runs: believe it works */
    }
    n_checked = 0;
    checking = true;
    int32_t failed =
        th__torch.empty_strided(2, sizes, strides, th__torch.float32, th__torch.cpu, 0, &tensor);
    checking = false;
    if (failed == 0) {
        th__torch.destroy(tensor);
    }
    th__memory_leave();
    return failed == 0 && n_checked == 1;
}

bool th__memory_ask(void)
{
    return th__torch.debug_get == NULL || th__torch.debug_get(th__torch.debug_kind) == &info ||
           push();
}

uint64_t th__memory_allocated(void)
{
    return __atomic_load_n(&host_allocated, __ATOMIC_RELAXED);
}
