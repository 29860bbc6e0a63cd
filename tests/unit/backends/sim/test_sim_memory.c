/* SPDX-License-Identifier: Apache-2.0
 *
 * Settings and memory of the simulated accelerator (sim_pool.h SP1 to SP3).
 */
#include "harness/mt_test.h"
#include "support/devices/sim_table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MIB = 1 << 20
};

static uint64_t free_bytes(uint32_t device)
{
    mt_device_info info = {.struct_size = sizeof info};
    CHECK_OK(npu->device_info(npu->context, device, &info));
    return info.free_bytes;
}

static void give(void *memory, size_t bytes)
{
    npu->release(npu->context, 0, memory, bytes);
}

/* ---- settings ---- */

TEST(settings_are_used)
{
    set_npu("SIM_DEVICES", "3");
    set_npu("SIM_MEMORY", "1M");
    REQUIRE_EQ_I64(try_open_npu(), MT_OK);
    mt_device_info info = {.struct_size = sizeof info};
    CHECK_EQ_U64(npu->device_count(npu->context), 3);
    CHECK_OK(npu->device_info(npu->context, 2, &info));
    CHECK_EQ_STR(info.name, "Simulated NPU");
    CHECK_EQ_U64(info.total_bytes, MIB);
    CHECK_EQ_U64(info.free_bytes, MIB);
    CHECK_EQ_I64(npu->device_info(npu->context, 3, &info), MT_ERUNTIME);
    CHECK_EQ_STR(mt_last_error()->message, "device_info: there is no npu:3, there are 3");
    CHECK_EQ_STR(npu->name, "sim");
    CHECK(npu->extension(npu->context, "other") == NULL);
}

static void check_refused(const char *name, const char *value)
{
    char expected[128];
    set_npu(name, value);
    CHECK_EQ_I64(try_open_npu(), MT_EVALUE);
    (void)snprintf(expected, sizeof expected, "MINDTORCH_NPU_%s=%s", name, value);
    if (!CHECK(strstr(mt_last_error()->message, expected) != NULL)) {
        FAIL("%s", mt_last_error()->message);
    }
}

TEST(no_devices_are_refused)
{
    check_refused("SIM_DEVICES", "0");
}
TEST(many_devices_are_refused)
{
    check_refused("SIM_DEVICES", "17");
}
TEST(words_are_refused)
{
    check_refused("SIM_DEVICES", "two");
}
TEST(huge_memory_is_refused)
{
    check_refused("SIM_MEMORY", "99999999999999999999G");
}
TEST(overflowing_memory_is_refused)
{
    check_refused("SIM_MEMORY", "99999999999G");
}
TEST(unknown_units_are_refused)
{
    check_refused("SIM_MEMORY", "5T");
}
TEST(text_behind_a_unit_is_refused)
{
    check_refused("SIM_MEMORY", "5Mb");
}
TEST(negative_latency_is_refused)
{
    check_refused("SIM_LATENCY_NS", "-1");
}
TEST(negative_kernel_time_is_refused)
{
    check_refused("SIM_KERNEL_NS", "-1");
}
TEST(blocking_is_zero_or_one)
{
    check_refused("LAUNCH_BLOCKING", "yes");
}

TEST(it_opens_again_after_a_refusal)
{
    check_refused("SIM_DEVICES", "x");
    check_refused("SIM_DEVICES", "1x");
    set_npu("SIM_DEVICES", "2");
    open_npu();
    CHECK_EQ_U64(npu->device_count(npu->context), 2);
    CHECK_EQ_I64(try_open_npu(), MT_ERUNTIME); /* once in a process */
}

TEST(lack_of_addresses_is_an_error)
{
    struct rlimit limit = {.rlim_cur = (rlim_t)1 << 34, .rlim_max = (rlim_t)1 << 34};
    set_npu("SIM_MEMORY", "64G");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    MT_SKIP("sanitizers need more addresses than this test allows");
#endif
    REQUIRE_EQ_I64(setrlimit(RLIMIT_AS, &limit), 0);
    CHECK_EQ_I64(try_open_npu(), MT_ENOMEM);
    CHECK(strstr(mt_last_error()->message, "npu:0") != NULL);
}

/* Making the file larger than that would be a signal that ends the program. */
TEST(a_limit_of_files_is_an_error)
{
    struct rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    REQUIRE_EQ_I64(setrlimit(RLIMIT_FSIZE, &limit), 0);
    set_npu("SIM_MEMORY", "64M");
    CHECK_EQ_I64(try_open_npu(), MT_ENOMEM);
    CHECK(strstr(mt_last_error()->message, "File too large") != NULL);
}

/* ---- memory ---- */

TEST(memory_is_page_aligned_and_distinct)
{
    open_npu();
    char *a = npu_take(0, 1);
    char *b = npu_take(0, 5000);
    CHECK_EQ_U64((uintptr_t)a % 4096, 0);
    CHECK_EQ_U64((uintptr_t)b % 4096, 0);
    CHECK(b >= a + 4096 || a >= b + 8192);
    CHECK_EQ_U64(free_bytes(0), 64 * MIB - 3 * 4096);
    give(a, 1);
    give(b, 5000);
    give(NULL, 1);
    CHECK_EQ_U64(free_bytes(0), 64 * MIB);
}

TEST(the_host_cannot_read_it)
{
    open_npu();
    char *memory = npu_take(0, 4096);
    char host[16];
    int ends[2];
    REQUIRE_EQ_I64(pipe(ends), 0);
    CHECK_EQ_I64(write(ends[1], memory, 16), -1);
    CHECK_EQ_I64(errno, EFAULT);
    REQUIRE_OK(npu_copy(NULL, MT_COPY_TO_HOST, host, memory, sizeof host, 0));
    CHECK_EQ_I64(write(ends[1], host, 16), 16);
}

TEST(too_much_is_refused)
{
    open_npu();
    void *memory = &memory;
    CHECK_EQ_I64(npu->allocate(npu->context, 0, 65 * MIB, &memory), MT_ENOMEM);
    CHECK(memory == NULL);
    CHECK_EQ_STR(mt_last_error()->message,
                 "npu:0: 68157440 bytes were refused: 0 of 67108864 are in use");
    CHECK_EQ_I64(npu->allocate(npu->context, 0, SIZE_MAX, &memory), MT_ENOMEM);
    void *all = npu_take(0, 64 * MIB);
    CHECK_EQ_I64(npu->allocate(npu->context, 0, 1, &memory), MT_ENOMEM);
    give(all, 64 * MIB);
    CHECK(npu_take(0, 1) == all);
}

TEST(neighbours_become_one)
{
    enum {
        COUNT = 64
    };
    void *pieces[COUNT];
    open_npu();
    for (int i = 0; i < COUNT; i++) {
        pieces[i] = npu_take(0, MIB);
    }
    uint64_t random = mt_test_seed();
    for (int i = COUNT; i > 0; i--) { /* in any order */
        uint64_t k = mt_test_random(&random) % (uint64_t)i;
        give(pieces[k], MIB);
        pieces[k] = pieces[i - 1];
    }
    CHECK_EQ_U64(free_bytes(0), 64 * MIB);
    give(npu_take(0, 64 * MIB), 64 * MIB);
}

/* What was given back twice, or was never taken, is left alone. */
TEST(foreign_memory_is_not_given_back)
{
    int own = 0;
    open_npu();
    char *memory = npu_take(0, 2 * MIB);
    give(memory + 4096, MIB);
    give(&own, 4);
    CHECK_EQ_U64(free_bytes(0), 62 * MIB);
    give(memory, 2 * MIB);
    give(memory, 2 * MIB);
    CHECK_EQ_U64(free_bytes(0), 64 * MIB);
    npu->release(npu->context, 99, memory, MIB);
}

/* Random takes and gives against a plain model: pieces never overlap, and all comes back. */
TEST(random_pieces_do_not_overlap)
{
    enum {
        SLOTS = 40
    };
    struct {
        char *at;
        size_t bytes;
    } held[SLOTS] = {{NULL, 0}};
    uint64_t random = mt_test_seed();
    open_npu();
    for (int step = 0; step < 1000; step++) {
        size_t k = mt_test_random(&random) % SLOTS;
        if (held[k].at != NULL) {
            give(held[k].at, held[k].bytes);
            held[k].at = NULL;
            continue;
        }
        void *taken;
        size_t bytes = 1 + mt_test_random(&random) % (3 * MIB);
        if (npu->allocate(npu->context, 0, bytes, &taken) != MT_OK) {
            continue;
        }
        held[k].at = taken;
        held[k].bytes = bytes;
        for (size_t i = 0; i < SLOTS; i++) {
            CHECK(i == k || held[i].at == NULL || held[i].at + held[i].bytes <= held[k].at ||
                  held[k].at + bytes <= held[i].at);
        }
    }
    for (size_t i = 0; i < SLOTS; i++) {
        give(held[i].at, held[i].bytes);
    }
    CHECK_EQ_U64(free_bytes(0), 64 * MIB);
}

/* Bytes of npu:0's memory file that have pages. */
static uint64_t page_bytes(void)
{
    for (int file = 3; file < 64; file++) {
        char path[32];
        char target[64];
        struct stat status;
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        ssize_t length = readlink(path, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        if (strstr(target, "memfd:mindtorch_sim") != NULL && fstat(file, &status) == 0) {
            return (uint64_t)status.st_blocks * 512;
        }
    }
    FAIL("no file of the device is open");
    return 0;
}

/* Memory keeps what is in it until it is given back, and then the system has it again. */
TEST(pages_go_back_to_the_system)
{
    open_npu();
    char *memory = npu_take(0, 32 * MIB);
    mt_set_call set = {.struct_size = sizeof set, .to = memory, .bytes = 32 * MIB, .value = 7};
    REQUIRE_OK(npu->set(npu->context, NULL, &set));
    char byte = 0;
    REQUIRE_OK(npu_copy(NULL, MT_COPY_TO_HOST, &byte, memory + 32 * MIB - 1, 1, 0));
    CHECK_EQ_I64(byte, 7);
    CHECK_EQ_U64(page_bytes(), 32 * MIB);
    give(memory, 32 * MIB);
    CHECK_EQ_U64(page_bytes(), 0);
}

TEST(pinned_memory)
{
    open_npu();
    void *host = NULL;
    REQUIRE_OK(npu->host_allocate(npu->context, 1000, &host));
    CHECK_EQ_U64((uintptr_t)host % 64, 0);
    memset(host, 3, 1000);
    npu->host_release(npu->context, host, 1000);
    npu->host_release(npu->context, NULL, 0);
    CHECK_EQ_I64(npu->host_allocate(npu->context, SIZE_MAX / 2 + 2, &host), MT_ENOMEM);
    CHECK(host == NULL);
}
