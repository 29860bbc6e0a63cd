# SPDX-License-Identifier: Apache-2.0
"""einsum: sums of products by letters, as permutations and matrix products."""

from ._C import Tensor, _call_as_op, ops as _ops

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _terms(equation, operands):
    """The letters of each operand and of the result; an ellipsis becomes letters of its own."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise ValueError("einsum(): more operands were provided than specified in the equation"
                         if len(operands) > len(terms) else
                         "einsum(): fewer operands were provided than specified in the equation")
    free = [letter for letter in _LETTERS if letter not in equation]
    depths = [x.dim() - len(term.replace("...", "")) if "..." in term else 0 for term,
              x in zip(terms, operands)]
    hidden = "".join(free[:max(depths, default=0)])
    for i, (term, x) in enumerate(zip(terms, operands)):
        if depths[i] < 0:
            raise ValueError(f"einsum(): the number of subscripts in the equation ({len(term) - 3}) is "
                             f"more than the "
                             f"number of dimensions ({x.dim()}) for operand {i}")
        terms[i] = term.replace("...", hidden[len(hidden) - depths[i]:])
        bad = [letter for letter in terms[i] if letter not in _LETTERS]
        if bad:
            raise ValueError(f"einsum(): invalid subscript given at index {i} in the equation string, "
                             f"subscripts must "
                             f"be in [a-zA-Z]: {bad[0]!r}")
        if len(terms[i]) != x.dim():
            raise ValueError("einsum(): the number of subscripts in the equation "
                             f"({len(terms[i])}) does not match the number of dimensions ({x.dim()}) for "
                             f"operand {i} "
                             "and no ellipsis was given")
    if not arrow:
        seen = "".join(terms)
        right = hidden + "".join(sorted(c for c in set(seen) if seen.count(c) == 1 and c not in hidden))
    right = right.replace("...", hidden)
    for letter in right:
        if right.count(letter) > 1:
            raise ValueError(f"einsum(): output subscript {letter} appears more than once in the output")
        if not any(letter in term for term in terms):
            raise ValueError(f"einsum(): output subscript {letter} does not appear in the equation for any "
                             f"input "
                             "operand")
    return terms, right


def _sizes(terms, operands):
    """The size of each letter; 1 gives way."""
    sizes = {}
    for i, (term, x) in enumerate(zip(terms, operands)):
        for letter, size in zip(term, x.shape):
            if sizes.get(letter, 1) == 1:
                sizes[letter] = size
            elif size not in (1, sizes[letter]):
                raise RuntimeError(f"einsum(): subscript {letter} has size {size} for operand {i} which "
                                   f"does not "
                                   f"broadcast with previously seen size {sizes[letter]}")
    return sizes


def _arrange(x, term, wanted):
    """Dimensions in the order of `wanted`."""
    order = [term.index(letter) for letter in wanted]
    return x if order == list(range(len(order))) else _ops.permute(x, order)


def _reduce(x, term, keep):
    """Sums over letters that are no longer needed."""
    gone = [i for i, letter in enumerate(term) if letter not in keep]
    if gone:
        x = _ops.sum(x, gone)
    return x, "".join(letter for letter in term if letter in keep)


def _product(a, term_a, b, term_b, keep, sizes):
    """Two operands as one batch of matrix products."""
    a, term_a = _reduce(a, term_a, set(term_b) | keep)
    b, term_b = _reduce(b, term_b, set(term_a) | keep)
    batch = "".join(c for c in term_a if c in term_b and c in keep)
    inner = "".join(c for c in term_a if c in term_b and c not in keep)
    left = "".join(c for c in term_a if c not in term_b)
    right = "".join(c for c in term_b if c not in term_a)
    if not inner:  # nothing is summed: the product by broadcasting
        full = batch + left + right
        wide_a = _ops.reshape(_arrange(a, term_a, batch + left),
                              [a.shape[term_a.index(c)] for c in batch + left]
                              + [1] * len(right))
        wide_b = _ops.reshape(_arrange(b, term_b, batch + right), [b.shape[term_b.index(c)] for c in batch]
                              + [1] * len(left) + [b.shape[term_b.index(c)] for c in right])
        return _ops.mul(wide_a, wide_b), full

    def full_size(x, term, letters):
        x = _arrange(x, term, letters)
        shape = [sizes[c] for c in letters]
        return x if list(x.shape) == shape else _ops.expand(x, shape)

    def volume(letters):
        result = 1
        for c in letters:
            result *= sizes[c]
        return result

    a = _ops.reshape(full_size(a, term_a, batch + left + inner), (volume(batch), volume(left), volume(inner)))
    b = _ops.reshape(full_size(b, term_b, batch + inner + right),
                     (volume(batch), volume(inner), volume(right)))
    full = batch + left + right
    return _ops.reshape(_ops.bmm(a, b), [sizes[c] for c in full]), full


def _diagonals(x, term):
    """A letter twice in one operand is its diagonal."""
    for letter in term:
        while term.count(letter) > 1:
            first = term.index(letter)
            second = term.index(letter, first + 1)
            if x.shape[first] != x.shape[second]:
                raise RuntimeError(f"einsum(): subscript {letter} is repeated for operand but the sizes don't match, "
                                   f"{x.shape[second]} != {x.shape[first]}")
            x = _ops.diagonal(x, 0, first, second)
            term = term[:first] + term[first + 1:second] + term[second + 1:] + letter
    return x, term


def _from_lists(given):
    """The equation of operands that are each followed by a list of numbers for letters."""
    def text(numbers):
        bad = [number for number in numbers if number is not Ellipsis and not 0 <= number < len(_LETTERS)]
        if bad:
            raise ValueError(f"einsum(): not a valid subscript: {bad[0]}")
        return "".join("..." if number is Ellipsis else _LETTERS[number] for number in numbers)
    operands = given[0::2] if len(given) % 2 == 0 else given[0:-1:2]
    equation = ",".join(text(numbers) for numbers in given[1::2])
    if len(given) % 2:
        equation += "->" + text(given[-1])
    return equation, operands


def einsum(equation, *operands):
    """einsum("ij,jk->ik", a, b), or einsum(a, [0, 1], b, [1, 2], [0, 2])."""
    if isinstance(equation, Tensor):
        equation, operands = _from_lists((equation, *operands))
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = operands[0]
    if not isinstance(equation, str):
        raise TypeError(f"einsum(): the equation must be a text, not {type(equation).__name__}")
    if not operands:
        raise ValueError("einsum(): must provide at least one operand")
    for i, operand in enumerate(operands):
        if not isinstance(operand, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 1, but got {type(operand).__name__}")
    return _call_as_op("aten::einsum", (equation, operands, None), _contract, equation, operands)


def _contract(equation, operands):
    terms, right = _terms(equation, operands)
    operands = list(operands)
    for i, term in enumerate(terms):
        operands[i], terms[i] = _diagonals(operands[i], term)
    sizes = _sizes(terms, operands)
    result, term = operands[0], terms[0]
    for i in range(1, len(operands)):
        keep = set(right).union(*terms[i + 1:])
        result, term = _product(result, term, operands[i], terms[i], keep, sizes)
    result, term = _reduce(result, term, set(right))
    return _arrange(result, term, right)
