"""docs/format.md, record_kinds.def and format.h say the same of every record kind: number, name, mark, streams."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECTIONS = {"3.2": "THREAD", "3.4": "SOURCE", "3.5": "CONTROL", "4.": "DEFINITIONS"}


def document():
    """{name: (number, mark, streams)} of the document's tables."""
    kinds, stream = {}, None
    for line in (ROOT / "docs/format.md").read_text().splitlines():
        heading = re.match(r"#+ (\S+)", line)
        if heading:
            stream = SECTIONS.get(heading[1])
        if stream is None or not line.startswith("| 0x"):
            continue
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        mark = cells[2] if stream != "DEFINITIONS" else ""
        for number, name in zip(cells[0].split(", "), cells[1].split(", "), strict=True):
            _, first_mark, streams = kinds.get(name, (0, mark, set()))
            kinds[name] = (int(number, 16), first_mark or mark, streams | {stream})
    return kinds


def table():
    """The same of record_kinds.def, in its order; numbers are format.h's."""
    numbers = {name: int(number, 16) for name, number in
               re.findall(r"MTPROF_REC_(\w+) = (0x\w+)", (ROOT / "include/mtprof/format.h").read_text())}
    rows = re.findall(r"^X\((\w+), (\w+), (\w+),", (ROOT / "src/mtprof/format/record_kinds.def").read_text(), re.M)
    kinds = {name: (numbers.pop(name), "" if mark == "NONE" else mark,
                    {"THREAD", "SOURCE"} if stream == "BOTH" else {stream}) for name, mark, stream in rows}
    return kinds, numbers


class Document(unittest.TestCase):
    def test_every_number_is_in_the_table(self):
        kinds, left = table()
        self.assertEqual(left, {})
        self.assertEqual([kind[0] for kind in kinds.values()], sorted({kind[0] for kind in kinds.values()}))

    def test_the_document_has_the_table(self):
        self.maxDiff = None
        self.assertEqual(dict(sorted(document().items())), dict(sorted(table()[0].items())))


if __name__ == "__main__":
    unittest.main()
