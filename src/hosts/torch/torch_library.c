/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding torch's functions in the process, by their symbols.
 */
#include "base/fail.h"
#include "base/shared_object.h"
#include "hosts/torch/torch_impl.h"

#include <string.h>

th__library th__torch;

typedef struct symbol {
    void *slot;
    const char *name;
} symbol;

/* False: the name of the one that is missing is in *missing. */
static bool find_all(void *handle, const symbol *symbols, size_t count, const char **missing)
{
    for (size_t i = 0; i < count; i++) {
        if (!mtb_find_symbol(handle, symbols[i].name, symbols[i].slot)) {
            *missing = symbols[i].name;
            return false;
        }
    }
    return true;
}

/*
 * Kinds of debug info: classes with a static object each since torch 2.13, small numbers before.
 * Others than the profiler's: while one of them is set we cannot tell whose turn it is to go.
 */
static bool find_kinds(void *c10, th__library *torch)
{
    static const char *const others[] = {
        "_ZN3c1013DebugInfoKind13PRODUCER_INFOE",
        "_ZN3c1013DebugInfoKind19MOBILE_RUNTIME_INFOE",
        "_ZN3c1013DebugInfoKind17INFERENCE_CONTEXTE",
        "_ZN3c1013DebugInfoKind16PARAM_COMMS_INFOE",
        "_ZN3c1013DebugInfoKind9TEST_INFOE",
        "_ZN3c1013DebugInfoKind11TEST_INFO_2E",
    };
    enum {
        OLD_PROFILER = 2,
        OLD_KINDS = 4 /* without the tests' */
    };
    const uint64_t *kind = NULL;
    torch->n_debug_others = 0;
    if (!mtb_find_symbol(c10, "_ZN3c1013DebugInfoKind14PROFILER_STATEE", &kind)) {
        torch->debug_kind = OLD_PROFILER;
        for (uint64_t old = 0; old <= OLD_KINDS; old++) {
            if (old != OLD_PROFILER) {
                torch->debug_others[torch->n_debug_others++] = old;
            }
        }
        return true;
    }
    torch->debug_kind = *kind;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (!mtb_find_symbol(c10, others[i], &kind)) {
            return false;
        }
        torch->debug_others[torch->n_debug_others++] = *kind;
    }
    return true;
}

/* Its absence costs the memory alone. */
static void find_debug_info(th__library *torch)
{
#define DEBUG_INFO "_ZN3c1020ThreadLocalDebugInfo"
    const char *missing = NULL;
    const symbol symbols[] = {
        {&torch->debug_get, DEBUG_INFO "3getENS_13DebugInfoKindE"},
        {&torch->debug_push,
         DEBUG_INFO "5_pushENS_13DebugInfoKindESt10shared_ptrINS_13DebugInfoBaseEE"},
        {&torch->debug_pop, DEBUG_INFO "4_popENS_13DebugInfoKindE"},
    };
#undef DEBUG_INFO
    void *c10 = mtb_find_loaded("libc10.so");
    if (c10 == NULL || !find_all(c10, symbols, sizeof symbols / sizeof symbols[0], &missing) ||
        !find_kinds(c10, torch)) {
        torch->debug_get = NULL;
    }
}

int th__library_open(void)
{
#ifdef __x86_64__
    th__library torch = {0};
    const char *missing = NULL;
    int32_t (*float32)(void) = NULL;
    int32_t (*cpu)(void) = NULL;
    int32_t (*strided)(void) = NULL;
    const void *const *text_table = NULL;
#    define RECORD "_ZNK2at14RecordFunction"
    const symbol needed[] = {
        {&torch.add_callback, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE"},
        {&torch.remove_callback, "_ZN2at14removeCallbackEm"},
        {&torch.name, RECORD "4nameEv"},
    };
    const symbol for_full[] = {
        {&torch.overload, RECORD "13overload_nameEv"},
        {&torch.n_inputs, RECORD "10num_inputsEv"},
        {&torch.thread_id, "_ZN2at14RecordFunction15currentThreadIdEv"},
        {&torch.sequence, "_ZN2at15sequence_number4peekEv"},
        {&torch.undefined, "_ZN3c1019UndefinedTensorImpl10_singletonE"},
        {&torch.n_dims, "aoti_torch_get_dim"},
        {&torch.sizes, "aoti_torch_get_sizes"},
        {&torch.strides, "aoti_torch_get_strides"},
        {&torch.dtype, "aoti_torch_get_dtype"},
        {&torch.device_type, "aoti_torch_get_device_type"},
        {&torch.device_index, "aoti_torch_get_device_index"},
        {&torch.data, "aoti_torch_get_data_ptr"},
        {&torch.storage_offset, "aoti_torch_get_storage_offset"},
        {&torch.empty_strided, "aoti_torch_empty_strided"},
        {&torch.clone, "aoti_torch_clone"},
        {&torch.scalar, "aoti_torch_scalar_to_tensor_float64"},
        {&torch.make_undefined, "aoti_torch_new_uninitialized_tensor"},
        {&torch.destroy, "aoti_torch_delete_tensor_object"},
        {&torch.grad_mode, "aoti_torch_grad_mode_is_enabled"},
        {&torch.set_grad_mode, "aoti_torch_grad_mode_set_enabled"},
        {&float32, "aoti_torch_dtype_float32"},
        {&cpu, "aoti_torch_device_type_cpu"},
    };
    const symbol of_identity[] = {
        {&torch.view, "aoti_torch__reinterpret_tensor"},
        {&torch.clear, "aoti_torch_zero_"},
    };
    const symbol of_layouts[] = {
        {&torch.layout, "aoti_torch_get_layout"},
        {&strided, "aoti_torch_layout_strided"},
    };
#    undef RECORD
    void *library = mtb_find_loaded("libtorch_cpu.so");
    if (library == NULL) {
        return mtb_fail(MTPROF_ENOTSUP, "torch: libtorch_cpu.so is not loaded; import torch first");
    }
    if (!find_all(library, needed, sizeof needed / sizeof needed[0], &missing)) {
        return mtb_fail(MTPROF_ENOTSUP, "torch: this libtorch has no %s; 2.7 to 2.15 have it",
                        missing);
    }
    if (find_all(library, for_full, sizeof for_full / sizeof for_full[0], &torch.lacks)) {
        torch.float32 = float32();
        torch.cpu = cpu();
        find_debug_info(&torch);
    }
    if (!find_all(library, of_identity, sizeof of_identity / sizeof of_identity[0], &missing)) {
        torch.view = NULL;
    }
    if (find_all(library, of_layouts, sizeof of_layouts / sizeof of_layouts[0], &missing)) {
        torch.strided = strided();
    } else {
        torch.layout = NULL;
    }
    if (mtb_find_symbol(library, "_ZTVN3c106ivalue14ConstantStringE", &text_table)) {
        torch.text_class = text_table + 2; /* what objects point to */
    }
    th__torch = torch;
    return MTPROF_OK;
#else
    return mtb_fail(MTPROF_ENOTSUP, "torch: the way to its records is known for x86-64 alone");
#endif
}
