#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Evaluates expressions about data sets, samplers and loaders with torch and with mindtorch_v2.

Results (their repr), exceptions (class and text) and warnings must be equal; random orders are not
compared. Then loaders run under both profilers: the ops that a loader calls, and its annotations, must be
the same, in order. The last line: N passed, N failed, N skipped.
"""
import collections
import re
import sys
import warnings

import numpy as np

EXPRESSIONS = """
D.Dataset()[0]
len(D.Dataset())
D.Dataset() + ds
list(ds + ds), len(ds + ds), (ds + ds)[-1], (ds + ds)[-20]
(ds + ds)[-21]
(ds + ds)[20]
D.ConcatDataset([])
D.ConcatDataset([it])
D.ConcatDataset([ds, ds]).cummulative_sizes
list(it + it)
list(D.ChainDataset([it, ds]))
len(D.ChainDataset([sized, sized]))
D.TensorDataset(x, torch.arange(3))
D.TensorDataset(x, x)[1], D.TensorDataset(x, x)[1:3], len(D.TensorDataset(x, x))
D.StackDataset()
D.StackDataset(ds, a=ds)
D.StackDataset(ds, Numbers(3))
D.StackDataset(ds, ds)[1], D.StackDataset(a=ds, b=ds)[1], D.StackDataset(a=ds, b=ds).__getitems__([1, 2])
D.Subset(ds, [3, 4])[1], D.Subset(ds, [3, 4]).__getitems__([0, 1]), len(D.Subset(ds, [3, 4]))
[len(s) for s in D.random_split(ds, [0.3, 0.33, 0.37])], [len(s) for s in D.random_split(ds, [3, 7])]
D.random_split(ds, [3, 8])
D.random_split(ds, [-0.3, 1.3])
[len(s) for s in D.random_split(Numbers(2), [0.3, 0.3, 0.4])]
D.RandomSampler(ds, replacement=5)
D.RandomSampler(ds, num_samples=0)
D.RandomSampler(ds, num_samples=2.5)
D.RandomSampler([])
sorted(D.RandomSampler(ds)), len(list(D.RandomSampler(ds, num_samples=25)))
len(list(D.RandomSampler(ds, True, 64)))
sorted(D.SubsetRandomSampler([1, 5, 7])), len(D.SubsetRandomSampler([1, 5]))
D.WeightedRandomSampler([1, 2], 0)
D.WeightedRandomSampler([1, 2], True)
D.WeightedRandomSampler([1, 2], 3, replacement=4)
D.WeightedRandomSampler([[1, 2]], 3)
list(D.WeightedRandomSampler([0, 1.0, 0], 3))
D.BatchSampler(range(10), 0, False)
D.BatchSampler(range(10), True, False)
D.BatchSampler(range(10), 3, 5)
list(D.BatchSampler(range(10), 3, False)), list(D.BatchSampler(range(10), 3, True))
D.DistributedSampler(ds, num_replicas=3, rank=3)
[list(D.DistributedSampler(ds, 3, r, shuffle=False)) for r in range(3)]
[list(D.DistributedSampler(ds, 3, r, shuffle=False, drop_last=True)) for r in range(3)]
[list(D.DistributedSampler(Numbers(2), 5, r, shuffle=False)) for r in range(5)]
[len(D.DistributedSampler(Numbers(n), 3, 0, drop_last=True)) for n in range(1, 20)]
D.default_collate([1, 2]), D.default_collate([1.0, 2.0]), D.default_collate(['a', 'b'])
D.default_collate([b'a'])
D.default_collate([True, False])
D.default_collate([{'a': 1, 'b': (1, 2.0)}, {'a': 2, 'b': (3, 4.0)}])
D.default_collate([(1, 2), (3, 4)]), D.default_collate([[1, 2], [3, 4]])
D.default_collate([NT(1, 2), NT(3, 4)])
D.default_collate([torch.ones(2), torch.zeros(2)])
D.default_collate([torch.ones(2), torch.zeros(3)])
D.default_collate([np.ones(2), np.zeros(2)]), D.default_collate([np.float32(1), np.float32(2)])
D.default_collate([np.array(1), np.array(2)]), D.default_collate([np.float64(1)])
D.default_collate([np.bool_(1)])
D.default_collate([np.array('a'), np.array('b')])
D.default_collate([(1, 2), (3,)])
D.default_collate([None])
D.default_collate([set()])
D.default_collate([collections.OrderedDict(a=1), collections.OrderedDict(a=2)])
D.default_collate([{'a': 1}, {'b': 2}])
D.default_collate([])
D.default_convert(np.ones(2)), D.default_convert([1, np.ones(1)]), D.default_convert('a')
D.default_convert((1, 2))
D.default_convert(NT(1, np.ones(1))), D.default_convert({'a': np.float64(3)})
D.default_convert(np.array('a'))
D.get_worker_info()
D.DataLoader(ds, num_workers=-1)
D.DataLoader(ds, timeout=-1)
D.DataLoader(ds, prefetch_factor=2)
D.DataLoader(ds, num_workers=1, prefetch_factor=-2)
D.DataLoader(ds, persistent_workers=True)
D.DataLoader(it, shuffle=True)
D.DataLoader(it, sampler=range(3))
D.DataLoader(it, batch_sampler=range(3))
D.DataLoader(ds, sampler=range(3), shuffle=True)
D.DataLoader(ds, batch_sampler=range(3), shuffle=True)
D.DataLoader(ds, batch_sampler=range(3), batch_size=3)
D.DataLoader(ds, batch_size=None, drop_last=True)
D.DataLoader(ds, batch_size=0)
D.DataLoader(ds, batch_size=2.5)
D.DataLoader([], shuffle=True)
list(D.DataLoader([])), len(D.DataLoader([]))
len(D.DataLoader(ds, 3)), len(D.DataLoader(ds, 3, drop_last=True)), len(D.DataLoader(sized, 3))
len(D.DataLoader(it))
list(D.DataLoader(ds, 4)), list(D.DataLoader(ds, 4, drop_last=True)), list(D.DataLoader(ds, None))
list(D.DataLoader(it, 4)), list(D.DataLoader(it, 4, drop_last=True)), list(D.DataLoader(it, None))
list(D.DataLoader(ds, batch_sampler=[[1, 2], [3]]))
list(D.DataLoader(ds, sampler=[15, 6]))
next(iter(D.DataLoader(ds, 2, collate_fn=lambda b: b)))
D.DataLoader(ds, multiprocessing_context='fork')
D.DataLoader(ds, num_workers=1, multiprocessing_context='foo')
D.DataLoader(ds, num_workers=1, multiprocessing_context=5)
setattr(D.DataLoader(ds), 'batch_size', 3)
D.DataLoader(ds, num_workers=4096) and None
list(D.DataLoader(ds, 3, num_workers=2))
list(D.DataLoader(ds, None, num_workers=2))
list(D.DataLoader(it, 4, num_workers=2))
list(D.DataLoader(D.TensorDataset(x, x.view(10, 1)), 4, num_workers=2))
[list(l) for l in [D.DataLoader(ds, 4, num_workers=2, persistent_workers=True)] for _ in range(3)]
"""


# Loaders whose ops are compared.
PROFILED = """
list(D.DataLoader(D.TensorDataset(x, x.view(10, 1)), 4))
list(D.DataLoader(D.TensorDataset(x), 4, shuffle=True))
list(D.DataLoader(ds, 4))
list(D.DataLoader([(1.0, 2), (3.0, 4)], 2))
list(D.DataLoader(it, 4))
list(D.RandomSampler(ds, True, 64))
list(D.RandomSampler(ds, num_samples=25))
list(D.SubsetRandomSampler([1, 2]))
list(D.WeightedRandomSampler([1.0, 2.0], 3))
D.random_split(ds, [0.5, 0.5])
list(D.DistributedSampler(ds, 2, 0))
"""


def ops(torch, text):
    """What is called by the loader itself: ops that are in no other op."""
    names = namespace(torch)
    with torch.profiler.profile() as prof:
        eval(text, names)
    return [e.name for e in prof.events()
            if e.cpu_parent is None or not e.cpu_parent.name.startswith("aten::")]


def namespace(torch):
    data = torch.utils.data

    class Numbers(data.Dataset):
        def __init__(self, n=10):
            self.n = n

        def __len__(self):
            return self.n

        def __getitem__(self, i):
            if i >= self.n:
                raise IndexError(i)
            return i

    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter(range(10))

    class Sized(Stream):
        def __len__(self):
            return 4

    return {
        "torch": torch,
        "D": data,
        "np": np,
        "collections": collections,
        "NT": collections.namedtuple("NT", "a b"),
        "Numbers": Numbers,
        "ds": Numbers(),
        "it": Stream(),
        "sized": Sized(),
        "x": torch.arange(10.0),
    }


def outcome(torch, text):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            result = repr(eval(text, namespace(torch)))
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
    notes = [f"{w.category.__name__}: {w.message}" for w in seen]
    return re.sub("0x[0-9a-f]+", "0x", result), notes


def main():
    try:
        import torch
    except ImportError:
        print("torch is not installed")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    import mindtorch_v2

    passed = failed = 0
    for text in EXPRESSIONS.strip().splitlines():
        theirs, ours = outcome(torch, text), outcome(mindtorch_v2, text)
        passed, failed = passed + (theirs == ours), failed + (theirs != ours)
        if theirs != ours:
            print(f"{text}\n  torch: {theirs}\n  ours:  {ours}")
    for text in PROFILED.strip().splitlines():
        theirs, ours = ops(torch, text), ops(mindtorch_v2, text)
        passed, failed = passed + (theirs == ours), failed + (theirs != ours)
        if theirs != ours:
            print(f"ops of {text}\n  torch: {theirs}\n  ours:  {ours}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
