# SPDX-License-Identifier: Apache-2.0
"""torch.utils._pytree: nested containers as a list of leaves and a description of the containers."""

import functools
import types
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from typing import Any

NodeDef = namedtuple("NodeDef", "type flatten_fn unflatten_fn flatten_with_keys_fn", defaults=(None,))
SUPPORTED_NODES = {}


@dataclass(frozen=True)
class SequenceKey:
    """A place in a list or tuple."""
    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"


@dataclass(frozen=True)
class MappingKey:
    """A place in a dict."""
    key: Any

    def __str__(self):
        return f"[{self.key!r}]"


@dataclass(frozen=True)
class GetAttrKey:
    """A field of a named tuple."""
    name: str

    def __str__(self):
        return f".{self.name}"


def keystr(kp):
    """A path of keys as text."""
    return "".join(map(str, kp))


@dataclass
class TreeSpec:
    """What is left of a tree without its leaves."""
    type: Any
    context: Any
    children_specs: list = field(default_factory=list)

    def __post_init__(self):
        self.num_nodes = 1 + sum(child.num_nodes for child in self.children_specs)
        self.num_leaves = 1 if self.is_leaf() else sum(child.num_leaves for child in self.children_specs)
        self.num_children = len(self.children_specs)

    def is_leaf(self):
        """Whether it stands for one leaf."""
        return self.type is None

    def child(self, index):
        """One below it."""
        return self.children_specs[index]

    def children(self):
        """Those below it."""
        return self.children_specs

    def unflatten(self, leaves):
        """The tree, with these leaves."""
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree):
        """What another tree of the same containers has where this one has leaves."""
        if self.is_leaf():
            return [tree]
        children, context = _open(tree)
        if _kind(tree) is not self.type or len(children) != len(self.children_specs) or context != self.context:
            raise ValueError(f"flatten_up_to: a {type(tree).__name__} is not of the form {self}")
        return [leaf for spec, child in zip(self.children_specs, children) for leaf in spec.flatten_up_to(child)]

    def __hash__(self):
        return hash((self.type, str(self.context), tuple(self.children_specs)))


class LeafSpec(TreeSpec):
    """The description of a leaf."""

    def __init__(self):
        super().__init__(None, None, [])


_NAMED = object()  # stands for every class of named tuples


def _kind(tree):
    kind = type(tree)
    if isinstance(tree, tuple) and hasattr(kind, "_fields") and kind not in SUPPORTED_NODES:
        return _NAMED
    return kind


def _open(tree):
    """(children, context) of a container."""
    return SUPPORTED_NODES[_kind(tree)].flatten_fn(tree)


def _is_leaf(tree, is_leaf=None):
    return (is_leaf is not None and is_leaf(tree)) or _kind(tree) not in SUPPORTED_NODES


def register_pytree_node(cls, flatten_fn, unflatten_fn, *, serialized_type_name=None, to_dumpable_context=None,
                         from_dumpable_context=None, flatten_with_keys_fn=None):
    """Makes a class a container."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


_register_pytree_node = register_pytree_node


def _deregister_pytree_node(cls):
    SUPPORTED_NODES.pop(cls, None)


def _with_index(flatten):
    def keys(tree):
        children, context = flatten(tree)
        return [(SequenceKey(i), child) for i, child in enumerate(children)], context
    return keys


def _with_names(flatten, key, names):
    def keys(tree):
        children, context = flatten(tree)
        return [(key(name), child) for name, child in zip(names(context), children)], context
    return keys


def _dict_flatten(tree):
    return list(tree.values()), list(tree)


_dict_flatten_with_keys = _with_names(_dict_flatten, MappingKey, lambda context: context)


def _dict_unflatten(values, context):
    return dict(zip(context, values))


def _register_usual():
    def sequence(kind):
        def flatten(tree):
            return list(tree), None
        register_pytree_node(kind, flatten, lambda values, context: kind(values),
                             flatten_with_keys_fn=_with_index(flatten))

    def mapping(kind, context_of, names, make):
        def flatten(tree):
            return list(tree.values()), context_of(tree)
        register_pytree_node(kind, flatten, make, flatten_with_keys_fn=_with_names(flatten, MappingKey, names))

    sequence(list)
    sequence(tuple)
    register_pytree_node(dict, _dict_flatten, _dict_unflatten, flatten_with_keys_fn=_dict_flatten_with_keys)
    mapping(OrderedDict, list, lambda c: c, lambda values, context: OrderedDict(zip(context, values)))
    mapping(defaultdict, lambda tree: [tree.default_factory, list(tree)], lambda c: c[1],
            lambda values, context: defaultdict(context[0], zip(context[1], values)))

    def queue(tree):
        return list(tree), tree.maxlen
    register_pytree_node(deque, queue, lambda values, context: deque(values, maxlen=context),
                         flatten_with_keys_fn=_with_index(queue))

    def named(tree):
        return list(tree), type(tree)
    register_pytree_node(_NAMED, named, lambda values, context: context(*values),
                         flatten_with_keys_fn=_with_names(named, GetAttrKey, lambda c: c._fields))


_register_usual()


def tree_flatten(tree, is_leaf=None):
    """(leaves, description)."""
    leaves = []

    def walk(tree):
        if _is_leaf(tree, is_leaf):
            leaves.append(tree)
            return LeafSpec()
        children, context = _open(tree)
        return TreeSpec(_kind(tree), context, [walk(child) for child in children])
    spec = walk(tree)
    return leaves, spec


def tree_unflatten(leaves, treespec):
    """The tree of a description with these leaves."""
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(f"tree_unflatten(leaves, treespec): `leaves` has length {len(leaves)} but the spec refers "
                         f"to a pytree that holds {treespec.num_leaves} items ({treespec}).")
    rest = iter(leaves)

    def build(spec):
        if spec.is_leaf():
            return next(rest)
        return SUPPORTED_NODES[spec.type].unflatten_fn([build(child) for child in spec.children_specs], spec.context)
    return build(treespec)


def tree_leaves(tree, is_leaf=None):
    """The leaves."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree, is_leaf=None):
    """The leaves, one after the other."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree, is_leaf=None):
    """The description."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """The tree of what a function makes of the leaves."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *[spec.flatten_up_to(rest) for rest in rests]))


def tree_map_(func, tree, *rests, is_leaf=None):
    """Calls a function with the leaves; the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _chosen(kinds):
    if callable(kinds) and not isinstance(kinds, (type, types.UnionType)):
        return kinds
    return lambda leaf: isinstance(leaf, kinds)


def map_only(type_or_types_or_pred, /):
    """A decorator: the function is called with leaves of these types, others stay."""
    chosen = _chosen(type_or_types_or_pred)

    def wrap(func):
        @functools.wraps(func)
        def call(leaf):
            return func(leaf) if chosen(leaf) else leaf
        return call
    return wrap


def tree_map_only(type_or_types_or_pred, /, func, tree, *rests, is_leaf=None):
    """tree_map() of leaves of these types; others stay."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, *rests, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, /, func, tree, *rests, is_leaf=None):
    """tree_map_() of leaves of these types."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, *rests, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    """Whether it holds for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    """Whether it holds for a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(type_or_types_or_pred, /, pred, tree, is_leaf=None):
    """Whether it holds for all leaves of these types."""
    chosen = _chosen(type_or_types_or_pred)
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if chosen(leaf))


def tree_any_only(type_or_types_or_pred, /, pred, tree, is_leaf=None):
    """Whether it holds for a leaf of these types."""
    chosen = _chosen(type_or_types_or_pred)
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if chosen(leaf))


def tree_flatten_with_path(tree, is_leaf=None):
    """([(path, leaf), ...], description)."""
    found = []

    def walk(path, tree):
        if _is_leaf(tree, is_leaf):
            found.append((path, tree))
            return
        node = SUPPORTED_NODES[_kind(tree)]
        if node.flatten_with_keys_fn is None:
            raise ValueError(f"Did not find a flatten_with_keys_fn for type: {type(tree)}.")
        for key, child in node.flatten_with_keys_fn(tree)[0]:
            walk((*path, key), child)
    walk((), tree)
    return found, tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree, is_leaf=None):
    """[(path, leaf), ...]."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """tree_map() of a function that takes the path first."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    return spec.unflatten(func(path, leaf, *more) for (path, leaf), *more in
                          zip(found, *[spec.flatten_up_to(rest) for rest in rests]))
