// SPDX-License-Identifier: Apache-2.0
//
// Where a record of torch has its fields, found with torch's own headers: tier "compiled" of
// libmtprof_torch, for a libtorch whose layout is not the known one. _shim.py builds it on the
// user's machine; the library opens it (torch_layout.c) and checks what it says with known ops.
//
// A record is made here with values that occur once, by torch's public functions. Where a value is
// in the object's bytes is where its field is. The thread's id is a small number that may occur
// more than once: the place that fits on two threads is taken.
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

namespace
{

struct Places { // of fields in a record, in bytes; the order of th__shim_number
    uint32_t abi, thread, sequence, inputs, n_inputs, forward_thread, outputs;
    uint32_t tag_tensor, value_bytes;
};
constexpr uint32_t kAbi = 1;
constexpr uint32_t kNone = UINT32_MAX;

using Bytes = std::vector<unsigned char>;

bool has_at(const Bytes &bytes, uint32_t offset, uint64_t value)
{
    return offset + sizeof value <= bytes.size() &&
           std::memcmp(bytes.data() + offset, &value, sizeof value) == 0;
}

// Where all of the records have their value; kNone: nowhere, or in more than one place.
uint32_t place_of(const std::vector<Bytes> &records, const std::vector<uint64_t> &values)
{
    uint32_t found = kNone;
    for (uint32_t offset = 0; offset < records[0].size(); offset += sizeof(uint64_t)) {
        bool fits = true;
        for (size_t i = 0; i < records.size(); i++) {
            fits = fits && has_at(records[i], offset, values[i]);
        }
        if (fits && found != kNone) {
            return kNone;
        }
        found = fits ? offset : found;
    }
    return found;
}

struct Sample {
    Bytes begun, ended; // the record when its op begins, and when it has outputs
    uint64_t thread = 0, sequence = 0, inputs = 0, n_inputs = 0, forward = 0, outputs = 0;
};

thread_local Sample *current;

Bytes bytes_of(const at::RecordFunction &record)
{
    const unsigned char *first = reinterpret_cast<const unsigned char *>(&record);
    return Bytes(first, first + sizeof record);
}

std::unique_ptr<at::ObserverContext> begins(const at::RecordFunction &record)
{
    if (current != nullptr && current->begun.empty()) {
        current->thread = record.threadId();
        current->begun = bytes_of(record);
    }
    return nullptr;
}

void ends(const at::RecordFunction &, at::ObserverContext *)
{
}

void make_sample(Sample *sample, uint64_t number)
{
    current = sample;
    at::RecordFunction record(at::RecordScope::FUNCTION);
    std::vector<c10::IValue> inputs(5 + number);
    std::vector<c10::IValue> outputs(3);
    sample->sequence = 0x5EA1000000 + number;
    sample->forward = 0x70AD000000 + number;
    sample->inputs = reinterpret_cast<uintptr_t>(inputs.data());
    sample->n_inputs = inputs.size();
    sample->outputs = reinterpret_cast<uintptr_t>(outputs.data());
    record.before("mtprof::known", c10::ArrayRef<const c10::IValue>(inputs.data(), inputs.size()),
                  static_cast<int64_t>(sample->sequence));
    record.setForwardThreadId(sample->forward);
    record.setOutputs(std::move(outputs)); // it keeps the memory
    sample->ended = bytes_of(record);
    current = nullptr;
}

bool find_places(Places *out)
{
    std::vector<Sample> samples(2);
    at::CallbackHandle handle = at::addGlobalCallback(at::RecordFunctionCallback(begins, ends)
                                                          .needsInputs(true)
                                                          .needsOutputs(true)
                                                          .scopes({at::RecordScope::FUNCTION}));
    make_sample(&samples[0], 0);
    std::thread other(make_sample, &samples[1], 1);
    other.join();
    at::removeCallback(handle);
    if (samples[0].begun.empty() || samples[1].begun.empty()) {
        return false;
    }
    const std::vector<Bytes> begun = {samples[0].begun, samples[1].begun};
    const std::vector<Bytes> ended = {samples[0].ended, samples[1].ended};
    auto place = [&](const std::vector<Bytes> &records, uint64_t Sample::*field) {
        return place_of(records, {samples[0].*field, samples[1].*field});
    };
    out->thread = place(begun, &Sample::thread);
    out->sequence = place(begun, &Sample::sequence);
    out->inputs = place(begun, &Sample::inputs);
    out->n_inputs = place(begun, &Sample::n_inputs);
    out->forward_thread = place(ended, &Sample::forward);
    out->outputs = place(ended, &Sample::outputs);
    const c10::IValue tensor{at::Tensor()};
    std::memcpy(&out->tag_tensor,
                reinterpret_cast<const unsigned char *>(&tensor) + sizeof(uint64_t),
                sizeof out->tag_tensor);
    out->value_bytes = sizeof(c10::IValue);
    return out->thread != kNone && out->sequence != kNone && out->inputs != kNone &&
           out->n_inputs != kNone && out->forward_thread != kNone && out->outputs != kNone;
}

} // namespace

// False: a field was not found.
extern "C" __attribute__((visibility("default"))) bool mtprof_torch_shim(Places *out)
{
    *out = Places{};
    out->abi = kAbi;
    try {
        return find_places(out);
    } catch (const std::exception &) {
        return false;
    }
}
