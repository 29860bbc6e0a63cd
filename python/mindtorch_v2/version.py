# SPDX-License-Identifier: Apache-2.0
"""The version of mindtorch_v2, which is that of its libraries."""
from ._C import version as __version__

cuda = None
hip = None
xpu = None
debug = False
git_version = "Unknown"


class TorchVersion(str):
    """A version that compares by its numbers with other versions, texts and tuples: torch.__version__ >= (2, 1)."""

    def _numbers(self):
        numbers = []
        for part in self.split("+")[0].split("."):
            digits = "".join(c for c in part if c.isdigit()) if not part.isdigit() else part
            if not digits:
                break
            numbers.append(int(digits))
        while numbers and numbers[-1] == 0:
            numbers.pop()
        return tuple(numbers)

    def _pair(self, other):
        if isinstance(other, (tuple, list)):
            other = ".".join(map(str, other))
        return self._numbers(), TorchVersion(other)._numbers()

    def __lt__(self, other):
        mine, its = self._pair(other)
        return mine < its

    def __le__(self, other):
        mine, its = self._pair(other)
        return mine <= its

    def __gt__(self, other):
        mine, its = self._pair(other)
        return mine > its

    def __ge__(self, other):
        mine, its = self._pair(other)
        return mine >= its

    def __eq__(self, other):
        if isinstance(other, str) and str.__eq__(self, other):
            return True
        if not isinstance(other, (str, tuple, list)):
            return NotImplemented
        mine, its = self._pair(other)
        return mine == its

    def __ne__(self, other):
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    __hash__ = str.__hash__
