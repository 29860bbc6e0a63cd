# SPDX-License-Identifier: Apache-2.0
"""Tests the op table, row by row: run_ops.py LIBRARY [--family NAME | --complete] [--op NAME] ...

For every row x dtype x layout: the value against the case's NumPy reference, its type and shape,
inputs unchanged, views that share storage and other results that do not, in-place rows (derived
from the row without the underscore where they have no cases), gradients against differences, bad
inputs with torch's exception, tensors all given back.

On a device (--device npu:0 --backend sim) what a kernel finds wrong is known when the device is waited
for: bad input fails at the call or then, once, and what comes after is clean. --share N runs one case
of N of each row, which ones depends on --seed; the first of each type is always among them.
"""
import argparse
import ctypes
import importlib
import os
import pathlib
import sys
import time
import traceback
import zlib

import extremes
import gradients
import layouts
import mt
import numpy as np
import op_table
import opcases
from layouts import collect, map_arrays, place_all, strip

HERE = pathlib.Path(__file__).resolve().parent
FAMILIES = ("create", "pointwise", "gamma", "special", "reduce", "view", "index", "order", "matrix", "linalg", "eig",
            "image", "resample", "volume", "grid", "rnn", "nn", "complex", "compose", "alias", "math", "optim")
TOLERANCES = {"float64": (1e-11, 1e-12), "float32": (2e-5, 2e-6), "float16": (2e-3, 1e-3),
              "bfloat16": (1.6e-2, 1e-2)}
CATEGORY = {"bool": 0, **dict.fromkeys(opcases.INTEGERS + opcases.SHORTS + opcases.UNSIGNED, 1)}
SAMPLED_SHARE = 4  # one case of these in the types that are sampled
LONG = os.environ.get("MT_LONG", "0") != "0"
SHOWN = 4  # failures of a row
LARGE = 40000  # rows of made cases
EXTREME_CASES = 4  # cases of a reduction that are made extreme, for each type
META_DTYPE = "float32"  # whose cases are tried on the device meta too
WAITS_BACKWARD = {"masked_scatter", "masked_scatter_"}  # a gradient's size depends on data
WAITS_FOR_HOST = {"copy_", "to", "_to_copy"}  # SYNC rows that wait where the result is the host's


def table_rows():
    """Names of all rows."""
    return [schema.split("(")[0] for schema in op_table.schemas().values()]


def category(dtype):
    return CATEGORY.get(dtype, 2)


def tensors_of(value):
    return [strip(a) for a in collect(value, (np.ndarray, opcases.Fixed))]


def for_reference(value, exact):
    """Arguments as the reference sees them."""

    def one(array):
        array = strip(array)
        if exact:
            return np.asarray(array)
        return np.asarray(array, np.float64) if array.dtype.kind == "f" else np.array(array)

    return map_arrays(value, one)


def widest_float(arrays):
    """The floating type that tensors promote to; dimensioned ones go before 0-d ones."""
    for group in ([a for a in arrays if a.ndim > 0], [a for a in arrays if a.ndim == 0]):
        names = {mt.dtype_of(a) for a in group if a.dtype.kind == "f"}
        if names:
            if names == {"float16", "bfloat16"}:
                return "float32"
            return max(names, key=mt.DTYPES.index)
    return "float32"


def expected_type(case, index, reference, arrays):
    if case.result is not None:
        return case.result[index] if isinstance(case.result, tuple) else case.result
    value = np.asarray(reference)
    return widest_float(arrays) if value.dtype.kind == "f" else value.dtype.name


def cast(value, dtype):
    with np.errstate(all="ignore"):
        if dtype == "bfloat16":
            return np.asarray(mt.bfloat16(value), np.float64)
        return np.asarray(value).astype(dtype)


def compare(got, reference, dtype, case, what):
    """One tensor against one array."""
    if not isinstance(got, mt.Tensor):
        raise AssertionError(f"{what} is {got!r}, expected a tensor")
    if got.dtype != dtype:
        raise AssertionError(f"{what} has type {got.dtype}, expected {dtype}")
    if got.shape != np.shape(reference):
        raise AssertionError(f"{what} has shape {got.shape}, expected {np.shape(reference)}")
    expected = cast(reference, dtype)
    values = got.numpy()
    if category(dtype) != 2:
        same = np.asarray(values == expected)
    else:
        rtol, atol = TOLERANCES[dtype]
        rtol = case.rtol if case.rtol is not None else rtol
        atol = case.atol if case.atol is not None else atol
        with np.errstate(all="ignore"):
            same = np.isclose(np.asarray(values, np.float64), np.asarray(expected, np.float64),
                              rtol, atol, equal_nan=case.equal_nan)
    if not np.all(same):
        index = tuple(int(i) for i in np.argwhere(~np.atleast_1d(same))[0])
        at = index if np.ndim(same) else ()
        raise AssertionError(f"{what} at {at} is {values[at]!r}, expected {expected[at]!r} "
                             f"({int(np.size(same) - np.sum(same))} of {np.size(same)} differ)")


def compare_results(got, reference, case, arrays):
    if isinstance(reference, list):
        if not isinstance(got, list) or len(got) != len(reference):
            raise AssertionError(f"result is {got!r}, expected {len(reference)} tensors")
        for index, (g, r) in enumerate(zip(got, reference)):
            compare(g, r, expected_type(case, index, r, arrays), case, f"tensor {index}")
    elif isinstance(reference, tuple):
        if not isinstance(got, tuple) or len(got) != len(reference):
            raise AssertionError(f"result is {got!r}, expected {len(reference)} results")
        for index, (g, r) in enumerate(zip(got, reference)):
            if r is not None:
                compare(g, r, expected_type(case, index, r, arrays), case, f"result {index}")
    elif isinstance(got, mt.Tensor):
        compare(got, reference, expected_type(case, 0, reference, arrays), case, "result")
    else:
        same = got == reference or (got != got and reference != reference)
        if isinstance(reference, float) and isinstance(got, float):
            same = same or abs(got - reference) <= 1e-6 * abs(reference)
        if not same or isinstance(got, bool) != isinstance(reference, (bool, np.bool_)):
            raise AssertionError(f"result is {got!r}, expected {reference!r}")


class Runner:
    def __init__(self, options):
        self.options = options
        self.device = options.device
        self.calls = self.gradients = self.failed = 0
        self.simulated = mt.held().sim is not None
        self.sampled = ()  # types of the row under test that are not its cases'

    # ---- one call ----

    def call(self, op, args, kwargs):
        self.calls += 1
        if "RANDOM" in op.flags:
            mt.manual_seed(1234)
        if "FACTORY" in op.flags and self.device != "cpu":
            kwargs = {"device": self.device, **kwargs}
        return mt.call(op.name, *args, **kwargs)

    def call_held(self, op, args, kwargs):
        """A call that must not wait for the device unless the row says so. The simulated accelerator
        tells."""
        with mt.held() as device:
            got = self.call(op, args, kwargs)
        self.check_waits(op, device.waited)
        return got

    def check_waits(self, op, waited):
        self.row_waited = self.row_waited or waited
        if waited and "SYNC" not in op.flags:
            raise AssertionError("it waited for the device, and the row is not SYNC")

    def laid_out(self, case, layout):
        """The arguments' arrays as a layout can have them."""
        if layout != "broadcast":
            return case.args, case.kwargs
        return map_arrays((case.args, case.kwargs),
                          lambda a: a if isinstance(a, opcases.Fixed) else layouts.repeat(a))

    def run_value(self, op, case, layout):
        writes = "INPLACE" in op.flags
        args, kwargs = self.laid_out(case, layout)
        tensors, kwtensors = place_all((args, kwargs), layout, self.device, keep_first=writes and
                                       layout == "broadcast")
        arrays = tensors_of((args, kwargs))
        version = tensors[0].version if writes else 0
        call = self.call_held if layout in ("contiguous", "mixed") else self.call
        try:
            got = call(op, tensors, kwtensors)
        except NotImplementedError as error:
            if "not implemented for 'UInt" in str(error):
                return  # uint16 and its like have few ops
            raise
        if case.reference is not None:
            with np.errstate(all="ignore"):
                reference = case.reference(*for_reference(args, case.exact),
                                           **for_reference(kwargs, case.exact))
            compare_results(got, reference, case, arrays)
        if case.check is not None:
            case.check(got, tensors, args)
        if writes:
            self.check_written(op, got, tensors[0], version, arrays[0])
        self.check_inputs(op, (tensors, kwtensors), arrays)
        self.check_sharing(op, got, collect((tensors, kwtensors), mt.Tensor))

    @staticmethod
    def check_written(op, got, self_tensor, version, before):
        """The version grows by one; a composite that had nothing to write leaves it."""
        if got.handle != self_tensor.handle:
            raise AssertionError("the result is not the tensor that was written")
        idle = "COMPOSITE" in op.flags and np.array_equal(self_tensor.numpy(), before, equal_nan=True)
        if self_tensor.version == version and not idle:
            raise AssertionError(f"the version stayed {version}")
        if self_tensor.version > version + 1 and "COMPOSITE" in op.flags:
            raise AssertionError(f"the version went from {version} to {self_tensor.version}")

    @staticmethod
    def check_inputs(op, tensors, arrays):
        if "OPTIMIZER" in op.flags:
            return
        flat = collect(tensors, mt.Tensor)
        for index, (tensor, array) in enumerate(zip(flat, arrays)):
            if index == 0 and "INPLACE" in op.flags:
                continue
            values = np.asarray(tensor.numpy())
            if not np.array_equal(values, array, equal_nan=array.dtype.kind == "f"):
                if op.name.split(".")[0].endswith("batch_norm"):
                    continue  # writes its running statistics
                raise AssertionError(f"input {index} was changed")

    @staticmethod
    def check_sharing(op, got, inputs):
        results = [t for t in collect(got, mt.Tensor) if t.numel > 0]
        if "VIEW" in op.flags:
            for tensor in results:
                if tensor.storage != inputs[0].storage:
                    raise AssertionError("a view has a storage of its own")
        elif not op.flags & {"COMPOSITE", "INPLACE"}:
            taken = {t.storage for t in inputs if t.numel > 0}
            if any(t.storage in taken for t in results):
                raise AssertionError("a result shares an input's storage")

    # ---- without elements ----

    def run_meta(self, op, case, dtype):
        """On the device meta results have the types, shapes and strides of the host's. A row that must see elements
        says so."""
        host, host_kwargs = place_all((case.args, case.kwargs), "contiguous", "cpu")
        meta, meta_kwargs = place_all((case.args, case.kwargs), "contiguous", "meta")
        given = {"device": "meta"} if "FACTORY" in op.flags else {}
        expected = collect(self.call(op, host, host_kwargs), mt.Tensor)
        try:
            got = collect(mt.call(op.name, *meta, **{**meta_kwargs, **given}), mt.Tensor)
        except (NotImplementedError, RuntimeError) as error:
            if "SYNC" in op.flags and ("Cannot copy out of meta" in str(error) or "item() cannot be" in str(error)):
                return
            raise
        facts = [[(t.dtype, t.shape, t.strides) for t in tensors] for tensors in (got, expected)]
        if facts[0] != facts[1]:
            raise AssertionError(f"on meta results are {facts[0]}, on the host {facts[1]}")
        if any(t.device != "meta" for t in got) and "ANY_DEVICE" not in op.flags:
            raise AssertionError(f"on meta results are on {[t.device for t in got]}")

    # ---- gradients ----

    def run_gradient(self, op, case, layout, rng):
        def call(args, kwargs):
            if "INPLACE" in op.flags:
                args = (mt.call("clone", args[0]), *args[1:])
            return self.call(op, args, kwargs)

        self.gradients += 1
        problem = gradients.Problem(call, case.args, case.kwargs, case.grad_args, layout,
                                    self.device, rng)
        if layout == "contiguous" and op.name not in WAITS_BACKWARD:
            with mt.held() as device:
                gradients.run_backward(problem)
            self.check_waits(op, device.waited)
        gradients.check_gradient(problem)
        if case.double and layout == "contiguous":
            gradients.check_double(problem)

    # ---- bad input ----

    def run_bad(self, op, bad):
        args, kwargs = place_all((bad.args, bad.kwargs), "contiguous", self.device)
        try:
            got = self.call(op, args, kwargs)
            mt.synchronize(self.device)
        except Exception as error:  # noqa: BLE001: which one it is, is the question
            text = str(error)
            if type(error).__name__ != bad.error or bad.words not in text:
                raise AssertionError(f"raised {type(error).__name__}: {text}; expected "
                                     f"{bad.error} with {bad.words!r}") from None
            try:
                mt.synchronize(self.device)
            except Exception as again:  # noqa: BLE001: whatever it is, it is too much
                raise AssertionError(f"failed twice, then with {again}") from None
            return
        raise AssertionError(f"gave {got!r}, expected {bad.error} with {bad.words!r}")

    # ---- in-place rows made from the others ----

    def written_case(self, case):
        """What the case of row X means for X_: a case, a Bad, or None."""
        if not case.inplace or not case.args or not isinstance(case.args[0], np.ndarray):
            return None
        if case.reference is None:
            return None
        with np.errstate(all="ignore"):
            reference = case.reference(*for_reference(case.args, case.exact),
                                       **for_reference(case.kwargs, case.exact))
        dtype = expected_type(case, 0, reference, tensors_of((case.args, case.kwargs)))
        target = case.args[0]
        own = mt.dtype_of(target)
        if np.shape(reference) != target.shape:
            return opcases.Bad(case.args, "RuntimeError", "", case.kwargs)
        if category(dtype) > category(own):
            return opcases.Bad(case.args, "RuntimeError", "can't be cast", case.kwargs)
        made = opcases.Case(**{**case.__dict__, "result": own, "check": None})
        if dtype != own:
            made.reference = lambda *a, **k: cast(case.reference(*a, **k), own)
        made.double = False
        return made

    # ---- made cases of pointwise rows ----

    @staticmethod
    def made_cases(case):
        """The same call with empty tensors, with 0-d ones, and with ones that are large enough for
        vector loops and several threads."""
        arrays = tensors_of((case.args, case.kwargs))
        if not arrays or case.reference is None:
            return
        n_dims = max(a.ndim for a in arrays)
        if n_dims > 0:
            size = max(a.shape[0] for a in arrays if a.ndim == n_dims)

            def empty(array):
                array = strip(array)
                return array[:0] if array.ndim == n_dims and array.shape[0] == size else array

            args, kwargs = map_arrays((case.args, case.kwargs), empty)
            yield opcases.Case(**{**case.__dict__, "args": args, "kwargs": kwargs, "grad": False,
                                  "note": "made: empty"})

            def large(array):
                array = strip(array)
                if array.ndim != n_dims or array.shape[0] != size or array.size == 0:
                    return array
                tiled = np.tile(array, (LARGE // size + 1,) + (1,) * (n_dims - 1))
                return tiled.view(type(array))

            args, kwargs = map_arrays((case.args, case.kwargs), large)
            yield opcases.Case(**{**case.__dict__, "args": args, "kwargs": kwargs, "grad": False,
                                  "note": "made: large", "layouts": ("contiguous", "transposed",
                                                                     "sliced")})
        if all(a.size > 0 for a in arrays):
            args, kwargs = map_arrays((case.args, case.kwargs),
                                      lambda a: np.array(strip(a).reshape(-1)[:1]).reshape(())
                                      if not isinstance(strip(a), mt.BFloat16)
                                      else strip(a).reshape(-1)[:1].reshape(()))
            yield opcases.Case(**{**case.__dict__, "args": args, "kwargs": kwargs,
                                  "note": "made: 0-d"})

    @staticmethod
    def extreme_cases(op, case, maker, skip):
        """The same call with large and small numbers and with a large mean, where the reference is true in
        float64. torch_extremes.py has the other extremes, and the other rows."""
        if not op.flags & {"POINTWISE", "REDUCTION"} or case.reference is None or maker.dtype not in opcases.FLOATS:
            return
        rng = np.random.default_rng([maker.rng.integers(1 << 30)])
        for made in extremes.value_cases(op, case, maker, rng):
            kind = made.note.removeprefix("all ")
            if kind not in extremes.TRUE or kind in skip.get("extremes", {}):
                continue
            made.note, made.grad, made.atol = f"made: {kind}", False, 0.0
            made.layouts = ("contiguous", "sliced")
            if "REDUCTION" in op.flags:  # sums have the error of their largest part
                with np.errstate(all="ignore"):
                    sizes = np.abs(np.concatenate([np.ravel(np.asarray(a, np.float64)) for a in tensors_of(made.args)]))
                made.atol = TOLERANCES[maker.dtype][0] * float(sizes.max(initial=0.0))
            yield made

    # ---- one row ----

    def takes(self, op, dtype, number):
        """Whether a case is in the share that is run."""
        share = self.options.share * (SAMPLED_SHARE if dtype in self.sampled and not LONG else 1)
        if share == 1 or number == 0:
            return True
        draw = np.random.default_rng([self.options.seed, number] + list(f"{op.name} {dtype}".encode()))
        return draw.integers(share) == 0

    def dtypes_of(self, name, registered):
        """The types of the cases, and samples of types that are computed with in wider ones: kernels have no loops
        for them, so that one type of a row and some cases find what can go wrong. --long runs all. uint16 and its
        like are for rows that move elements: those whose cases name float16. A row may refuse them; torch_ops.py
        says whether torch does."""
        moves = bool(set(registered.dtypes) & set(opcases.HALVES))
        kinds = []
        if "float32" in registered.dtypes and not moves:
            kinds.append(opcases.HALVES)
        if "int32" in registered.dtypes:
            kinds.append(opcases.SHORTS)
            if moves:
                kinds.append(opcases.UNSIGNED)
        draw = zlib.crc32(f"{name} {self.options.seed}".encode())
        self.sampled = tuple(kind for group in kinds for kind in (group if LONG else (group[draw % len(group)],)))
        return registered.dtypes + self.sampled

    def sampled_items(self, op, registered, dtype, derived):
        """Without bad input, whose words name types, without checks, which have tolerances of their own, and up to
        the case whose arrays NumPy has no type for."""
        try:
            for item in self.plain_items(op, registered, dtype, derived):
                if not isinstance(item, opcases.Bad) and item.reference is not None:
                    yield self.loosened(item, dtype)
        except (TypeError, KeyError, OverflowError) as error:
            if dtype not in str(error):
                raise

    @staticmethod
    def loosened(case, dtype):
        """With the tolerance of the type, where the case has one for wider types."""
        if dtype not in TOLERANCES:  # an integer type
            return opcases.Case(**{**case.__dict__, "check": None})
        rtol, atol = TOLERANCES[dtype]
        return opcases.Case(**{**case.__dict__, "check": None, "rtol": max(case.rtol or 0, rtol),
                               "atol": max(case.atol or 0, atol)})

    def items(self, op, registered, dtype, derived):
        made = self.sampled_items if dtype in self.sampled else self.plain_items
        return made(op, registered, dtype, derived)

    def plain_items(self, op, registered, dtype, derived):
        maker = opcases.Maker(op.name, dtype, self.options.seed)
        first = True
        extreme = EXTREME_CASES if "REDUCTION" in op.flags else 1  # later references may know their numbers
        for item in registered.function(maker):
            if isinstance(item, opcases.Bad):
                if not derived:
                    yield item
                continue
            items = [item]
            if first and "POINTWISE" in op.flags:
                items += list(self.made_cases(item))
            first = False
            made = list(self.extreme_cases(op, item, maker, registered.skip)) if extreme > 0 else []
            extreme -= len(made) > 0
            items += made
            for case in items:
                made = self.written_case(case) if derived else case
                if made is not None:
                    yield made

    def try_one(self, op, where, function, *args):
        try:
            function(*args)
            return True
        except AssertionError as error:
            self.report(op, where, str(error))
        except Exception as error:  # noqa: BLE001: the library's own, and mistakes in cases
            self.report(op, where, f"raised {type(error).__name__}: {error}")
            if self.options.verbose:
                traceback.print_exc()
        return False

    def report(self, op, where, text):
        self.failed += 1
        self.row_failed += 1
        if self.row_failed <= SHOWN or self.options.verbose:
            print(f"FAIL {op.name}[{where}]: {text}", flush=True)
        elif self.row_failed == SHOWN + 1:
            print(f"FAIL {op.name}: and more (-v shows them)", flush=True)

    def run_case(self, op, case, dtype, where):
        arrays = tensors_of((case.args, case.kwargs))
        wants_grad = case.grad is not False and dtype == "float64" and (
            op.differentiable or "COMPOSITE" in op.flags) and (case.grad or any(
                a.dtype == np.float64 for a in arrays)) and all(a.size > 0 for a in arrays)
        for layout in case.layouts:
            if self.options.layout not in (None, layout):
                continue
            if not layouts.matters(layout, collect((case.args, case.kwargs),
                                                   (np.ndarray, opcases.Fixed))):
                continue
            here = f"{where}, {layout}"
            if layout == "contiguous" and dtype == META_DTYPE and self.device == "cpu" and not self.simulated:
                self.try_one(op, f"{where}, meta", self.run_meta, op, case, dtype)
            good = self.try_one(op, here, self.run_value, op, case, layout)
            if good and wants_grad and layout in ("contiguous", "transposed"):
                rng = np.random.default_rng(self.options.seed)
                self.try_one(op, here, self.run_gradient, op, case, layout, rng)

    def run_row(self, name, registered, derived=False):
        op = mt.ops()[name]
        self.row_failed = 0
        self.row_waited = False
        alive = mt.tensors_alive()
        empty = zero_d = not any("Tensor" in p.type for p in op.parameters)
        count = 0
        for dtype in self.dtypes_of(name, registered):
            if self.options.dtype not in (None, dtype):
                continue
            for number, item in enumerate(self.items(op, registered, dtype, derived)):
                count += 1
                if not self.takes(op, dtype, number):
                    continue
                shapes = [a.shape for a in tensors_of((item.args, item.kwargs))]
                where = f"{dtype}, case {number} {getattr(item, 'note', '')} {shapes}"
                if isinstance(item, opcases.Bad):
                    self.try_one(op, where, self.run_bad, op, item)
                    continue
                empty = empty or any(0 in shape for shape in shapes)
                zero_d = zero_d or () in shapes
                self.run_case(op, item, dtype, where)
        whole = self.options.dtype is None and self.options.share == 1
        if whole and count == 0:
            self.report(op, "cases", "there are none")
        if whole and not derived:
            if not empty and "empty" not in registered.skip:
                self.report(op, "cases", "none has an empty tensor, and skip does not say why")
            if not zero_d and "0-d" not in registered.skip:
                self.report(op, "cases", "none has a 0-d tensor, and skip does not say why")
        if whole and self.simulated and "SYNC" in op.flags and not self.row_waited and (
                name not in WAITS_FOR_HOST and not derived):
            self.report(op, "SYNC", "no call waited for the device")
        if mt.tensors_alive() != alive and self.row_failed == 0:
            self.report(op, "end", f"{mt.tensors_alive() - alive} tensors were not given back")


def base_of(name):
    """Row X of an in-place row X_ that has no cases of its own."""
    stem, dot, overload = name.partition(".")
    return stem[:-1] + dot + overload if stem.endswith("_") else None


def load(families):
    sys.path.insert(0, str(HERE))
    for family in families:
        if (HERE / f"cases_{family}.py").exists():
            importlib.import_module(f"cases_{family}")


def cases_of(name):
    """(registered, derived) for a row; (None, False): it has no cases."""
    if name in opcases.REGISTRY:
        return opcases.REGISTRY[name], False
    base = base_of(name)
    if base in opcases.REGISTRY and "INPLACE" in mt.ops()[name].flags:
        return opcases.REGISTRY[base], True
    return None, False


def check_complete():
    """Every row has cases and every case a row."""
    failures = 0
    rows = table_rows()
    if sorted(rows) != sorted(mt.ops()):
        print(f"FAIL the library's table is not the source's: {sorted(set(rows) ^ set(mt.ops()))}")
        failures += 1
    for name in mt.ops():
        if cases_of(name)[0] is None:
            print(f"FAIL row {name} has no cases")
            failures += 1
    for name in opcases.REGISTRY:
        if name not in mt.ops():
            print(f"FAIL cases for {name}, which is no row")
            failures += 1
    print(f"{len(rows)} rows, {failures} failed")
    return failures


def use_backend(path):
    """Loads a backend by its name, or registers a test backend as the accelerator. That is one more
    library with thread-local memory, for which a program that opens libraries at run time has little
    room: ask again for more."""
    if "/" not in path:
        mt.load_backend(path)
        return
    if "GLIBC_TUNABLES" not in os.environ:
        os.environ["GLIBC_TUNABLES"] = "glibc.rtld.optional_static_tls=8192"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    backend = ctypes.CDLL(path)
    mt.check(backend.mt_test_backend_register())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--family", choices=FAMILIES)
    parser.add_argument("--complete", action="store_true", help="only: has every row cases?")
    parser.add_argument("--op", action="append", help="only these rows")
    parser.add_argument("--dtype")
    parser.add_argument("--layout")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--backend", help="sim, or the shared object of a test backend, for --device npu:0")
    parser.add_argument("--share", type=int, default=1, metavar="N", help="one case of N")
    parser.add_argument("--part", default="1/1", metavar="K/N", help="every Nth row, from the Kth on")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    mt.open_library(options.library)
    if options.backend:
        use_backend(options.backend)
    load(FAMILIES)  # all: an in-place row is derived only if no family has cases for it
    if options.complete:
        return 1 if check_complete() else 0
    runner = Runner(options)
    began = time.perf_counter()
    rows = 0
    first, step = (int(word) for word in options.part.split("/"))
    for name in list(mt.ops())[first - 1::step]:
        registered, derived = cases_of(name)
        if registered is None or (options.op and name not in options.op):
            continue
        if options.family and registered.module != f"cases_{options.family}":
            continue
        rows += 1
        runner.run_row(name, registered, derived)
    print(f"{rows} rows, {runner.calls} calls, {runner.gradients} gradients, "
          f"{runner.failed} failed, seed {options.seed}, share 1/{options.share}, part {options.part}, "
          f"{time.perf_counter() - began:.1f} s")
    return 1 if runner.failed else 0


if __name__ == "__main__":
    sys.exit(main())
