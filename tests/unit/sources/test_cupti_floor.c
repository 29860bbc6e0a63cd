/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/gpu/cupti_floor.c on a libcupti of our own: each variant begins, sees launches, and leaves
 * nothing behind. What it costs, only a GPU tells.
 */
#include "gpu/cupti_floor.h"
#include "support/cupti_case.h"

#ifdef __x86_64__

TEST(every_variant_begins_and_ends)
{
    load(FAKE_CUPTI);
    int count = 0;
    int refused = 0;
    for (; floor_variant(count) != NULL; count++) {
        if (floor_start(floor_variant(count)) != 0) {
            CHECK_EQ_STR(floor_variant(count), "hardware"); /* the fake is no Blackwell */
            refused++;
        } else {
            bool all = strcmp(floor_variant(count), "all") == 0;
            CHECK_EQ_U64(fake->facts().subscribed, 1);
            CHECK(!all || fake->facts().enabled_callbacks == 7);
            fake->call(&(fake_call){.name = "cudaLaunchKernel_v7000",
                                    .inner = "cuLaunchKernel",
                                    .work = kernel("kernel", now(), 1)});
            floor_stop();
        }
        CHECK_EQ_U64(fake->facts().subscribed, 0);
        CHECK_EQ_U64(fake->facts().buffers_out, 0);
        CHECK_EQ_U64(fake->facts().kinds, 0);
    }
    CHECK(count > 10);
    CHECK_EQ_I64(refused, 1);
    CHECK_EQ_I64(floor_start("no such variant"), -1);
}

#else

TEST(variants)
{
    MT_SKIP("libcupti of our own is for x86-64");
}

#endif
