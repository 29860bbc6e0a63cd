/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto's JSON from traces with known times, line for line.
 */
#include "chrome_image.h"
#include "harness/mt_test.h"
#include "mtprof/export/chrome/export_chrome_impl.h"
#include "mtprof/export/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OP    MTPROF_KIND_OP
#define SCOPE MTPROF_KIND_SCOPE

enum {
    ALL = 0x7FFF,
    NO_STACKS = ALL & ~MTPROF_WANT_STACKS
};

static void export_it(chrome_image *image, mtprof_model *model, uint32_t flavor)
{
    const mtprof_export_options options = {
        .struct_size = sizeof options, .flavor = flavor, .trace_name = "dir/x.json"};
    REQUIRE_OK(image_export(image, model, MTPROF_EXPORT_CHROME, &options));
    CHECK(mtprof__json_valid(image->text, image->length));
    image_space_out(image);
}

/* Whether a whole line is in the trace, with or without a comma after it. */
static void check_line(const chrome_image *image, const char *line)
{
    char wanted[2048];
    snprintf(wanted, sizeof wanted, "\n%s,\n", line);
    if (strstr(image->text, wanted) == NULL) {
        wanted[strlen(wanted) - 2] = '\n';
        wanted[strlen(wanted) - 1] = '\0';
        if (strstr(image->text, wanted) == NULL) {
            FAIL("not there: %s\nin: %s", line, image->text);
        }
    }
}

static const char *first_event(const chrome_image *image)
{
    const char *at = strstr(image->text, "\"traceEvents\": [\n");
    REQUIRE(at != NULL);
    return strchr(at, '\n') + 1;
}

TEST(an_empty_trace_is_a_trace)
{
    chrome_image image;
    image_init(&image);
    image_control(&image,
                  NO_STACKS & ~(uint64_t)MTPROF_WANT_MEMORY & ~(uint64_t)MTPROF_WANT_ALLOCS);
    image_metadata(&image, "distributedInfo", "{\"backend\":\"nccl\",\"rank\":0}", true);
    image_metadata(&image, "process_name", "prog", false);
    image_metadata(&image, "plain", "a \"text\"", false);
    image_metadata(&image, "broken", "{a", true);
    image_metadata(&image, "traceEvents", "[]", true); /* is ours */
    image_thread(&image, 1);
    mtprof_model *model = image_model(&image);
    export_it(&image, model, MTPROF_FLAVOR_TORCH);
    CHECK(strncmp(image.text, "{\n  \"schemaVersion\": 1,\n", 24) == 0);
    check_line(&image, "  \"deviceProperties\": []");
    check_line(&image, "  \"trace_id\": \"0807060504030201100F0E0D0C0B0A09\"");
    check_line(&image, "  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 0}");
    check_line(&image, "  \"plain\": \"a \\\"text\\\"\"");
    check_line(&image, "  \"broken\": \"{a\"");
    check_line(&image, "  \"record_shapes\": 1");
    check_line(&image, "  \"with_flops\": 1");
    check_line(&image, "  \"displayTimeUnit\": \"ms\"");
    check_line(&image, "  \"baseTimeNanoseconds\": 0");
    CHECK_EQ_I64(count_text(image.text, "profile_memory"), 0);
    CHECK_EQ_I64(count_text(image.text, "with_stack"), 0);
    CHECK_EQ_I64(count_text(image.text, "\"traceEvents\""), 1);
    check_line(&image, "{\"ph\": \"X\", \"cat\": \"Trace\", \"ts\": 905.000, \"dur\": 999.000, "
                       "\"pid\": \"Spans\", \"tid\": \"PyTorch Profiler\", \"name\": \"PyTorch "
                       "Profiler (0)\", \"args\": {\"Op count\": 0}}");
    check_line(&image, "{\"name\": \"Record Window End\", \"ph\": \"i\", \"s\": \"g\", \"pid\": "
                       "\"\", \"tid\": \"\", \"ts\": 1904.000}\n  ],\n  \"traceName\": "
                       "\"dir/x.json\"\n}");
    /* Nothing happened: who it did not happen to. */
    check_line(&image, "{\"name\": \"process_name\", \"ph\": \"M\", \"ts\": 905.000, \"pid\": "
                       "4242, \"tid\": 0, \"args\": {\"name\": \"prog\"}}");
    check_line(&image, "{\"name\": \"thread_name\", \"ph\": \"M\", \"ts\": 905.000, \"pid\": 4242, "
                       "\"tid\": 4242, \"args\": {\"name\": \"thread 4242 (prog)\"}}");
    CHECK_EQ_I64(count_text(image.text, "\"name\": \"plain\""), 0);
    export_it(&image, model, MTPROF_FLAVOR_MINDTORCH);
    check_line(&image,
               "{\"name\": \"plain\", \"ph\": \"M\", \"cat\": \"metadata\", \"ts\": 905.000, "
               "\"pid\": 4242, \"tid\": 0, \"args\": {\"value\": \"a \\\"text\\\"\"}}");
    CHECK_EQ_I64(count_text(image.text, "\"name\": \"distributedInfo\""), 1);
    CHECK_EQ_I64(count_text(image.text, "\"name\": \"traceEvents\""), 0);
    mtprof_model_free(model);
    image_fini(&image);
}

TEST(an_op_has_torchs_args_and_ours)
{
    chrome_image image;
    image_full_op(&image);
    mtprof_model *model = image_model(&image);
    export_it(&image, model, MTPROF_FLAVOR_TORCH);
    check_line(&image,
               "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::add\", \"pid\": 4242, "
               "\"tid\": 4242, \"ts\": 906.000, \"dur\": 0.500, \"args\": {\"External id\": 100, "
               "\"Record function id\": 100, \"Ev Idx\": 0, \"Sequence number\": 9, \"Fwd thread "
               "id\": 0, \"Concrete Inputs\": [\"\", \"1\"], \"Input type\": [\"float\", "
               "\"Scalar\"], \"Input Strides\": [[3, 1], []], \"Input Dims\": [[2, 3], []], "
               "\"input_shapes\": [[2, 3], []], \"runtime_name\": \"dispatch_kernel\", "
               "\"runtime_tid\": 4242, \"correlation_id\": 100, \"device_type\": \"CPU\", "
               "\"step\": 3, \"flops\": 640, \"overload_name\": \"Tensor\", \"Module Hierarchy\": "
               "\"top.layer\", \"cpu_memory_allocated_before\": 1000, "
               "\"cpu_memory_allocated_after\": 400, \"cpu_memory_allocated_delta\": -600, "
               "\"Call stack\": \"m.py(7): forward;m.py(7): forward;\", \"stack\": [\"m.py(7): "
               "forward\", \"m.py(7): forward\"], \"lr\": 0.5}}");
    check_line(&image, "  \"with_stack\": 1");
    check_line(&image, "{\"name\": \"thread_name\", \"ph\": \"M\", \"ts\": 905.000, \"pid\": 4242, "
                       "\"tid\": 4242, \"args\": {\"name\": \"thread 4242 (main thread)\"}}");
    CHECK_EQ_I64(count_text(image.text, "\"sampled\": 1"), 2);
    mtprof_model_free(model);
    image_fini(&image);
}

TEST(a_thread_without_a_name_has_its_process_s)
{
    chrome_image image;
    image_init(&image);
    uint32_t name = image_string(&image, "scope");
    image_control(&image, NO_STACKS);
    image_metadata(&image, "process_name", "prog", false);
    image_thread(&image, 2);
    image_begin(&image, 2000, 0, name);
    tb_end(&image.b, 1, 2500);
    mtprof_model *model = image_model(&image);
    export_it(&image, model, MTPROF_FLAVOR_TORCH);
    check_line(&image, "{\"name\": \"thread_name\", \"ph\": \"M\", \"ts\": 905.000, \"pid\": 4242, "
                       "\"tid\": 4243, \"args\": {\"name\": \"thread 4243 (prog)\"}}");
    CHECK_EQ_I64(count_text(image.text, "\"thread_name\""), 1);
    mtprof_model_free(model);
    image_fini(&image);
}

/* An op, in it a runtime call that launches a kernel and a copy, all under an annotation. */
TEST(device_work_is_tied_to_its_launch)
{
    chrome_image image;
    image_init(&image);
    uint32_t note = image_string(&image, "fwd");
    uint32_t op = image_string(&image, "aten::mm");
    uint32_t call = image_string(&image, "launchKernel");
    uint32_t kernel = image_string(&image, "gemm");
    uint32_t copy = image_string(&image, "Memcpy HtoD (Pageable -> Device)");
    uint32_t registers = image_string(&image, "registers per thread");
    uint32_t grid = image_string(&image, "grid");
    const char *sizes = "[1,2,1]";
    image_control(&image, NO_STACKS);
    image_thread(&image, 1);
    image_begin(&image, 2000, SCOPE, note);
    image_begin(&image, 2100, OP | MTPROF_FLAG_DEVICE, op);
    image_begin(&image, 2200, MTPROF_KIND_RUNTIME | MTPROF_FLAG_LAUNCH, call);
    tb_end(&image.b, 1, 2300);
    tb_record(&image.b, MTPROF_REC_LAUNCH, MTPROF_FLAG_LAUNCH, 0, WORDS(2400, low_high(0, 7)));
    image.b.next_ordinal++;
    tb_end(&image.b, 3, 2500);
    tb_end(&image.b, 4, 2600);
    image_source(&image);
    uint64_t key = (uint64_t)1 << 40;
    tb_record(&image.b, MTPROF_REC_ACTIVITY, MTPROF_ACTIVITY_KERNEL, kernel,
              WORDS(3000, 4000, key | 2, low_high(0, 7), 77, 0));
    tb_record(&image.b, MTPROF_REC_META, MTPROF_META_INT, registers, WORDS(72));
    tb_record_texts(&image.b, MTPROF_REC_META, MTPROF_META_TEXT, grid, 1, (uint64_t[]){7}, 1,
                    &sizes);
    tb_record(&image.b, MTPROF_REC_ACTIVITY, MTPROF_ACTIVITY_COPY, copy,
              WORDS(5000, 5100, key | 3, low_high(0, 7), 78, 256));
    mtprof_model *model = image_model(&image);
    export_it(&image, model, MTPROF_FLAVOR_TORCH);
    check_line(&image, "{\"ph\": \"X\", \"cat\": \"privateuse1_runtime\", \"name\": "
                       "\"launchKernel\", \"pid\": 4242, \"tid\": 4242, \"ts\": 906.200, \"dur\": "
                       "0.100, \"args\": {\"Ev Idx\": 2, \"External id\": 101, \"correlation\": "
                       "102, \"device_type\": \"CPU\", \"step\": 3}}");
    check_line(&image, "{\"ph\": \"X\", \"cat\": \"privateuse1_runtime\", \"name\": \"launch\", "
                       "\"pid\": 4242, \"tid\": 4242, \"ts\": 906.400, \"dur\": 0.000, \"args\": "
                       "{\"correlation\": 103, \"External id\": 101, \"Ev Idx\": 3, "
                       "\"device_type\": \"CPU\", \"step\": 3, \"parent_id\": 101}}");
    check_line(&image, "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"pid\": 0, "
                       "\"tid\": 7, \"ts\": 907.000, \"dur\": 1.000, \"args\": {\"External id\": "
                       "101, \"queued\": 0, \"device\": 0, \"context\": 0, \"stream\": 7, "
                       "\"correlation\": 102, \"device_type\": \"NPU\", \"step\": 3, "
                       "\"registers per thread\": 72, \"grid\": [1, 2, 1]}}");
    check_line(&image,
               "{\"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy HtoD (Pageable "
               "-> Device)\", \"pid\": 0, \"tid\": 7, \"ts\": 909.000, \"dur\": 0.100, "
               "\"args\": {\"External id\": 101, \"device\": 0, \"context\": 0, \"stream\": "
               "7, \"correlation\": 103, \"bytes\": 256, \"memory bandwidth (GB/s)\": 2.56, "
               "\"device_type\": \"NPU\", \"step\": 3}}");
    check_line(&image, "{\"ph\": \"s\", \"id\": 102, \"pid\": 4242, \"tid\": 4242, \"ts\": "
                       "906.200, \"cat\": \"ac2g\", \"name\": \"ac2g\"}");
    check_line(&image, "{\"ph\": \"f\", \"id\": 102, \"pid\": 0, \"tid\": 7, \"ts\": 907.000, "
                       "\"cat\": \"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\"}");
    check_line(&image, "{\"ph\": \"s\", \"id\": 103, \"pid\": 4242, \"tid\": 4242, \"ts\": "
                       "906.400, \"cat\": \"ac2g\", \"name\": \"ac2g\"}");
    CHECK_EQ_I64(count_text(image.text, "\"ac2g\", \"name\""), 4);
    check_line(&image, "{\"ph\": \"X\", \"cat\": \"gpu_user_annotation\", \"name\": \"fwd\", "
                       "\"pid\": 0, \"tid\": 7, \"ts\": 906.999, \"dur\": 2.102, \"args\": "
                       "{\"External id\": 100, \"step\": 3}}");
    CHECK(strstr(image.text, "\"name\": \"aten::mm\"") != NULL);
    CHECK_EQ_I64(count_text(image.text, "\"device_type\": \"NPU\""), 3);
    export_it(&image, model, MTPROF_FLAVOR_MINDTORCH); /* what is "runtime" has a correlation_id */
    CHECK_EQ_I64(count_text(image.text, "\"correlation\": 102, \"correlation_id\": 102"), 1);
    CHECK_EQ_I64(count_text(image.text, "\"Ev Idx\": 3, \"correlation_id\": 103"), 1);
    export_it(&image, model, MTPROF_FLAVOR_TORCH);
    check_line(&image, "{\"name\": \"process_labels\", \"ph\": \"M\", \"ts\": 905.000, \"pid\": 0, "
                       "\"tid\": 0, \"args\": {\"labels\": \"NPU 0\"}}");
    check_line(&image, "{\"name\": \"thread_name\", \"ph\": \"M\", \"ts\": 905.000, \"pid\": 0, "
                       "\"tid\": 7, \"args\": {\"name\": \"stream 7 \"}}");
    mtprof_model_free(model);
    image_fini(&image);
}

/* Wrapper and node share the numbers: the arrow is between the innermost ones
 * (torch-contract 5.7.3). */
TEST(forward_and_backward_are_joined)
{
    chrome_image image;
    image_init(&image);
    uint32_t outer = image_string(&image, "aten::linear");
    uint32_t inner = image_string(&image, "aten::addmm");
    uint32_t evaluate = image_string(&image, "evaluate_function: AddmmBackward0");
    uint32_t node = image_string(&image, "AddmmBackward0");
    image_control(&image, NO_STACKS);
    image_thread(&image, 1);
    image_begin(&image, 2000, OP | MTPROF_FLAG_PAYLOAD, outer);
    tb_record(&image.b, MTPROF_REC_OPINFO, 0x3, 0, WORDS(5, 0));
    image_begin(&image, 2100, OP | MTPROF_FLAG_PAYLOAD, inner);
    tb_record(&image.b, MTPROF_REC_OPINFO, 0x1, 0, WORDS(5));
    tb_end(&image.b, 1, 2200);
    tb_end(&image.b, 2, 2300);
    image_thread(&image, 2);
    image_begin(&image, 3000, OP | MTPROF_FLAG_PAYLOAD, evaluate);
    tb_record(&image.b, MTPROF_REC_OPINFO, 0x3, 0, WORDS(5, 1));
    image_begin(&image, 3100, OP | MTPROF_FLAG_PAYLOAD, node);
    tb_record(&image.b, MTPROF_REC_OPINFO, 0x3, 0, WORDS(5, 1));
    tb_end(&image.b, 1, 3200);
    image_begin(&image, 3250, OP | MTPROF_FLAG_PAYLOAD, node); /* another thread's number */
    tb_record(&image.b, MTPROF_REC_OPINFO, 0x3, 0, WORDS(5, 2));
    tb_end(&image.b, 1, 3260);
    tb_end(&image.b, 3, 3300);
    mtprof_model *model = image_model(&image);
    export_it(&image, model, MTPROF_FLAVOR_TORCH);
    check_line(&image, "{\"ph\": \"s\", \"id\": 1, \"pid\": 4242, \"tid\": 4242, \"ts\": 906.100, "
                       "\"cat\": \"fwdbwd\", \"name\": \"fwdbwd\"}");
    check_line(&image, "{\"ph\": \"f\", \"id\": 1, \"pid\": 4242, \"tid\": 4243, \"ts\": 907.100, "
                       "\"cat\": \"fwdbwd\", \"name\": \"fwdbwd\", \"bp\": \"e\"}");
    CHECK_EQ_I64(count_text(image.text, "\"fwdbwd\", \"name\""), 2);
    CHECK_EQ_I64(count_text(image.text, "\"Fwd thread id\": 1"), 2);
    mtprof_model_free(model);
    image_fini(&image);
}

/* Many pending forward ops, more than there is room for: no arrow is wrong. */
TEST(arrows_are_never_wrong)
{
    enum {
        N = 3000
    };
    chrome_image image;
    image_init(&image);
    uint32_t op = image_string(&image, "op");
    image_control(&image, NO_STACKS);
    image.b.chunk_bytes = 1 << 20;
    image_thread(&image, 1);
    for (uint64_t i = 0; i < 2 * N; i++) { /* forward 0 … N-1, backward N-1 … 0 */
        bool back = i >= N;
        uint64_t number = back ? 2 * N - 1 - i : i;
        image_begin(&image, 2000 + 10 * i, OP | MTPROF_FLAG_PAYLOAD, op);
        tb_record(&image.b, MTPROF_REC_OPINFO, 0x3, 0, WORDS(number * 1024, back));
        tb_end(&image.b, 1, 2005 + 10 * i);
    }
    mtprof_model *model = image_model(&image);
    export_it(&image, model, MTPROF_FLAVOR_TORCH);
    int flows = 0;
    for (const char *at = image.text; (at = strstr(at, "{\"ph\": \"s\"")) != NULL; at++) {
        const char *other = strchr(at, '\n') + 1;
        REQUIRE(strncmp(other, "{\"ph\": \"f\"", 10) == 0);
        CHECK_EQ_U64(strtoul(strstr(at, "\"id\": ") + 6, NULL, 10),
                     strtoul(strstr(other, "\"id\": ") + 6, NULL, 10));
        double from = strtod(strstr(at, "\"ts\": ") + 6, NULL) - 906;
        double to = strtod(strstr(other, "\"ts\": ") + 6, NULL) - 906;
        CHECK_NEAR_F64(from + to, 10 * (2 * N - 1) / 1e3, 1e-6);
        flows++;
    }
    CHECK(flows > 0);
    mtprof_model_free(model);
    image_fini(&image);
}

/* An allocation inside the first op would come first in time; scripts look at traceEvents[0]. */
TEST(the_first_event_is_an_op_or_scope)
{
    chrome_image image;
    image_init(&image);
    uint32_t outer = image_string(&image, "outer");
    uint32_t call = image_string(&image, "call");
    uint32_t point = image_string(&image, "point");
    image_control(&image, NO_STACKS);
    image_thread(&image, 1);
    tb_record(&image.b, MTPROF_REC_INSTANT, 0, point, WORDS(1900));
    image_begin(&image, 2000, OP, outer);
    tb_record(&image.b, MTPROF_REC_ALLOC, 0, 50, WORDS(0xABC0, 4096, 8192));
    image_begin(&image, 2100, MTPROF_KIND_RUNTIME, call);
    tb_end(&image.b, 1, 2200);
    tb_record(&image.b, MTPROF_REC_ALLOC, 0, 50, WORDS(0xABC0, (uint64_t)-4096, 4096));
    tb_record(&image.b, MTPROF_REC_OUT_OF_MEMORY, 0, 0, WORDS(2260, 1 << 20, 4096));
    tb_end(&image.b, 2, 2300);
    mtprof_model *model = image_model(&image);
    export_it(&image, model, MTPROF_FLAVOR_TORCH);
    const char *first = "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"outer\"";
    CHECK(strncmp(first_event(&image), first, strlen(first)) == 0);
    CHECK_EQ_I64(count_text(image.text, "\"name\": \"outer\""), 1);
    CHECK_EQ_I64(count_text(image.text, "\"name\": \"call\""), 1);
    check_line(&image, "{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\", \"name\": "
                       "\"[memory]\", \"pid\": 4242, \"tid\": 4242, \"ts\": 906.050, \"args\": "
                       "{\"Device Type\": 0, \"Device Id\": -1, \"Addr\": 43968, \"Bytes\": 4096, "
                       "\"Total Allocated\": 8192, \"Total Reserved\": 0, \"step\": 3, "
                       "\"correlation_id\": 100}}");
    CHECK_EQ_I64(count_text(image.text, "\"Bytes\": -4096"), 1);
    check_line(&image,
               "{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\", \"name\": "
               "\"[OutOfMemory]\", \"pid\": 4242, \"tid\": 4242, \"ts\": 906.260, \"args\": "
               "{\"Device Type\": 0, \"Device Id\": -1, \"Bytes\": 1048576, "
               "\"Total Allocated\": 4096, \"Total Reserved\": 0, \"step\": 3, "
               "\"correlation_id\": 0}}");
    mtprof_model_free(model);
    image_fini(&image);
}

TEST(marks_and_what_does_not_nest)
{
    chrome_image image;
    image_init(&image);
    uint32_t name = image_string(&image, "mark");
    uint32_t task = image_string(&image, "task");
    image_control(&image, NO_STACKS);
    image_thread(&image, 1);
    image_begin(&image, 2000, SCOPE, name);
    tb_record(&image.b, MTPROF_REC_COUNTER, 0, name, WORDS(2100, (uint64_t)-7));
    tb_record(&image.b, MTPROF_REC_COUNTER, 1, name, WORDS(2110, 0x3FF8000000000000));
    tb_record(&image.b, MTPROF_REC_FLOW, 0, name, WORDS(2120, 55));
    tb_record(&image.b, MTPROF_REC_FLOW, 1, name, WORDS(2130, (uint64_t)1 << 60));
    tb_record(&image.b, MTPROF_REC_FLOW, 2, name, WORDS(2140, 55));
    tb_record(&image.b, MTPROF_REC_INSTANT, 0, name, WORDS(2150));
    image_begin(&image, 2160, SCOPE | MTPROF_FLAG_ASYNC, task);
    tb_end(&image.b, 2, 2300); /* the outer one ends first */
    tb_end(&image.b, 1, 2400);
    mtprof_model *model = image_model(&image);
    export_it(&image, model, MTPROF_FLAVOR_TORCH);
    static const char place[] = "\"pid\": 4242, \"tid\": 4242, \"ts\": ";
    char line[512];
    snprintf(line, sizeof line,
             "{\"ph\": \"C\", \"name\": \"mark\", %s906.100, \"args\": {\"value\": -7}}", place);
    check_line(&image, line);
    snprintf(line, sizeof line,
             "{\"ph\": \"C\", \"name\": \"mark\", %s906.110, \"args\": {\"value\": 1.5}}", place);
    check_line(&image, line);
    snprintf(line, sizeof line,
             "{\"ph\": \"s\", \"id\": 55, %s906.120, \"cat\": \"flow\", \"name\": \"mark\"}",
             place);
    check_line(&image, line);
    snprintf(line, sizeof line,
             "{\"ph\": \"t\", \"id\": \"1152921504606846976\", %s906.130, \"cat\": \"flow\", "
             "\"name\": \"mark\"}",
             place);
    check_line(&image, line);
    snprintf(line, sizeof line,
             "{\"ph\": \"f\", \"id\": 55, %s906.140, \"cat\": \"flow\", \"name\": \"mark\", "
             "\"bp\": \"e\"}",
             place);
    check_line(&image, line);
    snprintf(line, sizeof line,
             "{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\", \"name\": \"mark\", "
             "%s906.150, \"args\": {\"parent_id\": 100, \"step\": 3}}",
             place);
    check_line(&image, line);
    snprintf(line, sizeof line,
             "{\"ph\": \"b\", \"cat\": \"user_annotation\", \"name\": \"task\", \"id\": 101, "
             "%s906.160, \"args\": {\"External id\": 101, \"Record function id\": 101, \"Ev Idx\": "
             "1, \"device_type\": \"CPU\", \"step\": 3, \"parent_id\": 100, \"async\": 1}}",
             place);
    check_line(&image, line);
    snprintf(line, sizeof line,
             "{\"ph\": \"e\", \"cat\": \"user_annotation\", \"name\": \"task\", \"id\": 101, "
             "%s906.400}",
             place);
    check_line(&image, line);
    mtprof_model_free(model);
    image_fini(&image);
}

/* FR1 to FR3 of frame_stack.h: main>f (op a), main>f>g (op b), main at another line>h (op c). */
TEST(python_spans_are_rebuilt_from_stacks)
{
    chrome_image image;
    image_init(&image);
    uint32_t op = image_string(&image, "op");
    uint32_t file = image_string(&image, "m.py");
    uint32_t main_ = image_string(&image, "main");
    uint32_t f = image_string(&image, "f");
    uint32_t g = image_string(&image, "nn.Module: Linear_4");
    uint32_t h = image_string(&image, "h");
    const struct {
        uint32_t function;
        uint64_t line;
    } frames[] = {{main_, 1}, {f, 2}, {g, 3}, {main_, 9}, {h, 5}};
    for (uint32_t i = 0; i < 5; i++) {
        tb_record(&image.b, MTPROF_REC_DEF_FRAME, 0, i + 1,
                  WORDS(low_high(frames[i].function, file), frames[i].line, 0));
    }
    static const uint32_t nodes[][2] = {{0, 1}, {1, 2}, {2, 3}, {0, 4}, {4, 5}};
    for (uint32_t i = 0; i < 5; i++) {
        tb_record(&image.b, MTPROF_REC_DEF_STACK, 0, i + 1,
                  WORDS(low_high(nodes[i][0], nodes[i][1])));
    }
    image_control(&image, ALL);
    image_thread(&image, 1);
    static const uint32_t stacks[] = {2, 3, 5};
    for (uint64_t i = 0; i < 3; i++) {
        image_begin(&image, 2000 + 1000 * i, OP | MTPROF_FLAG_PAYLOAD, op);
        tb_single(&image.b, MTPROF_REC_STACK, (uint64_t)stacks[i] << 24);
        tb_end(&image.b, 1, 2500 + 1000 * i);
    }
    mtprof_model *model = image_model(&image);
    export_it(&image, model, MTPROF_FLAVOR_TORCH);
    static const char *const lines[] = {
        "\"m.py(1): main\", \"pid\": 4242, \"tid\": 4242, \"ts\": 905.998, \"dur\": 2.504, "
        "\"args\": {\"Python id\": 1, \"Python parent id\": null, \"sampled\": 1}}",
        "\"m.py(2): f\", \"pid\": 4242, \"tid\": 4242, \"ts\": 905.999, \"dur\": 1.503, "
        "\"args\": {\"Python id\": 2, \"Python parent id\": 1, \"sampled\": 1}}",
        "\"nn.Module: Linear_4\", \"pid\": 4242, \"tid\": 4242, \"ts\": 906.999, \"dur\": 0.502, "
        "\"args\": {\"Python id\": 3, \"Python parent id\": 2, \"Python module id\": 4, "
        "\"sampled\": 1}}",
        "\"m.py(5): h\", \"pid\": 4242, \"tid\": 4242, \"ts\": 907.999, \"dur\": 0.502, "
        "\"args\": {\"Python id\": 4, \"Python parent id\": 1, \"sampled\": 1}}"};
    for (size_t i = 0; i < 4; i++) {
        char line[512];
        snprintf(line, sizeof line, "{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": %s",
                 lines[i]);
        check_line(&image, line);
    }
    CHECK_EQ_I64(count_text(image.text, "python_function"), 4);
    mtprof_model_free(model);
    image_fini(&image);
}

/* Functions that were traced are events, and nothing is rebuilt in addition. */
TEST(traced_functions_are_spans_of_their_own)
{
    chrome_image image;
    image_init(&image);
    uint32_t outer = image_string(&image, "m.py(1): main");
    uint32_t inner = image_string(&image, "m.py(2): f");
    uint32_t op = image_string(&image, "op");
    image_control(&image, ALL);
    image_thread(&image, 1);
    image_begin(&image, 2000, MTPROF_KIND_FUNCTION, outer);
    image_begin(&image, 2100, OP, op);
    image_begin(&image, 2200, MTPROF_KIND_FUNCTION, inner);
    tb_end(&image.b, 1, 2300);
    tb_end(&image.b, 2, 2400);
    tb_end(&image.b, 3, 2500);
    mtprof_model *model = image_model(&image);
    export_it(&image, model, MTPROF_FLAVOR_TORCH);
    check_line(
        &image,
        "{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"m.py(2): f\", "
        "\"pid\": 4242, \"tid\": 4242, \"ts\": 906.200, \"dur\": 0.100, \"args\": "
        "{\"Python id\": 2, \"Python parent id\": 1, \"Python thread\": 0, \"Ev Idx\": 2, \"step\": 3}}");
    check_line(
        &image,
        "{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"m.py(1): main\", "
        "\"pid\": 4242, \"tid\": 4242, \"ts\": 906.000, \"dur\": 0.500, \"args\": "
        "{\"Python id\": 1, \"Python parent id\": null, \"Python thread\": 0, \"Ev Idx\": 0, \"step\": "
        "3}}");
    CHECK_EQ_I64(count_text(image.text, "sampled"), 0);
    mtprof_model_free(model);
    image_fini(&image);
}

/* Names, types, keys and values of any bytes, short and long, known and in full: always JSON, and
 * what was no UTF-8 is counted. */
TEST(any_bytes_give_valid_json)
{
    enum {
        NAMES = 150
    };
    uint64_t seed = mt_test_seed();
    chrome_image image;
    image_init(&image);
    uint32_t names[NAMES];
    static char text[3000];
    image.b.chunk_bytes = 1 << 20;
    tb_chunk(&image.b, MTPROF_STREAM_DEFINITIONS, 0);
    for (int i = 0; i < NAMES; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        size_t n = i % 10 == 0 ? 1400 + (seed >> 33) % 1500 : (seed >> 33) % 40;
        for (size_t k = 0; k < n; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            text[k] = (char)(1 + (seed >> 40) % 255);
        }
        text[n] = '\0';
        names[i] = image_string(&image, text);
        tb_record(&image.b, MTPROF_REC_DEF_INPUTS, 0, (uint32_t)i + 1,
                  WORDS(low_high(1, names[i]), low_high(6, 0), low_high(7, names[i / 2]),
                        low_high(6, 0)));
    }
    image_control(&image, NO_STACKS);
    image_metadata(&image, text, text, false);
    image_metadata(&image, "j", text, true);
    image_thread(&image, 1);
    for (uint64_t i = 0; i < NAMES; i++) {
        const char *full = text;
        image_begin(&image, 2000 + 100 * i, OP | MTPROF_FLAG_PAYLOAD, i % 7 == 0 ? 0 : names[i]);
        if (i % 7 == 0) {
            tb_record_texts(&image.b, MTPROF_REC_NAME, 0, 0, 1, (uint64_t[]){strlen(text)}, 1,
                            &full);
        }
        tb_single(&image.b, MTPROF_REC_INPUTS, (i + 1) << 24);
        tb_record(&image.b, MTPROF_REC_SCALARS, 2, 0, WORDS(names[i], names[NAMES - 1 - i]));
        tb_record(&image.b, MTPROF_REC_OPINFO, 0x24, 0, WORDS(names[i], names[NAMES - 1 - i]));
        tb_record(&image.b, MTPROF_REC_META, MTPROF_META_STRING, names[i], WORDS(names[i / 3]));
        tb_end(&image.b, 1, 2050 + 100 * i);
    }
    mtprof_model *model = image_model(&image);
    mtprof_export_report report = {.struct_size = sizeof report};
    mtprof_export_options options = {.struct_size = sizeof options, .report = &report};
    for (uint32_t flavor = 0; flavor <= 1; flavor++) {
        options.flavor = flavor;
        REQUIRE_OK(image_export(&image, model, MTPROF_EXPORT_CHROME, &options));
        CHECK(mtprof__json_valid(image.text, image.length));
        CHECK_EQ_U64(report.events, NAMES);
        CHECK(report.replaced > 1000);
    }
    /* The same bytes again: cached texts are as good as new ones. */
    size_t length = image.length;
    char *before = malloc(length + 1);
    REQUIRE(before != NULL);
    memcpy(before, image.text, length + 1);
    REQUIRE_OK(image_export(&image, model, MTPROF_EXPORT_CHROME, &options));
    CHECK(image.length == length && memcmp(before, image.text, length) == 0);
    free(before);
    mtprof_model_free(model);
    image_fini(&image);
}

/* Where each of some texts is, in order of the file. */
static void check_order(const chrome_image *image, const char *const *texts, size_t n)
{
    const char *at = image->text;
    for (size_t i = 0; i < n; i++) {
        const char *found = strstr(at, texts[i]);
        if (found == NULL) {
            FAIL("%s does not follow the one before it\nin: %s", texts[i], image->text);
            return;
        }
        at = found + 1;
    }
}

/* Viewers draw the first of equal spans outside. */
TEST(spans_of_equal_times_stand_outermost_first)
{
    chrome_image image;
    image_init(&image);
    static const char *const names[] = {"first", "a", "b", "c", "d", "e", "f"};
    uint32_t strings[7];
    for (size_t i = 0; i < 7; i++) {
        strings[i] = image_string(&image, names[i]);
    }
    image_control(&image, NO_STACKS);
    image_thread(&image, 1);
    image_begin(&image, 1500, SCOPE, strings[0]);
    tb_end(&image.b, 1, 1600);
    for (size_t i = 1; i < 4; i++) { /* a, b, c: begin together, b and c end together */
        image_begin(&image, 2000, i == 2 ? OP : SCOPE, strings[i]);
    }
    tb_end(&image.b, 1, 3000);
    tb_end(&image.b, 2, 3000);
    image_begin(&image, 3000, SCOPE, strings[0]); /* so that b cannot be shown to end later */
    tb_end(&image.b, 1, 3100);
    tb_end(&image.b, 4, 4000);
    image_begin(&image, 5000, SCOPE, strings[4]); /* d with e and f in it, all of no length */
    image_begin(&image, 5000, SCOPE, strings[5]);
    tb_end(&image.b, 1, 5000);
    image_begin(&image, 5000, SCOPE, strings[6]);
    tb_end(&image.b, 1, 5000);
    tb_end(&image.b, 3, 5000);
    mtprof_model *model = image_model(&image);
    export_it(&image, model, MTPROF_FLAVOR_TORCH);
    static const char *const order[] = {"\"name\": \"first\"", "\"name\": \"b\"", "\"name\": \"c\"",
                                        "\"name\": \"a\"",     "\"name\": \"d\"", "\"name\": \"e\"",
                                        "\"name\": \"f\""};
    check_order(&image, order, 7);
    check_line(&image, "{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"c\", "
                       "\"pid\": 4242, \"tid\": 4242, \"ts\": 906.000, \"dur\": 1.000, "
                       "\"args\": {\"External id\": 103, \"Record function id\": 103, "
                       "\"Ev Idx\": 3, \"device_type\": \"CPU\", \"step\": 3, "
                       "\"parent_id\": 102}}");
    export_it(&image, model, MTPROF_FLAVOR_MINDTORCH);
    check_order(&image, order, 7);
    mtprof_model_free(model);
    image_fini(&image);
}

/* Of a pile of spans in one nanosecond a part is held back; the rest is written. */
TEST(too_many_equal_spans_are_counted)
{
    chrome_image image;
    image_init(&image);
    uint32_t name = image_string(&image, "a");
    const uint64_t n = 6000;
    image_control(&image, NO_STACKS);
    image.b.chunk_bytes = 256 * 1024;
    image_thread(&image, 1);
    for (uint64_t i = 0; i < n; i++) {
        image_begin(&image, 2000, SCOPE, name);
    }
    for (uint64_t i = 0; i < n; i++) {
        tb_end(&image.b, (uint16_t)(i + 1), 2000);
    }
    mtprof_model *model = image_model(&image);
    mtprof_export_report report = {.struct_size = sizeof report};
    const mtprof_export_options options = {
        .struct_size = sizeof options, .trace_name = "x", .report = &report};
    REQUIRE_OK(image_export(&image, model, MTPROF_EXPORT_CHROME, &options));
    CHECK(mtprof__json_valid(image.text, image.length));
    CHECK_EQ_U64(report.events, n);
    CHECK(report.unordered > 0 && report.unordered < n);
    CHECK_EQ_I64(count_text(image.text, "\"name\":\"a\""), (int64_t)n);
    mtprof_model_free(model);
    image_fini(&image);
}

/* Doubles round: of equal ends the outer one is shown a nanosecond later, where nothing is in its
 * way, and says when it was. */
TEST(equal_ends_are_parted)
{
    chrome_image image;
    image_init(&image);
    uint32_t outer = image_string(&image, "outer");
    uint32_t inner = image_string(&image, "inner");
    image_control(&image, NO_STACKS);
    image_thread(&image, 1);
    for (uint64_t i = 0; i < 2; i++) { /* the second one has a neighbour at its end */
        image_begin(&image, 2000 + 1000 * i, OP, outer);
        image_begin(&image, 2100 + 1000 * i, OP, inner);
        tb_end(&image.b, 1, 2500 + 1000 * i);
        tb_end(&image.b, 2, 2500 + 1000 * i);
    }
    image_begin(&image, 3500, OP, inner);
    tb_end(&image.b, 1, 3600);
    mtprof_model *model = image_model(&image);
    export_it(&image, model, MTPROF_FLAVOR_TORCH);
    CHECK_EQ_I64(count_text(image.text, "\"ts\": 906.000, \"dur\": 0.501"), 1);
    CHECK_EQ_I64(count_text(image.text, "\"recorded_ts\": 906.000, \"recorded_dur\": 0.500"), 1);
    CHECK_EQ_I64(count_text(image.text, "\"ts\": 907.000, \"dur\": 0.500"), 1);
    mtprof_model_free(model);
    image_fini(&image);
}

/* On the device's side too: a kernel's time is that of each annotation around it. */
TEST(device_annotations_stand_outermost_first)
{
    chrome_image image;
    image_init(&image);
    uint32_t outer = image_string(&image, "outer");
    uint32_t middle = image_string(&image, "middle");
    uint32_t inner = image_string(&image, "inner");
    uint32_t kernel = image_string(&image, "gemm");
    image_control(&image, NO_STACKS);
    image_thread(&image, 1);
    image_begin(&image, 2000, SCOPE, outer);
    image_begin(&image, 2100, SCOPE, middle);
    image_begin(&image, 2200, SCOPE, inner);
    image_begin(&image, 2300, OP | MTPROF_FLAG_LAUNCH, kernel);
    tb_end(&image.b, 1, 2400);
    tb_end(&image.b, 2, 2500);
    tb_end(&image.b, 3, 2600);
    tb_end(&image.b, 4, 2700);
    image_source(&image);
    tb_record(&image.b, MTPROF_REC_ACTIVITY, MTPROF_ACTIVITY_KERNEL, kernel,
              WORDS(3000, 4000, (uint64_t)1 << 40 | 3, low_high(0, 7), 77, 0));
    mtprof_model *model = image_model(&image);
    export_it(&image, model, MTPROF_FLAVOR_TORCH);
    static const char *const order[] = {
        "\"gpu_user_annotation\", \"name\": \"outer\"",
        "\"gpu_user_annotation\", \"name\": \"middle\"",
        "\"gpu_user_annotation\", \"name\": \"inner\"",
    };
    check_order(&image, order, 3);
    mtprof_model_free(model);
    image_fini(&image);
}

/* Ids and times are written with the digits of those before, where they are near them. */
TEST(numbers_after_numbers)
{
    static const uint64_t numbers[] = {0,
                                       9,
                                       10,
                                       9999,
                                       10000,
                                       10001,
                                       19999,
                                       20000,
                                       9999,
                                       5,
                                       20001,
                                       123456789,
                                       123456790,
                                       99999999,
                                       100000000,
                                       (uint64_t)1 << 53,
                                       9999999999999999u,
                                       10000000000000000u,
                                       10000000000000001u,
                                       9999999999999998u,
                                       UINT64_MAX,
                                       20002};
    mtprof__slow_number number = {0};
    mtprof__chrome *chrome = calloc(1, sizeof *chrome);
    REQUIRE(chrome != NULL);
    for (size_t i = 0; i < MT_COUNT(numbers); i++) {
        char got[64], expected[64];
        uint64_t ns = numbers[i] & INT64_MAX;
        *mtprof__put_slow(&number, got, numbers[i]) = '\0';
        snprintf(expected, sizeof expected, "%llu", (unsigned long long)numbers[i]);
        CHECK_EQ_STR(got, expected);
        *mtprof__chrome_put_ns(chrome, got, (int64_t)ns) = '\0';
        snprintf(expected, sizeof expected, "%llu.%03u", (unsigned long long)(ns / 1000),
                 (unsigned)(ns % 1000));
        CHECK_EQ_STR(got, expected);
    }
    free(chrome);
}
