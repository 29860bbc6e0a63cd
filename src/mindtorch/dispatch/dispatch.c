/* SPDX-License-Identifier: Apache-2.0
 *
 * Dispatch: see dispatch.h for the steps of a call.
 *
 *   DI1  A call that fails returns no results: they are NONE, and temporaries are released.
 *   DI2  Inside a leaf nothing is recorded in graphs (thread state below_autograd); for a
 *        composite, the ops that it calls are recorded.
 *   DI3  The version of a tensor that an op writes is raised after the kernels were launched and
 *        before autograd attaches the result, so that a saved result has the new version.
 *   DI4  While nothing is recorded and no input needs a gradient, a call costs only the checks and
 *        the op.
 */
#include "mindtorch/dispatch/dispatch.h"

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "mindtorch/core/device/backends.h"
#include "mindtorch/core/memory/memory.h"
#include "mindtorch/core/thread/thread_state.h"
#include "mindtorch/dispatch/autocast_impl.h"
#include "mindtorch/dispatch/autograd_hook.h"
#include "mindtorch/dispatch/call.h"
#include "mindtorch/dispatch/call_words.h"
#include "mindtorch/dispatch/overload_names.h"
#include "mindtorch/dispatch/user_ops.h"
#include "mindtorch/trace/op_trace.h"

#include <string.h>

/* The result of one pass over the arguments. */
typedef struct survey {
    mt_device device;   /* of tensors with dimensions; MT_DEVICE_NONE: none found yet */
    mt_device device_0; /* of 0-d tensors that are not on the host; likewise */
    bool host_0;        /* there are 0-d tensors on the host */
    bool wants_grad;
    bool is_complex; /* a tensor, or the type that is asked for */
} survey;

static MT_COLD int refuse_kind(const mt__op_row *row, uint32_t i, const mt_value *value)
{
    static const char *const names[MT_KIND_COUNT] = {
        "None",     "bool", "int",         "float",        "Tensor",    "int[]",
        "Tensor[]", "str",  "torch.dtype", "torch.device", "Generator",
    };
    const char *got = value->kind < MT_KIND_COUNT ? names[value->kind] : "an unknown kind";
    if (value->kind == MT_KIND_TENSOR || value->kind == MT_KIND_TENSORS) {
        return mtb_fail(MT_ETYPE,
                        "%s(): argument '%s' (position %u) is a tensor, or a list, that is "
                        "missing or not what '%s' takes",
                        row->name, row->params[i].name, i + 1, row->schema);
    }
    return mtb_fail(MT_ETYPE, "%s(): argument '%s' (position %u) cannot be %s; schema %s",
                    row->name, row->params[i].name, i + 1, got, row->schema);
}

/* Two devices of tensors among the arguments, and the parameter with the second one. */
typedef struct two_devices {
    mt_device first, other;
    const char *name;
    bool with_numbers; /* 0-d host tensors count */
} two_devices;

static void see_device(two_devices *two, const mt_tensor *tensor, const char *name)
{
    bool counts =
        tensor != NULL && (two->with_numbers || tensor->n_dims > 0 || tensor->device != MT_CPU);
    if (counts && two->first == MT_DEVICE_NONE) {
        two->first = tensor->device;
    } else if (counts && two->other == MT_DEVICE_NONE && tensor->device != two->first) {
        two->other = tensor->device;
        two->name = name;
    }
}

static two_devices find_devices(const mt__op_row *row, const mt_value *args, bool with_numbers)
{
    two_devices two = {MT_DEVICE_NONE, MT_DEVICE_NONE, "", with_numbers};
    for (uint32_t i = 0; i < row->n_params; i++) {
        if (args[i].kind == MT_KIND_TENSOR) {
            see_device(&two, args[i].of.tensor, row->params[i].name);
        }
        /* The lists of ANY_DEVICE rows are indices, which may be anywhere. */
        bool list = args[i].kind == MT_KIND_TENSORS && (row->flags & MT_OP_ANY_DEVICE) == 0;
        for (uint32_t k = 0; list && args[i].of.tensors != NULL && k < args[i].count; k++) {
            see_device(&two, args[i].of.tensors[k], row->params[i].name);
        }
    }
    return two;
}

MT_COLD int mt__refuse_devices(const mt__op_row *row, const mt_value *args)
{
    two_devices two = find_devices(row, args, false);
    if (two.other == MT_DEVICE_NONE) {
        two = find_devices(row, args, true);
    }
    if (two.first == MT_META || two.other == MT_META) {
        return mtb_fail(MT_ERUNTIME, "Tensor on device %s is not on the expected device %s!",
                        mt_device_name(two.other), mt_device_name(two.first));
    }
    if ((row->flags & (MT_OP_POINTWISE | MT_OP_ANY_DEVICE)) != 0) {
        bool host_first = two.first == MT_CPU; /* torch names the accelerator first */
        return mtb_fail(MT_ERUNTIME,
                        "Expected all tensors to be on the same device, but found at least two "
                        "devices, %s and %s!",
                        mt_device_name(host_first ? two.other : two.first),
                        mt_device_name(host_first ? two.first : two.other));
    }
    return mtb_fail(MT_ERUNTIME,
                    "Expected all tensors to be on the same device, but got %s is on %s, different "
                    "from other tensors on %s (when checking argument in method wrapper_NPU_%s)",
                    two.name, mt_device_name(two.other), mt_device_name(two.first), row->name);
}

MT_INLINE int survey_tensor(survey *s, const mt__op_row *row, const mt_value *args,
                            const mt_tensor *tensor)
{
    /* A view's own flag is not set yet if its base entered a graph through an in-place write. */
    s->is_complex |= tensor->dtype >= MT_DTYPE_C64;
    s->wants_grad |= tensor->requires_grad || (tensor->base != NULL && tensor->base->requires_grad);
    if (tensor->n_dims == 0 && tensor->device == MT_CPU) {
        s->host_0 = true;
        return MT_OK;
    }
    if (tensor->n_dims == 0) {
        bool other = s->device_0 != MT_DEVICE_NONE && s->device_0 != tensor->device;
        if (MT_UNLIKELY(other && (row->flags & MT_OP_ANY_DEVICE) == 0)) {
            return mt__refuse_devices(row, args);
        }
        s->device_0 = tensor->device;
        return MT_OK;
    }
    if (MT_UNLIKELY(s->device != tensor->device)) {
        if (s->device != MT_DEVICE_NONE) {
            if ((row->flags & MT_OP_ANY_DEVICE) != 0) {
                return MT_OK;
            }
            return mt__refuse_devices(row, args);
        }
        s->device = tensor->device;
    }
    return MT_OK;
}

static int survey_list(survey *s, const mt__op_row *row, uint32_t i, const mt_value *args)
{
    const mt_value *value = &args[i];
    if (value->count > 0 && value->of.tensors == NULL) {
        return refuse_kind(row, i, value);
    }
    for (uint32_t k = 0; k < value->count; k++) {
        if (value->of.tensors[k] != NULL) {
            MT_TRY(survey_tensor(s, row, args, value->of.tensors[k]));
        } else if (!row->params[i].has_gaps) {
            return refuse_kind(row, i, value);
        }
    }
    return MT_OK;
}

static int survey_args(survey *s, const mt__op_row *row, const mt_value *args)
{
    for (uint32_t i = 0; i < row->n_params; i++) {
        uint32_t kind = args[i].kind;
        if (MT_UNLIKELY(kind >= MT_KIND_COUNT || (row->params[i].accepts >> kind & 1) == 0)) {
            return refuse_kind(row, i, &args[i]);
        }
        if (kind == MT_KIND_TENSOR) {
            if (MT_UNLIKELY(args[i].of.tensor == NULL)) {
                return refuse_kind(row, i, &args[i]);
            }
            MT_TRY(survey_tensor(s, row, args, args[i].of.tensor));
        } else if (kind == MT_KIND_TENSORS) {
            MT_TRY(survey_list(s, row, i, args));
        } else if (kind == MT_KIND_DTYPE) {
            s->is_complex |=
                args[i].of.integer >= MT_DTYPE_C64 && args[i].of.integer < MT_DTYPE_COUNT;
        }
    }
    return MT_OK;
}

/* Creation ops: the device is an argument. */
static int factory_device(const mt__op_row *row, const mt_value *args, mt_device *device)
{
    for (uint32_t i = 0; i < row->n_params; i++) {
        if (args[i].kind == MT_KIND_DEVICE) {
            *device = (mt_device)args[i].of.integer;
            return mt__place_check(row->name, *device);
        }
    }
    return MT_OK;
}

/* Ops in which a 0-d host tensor is used as a number together with tensors of a device: pointwise
 * ops, and composites, which leave it to the ops that they call. */
static const uint32_t takes_numbers = MT_OP_POINTWISE | MT_OP_COMPOSITE | MT_OP_USER;

/* Where the work is done: dimensioned tensors, then 0-d ones, then the host. */
static int find_device(const survey *s, const mt__op_row *row, const mt_value *args,
                       mt_device *device)
{
    if (MT_UNLIKELY((row->flags & MT_OP_ANY_DEVICE) != 0)) {
        *device = args[0].of.tensor->device;
        return MT_OK;
    }
    *device = s->device != MT_DEVICE_NONE     ? s->device
              : s->device_0 != MT_DEVICE_NONE ? s->device_0
                                              : MT_CPU;
    if (MT_UNLIKELY(s->device_0 != MT_DEVICE_NONE && s->device_0 != *device)) {
        return mt__refuse_devices(row, args);
    }
    if (MT_UNLIKELY(*device != MT_CPU && s->host_0 && (row->flags & takes_numbers) == 0)) {
        return mt__refuse_devices(row, args);
    }
    return MT_UNLIKELY((row->flags & MT_OP_FACTORY) != 0) ? factory_device(row, args, device)
                                                          : MT_OK;
}

static void drop_temps(mt__call *call)
{
    for (uint32_t i = 0; i < call->n_temps; i++) {
        mt_tensor_release(call->temps[i]);
    }
    call->n_temps = 0;
}

static void drop_results(mt__call *call)
{
    for (uint32_t i = 0; i < call->row->n_results; i++) {
        mt_value_clear(&call->results[i]);
    }
}

static void bump_lists(const mt__call *call)
{
    for (uint32_t i = 0; i < call->row->n_params; i++) {
        if (mt__is_written_list(call, i)) {
            for (uint32_t k = 0; k < call->args[i].count; k++) {
                mt__tensor_bump(call->args[i].of.tensors[k]);
            }
        }
    }
}

/* An op in place may have called others on its tensor, which have raised the version. */
MT_INLINE void bump_once(mt_tensor *tensor, uint32_t before)
{
    if (MT_LIKELY(mt__tensor_version(tensor) == before)) {
        mt__tensor_bump(tensor);
    }
}

/* The op itself. */
static int run_op(mt__call *call)
{
    const mt__op_row *row = call->row;
    uint32_t before =
        (row->flags & MT_OP_INPLACE) != 0 ? mt__tensor_version(call->args[0].of.tensor) : 0;
    int status = 0;
    if ((row->flags & MT_OP_USER) != 0) {
        status = row->user_run(row->user_context, call->args, call->results);
        if (status == MT_OK) {
            status = mt__user_results_check(call);
        }
    } else {
        status = MT_LIKELY(!call->is_complex) ? row->run(call) : mt__complex_run(call);
    }
    drop_temps(call);
    if (MT_UNLIKELY(status != MT_OK)) {
        drop_results(call);
        return status;
    }
    if (MT_UNLIKELY((row->flags & MT_OP_COMPOSITE) != 0)) {
        return MT_OK; /* the ops that it called have done this */
    }
    if ((row->flags & MT_OP_INPLACE) != 0) {
        bump_once(call->args[0].of.tensor, before);
    } else if (MT_UNLIKELY((row->flags & MT_OP_OPTIMIZER) != 0)) {
        bump_lists(call);
    }
    return MT_OK;
}

static int run_recorded(mt__call *call, bool record)
{
    mt__recording recording = {NULL, NULL};
    if (MT_UNLIKELY(call->is_complex && record && (call->row->flags & MT_OP_USER) == 0)) {
        MT_TRY(mt__complex_check_derivative(call));
    }
    MT_TRY(mt__autograd_before(call, record, &recording));
    mt__thread.below_autograd++;
    int status = run_op(call);
    mt__thread.below_autograd--;
    if (status != MT_OK) {
        mt__autograd_drop(&recording);
        return status;
    }
    if (!record) {
        mt__autograd_drop(&recording);
        return MT_OK;
    }
    status = mt__autograd_after(call, &recording);
    if (status != MT_OK) {
        drop_results(call);
    }
    return status;
}

/* With or without a graph, depending on grad mode and inputs. */
MT_INLINE int run_with_autograd(mt__call *call, bool wants_grad)
{
    const mt__op_row *row = call->row;
    if ((row->flags & MT_OP_COMPOSITE) != 0 || mt__thread.below_autograd > 0) {
        return run_op(call);
    }
    bool record =
        wants_grad && !mt__thread.grad_disabled &&
        (row->user_backward != NULL || (row->derivative != NULL && row->derivative->run != NULL));
    if (record || (row->flags & (MT_OP_INPLACE | MT_OP_OPTIMIZER)) != 0) {
        return run_recorded(call, record);
    }
    mt__thread.below_autograd++;
    int status = run_op(call);
    mt__thread.below_autograd--;
    return status;
}

/* The device that a profile reports for a call: the accelerator also if the first operand is on the
 * host and only another one is there; of two accelerators the one that the call names, on which the
 * result is made. */
static mt_device shown_device(const mt__call *call)
{
    const mt__op_row *row = call->row;
    mt_device shown = call->device;
    for (uint32_t i = 0; (row->flags & MT_OP_ANY_DEVICE) != 0 && i < row->n_params; i++) {
        const mt_value *value = &call->args[i];
        if (value->kind == MT_KIND_DEVICE && mt__is_accelerator((mt_device)value->of.integer)) {
            return (mt_device)value->of.integer;
        }
        if (value->kind == MT_KIND_TENSOR && shown == MT_CPU) {
            shown = value->of.tensor->device;
        }
    }
    return MT_UNLIKELY(shown == MT_META) ? MT_CPU : shown;
}

static MT_NOINLINE mt__trace_site *find_site(const mt__call *call)
{
    const mt__op_row *row = call->row;
    bool far = shown_device(call) != MT_CPU;
    if ((row->flags & MT_OP_USER) != 0) {
        return mt__trace_op_site(row->trace_name, far);
    }
    return mt__trace_row_site(row->op, far);
}

/* Most ops are ours, and on the device of their arguments. */
MT_INLINE mt__trace_site *site_of(const mt__call *call)
{
    bool plain = (call->row->flags & (MT_OP_USER | MT_OP_ANY_DEVICE)) == 0;
    return MT_LIKELY(plain && call->device == MT_CPU) ? mt__trace_row_site(call->row->op, false)
                                                      : find_site(call);
}

/* A call whose inputs need more room than an ordinary one's. */
static MT_COLD mt__trace_token begin_long(const mt__call *call, mt__trace_site *site, bool strides,
                                          mt__trace_op *payload)
{
    mt__trace_words words;
    if (mt__trace_words_init_large(&words)) {
        mt__call_words_large(call->row, call->args, strides, &words);
    }
    mt__trace_token token = mt__trace_long_begin(site, &words, payload);
    mt__trace_words_fini_large(&words);
    return token;
}

/* All of them, for a call with long lists; another thread may have changed their number
 * meanwhile. */
static MT_COLD mt__trace_ref *gather_refs(const mt__call *call, mt__trace_op *payload)
{
    uint32_t room = payload->n_tensors;
    mt__trace_ref *refs = mtb_calloc(room, sizeof *refs);
    if (refs != NULL) {
        uint32_t n = mt__call_refs(call->row, call->args, refs, room);
        payload->n_tensors = n < room ? n : room;
    }
    return refs;
}

static MT_COLD void set_overload(const mt__call *call, mt__trace_op *payload)
{
    mt__trace_set_overload(payload, mt__overload_of(call->row, call->args));
}

/* Together, so that a recording without them has one branch. */
MT_INLINE void set_rare(const mt__call *call, uint32_t wants, mt__trace_op *payload)
{
    uint32_t rule = call->row->flags >> 24;
    if (MT_UNLIKELY((wants & MT_TRACE_OVERLOADS) != 0)) {
        set_overload(call, payload);
    }
    if ((wants & MT_TRACE_FLOPS) != 0 && rule != 0) {
        mt__trace_set_flops(payload, mt__flops_of(rule, call->args, call->row->n_params));
    }
}

/* Inputs, identities, FLOPs, overloads: details that depend on the arguments. */
static MT_NOINLINE mt__trace_token begin_shown(const mt__call *call, mt__trace_site *site,
                                               uint32_t wants, mt__trace_op *payload)
{
    const mt__op_row *row = call->row;
    mt__trace_words words;
    mt__trace_ref refs[MT_TRACE_REFS];
    mt__trace_ref *long_refs = NULL;
    mt__trace_token token = 0;
    if ((wants & MT_TRACE_TENSORS) != 0) {
        payload->tensors = refs;
        payload->n_tensors = mt__call_refs(row, call->args, refs, MT_TRACE_REFS);
        if (MT_UNLIKELY(payload->n_tensors > MT_TRACE_REFS)) {
            payload->tensors = long_refs = gather_refs(call, payload); /* NULL: counted as cut */
        }
    }
    if ((wants & (MT_TRACE_FLOPS | MT_TRACE_OVERLOADS)) != 0) {
        set_rare(call, wants, payload);
    }
    if ((wants & MT_TRACE_INPUTS) == 0 || row->n_params == 0) {
        token = mt__trace_op_begin(site, payload);
    } else {
        bool strides = (wants & MT_TRACE_STRIDES) != 0;
        mt__call_words(row, call->args, strides, &words);
        token = MT_LIKELY(!words.cut) ? mt__trace_shown_begin(site, &words, payload)
                                      : begin_long(call, site, strides, payload);
    }
    if (MT_UNLIKELY(long_refs != NULL)) {
        mtb_free(long_refs);
    }
    payload->tensors = NULL; /* refs and words go out of scope here */
    payload->scalars = NULL;
    return token;
}

/* Begins the op with the details that the recording wants. */
MT_INLINE mt__trace_token begin_with_payload(const mt__call *call, mt__trace_site *site,
                                             uint32_t wants)
{
    mt__trace_op payload =
        MT_TRACE_OP_INIT(mt__thread.grad_disabled || mt__thread.below_autograd != 0 ||
                             (call->row->flags & MT_OP_UNNUMBERED) != 0,
                         mt__thread.sequence);
    if ((wants & MT_TRACE_MEMORY) != 0) {
        mt_device device = shown_device(call);
        mt__trace_set_memory(&payload, mt__trace_device(device), mt__memory_allocated(device));
    }
    bool looks =
        (wants & (MT_TRACE_INPUTS | MT_TRACE_TENSORS | MT_TRACE_FLOPS | MT_TRACE_OVERLOADS)) != 0;
    return looks ? begin_shown(call, site, wants, &payload) : mt__trace_op_begin(site, &payload);
}

static MT_NOINLINE void tell_results(const mt__call *call, mt__trace_token token)
{
    mt__trace_ref refs[MT_TRACE_REFS];
    uint32_t n_results = call->row->n_results;
    uint32_t n = mt__result_refs(call->results, n_results, refs, MT_TRACE_REFS);
    if (MT_LIKELY(n <= MT_TRACE_REFS)) {
        mt__trace_op_outputs(token, refs, n);
        return;
    }
    mt__trace_ref *long_refs = mtb_calloc(n, sizeof *long_refs);
    if (long_refs != NULL) {
        (void)mt__result_refs(call->results, n_results, long_refs, n);
    }
    mt__trace_op_outputs(token, long_refs, n); /* NULL: counted as cut */
    mtb_free(long_refs);
}

MT_INLINE int run_or_cast(mt__call *call, bool wants_grad)
{
    return MT_LIKELY(call->cast_to == MT_DTYPE_NONE) ? run_with_autograd(call, wants_grad)
                                                     : mt__autocast_run(call);
}

static MT_NOINLINE int run_traced(mt__call *call, bool wants_grad)
{
    if (MT_UNLIKELY((call->row->flags & MT_OP_QUIET) != 0 && call->args[0].of.tensor->contiguous)) {
        return run_or_cast(call, wants_grad);
    }
    mt__trace_site *site = site_of(call);
    uint32_t wants = mt__trace_wants();
    mt__trace_token token = 0;
    if (MT_LIKELY(site != NULL)) {
        token = (wants & MT_TRACE_PAYLOADS) != 0 ? begin_with_payload(call, site, wants)
                                                 : mt__trace_begin(site);
    }
    int status = run_or_cast(call, wants_grad);
    if (MT_UNLIKELY((wants & MT_TRACE_TENSORS) != 0 && status == MT_OK)) {
        tell_results(call, token);
    }
    if ((wants & MT_TRACE_MEMORY) != 0) {
        mt_device device = shown_device(call);
        mt__trace_op_end(token, mt__trace_device(device), mt__memory_allocated(device));
    } else {
        mt__trace_end(token);
    }
    return status;
}

int mt__dispatch(const mt__op_row *row, const mt_value *args, mt_value *results)
{
    mt__call call;
    call.row = row;
    call.args = args;
    call.results = results;
    call.n_temps = 0;
    call.cast_to = MT_DTYPE_NONE;
    for (uint32_t i = 0; i < row->n_results; i++) {
        results[i].kind = MT_KIND_NONE;
    }
    survey s = {.device = MT_DEVICE_NONE, .device_0 = MT_DEVICE_NONE};
    MT_TRY(survey_args(&s, row, args));
    MT_TRY(find_device(&s, row, args, &call.device));
    call.is_complex = s.is_complex;
    if (MT_UNLIKELY(mt__thread.autocast != 0)) {
        call.cast_to = (uint16_t)mt__autocast_type(row, args);
    }
    return mt__trace_on() ? run_traced(&call, s.wants_grad) : run_or_cast(&call, s.wants_grad);
}

int mt__give_list(mt__call *call, uint32_t i, mt_tensor *const *tensors, uint32_t count)
{
    /* One more than needed: a list of none is not NULL. mt_value_clear() frees it. */
    mt_tensor **list = mtb_calloc((size_t)count + 1, sizeof(mt_tensor *));
    if (list == NULL) {
        for (uint32_t k = 0; k < count; k++) {
            mt_tensor_release(tensors[k]);
        }
        return mtb_fail(MT_ENOMEM, "%s(): no memory for a list of %u tensors", call->row->name,
                        count);
    }
    for (uint32_t k = 0; k < count; k++) {
        list[k] = tensors[k];
    }
    call->results[i] = (mt_value){.kind = MT_KIND_TENSORS, .count = count, .of.tensors = list};
    return MT_OK;
}
