/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout of torch's records, checked with known ops before anything relies on it.
 *
 * A temporary observer looks at what this thread runs here: a clone() of a tensor with odd sizes
 * and strides, which torch does in three ops, the same on another thread, and a scalar of a known
 * value.
 *
 *     record   thread ─ is torch's id of the thread, another one on the other thread
 *              scope ─ 0
 *              sequence ─ for the clone the next number of autograd, -1 for the ops inside it
 *              inputs ─ as many as torch counts
 *     inputs   of clone ─ a pointer to the very tensor
 *              of empty_strided ─ a list of 3 and 7: the tags of lists and integers, and how much
 *                                 of an object precedes its own fields
 *              of copy_ ─ a truth value: its tag
 *              of scalar_tensor ─ the known number: the tag of real numbers
 *     tensors  of no tensor ─ a handle points to one object, which keeps sizes and no strides
 *              of the known one ─ keeps both; where its sizes are tells where that is said
 *              of it and a view ─ one shared object with the address of the memory
 *              changed in place ─ one shared object whose number grows by one
 *     outputs  of clone ─ a pointer to the copy, when the op ends
 *
 *   HL1  Memory is read through the kernel here (process_vm_readv), which answers where a wrong
 *        pointer would end the program.
 *   HL2  The tag of texts cannot be seen in these ops. It follows that of truth values by two; the
 *        class of what it leads to is compared with that of texts, with each input.
 *   HL3  The forward thread is not seen either: it is used where it is the id of a known thread.
 */
#include "base/shared_object.h"
#include "hosts/torch/torch_impl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    ROWS = 3,
    COLUMNS = 7,
    MOST_INPUTS = 16,
    RECORD_BYTES = 1024, /* at most */
    TENSOR_BYTES = 256,
    FROM_SIZES_TO_KEPT = 0x66,
    SHARED_OBJECTS = 6 /* words of a tensor that may point to one, after its head */
};

static const double known_number = 0.7215625;

/* What the wheels from 2.7 to 2.15 have. */
static const th__layout known = {
    .thread = 88,
    .scope = 96,
    .sequence = 200,
    .inputs = 208,
    .n_inputs = 216,
    .forward_thread = 304,
    .outputs = 280,
    .record_bytes = 320,
    .tag_tensor = 1,
};

th__layout th__fields;

/* What is checked: `known`, or what a shim says. */
static th__layout expected;

/* An op as the observer saw it. */
typedef struct seen_op {
    size_t n_inputs;   /* as torch counts them */
    uint64_t sequence; /* the next number then */
    unsigned char record[RECORD_BYTES];
    unsigned char inputs[MOST_INPUTS * TH_INPUT_BYTES];
    unsigned char output[TH_INPUT_BYTES]; /* the only one, when it ended */
    th__layout list; /* of its first input: object_head, tag_int; object_head is 0 if it is none */
    bool seen;
    bool ended;
} seen_op;

/* The ops that are looked for on this thread, and where they go. */
enum {
    CLONE,
    EMPTY_STRIDED,
    COPY,
    SCALAR,
    KNOWN_OPS
};
static const char *const names[KNOWN_OPS] = {"aten::clone", "aten::empty_strided", "aten::copy_",
                                             "aten::scalar_tensor"};
static _Thread_local seen_op *wanted; /* KNOWN_OPS of them, or NULL */

static bool read_safely(const void *from, void *to, size_t bytes)
{
    struct iovec local = {to, bytes};
    struct iovec remote = {(void *)(uintptr_t)from, bytes};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

static uint64_t word_at(const unsigned char *bytes, size_t offset)
{
    uint64_t word;
    memcpy(&word, bytes + offset, sizeof word);
    return word;
}

static uint32_t tag_of(const seen_op *op, size_t input)
{
    uint32_t tag;
    memcpy(&tag, op->inputs + input * TH_INPUT_BYTES + sizeof(uint64_t), sizeof tag);
    return tag;
}

/* The sizes: a list {head, first item, end of items …} of the integers ROWS and COLUMNS. It
 * is there only while the op begins. */
static void find_list(seen_op *op)
{
    const void *object = (const void *)(uintptr_t)word_at(op->inputs, 0);
    for (uint32_t head = 16; head <= 24; head += 8) {
        unsigned char bytes[24 + 16];
        unsigned char items[2 * TH_INPUT_BYTES];
        if (!read_safely(object, bytes, sizeof bytes)) {
            return;
        }
        uint64_t first = word_at(bytes, head);
        uint64_t end = word_at(bytes, head + 8);
        uint32_t tags[2];
        if (end - first != sizeof items ||
            !read_safely((const void *)(uintptr_t)first, items, sizeof items)) {
            continue;
        }
        memcpy(&tags[0], items + 8, sizeof tags[0]);
        memcpy(&tags[1], items + TH_INPUT_BYTES + 8, sizeof tags[1]);
        if (word_at(items, 0) == ROWS && word_at(items, TH_INPUT_BYTES) == COLUMNS &&
            tags[0] == tags[1]) {
            op->list.object_head = head;
            op->list.tag_int = tags[0];
            return;
        }
    }
}

static uint32_t which_op(const void *record)
{
    uint32_t which = 0;
    while (which < KNOWN_OPS && strcmp(th__torch.name(record), names[which]) != 0) {
        which++;
    }
    return which;
}

static void **look(void **context, const void *record)
{
    *context = NULL;
    if (wanted == NULL) {
        return context;
    }
    uint32_t which = which_op(record);
    if (which == KNOWN_OPS || wanted[which].seen) {
        return context;
    }
    seen_op *op = &wanted[which];
    op->n_inputs = th__torch.n_inputs(record);
    op->sequence = th__torch.sequence();
    if (op->n_inputs > MOST_INPUTS || !read_safely(record, op->record, expected.record_bytes)) {
        return context;
    }
    const void *inputs = (const void *)(uintptr_t)word_at(op->record, expected.inputs);
    op->seen = word_at(op->record, expected.n_inputs) == op->n_inputs &&
               read_safely(inputs, op->inputs, op->n_inputs * TH_INPUT_BYTES);
    if (op->seen && which == EMPTY_STRIDED && op->n_inputs > 0) {
        find_list(op);
    }
    return context;
}

static void look_at_output(const void *record, void *context)
{
    (void)context;
    uint32_t which = wanted != NULL ? which_op(record) : KNOWN_OPS;
    if (which != CLONE || wanted[which].ended) {
        return;
    }
    seen_op *op = &wanted[which];
    unsigned char ends[2 * sizeof(uint64_t)];
    if (read_safely((const unsigned char *)record + expected.outputs, ends, sizeof ends) &&
        word_at(ends, sizeof(uint64_t)) - word_at(ends, 0) == TH_INPUT_BYTES) {
        const void *output = (const void *)(uintptr_t)word_at(ends, 0);
        op->ended = read_safely(output, op->output, TH_INPUT_BYTES);
    }
}

/* ---- what the ops must show ---- */

/* An op of this thread, with this number and at least so many inputs. */
static bool is_right(const seen_op *op, uint64_t sequence, size_t n_inputs)
{
    return op->seen && op->n_inputs >= n_inputs &&
           (expected.scope == TH_NO_PLACE || op->record[expected.scope] == TH_SCOPE_FUNCTION) &&
           word_at(op->record, expected.thread) == th__torch.thread_id() &&
           word_at(op->record, expected.sequence) == sequence;
}

static const char *check_clone(const void *tensor, th__layout *layout)
{
    seen_op ops[KNOWN_OPS];
    void *copy = NULL;
    bool grad_mode = th__torch.grad_mode();
    memset(ops, 0, sizeof ops);
    wanted = ops;
    th__torch.set_grad_mode(true); /* otherwise no op has a number */
    int32_t failed = th__torch.clone(tensor, &copy);
    th__torch.set_grad_mode(grad_mode);
    wanted = NULL;
    if (failed != 0) {
        return "a tensor could not be copied";
    }
    uint64_t address;
    memcpy(&address, copy, sizeof address);
    th__torch.destroy(copy);
    bool output = ops[CLONE].ended && word_at(ops[CLONE].output, 0) == address;
    layout->outputs = output ? expected.outputs : 0;
    memcpy(&address, tensor, sizeof address);
    if (!is_right(&ops[CLONE], ops[CLONE].sequence, 1) ||
        !is_right(&ops[EMPTY_STRIDED], UINT64_MAX, 2) || !is_right(&ops[COPY], UINT64_MAX, 3)) {
        return "records of ops are not laid out as in torch 2.7 to 2.15";
    }
    if (tag_of(&ops[CLONE], 0) != expected.tag_tensor || word_at(ops[CLONE].inputs, 0) != address ||
        ops[EMPTY_STRIDED].list.object_head == 0) {
        return "inputs of ops are not laid out as in torch 2.7 to 2.15";
    }
    layout->object_head = ops[EMPTY_STRIDED].list.object_head;
    layout->tag_int = ops[EMPTY_STRIDED].list.tag_int;
    layout->tag_list = tag_of(&ops[EMPTY_STRIDED], 0);
    layout->tag_bool = tag_of(&ops[COPY], 2);
    layout->tag_string = th__torch.text_class != NULL ? layout->tag_bool + 2 : TH_TAG_UNKNOWN;
    const uint32_t tags[] = {0,
                             expected.tag_tensor,
                             layout->tag_int,
                             layout->tag_bool,
                             layout->tag_string,
                             layout->tag_list};
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        for (size_t k = 0; k < i; k++) {
            if (tags[i] == tags[k]) {
                return "kinds of inputs are not told apart as in torch 2.7 to 2.15";
            }
        }
    }
    return "";
}

/* A handle without a tensor points to one and the same object. Where a tensor has its sizes differs
 * between versions (64 or 72); what it keeps of them is said in a byte at a fixed distance. */
static const char *check_tensors(const void *tensor, th__layout *layout)
{
    void *undefined = NULL;
    int64_t *sizes = NULL;
    const unsigned char *object = NULL;
    const unsigned char *none = NULL;
    if (th__torch.sizes(tensor, &sizes) != 0 || th__torch.make_undefined(&undefined) != 0) {
        return "a known tensor could not be asked";
    }
    memcpy(&object, tensor, sizeof object);
    memcpy(&none, undefined, sizeof none);
    th__torch.destroy(undefined);
    uint64_t offset = (uint64_t)((uintptr_t)sizes - (uintptr_t)object);
    unsigned char bytes[2];
    layout->tensor_kept = (uint32_t)offset + FROM_SIZES_TO_KEPT;
    if (none != th__torch.undefined || offset > TENSOR_BYTES ||
        !read_safely(object + layout->tensor_kept, &bytes[0], 1) ||
        !read_safely(none + layout->tensor_kept, &bytes[1], 1) ||
        (bytes[0] >> 2 & 3) != TH_KEPT_ALL || (bytes[1] >> 2 & 3) != TH_KEPT_SIZES) {
        return "tensors are not laid out as in torch 2.7 to 2.15";
    }
    return "";
}

/* What the word at the offset points to, if it is a shared object: its first field. */
static bool shared_field(const void *tensor, uint32_t offset, uint32_t head, uint64_t *field)
{
    const unsigned char *object = NULL;
    const unsigned char *shared = NULL;
    memcpy(&object, tensor, sizeof object);
    return read_safely(object + offset, &shared, sizeof shared) && shared != NULL &&
           read_safely(shared + head, field, sizeof *field);
}

static void find_storage(const void *tensor, const void *view, th__layout *layout)
{
    void *data = NULL;
    void *inside = NULL;
    layout->tensor_storage = 0;
    if (th__torch.data(tensor, &data) != 0 || th__torch.data(view, &inside) != 0 || data == NULL ||
        (unsigned char *)inside != (unsigned char *)data + ROWS * sizeof(float)) {
        return;
    }
    for (uint32_t i = 0; i < SHARED_OBJECTS && layout->tensor_storage == 0; i++) {
        uint32_t offset = layout->object_head + i * (uint32_t)sizeof(uint64_t);
        uint64_t memory[2] = {0, 0};
        if (shared_field(tensor, offset, layout->object_head, &memory[0]) &&
            shared_field(view, offset, layout->object_head, &memory[1]) &&
            memory[0] == (uintptr_t)data && memory[1] == (uintptr_t)data) {
            layout->tensor_storage = offset;
        }
    }
}

static void find_version(const void *tensor, th__layout *layout)
{
    uint64_t before[SHARED_OBJECTS];
    bool there[SHARED_OBJECTS];
    uint32_t head = layout->object_head;
    layout->tensor_version = 0;
    for (uint32_t i = 0; i < SHARED_OBJECTS; i++) {
        there[i] = shared_field(tensor, head + i * (uint32_t)sizeof before[0], head, &before[i]);
    }
    if (th__torch.clear(tensor) != 0) {
        return;
    }
    uint32_t found = 0;
    for (uint32_t i = 0; i < SHARED_OBJECTS; i++) {
        uint32_t offset = head + i * (uint32_t)sizeof before[0];
        uint64_t now = 0;
        if (there[i] && shared_field(tensor, offset, head, &now) &&
            (uint32_t)now == (uint32_t)before[i] + 1) {
            layout->tensor_version = offset;
            found++;
        }
    }
    layout->tensor_version = found == 1 ? layout->tensor_version : 0;
}

/* Without it tensors have shapes, but it is not known which is which. */
static void find_identity(const void *tensor, th__layout *layout)
{
    const int64_t sizes[] = {2, 2};
    const int64_t strides[] = {2, 1};
    void *view = NULL;
    if (th__torch.view == NULL || th__torch.view(tensor, 2, sizes, strides, ROWS, &view) != 0) {
        return;
    }
    find_storage(tensor, view, layout);
    th__torch.destroy(view);
    find_version(tensor, layout);
    layout->identified =
        layout->outputs != 0 && layout->tensor_storage != 0 && layout->tensor_version != 0;
}

bool th__is_text(const void *object)
{
    static bool seen; /* atomic: the tag has led to a text */
    const void *class = NULL;
    if (__atomic_load_n(&seen, __ATOMIC_RELAXED)) {
        memcpy(&class, object, sizeof class);
        return class == th__torch.text_class;
    }
    if (!read_safely(object, &class, sizeof class) || class != th__torch.text_class) {
        return false;
    }
    __atomic_store_n(&seen, true, __ATOMIC_RELAXED);
    return true;
}

/* What lies in tensors is what torch's functions say; the other tensor is of float64. */
static void find_plain(const void *tensor, const void *real, th__layout *layout)
{
    int64_t *sizes = NULL;
    int64_t *strides = NULL;
    int32_t dtypes[2] = {-1, -1};
    const unsigned char *objects[2] = {NULL, NULL};
    unsigned char bytes[2][8 + TH_SIZES_TO_DTYPE + 2];
    memcpy(&objects[0], tensor, sizeof objects[0]);
    memcpy(&objects[1], real, sizeof objects[1]);
    if (th__torch.sizes(tensor, &sizes) != 0 || th__torch.strides(tensor, &strides) != 0 ||
        th__torch.dtype(tensor, &dtypes[0]) != 0 || th__torch.dtype(real, &dtypes[1]) != 0) {
        return;
    }
    uint64_t offset = (uint64_t)((uintptr_t)sizes - (uintptr_t)objects[0]);
    if (offset < 8 || offset > TENSOR_BYTES || strides != sizes + TH_SIZES_TO_STRIDES / 8) {
        return;
    }
    uint16_t found[2];
    for (int i = 0; i < 2; i++) {
        if (!read_safely(objects[i] + offset - 8, bytes[i], sizeof bytes[i])) {
            return;
        }
        memcpy(&found[i], bytes[i] + 8 + TH_SIZES_TO_DTYPE, sizeof found[i]);
    }
    layout->tensor_sizes = (uint32_t)offset;
    layout->plain_tensors = dtypes[0] != dtypes[1] && found[0] == dtypes[0] &&
                            found[1] == dtypes[1] && word_at(bytes[0], 0) == 2 &&
                            word_at(bytes[1], 0) == 0;
}

/* Its tag differs between versions. */
static void find_real(const void *known_tensor, th__layout *layout)
{
    seen_op ops[KNOWN_OPS];
    void *tensor = NULL;
    uint64_t bits;
    memcpy(&bits, &known_number, sizeof bits);
    memset(ops, 0, sizeof ops);
    layout->tag_double = TH_TAG_UNKNOWN;
    wanted = ops;
    int32_t failed = th__torch.scalar(known_number, &tensor);
    wanted = NULL;
    if (failed != 0) {
        return;
    }
    find_plain(known_tensor, tensor, layout);
    th__torch.destroy(tensor);
    if (ops[SCALAR].seen && ops[SCALAR].n_inputs > 0 && word_at(ops[SCALAR].inputs, 0) == bits) {
        layout->tag_double = tag_of(&ops[SCALAR], 0);
    }
}

typedef struct other_thread {
    const void *tensor;
    const char *problem;
    th__layout layout;
    uint64_t id;
} other_thread;

static void *check_elsewhere(void *context)
{
    other_thread *other = context;
    other->problem = check_clone(other->tensor, &other->layout);
    other->id = th__torch.thread_id();
    return NULL;
}

static const char *check_other_thread(const void *tensor)
{
    pthread_t thread;
    other_thread other = {.tensor = tensor, .problem = ""};
    if (pthread_create(&thread, NULL, check_elsewhere, &other) != 0) {
        return "no thread could be made to check the layout on";
    }
    pthread_join(thread, NULL);
    if (other.problem[0] == '\0' && other.id == th__torch.thread_id()) {
        return "threads have no ids of their own";
    }
    return other.problem;
}

/* ---- the shim ---- */

/* torch_shim.cpp's Places: places of fields in a record, in bytes. */
typedef struct shim_places {
    uint32_t abi, thread, sequence, inputs, n_inputs, forward_thread, outputs;
    uint32_t tag_tensor, value_bytes;
} shim_places;

enum {
    SHIM_ABI = 1
};

static const char *ask_shim(const char *path)
{
    bool (*ask)(shim_places *) = NULL;
    shim_places places = {0};
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* kept open: its code may have run */
    if (library == NULL || !mtb_find_symbol(library, "mtprof_torch_shim", &ask)) {
        return "the shim could not be opened";
    }
    if (!ask(&places) || places.abi != SHIM_ABI) {
        return "the shim did not find the fields of a record";
    }
    const uint32_t offsets[] = {places.thread,   places.sequence,       places.inputs,
                                places.n_inputs, places.forward_thread, places.outputs};
    th__layout layout = {.thread = places.thread,
                         .scope = TH_NO_PLACE,
                         .sequence = places.sequence,
                         .inputs = places.inputs,
                         .n_inputs = places.n_inputs,
                         .forward_thread = places.forward_thread,
                         .outputs = places.outputs,
                         .tag_tensor = places.tag_tensor};
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        uint32_t end = offsets[i] + 2 * (uint32_t)sizeof(uint64_t); /* outputs has two words */
        if (offsets[i] > RECORD_BYTES || end > RECORD_BYTES) {
            return "the shim found fields in places that no record has";
        }
        layout.record_bytes = end > layout.record_bytes ? end : layout.record_bytes;
    }
    if (places.value_bytes != TH_INPUT_BYTES) {
        return "the shim found values of another size than 16 bytes";
    }
    expected = layout;
    return "";
}

void th__layout_forget(void)
{
    th__fields = (th__layout){0};
}

const char *th__layout_check(const char *shim)
{
    const char *why = "";
    expected = known;
    th__layout_forget();
    if (shim != NULL) {
        why = ask_shim(shim);
        if (why[0] != '\0') {
            return why;
        }
    }
    const int64_t sizes[] = {ROWS, COLUMNS};
    const int64_t strides[] = {1, ROWS}; /* so that a copy needs its own strides */
    th__layout layout = expected;
    void *tensor = NULL;
    th__callback callback = {.start = look,
                             .end = look_at_output,
                             .probability = 1,
                             .scopes[TH_SCOPE_FUNCTION] = true,
                             .needs_inputs = true,
                             .needs_outputs = true};
    if (th__torch.empty_strided(2, sizes, strides, th__torch.float32, th__torch.cpu, 0, &tensor) !=
        0) {
        return "a tensor could not be made";
    }
    uint64_t handle = th__torch.add_callback(callback);
    const char *problem = check_clone(tensor, &layout);
    if (problem[0] == '\0') {
        problem = check_other_thread(tensor);
    }
    if (problem[0] == '\0') {
        problem = check_tensors(tensor, &layout);
    }
    if (problem[0] == '\0') {
        find_real(tensor, &layout);
        find_identity(tensor, &layout);
        layout.checked = true;
        th__fields = layout;
    }
    th__torch.remove_callback(handle);
    th__torch.destroy(tensor);
    return problem;
}
