/* SPDX-License-Identifier: Apache-2.0
 *
 * See sim_table.h.
 */
#include "support/devices/sim_table.h"

#include "backends/cpu/cpu_backend.h"
#include "harness/mt_test.h"

#include <dlfcn.h>
#include <string.h>

enum {
    MAX_SETTINGS = 8
};

const mt_backend *npu;
const mt_sim *npu_controls;

static struct {
    const char *name, *value;
} settings[MAX_SETTINGS];
static size_t n_settings;

void set_npu(const char *name, const char *value)
{
    size_t i = 0;
    while (i < n_settings && strcmp(settings[i].name, name) != 0) {
        i++;
    }
    REQUIRE(i < MAX_SETTINGS);
    n_settings += i == n_settings;
    settings[i].name = name;
    settings[i].value = value;
}

static const char *find_setting(const char *name)
{
    for (size_t i = 0; i < n_settings; i++) {
        if (strcmp(settings[i].name, name) == 0) {
            return settings[i].value;
        }
    }
    return NULL;
}

int try_open_npu(void)
{
    static mt_backend_host host = {.struct_size = sizeof host,
                                   .version = MT_BACKEND_VERSION,
                                   .fail = mt_fail,
                                   .last_error = mt_last_error,
                                   .setting = find_setting};
    mt_backend_open_fn *open;
    host.cpu = mt__cpu_backend();
    void *file = dlopen(MT_SIM_FILE, RTLD_NOW | RTLD_LOCAL);
    if (file == NULL) {
        FAIL("%s", dlerror());
        return MT_ERUNTIME;
    }
    void *symbol = dlsym(file, "mt_backend_open");
    REQUIRE(symbol != NULL);
    memcpy(&open, &symbol, sizeof open);
    int status = open(&host, &npu);
    if (status == MT_OK) {
        npu_controls = npu->extension(npu->context, "sim");
        REQUIRE(npu_controls != NULL);
    }
    return status;
}

void open_npu(void)
{
    set_npu("SIM_MEMORY", "64M");
    REQUIRE_EQ_I64(try_open_npu(), MT_OK);
}

void *npu_take(uint32_t device, size_t bytes)
{
    void *memory = NULL;
    REQUIRE_OK(npu->allocate(npu->context, device, bytes, &memory));
    return memory;
}

int npu_copy(mt_backend_stream *stream, mt_copy kind, void *to, const void *from, size_t bytes,
             uint64_t correlation)
{
    mt_copy_call call = {.struct_size = sizeof call,
                         .kind = kind,
                         .to = to,
                         .from = from,
                         .bytes = bytes,
                         .correlation = correlation};
    return npu->copy(npu->context, stream, &call);
}

static int launch(mt_backend_stream *stream, mt_kernel_call *call)
{
    call->struct_size = sizeof *call;
    return npu->kernels[call->kernel](npu->context, stream, call);
}

int npu_add(mt_backend_stream *stream, void *out, void *a, void *b, int64_t n, uint64_t correlation)
{
    static const int64_t stride = 1;
    const int64_t form = 0;
    const mt_scalar scalars[] = {mt_real(0.0), mt_real(1.0)};
    void *const data[] = {out, a, b};
    mt_array arrays[3];
    for (int i = 0; i < 3; i++) {
        arrays[i] = (mt_array){data[i], &n, &stride, 1, MT_DTYPE_F32};
    }
    mt_kernel_call call = {.kernel = MT_KERNEL_BINARY,
                           .code = MT_BINARY_ADD,
                           .n_tensors = 3,
                           .n_ints = 1,
                           .n_scalars = 2,
                           .tensors = arrays,
                           .ints = &form,
                           .scalars = scalars,
                           .correlation = correlation};
    int status = launch(stream, &call);
    n = -1; /* B4: what the call pointed to is the caller's again */
    memset(arrays, 0xAB, sizeof arrays);
    return status;
}

int npu_fill(mt_backend_stream *stream, void *data, int64_t n, float value, uint64_t correlation)
{
    static const int64_t stride = 1;
    const mt_scalar scalar = mt_real((double)value);
    const mt_array array = {data, &n, &stride, 1, MT_DTYPE_F32};
    mt_kernel_call call = {.kernel = MT_KERNEL_FILL,
                           .n_tensors = 1,
                           .n_scalars = 1,
                           .tensors = &array,
                           .scalars = &scalar,
                           .correlation = correlation};
    return launch(stream, &call);
}

int npu_select(mt_backend_stream *stream, void *out, void *in, void *index, int64_t n,
               uint64_t correlation)
{
    static const int64_t one = 1;
    const int64_t row = 9;
    const int64_t dim = 0;
    int status = npu_copy(stream, MT_COPY_TO_DEVICE, index, &row, sizeof row, 0);
    const mt_array arrays[] = {{out, &one, &one, 1, MT_DTYPE_F32},
                               {in, &n, &one, 1, MT_DTYPE_F32},
                               {index, &one, &one, 1, MT_DTYPE_I64}};
    mt_kernel_call call = {.kernel = MT_KERNEL_INDEX_SELECT,
                           .n_tensors = 3,
                           .n_ints = 1,
                           .tensors = arrays,
                           .ints = &dim,
                           .correlation = correlation};
    return status == MT_OK ? launch(stream, &call) : status;
}

float npu_read(mt_backend_stream *stream, const void *from)
{
    float value = 0.0F;
    CHECK_OK(npu_copy(stream, MT_COPY_TO_HOST, &value, from, sizeof value, 0));
    return value;
}
