# SPDX-License-Identifier: Apache-2.0
"""Schemas of the op table, read from the table itself (src/mindtorch/ops/all_ops.def says how it is written)."""
import pathlib
import re

TABLE = pathlib.Path(__file__).resolve().parents[2] / "src" / "mindtorch" / "ops"
_ENTRY = re.compile(r'^(OP|ALIAS)\((\w+), "([^"]+)", (.+), (\w+)\)$', re.M)


def schemas():
    """Schemas by id; in-place forms and aliases are made as opgen makes them."""
    found, aliases = {}, []
    for path in sorted(TABLE.rglob("ops_*.def")):
        for kind, op, text, flags, target in _ENTRY.findall(path.read_text()):
            for mark in ("", "_") if "AND_INPLACE" in flags else ("",):
                found[op + mark] = re.sub(r"^\w+", rf"\g<0>{mark}", text)
                if kind == "ALIAS":
                    aliases.append((op + mark, target + mark))
    for op, target in aliases:
        if "(" not in found[op]:
            found[op] += found[target][found[target].index("("):]
    return found
