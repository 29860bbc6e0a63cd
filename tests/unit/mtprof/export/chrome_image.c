/* SPDX-License-Identifier: Apache-2.0
 */
#include "chrome_image.h"

#include "harness/mt_test.h"

#include <stdlib.h>
#include <string.h>

void image_init(chrome_image *image)
{
    image_init_device(image, "NPU");
}

void image_init_device(chrome_image *image, const char *device_type)
{
    *image = (chrome_image){.strings = 0};
    tb_init(&image->b);
    tb_set64(&image->b, 40, 4242); /* pid */
    image->b.chunk_bytes = 64 * 1024;
    tb_chunk(&image->b, MTPROF_STREAM_DEFINITIONS, 0);
    uint32_t name = image_string(image, "main thread");
    uint32_t type = image_string(image, device_type);
    tb_record(&image->b, MTPROF_REC_DEF_THREAD, 0, 1, WORDS(4242, 0x7F00, name));
    tb_record(&image->b, MTPROF_REC_DEF_THREAD, 0, 2, WORDS(4243, 0x7F01, 0));
    tb_record(&image->b, MTPROF_REC_DEF_SOURCE, 0, 1, WORDS(low_high(type, type)));
}

uint32_t image_string(chrome_image *image, const char *text)
{
    tb_string(&image->b, ++image->strings, text);
    return image->strings;
}

void image_control(chrome_image *image, uint64_t gate)
{
    tb_chunk(&image->b, MTPROF_STREAM_CONTROL, 0);
    tb_record(&image->b, MTPROF_REC_WINDOW_OPEN, 0, 1, WORDS(1000, gate, low_high(0, 3)));
    tb_record(&image->b, MTPROF_REC_STEP, 2, 0, WORDS(1000, 3));
}

void image_metadata(chrome_image *image, const char *key, const char *value, bool is_json)
{
    const char *texts[] = {key, value};
    tb_record_texts(&image->b, MTPROF_REC_TRACE_META, is_json, 0, 1,
                    (uint64_t[]){low_high(strlen(key), strlen(value))}, 2, texts);
}

void image_thread(chrome_image *image, uint16_t slot)
{
    if (slot == 1) {
        tb_record(&image->b, MTPROF_REC_WINDOW_CLOSE, 0, 1, WORDS(1000000, 100, 1000));
    }
    image->b.next_ordinal = 0;
    tb_chunk(&image->b, MTPROF_STREAM_THREAD, slot);
    tb_set64(&image->b, image->b.chunk + TB_CHUNK_BASE_TICKS, 1000);
    tb_set32(&image->b, image->b.chunk + TB_CHUNK_EPOCH, 1);
    tb_set32(&image->b, image->b.chunk + TB_CHUNK_THREAD, slot);
}

void image_begin(chrome_image *image, uint64_t ticks, uint16_t flags, uint32_t name)
{
    tb_record(&image->b, MTPROF_REC_BEGIN, flags, name, WORDS(ticks));
    image->b.next_ordinal++;
}

void image_source(chrome_image *image)
{
    tb_chunk(&image->b, MTPROF_STREAM_SOURCE, 1);
    tb_record(&image->b, MTPROF_REC_CLOCK_PAIR, 0, 0, WORDS(1000, 1000));
    tb_record(&image->b, MTPROF_REC_CLOCK_PAIR, 0, 0, WORDS(900000, 900000));
}

mtprof_model *image_model(chrome_image *image)
{
    mtprof_reader *reader = NULL;
    mtprof_model *model = NULL;
    tb_set64(&image->b, TB_AT_END_TICKS, 1000000);
    tb_finish(&image->b, true);
    image->memory = (tb_memory){.bytes = image->b.bytes, .size = image->b.size};
    mtprof_bytes bytes = tb_bytes(&image->memory);
    REQUIRE_OK(mtprof_reader_open_bytes(&bytes, &reader));
    mtprof_problem problem;
    if (mtprof_reader_problem(reader, 0, &problem)) {
        FAIL("the image is damaged at %llu: %s", (unsigned long long)problem.offset,
             problem.message);
    }
    REQUIRE_OK(mtprof_model_take_reader(reader, NULL, &model));
    return model;
}

void image_full_op(chrome_image *image)
{
    image_init(image);
    uint32_t add = image_string(image, "aten::add");
    uint32_t type = image_string(image, "float");
    uint32_t overload = image_string(image, "Tensor");
    uint32_t module = image_string(image, "top.layer");
    uint32_t file = image_string(image, "m.py");
    uint32_t function = image_string(image, "forward");
    uint32_t key = image_string(image, "lr");
    uint32_t step_key = image_string(image, "step");
    tb_record(&image->b, MTPROF_REC_DEF_INPUTS, 0, 1,
              WORDS(low_high(1 | 2 << 8 | 1 << 16, type), 2, 3, 3, 1, low_high(3, 0)));
    tb_record(&image->b, MTPROF_REC_DEF_FRAME, 0, 1, WORDS(low_high(function, file), 7, 0));
    tb_record(&image->b, MTPROF_REC_DEF_STACK, 0, 1, WORDS(low_high(0, 1)));
    tb_record(&image->b, MTPROF_REC_DEF_STACK, 0, 2, WORDS(low_high(1, 1)));
    image_control(image, 0x7FFF);
    image_thread(image, 1);
    image_begin(image, 2000, MTPROF_KIND_OP | MTPROF_FLAG_PAYLOAD, add);
    tb_single(&image->b, MTPROF_REC_INPUTS, (uint64_t)1 << 24);
    tb_record(&image->b, MTPROF_REC_SCALARS, 1, 0, WORDS(1));
    tb_record(&image->b, MTPROF_REC_OPINFO, 0x37, 0, WORDS(9, 0, overload, 640, module));
    tb_single(&image->b, MTPROF_REC_STACK, (uint64_t)2 << 24);
    tb_single(&image->b, MTPROF_REC_MEM_BEFORE, 0 | 1000 << 8);
    uint64_t half = 0x3FE0000000000000;
    tb_record(&image->b, MTPROF_REC_META, MTPROF_META_REAL, key, WORDS(half));
    tb_record(&image->b, MTPROF_REC_META, MTPROF_META_INT, step_key, WORDS(77));
    tb_end(&image->b, 1, 2500);
    tb_single(&image->b, MTPROF_REC_MEM_AFTER, 0 | 400 << 8);
}

static int image_take(void *context, const void *bytes, size_t length)
{
    chrome_image *image = context;
    if (image->fail_with != 0 && image->length + length > image->fail_after) {
        return image->fail_with;
    }
    if (image->length + length + 1 > image->capacity) {
        image->capacity = 2 * (image->length + length + 1);
        image->text = realloc(image->text, image->capacity);
        REQUIRE(image->text != NULL);
    }
    memcpy(image->text + image->length, bytes, length);
    image->length += length;
    image->text[image->length] = '\0';
    return 0;
}

mtprof_output image_output(chrome_image *image)
{
    return (mtprof_output){
        .struct_size = sizeof(mtprof_output), .context = image, .write = image_take};
}

void image_space_out(chrome_image *image)
{
    char *text = malloc(2 * image->length + 1);
    REQUIRE(text != NULL);
    size_t n = 0;
    bool inside = false;
    for (size_t i = 0; i < image->length; i++) {
        char c = image->text[i];
        text[n++] = c;
        if (inside && c == '\\' && i + 1 < image->length) {
            text[n++] = image->text[++i];
        } else if (c == '"') {
            inside = !inside;
        } else if (!inside && (c == ',' || c == ':') && image->text[i + 1] != ' ' &&
                   image->text[i + 1] != '\n') {
            text[n++] = ' ';
        }
    }
    text[n] = '\0';
    free(image->text);
    image->text = text;
    image->length = n;
    image->capacity = n + 1;
}

int image_export(chrome_image *image, mtprof_model *model, enum mtprof_export_format format,
                 const mtprof_export_options *options)
{
    image->length = 0;
    const mtprof_output output = image_output(image);
    return mtprof_export_to(model, format, &output, options);
}

void image_fini(chrome_image *image)
{
    free(image->text);
    tb_fini(&image->b);
}

int count_text(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at += strlen(what)) {
        n++;
    }
    return n;
}
