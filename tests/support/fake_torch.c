/* SPDX-License-Identifier: Apache-2.0
 */
#include "fake_torch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    OBSERVERS = 16,
    RECORD_BYTES = 512,
    SCOPES = 10,
    THREAD = 88,
    SCOPE = 96,
    SEQUENCE = 200,
    INPUTS = 208,
    N_INPUTS = 216,
    FORWARD = 304,
    OUTPUTS = 280,
    NAME = 480, /* where real torch has something of its own */
    COUNT = 488
};

typedef struct observer {
    void **(*start)(void **context, const void *record);
    void (*end)(const void *record, void *context);
    double probability;
    bool scopes[SCOPES];
    bool needs_inputs, needs_outputs, needs_ids;
} observer;

/* A value: a word and a tag. */
typedef struct value {
    uint64_t word;
    uint32_t tag, reserved;
} value;

/* What tensors share: an address of memory, or a version. */
typedef struct shared {
    uint64_t head[5]; /* object_head bytes of it, then the number */
} shared;

typedef struct tensor {
    const void *table;
    uint64_t count;
    shared *storage;
    uint64_t others[2];
    shared *version;
    uint64_t object;
    int64_t n_dims;
    int64_t sizes[5];
    int64_t strides[5];
    uint64_t offset;
    uint64_t count_of_elements;
    uint16_t dtype;
    unsigned char reserved[4];
    unsigned char kept; /* in bits 2 and 3 */
} tensor;

struct fake_running {
    unsigned char record[RECORD_BYTES];
    value *inputs;
    value *outputs;
    uint32_t n;
    observer who[OBSERVERS];
    void *contexts[OBSERVERS];
    void *owned[64]; /* to be freed */
    uint32_t n_owned;
};

static fake_layout layout = {.object_head = 16};
static uint64_t n_asked; /* tensors that keep no sizes, for sizes */
static observer observers[OBSERVERS];
static uint64_t handles[OBSERVERS];
static uint32_t n_observers;
static uint64_t last_handle, last_thread;
static int64_t sequence_number = 6;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local uint64_t my_thread;
static _Thread_local bool grad_mode;

/* What a handle without a tensor points to. */
tensor undefined_tensor __asm__("_ZN3c1019UndefinedTensorImpl10_singletonE") = {.kept = 1 << 2};

/* The table of texts; objects point to its third word. */
const void *const text_table[4] __asm__("_ZTVN3c106ivalue14ConstantStringE");

/* ---- values ---- */

static void *own(fake_running *running, size_t bytes)
{
    void *made = calloc(1, bytes);
    running->owned[running->n_owned++] = made;
    return made;
}

static void fill(fake_running *running, value *to, const fake_input *from)
{
    static const uint32_t tags[2][9] = {{0, 1, 3, 5, 10, 12, 14, 26, 12},
                                        {0, 1, 4, 5, 9, 11, 13, 25, 11}};
    unsigned char *made = NULL;
    to->tag = tags[layout.old_tags][from->kind];
    switch (from->kind) {
    case FAKE_TENSOR: {
        if (from->tensor != NULL) {
            memcpy(&to->word, &from->tensor, sizeof from->tensor);
            break;
        }
        tensor *t = own(running, sizeof *t);
        t->n_dims = from->n;
        t->dtype = 6;
        t->kept = (unsigned char)(from->kept << 2);
        for (uint32_t d = from->n; d-- > 0;) {
            t->sizes[d] = from->sizes[d];
            t->strides[d] = d + 1 < from->n ? t->strides[d + 1] * t->sizes[d + 1] : 1;
        }
        memcpy(&to->word, &t, sizeof t);
        break;
    }
    case FAKE_REAL: memcpy(&to->word, &from->real, 8); break;
    case FAKE_NO_TEXT:
    case FAKE_INT: to->word = (uint64_t)from->integer; break;
    case FAKE_BOOL: to->word = from->integer != 0; break;
    case FAKE_TEXT: {
        made = own(running, layout.object_head + 32);
        uint64_t length = strlen(from->text);
        char *text =
            length <= 15 ? (char *)made + layout.object_head + 16 : own(running, length + 1);
        memcpy(text, from->text, length);
        const void *class = &text_table[2];
        memcpy(made, &class, sizeof class);
        memcpy(made + layout.object_head, &text, sizeof text);
        memcpy(made + layout.object_head + 8, &length, sizeof length);
        memcpy(&to->word, &made, sizeof made);
        break;
    }
    case FAKE_LIST: {
        made = own(running, layout.object_head + 24);
        value *items = own(running, (from->n + 1) * sizeof *items);
        value *end = items + from->n;
        for (uint32_t i = 0; i < from->n; i++) {
            fill(running, &items[i], &from->items[i]);
        }
        memcpy(made + layout.object_head, &items, sizeof items);
        memcpy(made + layout.object_head + 8, &end, sizeof end);
        memcpy(&to->word, &made, sizeof made);
        break;
    }
    default: break;
    }
}

/* ---- what the host finds by symbol ---- */

uint64_t add_observer(observer added) __asm__(
    "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
uint64_t add_observer(observer added)
{
    pthread_mutex_lock(&lock);
    uint64_t handle = ++last_handle;
    observers[n_observers] = added;
    handles[n_observers++] = handle;
    pthread_mutex_unlock(&lock);
    return handle;
}

void remove_observer(uint64_t handle) __asm__("_ZN2at14removeCallbackEm");
void remove_observer(uint64_t handle)
{
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < n_observers; i++) {
        if (handles[i] == handle) {
            observers[i] = observers[--n_observers];
            handles[i] = handles[n_observers];
        }
    }
    pthread_mutex_unlock(&lock);
}

const char *record_name(const void *record) __asm__("_ZNK2at14RecordFunction4nameEv");
const char *record_name(const void *record)
{
    const char *name;
    memcpy(&name, (const char *)record + NAME, sizeof name);
    return name;
}

const char *record_overload(const void *record) __asm__("_ZNK2at14RecordFunction13overload_nameEv");
const char *record_overload(const void *record)
{
    (void)record;
    return "Tensor";
}

size_t record_inputs(const void *record) __asm__("_ZNK2at14RecordFunction10num_inputsEv");
size_t record_inputs(const void *record)
{
    uint64_t n;
    memcpy(&n, (const char *)record + COUNT, sizeof n);
    return n;
}

uint64_t thread_id(void) __asm__("_ZN2at14RecordFunction15currentThreadIdEv");
uint64_t thread_id(void)
{
    if (my_thread == 0) {
        my_thread = __atomic_add_fetch(&last_thread, 1, __ATOMIC_RELAXED);
    }
    return my_thread;
}

uint64_t peek(void) __asm__("_ZN2at15sequence_number4peekEv");
uint64_t peek(void)
{
    return (uint64_t)sequence_number;
}

static void note_asked(const tensor *t)
{
    __atomic_add_fetch(&n_asked, (t->kept >> 2) >= 2, __ATOMIC_RELAXED);
}

static uint64_t *number_of(shared *object)
{
    return &object->head[layout.object_head / 8];
}

static uint64_t memory_of(const tensor *t)
{
    return t->storage != NULL ? *number_of(t->storage) : 0;
}

/* A handle is the address of a word that points to a tensor. */
#define HANDLE(type, name, result)                             \
    int32_t aoti_torch_##name(void *const *handle, type *out); \
    int32_t aoti_torch_##name(void *const *handle, type *out)  \
    {                                                          \
        const tensor *t = *handle;                             \
        *out = (result);                                       \
        (void)t;                                               \
        return 0;                                              \
    }
HANDLE(int64_t, get_dim, t->n_dims)
HANDLE(const int64_t *, get_sizes, (note_asked(t), t->sizes))
HANDLE(const int64_t *, get_strides, t->strides)
HANDLE(int32_t, get_dtype, t->dtype)
HANDLE(int32_t, get_layout, 0)
HANDLE(int32_t, get_device_type, 0)
HANDLE(int32_t, get_device_index, -1)
HANDLE(void *, get_data_ptr, (void *)(uintptr_t)(memory_of(t) + 4 * t->offset))
HANDLE(int64_t, get_storage_offset, (int64_t)t->offset)

/* ---- ops ---- */

fake_running *fake_begin(const fake_op *op);
fake_running *fake_begin(const fake_op *op)
{
    fake_running *running = calloc(1, sizeof *running);
    uint64_t id = thread_id();
    uint64_t n = op->n_inputs;
    int32_t s = layout.shift;
    running->inputs = own(running, (n + 1) * sizeof *running->inputs);
    for (uint32_t i = 0; i < n; i++) {
        fill(running, &running->inputs[i], &op->inputs[i]);
    }
    running->outputs = own(running, (op->n_outputs + 1) * sizeof *running->outputs);
    for (uint32_t i = 0; i < op->n_outputs; i++) {
        fill(running, &running->outputs[i], &op->outputs[i]);
    }
    const value *outputs[2] = {running->outputs, running->outputs + op->n_outputs};
    const void *inputs = layout.wild ? (const void *)16 : running->inputs;
    memcpy(running->record + THREAD + s, &id, 8);
    running->record[SCOPE + s] = (unsigned char)op->scope;
    memcpy(running->record + SEQUENCE + s, &op->sequence, 8);
    memcpy(running->record + INPUTS + s + layout.inputs_shift, &inputs, 8);
    memcpy(running->record + N_INPUTS + s + layout.inputs_shift, &n, 8);
    memcpy(running->record + FORWARD + s, &op->forward, 8);
    memcpy(running->record + OUTPUTS + s, outputs, layout.no_outputs ? 0 : sizeof outputs);
    memcpy(running->record + NAME, &op->name, 8);
    memcpy(running->record + COUNT, &n, 8);
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < n_observers; i++) {
        if (observers[i].scopes[op->scope]) {
            running->who[running->n++] = observers[i];
        }
    }
    pthread_mutex_unlock(&lock);
    for (uint32_t i = 0; i < running->n; i++) {
        running->who[i].start(&running->contexts[i], running->record);
    }
    return running;
}

void fake_end(fake_running *running);
void fake_end(fake_running *running)
{
    for (uint32_t i = 0; i < running->n; i++) {
        running->who[i].end(running->record, running->contexts[i]);
    }
    for (uint32_t i = 0; i < running->n; i++) {
        if (running->contexts[i] != NULL) {
            void (*const *table)(void *) = *(void (*const **)(void *))running->contexts[i];
            table[1](running->contexts[i]); /* the deleting destructor */
        }
    }
    for (uint32_t i = 0; i < running->n_owned; i++) {
        free(running->owned[i]);
    }
    free(running);
}

static void run(const fake_op *op)
{
    fake_end(fake_begin(op));
}

/* ---- the known ops ---- */

int32_t aoti_torch_empty_strided(int64_t n, const int64_t *sizes, const int64_t *strides,
                                 int32_t dtype, int32_t type, int32_t index, void **out);
int32_t aoti_torch_empty_strided(int64_t n, const int64_t *sizes, const int64_t *strides,
                                 int32_t dtype, int32_t type, int32_t index, void **out)
{
    (void)type;
    (void)index;
    void **handle = calloc(1, sizeof *handle);
    tensor *t = calloc(1, sizeof *t);
    t->n_dims = n;
    t->dtype = (uint16_t)dtype;
    t->kept = layout.other_tensors ? 3 << 2 : 0;
    memcpy(t->sizes, sizes, (size_t)n * 8);
    memcpy(t->strides, strides, (size_t)n * 8);
    t->storage = calloc(1, sizeof *t->storage);
    t->version = calloc(1, sizeof *t->version);
    *number_of(t->storage) = (uintptr_t)t->storage; /* its memory is never looked at */
    *handle = t;
    *out = handle;
    return 0;
}

int32_t aoti_torch__reinterpret_tensor(void *const *of, int64_t n, const int64_t *sizes,
                                       const int64_t *strides, int64_t offset, void **out);
int32_t aoti_torch__reinterpret_tensor(void *const *of, int64_t n, const int64_t *sizes,
                                       const int64_t *strides, int64_t offset, void **out)
{
    const tensor *t = *of;
    aoti_torch_empty_strided(n, sizes, strides, 6, 0, 0, out);
    tensor *view = *(void **)*out;
    *number_of(view->storage) = memory_of(t);
    view->offset = (uint64_t)offset;
    return 0;
}

int32_t aoti_torch_zero_(void *const *handle);
int32_t aoti_torch_zero_(void *const *handle)
{
    const tensor *t = *handle;
    *number_of(t->version) += !layout.no_versions;
    return 0;
}

int32_t aoti_torch_delete_tensor_object(void *handle);
int32_t aoti_torch_delete_tensor_object(void *handle)
{
    tensor *t = *(void **)handle;
    if (t != &undefined_tensor) {
        free(t->storage);
        free(t->version);
        free(t);
    }
    free(handle);
    return 0;
}

int32_t aoti_torch_new_uninitialized_tensor(void **out);
int32_t aoti_torch_new_uninitialized_tensor(void **out)
{
    void **handle = calloc(1, sizeof *handle);
    *handle = &undefined_tensor;
    *out = handle;
    return 0;
}

int32_t aoti_torch_clone(void *const *from, void **out);
int32_t aoti_torch_clone(void *const *from, void **out)
{
    const tensor *t = *from;
    const fake_input sizes[] = {{.kind = FAKE_INT, .integer = t->sizes[0]},
                                {.kind = FAKE_INT, .integer = t->sizes[1]}};
    const fake_input of_clone[] = {{.kind = FAKE_TENSOR, .tensor = t}, {.kind = FAKE_NONE}};
    const fake_input of_empty[] = {{.kind = FAKE_LIST, .n = 2, .items = sizes},
                                   {.kind = FAKE_LIST, .n = 2, .items = sizes}};
    const fake_input of_copy[] = {{.kind = FAKE_NONE}, {.kind = FAKE_NONE}, {.kind = FAKE_BOOL}};
    aoti_torch_empty_strided(2, t->sizes, t->strides, 6, 0, 0, out);
    const fake_input made[] = {{.kind = FAKE_TENSOR, .tensor = *(void **)*out}};
    const fake_op clone = {"aten::clone", 0, grad_mode ? sequence_number : -1, 0, 2, of_clone, 1,
                           made};
    const fake_op empty = {"aten::empty_strided", 0, -1, 0, 2, of_empty, 0, NULL};
    const fake_op copy = {"aten::copy_", 0, -1, 0, 3, of_copy, 0, NULL};
    fake_running *running = fake_begin(&clone);
    if (!layout.silent) {
        run(&empty);
        run(&copy);
    }
    fake_end(running);
    return 0;
}

#ifndef FAKE_TORCH_OLD
int32_t aoti_torch_scalar_to_tensor_float64(double number, void **out);
int32_t aoti_torch_scalar_to_tensor_float64(double number, void **out)
{
    const int64_t none[1] = {0};
    const fake_input of_scalar[] = {{.kind = FAKE_REAL, .real = number}};
    const fake_op scalar = {"aten::scalar_tensor", 0, -1, 0, 1, of_scalar, 0, NULL};
    run(&scalar);
    return aoti_torch_empty_strided(0, none, none, 7, 0, 0, out);
}
#endif

int32_t aoti_torch_dtype_float32(void);
int32_t aoti_torch_dtype_float32(void)
{
    return 6;
}

int32_t aoti_torch_device_type_cpu(void);
int32_t aoti_torch_device_type_cpu(void)
{
    return 0;
}

int32_t aoti_torch_layout_strided(void);
int32_t aoti_torch_layout_strided(void)
{
    return 0;
}

bool aoti_torch_grad_mode_is_enabled(void);
bool aoti_torch_grad_mode_is_enabled(void)
{
    return grad_mode;
}

void aoti_torch_grad_mode_set_enabled(bool enabled);
void aoti_torch_grad_mode_set_enabled(bool enabled)
{
    grad_mode = enabled;
}

/* ---- what torch_shim.cpp would say ---- */

bool mtprof_torch_shim(uint32_t places[9]);
bool mtprof_torch_shim(uint32_t places[9])
{
    const uint32_t known[6] = {THREAD, SEQUENCE, INPUTS, N_INPUTS, FORWARD, OUTPUTS};
    places[0] = 1;
    for (uint32_t i = 0; i < 6; i++) {
        places[1 + i] = (uint32_t)((int32_t)known[i] + layout.shim_shift);
    }
    places[7] = 1; /* the tag of tensors */
    places[8] = sizeof(value);
    return !layout.no_shim;
}

/* ---- for the test ---- */

static uint32_t count_observers(void)
{
    return n_observers;
}

static bool copies_inputs(void)
{
    bool any = false;
    for (uint32_t i = 0; i < n_observers; i++) {
        any = any || observers[i].needs_inputs;
    }
    return any;
}

static uint64_t count_asked(void)
{
    return n_asked;
}

static bool copies_outputs(void)
{
    bool any = false;
    for (uint32_t i = 0; i < n_observers; i++) {
        any = any || observers[i].needs_outputs;
    }
    return any;
}

static void **make(const int64_t sizes[2], uint64_t memory, int64_t offset, uint32_t version)
{
    const int64_t strides[] = {sizes[1], 1};
    void *out = NULL;
    aoti_torch_empty_strided(2, sizes, strides, 6, 0, 0, &out);
    tensor *t = *(void **)out;
    *number_of(t->storage) = memory;
    *number_of(t->version) = version;
    t->offset = (uint64_t)offset;
    return out;
}

static void destroy(void **handle)
{
    aoti_torch_delete_tensor_object(handle);
}

const fake_torch fake_torch_face = {&layout,         fake_begin,    fake_end,
                                    count_observers, copies_inputs, count_asked,
                                    copies_outputs,  make,          destroy};
