/* SPDX-License-Identifier: Apache-2.0
 *
 * Step summaries: what they say of a loop, against a model of the same recording; the file after a
 * kill, damage and a full disk.
 */
#include "mtprof/steps/steps_file.h"
#include "stress/stress.h"

#include <mtprof/flight.h>
#include <mtprof/live.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static mtprof_site scope = MTPROF_SITE_INIT("work", MTPROF_KIND_SCOPE);
static mtprof_site slow_scope = MTPROF_SITE_INIT("wait", MTPROF_KIND_SCOPE);
static mtprof_site around = MTPROF_SITE_INIT("around", MTPROF_KIND_SCOPE);

static mtprof_flight *start(mtprof_flight_config config)
{
    static char folder[STRESS_PATH];
    mtprof_flight *flight = NULL;
    config.struct_size = sizeof config;
    config.folder = stress_path(folder, "flight");
    config.name = "job";
    REQUIRE_OK(mtprof_flight_start(&config, &flight));
    return flight;
}

static const char *steps_path(void)
{
    static char path[STRESS_PATH];
    return stress_path(path, "flight/job.steps");
}

static mtprof_steps *open_steps(void)
{
    mtprof_steps *steps = NULL;
    REQUIRE_OK(mtprof_steps_open(steps_path(), &steps));
    return steps;
}

static mtprof_steps_info info_of(const mtprof_steps *steps)
{
    mtprof_steps_info info = {.struct_size = sizeof info};
    CHECK_OK(mtprof_steps_get_info(steps, &info));
    return info;
}

static mtprof_flight_counts counts_of(mtprof_flight *flight)
{
    mtprof_flight_counts counts = {.struct_size = sizeof counts};
    CHECK_OK(mtprof_flight_get_counts(flight, &counts));
    return counts;
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static const mtprof_step_op *op_of(const mtprof_step_summary *s, const char *name)
{
    for (uint32_t i = 0; i < s->n_ops; i++) {
        if (s->ops[i].name.length == strlen(name) &&
            memcmp(s->ops[i].name.bytes, name, strlen(name)) == 0) {
            return &s->ops[i];
        }
    }
    return NULL;
}

/* ---- the recorder ---------------------------------------------------------------------------- */

/* Steps of 4 ms, of which the third has a scope that nothing else has; a scope around all. */
TEST(every_step_has_a_summary)
{
    enum {
        STEPS = 12,
        CALLS = 50
    };
    mtprof_flight *flight = start((mtprof_flight_config){0});
    mtprof_token outer = mtprof_begin(&around);
    for (int i = 0; i < STEPS; i++) {
        for (int k = 0; k < CALLS + i; k++) {
            mtprof_end(mtprof_begin(&scope));
        }
        mtprof_token token = i == 3 ? mtprof_begin(&slow_scope) : 0;
        sleep_ms(4);
        if (i == 3) {
            mtprof_end(token);
        }
        CHECK_OK(mtprof_flight_step(flight));
    }
    mtprof_end(outer);
    CHECK_OK(mtprof_flight_stop(flight));
    CHECK_EQ_U64(counts_of(flight).summaries, STEPS);
    CHECK_EQ_U64(counts_of(flight).summaries_lost, 0);
    mtprof_flight_release(flight);

    mtprof_steps *steps = open_steps();
    mtprof_step_summary s = {.struct_size = sizeof s};
    int64_t end = 0;
    uint64_t seen = 0;
    while (mtprof_steps_next(steps, &s) == MTPROF_OK) {
        CHECK_EQ_U64(s.first, seen);
        CHECK(s.duration_ns >= 4000000);
        CHECK(end == 0 || s.start_ns == end);
        CHECK(s.read_share == 1);
        CHECK(s.rss_bytes > 0);
        end = s.start_ns + (int64_t)s.duration_ns;
        const mtprof_step_op *work = op_of(&s, "work");
        const mtprof_step_op *wait = op_of(&s, "wait");
        const mtprof_step_op *rest = op_of(&s, "around");
        if (s.steps == 1) { /* a machine that is busy may make two of them one */
            CHECK(work != NULL && work->calls == CALLS + (double)s.first);
            CHECK((wait != NULL) == (s.first == 3));
        }
        CHECK(wait == NULL || wait->self_ns > 3e6);
        CHECK(rest != NULL);
        /* LIVE2: the scope that is open in all of them has its part in each. */
        CHECK(s.self_ns <= (double)s.duration_ns * 1.001);
        CHECK(s.first == 0 || s.self_ns >= (double)s.duration_ns * 0.999);
        seen += s.steps;
    }
    CHECK_EQ_U64(seen, STEPS);
    mtprof_steps_info info = info_of(steps);
    CHECK_EQ_U64(info.gaps, 0);
    CHECK_EQ_U64(info.damaged, 0);
    CHECK_EQ_U64(info.tail_bytes, 0);
    CHECK_EQ_U64(info.runs, 1);
    CHECK_EQ_U64(info.pid, (uint64_t)getpid());
    mtprof_steps_close(steps);
}

/* The step of a summary is that of the recording, and its calls add up to all. */
TEST(short_steps_share_a_summary)
{
    enum {
        STEPS = 5000
    };
    mtprof_flight *flight = start((mtprof_flight_config){.flags = MTPROF_FLIGHT_IN_MEMORY});
    for (int i = 0; i < STEPS; i++) {
        mtprof_end(mtprof_begin(&scope));
        CHECK_OK(mtprof_flight_step(flight));
    }
    CHECK_OK(mtprof_flight_stop(flight)); /* the last ones are too short for a summary each */
    mtprof_flight_counts counts = counts_of(flight);
    CHECK_EQ_U64(counts.summaries, STEPS);
    CHECK_EQ_U64(counts.summaries_lost, 0);
    mtprof_flight_release(flight);
    mtprof_steps *steps = open_steps();
    mtprof_step_summary s = {.struct_size = sizeof s};
    double calls = 0;
    while (mtprof_steps_next(steps, &s) == MTPROF_OK) {
        const mtprof_step_op *work = op_of(&s, "work");
        calls += work != NULL ? work->calls : 0;
    }
    CHECK(calls == STEPS);
    CHECK_EQ_U64(info_of(steps).steps, STEPS);
    CHECK(info_of(steps).summaries < STEPS);
    mtprof_steps_close(steps);
    /* Without being asked for none is written. */
    CHECK_EQ_I64(unlink(steps_path()), 0);
    flight = start((mtprof_flight_config){.flags = MTPROF_FLIGHT_NO_STEPS});
    CHECK_OK(mtprof_flight_step(flight));
    mtprof_flight_release(flight);
    CHECK(access(steps_path(), F_OK) != 0);
}

/* A killed process loses the step that ran and, at most, one that had just ended. */
TEST(a_killed_process_leaves_its_summaries)
{
    for (int round = 0; round < 3; round++) {
        int told[2];
        REQUIRE_EQ_I64(pipe(told), 0);
        pid_t child = fork();
        if (child == 0) {
            mtprof_flight *flight = start((mtprof_flight_config){0});
            for (uint32_t i = 1;; i++) {
                mtprof_end(mtprof_begin(&scope));
                sleep_ms(120);
                (void)mtprof_flight_step(flight);
                (void)!write(told[1], &i, sizeof i);
            }
        }
        uint32_t done = 0;
        while (done < 5 && read(told[0], &done, sizeof done) == sizeof done) {
        }
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        close(told[0]);
        close(told[1]);
        mtprof_steps *steps = open_steps();
        mtprof_step_summary s = {.struct_size = sizeof s};
        uint64_t last = 0;
        while (mtprof_steps_next(steps, &s) == MTPROF_OK) {
            last = s.run == (uint32_t)round ? s.first + s.steps : 0;
        }
        CHECK(last + 1 >= done);
        CHECK_EQ_U64(info_of(steps).runs, (uint64_t)round + 1); /* the next one goes on behind */
        mtprof_steps_close(steps);
    }
}

TEST(a_full_disk_is_counted)
{
    static struct rlimit was;
    mtprof_flight *flight = start((mtprof_flight_config){0});
    REQUIRE_EQ_I64(getrlimit(RLIMIT_FSIZE, &was), 0);
    struct rlimit small = {.rlim_cur = 100, .rlim_max = was.rlim_max};
    REQUIRE_EQ_I64(setrlimit(RLIMIT_FSIZE, &small), 0); /* the ring has its place already */
    for (int i = 0; i < 4; i++) {
        mtprof_end(mtprof_begin(&scope));
        sleep_ms(2);
        CHECK_OK(mtprof_flight_step(flight));
    }
    mtprof_flight_counts counts = {0};
    for (int i = 0; i < 5000 && counts.summaries_lost < 4; i++) {
        sleep_ms(2);
        counts = counts_of(flight);
    }
    CHECK_EQ_U64(counts.summaries_lost, 4);
    CHECK_EQ_U64(counts.summaries, 0);
    REQUIRE_EQ_I64(setrlimit(RLIMIT_FSIZE, &was), 0);
    sleep_ms(2);
    CHECK_OK(mtprof_flight_step(flight));
    CHECK_OK(mtprof_flight_stop(flight));
    CHECK_EQ_U64(counts_of(flight).summaries, 1);
    mtprof_flight_release(flight);
    mtprof_steps *steps = open_steps();
    mtprof_step_summary s = {.struct_size = sizeof s};
    CHECK_OK(mtprof_steps_next(steps, &s));
    CHECK_EQ_U64(s.first, 4);
    CHECK_EQ_I64(mtprof_steps_next(steps, &s), MTPROF_EEND);
    CHECK_EQ_U64(info_of(steps).damaged, 0);
    mtprof_steps_close(steps);
}

TEST(another_file_is_not_touched)
{
    mtprof_flight *flight = NULL;
    char folder[STRESS_PATH];
    mtprof_flight_config config = {
        .struct_size = sizeof config, .folder = stress_path(folder, "flight"), .name = "job"};
    REQUIRE_EQ_I64(mkdir(folder, 0700), 0);
    FILE *file = fopen(steps_path(), "w");
    REQUIRE(file != NULL && fputs("my steps to happiness", file) >= 0 && fclose(file) == 0);
    CHECK_EQ_I64(mtprof_flight_start(&config, &flight), MTPROF_EFORMAT);
    CHECK(flight == NULL);
    CHECK(mtprof_flight_current() == NULL);
    struct stat st;
    CHECK(stat(steps_path(), &st) == 0 && st.st_size == 21);
    mtprof_steps *steps = NULL;
    CHECK_EQ_I64(mtprof_steps_open(steps_path(), &steps), MTPROF_EFORMAT);
    CHECK_EQ_I64(mtprof_steps_open(folder, &steps), MTPROF_EFORMAT);
    CHECK_EQ_I64(mtprof_steps_open("/nowhere", &steps), MTPROF_EIO);
    CHECK(steps == NULL);
}

/* ---- the file -------------------------------------------------------------------------------- */

static mtprof_step_op made_ops[MTPROF_STEPS_OPS];

/* A summary as large as they get. */
static mtprof_step_summary make_summary(uint64_t step)
{
    static const char name[] = "void at::native::vectorized_elementwise_kernel<4, at::native::"
                               "CUDAFunctor_add<float>, std::array<char*, 3ul> >(int, float)";
    static mtprof_step_device devices[MTPROF_STEPS_DEVICES];
    for (uint32_t i = 0; i < MTPROF_STEPS_OPS; i++) {
        made_ops[i] = (mtprof_step_op){.name = {name, i == 0 ? sizeof name - 1 : i},
                                       .self_ns = 100 - i,
                                       .total_ns = 200,
                                       .calls = i,
                                       .device = i % 3,
                                       .kind = MTPROF_KIND_OP};
    }
    for (uint32_t i = 0; i < MTPROF_STEPS_DEVICES; i++) {
        devices[i] = (mtprof_step_device){{"CUDA", 4}, i, 7.5, 100, -1};
    }
    return (mtprof_step_summary){.struct_size = sizeof(mtprof_step_summary),
                                 .first = step,
                                 .steps = 1,
                                 .start_ns = (int64_t)(1000 * step),
                                 .duration_ns = 1000,
                                 .events = 12,
                                 .read_share = 0.5,
                                 .rss_bytes = 1 << 20,
                                 .n_ops = MTPROF_STEPS_OPS,
                                 .n_devices = MTPROF_STEPS_DEVICES,
                                 .ops_all = 100,
                                 .devices_all = 9,
                                 .ops = made_ops,
                                 .devices = devices};
}

static const char *made_path(void)
{
    static char path[STRESS_PATH];
    return stress_path(path, "made.steps");
}

static void make_file(uint64_t steps, uint64_t most_bytes)
{
    mtprof__steps_file file;
    REQUIRE_OK(mtprof__steps_file_open(&file, made_path(), most_bytes));
    mtprof__steps_file other;
    CHECK_EQ_I64(mtprof__steps_file_open(&other, made_path(), most_bytes), MTPROF_EBUSY);
    for (uint64_t i = 0; i < steps; i++) {
        const mtprof_step_summary summary = make_summary(i);
        if (mtprof__steps_file_is_full(&file)) {
            REQUIRE_OK(mtprof__steps_file_write(&file));
        }
        mtprof__steps_file_add(&file, &summary);
    }
    REQUIRE_OK(mtprof__steps_file_write(&file));
    mtprof__steps_file_close(&file);
}

/* Reads all of it; how many summaries there were. */
static uint64_t read_file(const char *path, mtprof_steps_info *info)
{
    mtprof_steps *steps = NULL;
    mtprof_step_summary s = {.struct_size = sizeof s};
    uint64_t n = 0;
    REQUIRE_OK(mtprof_steps_open(path, &steps));
    while (mtprof_steps_next(steps, &s) == MTPROF_OK) {
        CHECK_EQ_U64(s.n_ops, MTPROF_STEPS_OPS);
        CHECK_EQ_U64(s.n_devices, MTPROF_STEPS_DEVICES);
        CHECK_EQ_U64(s.ops_all, 100);
        CHECK_EQ_U64(s.start_ns, (int64_t)(1000 * s.first));
        for (uint32_t i = 0; i < s.n_ops; i++) {
            CHECK_EQ_U64(s.ops[i].name.length, i == 0 ? MTPROF_STEPS_NAME_BYTES : i);
            CHECK(memcmp(s.ops[i].name.bytes, made_ops[i].name.bytes, s.ops[i].name.length) == 0);
            CHECK_EQ_U64(s.ops[i].name_cut, i == 0);
            CHECK(s.ops[i].self_ns == made_ops[i].self_ns);
            CHECK_EQ_U64(s.ops[i].device, made_ops[i].device);
        }
        CHECK_EQ_U64(s.devices[7].index, 7);
        CHECK_EQ_U64(s.devices[7].type.length, 4);
        CHECK_EQ_I64(s.devices[7].reserved_memory, -1);
        n++;
    }
    info->struct_size = sizeof *info;
    CHECK_OK(mtprof_steps_get_info(steps, info));
    mtprof_steps_close(steps);
    return n;
}

static uint64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* Whatever part of the file is there, each summary in it is right, and only the last is missing. */
TEST(a_file_that_ends_anywhere)
{
    enum {
        STEPS = 5
    };
    mtprof_steps_info info;
    make_file(STEPS, 1 << 20);
    uint64_t size = size_of(made_path());
    uint64_t record = (size - 40) / STEPS;
    CHECK(record <= MTPROF_STEPS_RECORD_BYTES);
    CHECK_EQ_U64(read_file(made_path(), &info), STEPS);
    for (uint64_t cut = size - 1; cut > 40; cut -= cut % 7 + 1) {
        REQUIRE_EQ_I64(truncate(made_path(), (off_t)cut), 0);
        uint64_t whole = (cut - 40) / record;
        CHECK_EQ_U64(read_file(made_path(), &info), whole);
        CHECK_EQ_U64(info.tail_bytes, cut - 40 - whole * record);
        CHECK_EQ_U64(info.damaged, 0);
    }
    /* The next recorder goes on behind the torn record, which is then counted. */
    REQUIRE_EQ_I64(unlink(made_path()), 0);
    make_file(STEPS, 1 << 20);
    REQUIRE_EQ_I64(truncate(made_path(), (off_t)(40 + record + record / 2 + 3)), 0);
    make_file(2, 1 << 20);
    CHECK_EQ_U64(read_file(made_path(), &info), 3);
    CHECK_EQ_U64(info.damaged, 1);
    CHECK_EQ_U64(info.runs, 2);
    CHECK_EQ_U64(info.tail_bytes, 0);
}

TEST(a_byte_that_is_wrong)
{
    enum {
        STEPS = 4
    };
    mtprof_steps_info info;
    make_file(STEPS, 1 << 20);
    uint64_t size = size_of(made_path());
    uint64_t record = (size - 40) / STEPS;
    int fd = open(made_path(), O_RDWR);
    REQUIRE(fd >= 0);
    for (uint64_t at = 40; at < size; at += 13) {
        unsigned char byte = 0;
        REQUIRE_EQ_I64(pread(fd, &byte, 1, (off_t)at), 1);
        byte ^= 0x10;
        REQUIRE_EQ_I64(pwrite(fd, &byte, 1, (off_t)at), 1);
        CHECK_EQ_U64(read_file(made_path(), &info), STEPS - 1);
        bool last = at >= size - record;
        CHECK_EQ_U64(info.damaged, last ? 0 : 1);
        CHECK_EQ_U64(info.gaps, last || at < 40 + record ? 0 : 1);
        CHECK_EQ_U64(last ? info.tail_bytes : info.bytes_lost, record);
        byte ^= 0x10;
        REQUIRE_EQ_I64(pwrite(fd, &byte, 1, (off_t)at), 1);
    }
    close(fd);
}

/* A reader that came to the end goes on when there is more. */
TEST(a_file_that_grows)
{
    mtprof_steps *steps = NULL;
    mtprof_step_summary s = {.struct_size = sizeof s};
    make_file(2, 1 << 20);
    REQUIRE_OK(mtprof_steps_open(made_path(), &steps));
    CHECK_OK(mtprof_steps_next(steps, &s));
    CHECK_OK(mtprof_steps_next(steps, &s));
    CHECK_EQ_I64(mtprof_steps_next(steps, &s), MTPROF_EEND);
    CHECK_EQ_I64(mtprof_steps_next(steps, &s), MTPROF_EEND);
    make_file(1, 1 << 20);
    CHECK_OK(mtprof_steps_next(steps, &s));
    CHECK_EQ_U64(s.run, 1);
    CHECK_EQ_I64(mtprof_steps_next(steps, &s), MTPROF_EEND);
    mtprof_steps_close(steps);
}

TEST(the_bound_of_the_file)
{
    enum {
        STEPS = 200,
        MOST = 64 << 10
    };
    mtprof_steps_info now, old;
    char path[STRESS_PATH];
    make_file(STEPS, MOST);
    stress_path(path, "made.steps.old");
    CHECK(size_of(made_path()) + size_of(path) <= MOST);
    uint64_t n = read_file(made_path(), &now) + read_file(path, &old);
    CHECK(n * MTPROF_STEPS_RECORD_BYTES > MOST / 2);
    CHECK_EQ_U64(now.damaged + old.damaged + now.tail_bytes + old.tail_bytes, 0);
}
