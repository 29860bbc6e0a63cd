# SPDX-License-Identifier: Apache-2.0
"""Bounds of recording Python (docs/bounds.md): what does not fit is counted, and the health says so."""
import unittest

import mindtorch_v2 as torch
import mtprof


def cut(work, **options):
    """Details that recording a call cut."""
    with mtprof.profile(activities=["CPU"], **options) as prof:
        work()
    health = prof.health()
    assert health.ok == (health.cut == 0), str(health)
    return health.texts_cut


class Bounds(unittest.TestCase):
    def test_inputs_of_fast_scopes(self):
        class Wide:
            shape, dtype = (1,) * 65, "float32"
        deep = 0
        for _ in range(9):
            deep = [deep]
        for inputs, expected in (([1, 2.5, "x", [None, [True]]], 0), ([deep[0]], 0), ([deep], 1), ([None] * 257, 1),
                                 ([[None] * 300], 1), ([10 ** 40], 1), (["y" * 1025], 1), ([Wide()], 1)):
            def work(inputs=inputs):
                with mtprof._RecordFunctionFast("fast", inputs):
                    pass
            self.assertEqual(cut(work, record_shapes=True), expected, str(inputs)[:60])

    def test_module_paths(self):
        for length, expected in ((100, 0), (5000, 1)):
            outer, x = torch.nn.Sequential(), torch.ones(2, 2)
            outer.add_module("x" * length, torch.nn.Linear(2, 2))
            self.assertEqual(cut(lambda outer=outer, x=x: outer(x), with_modules=True) > 0, bool(expected))

    def test_names_of_builtins(self):
        for length, expected in ((100, 0), (300, 1)):
            values = type("T" * length, (list,), {})()
            self.assertEqual(cut(lambda values=values: values.append(1), with_calls=True), expected)

    def test_texts(self):
        for length, expected in ((1000, 0), (70000, 1)):
            def work(length=length):
                with mtprof.record_function("x" * length):
                    pass
            self.assertEqual(cut(work) > 0, bool(expected))

    def test_the_table_and_the_text_say_so(self):
        with mtprof.profile(activities=["CPU"]) as prof:
            with mtprof.record_function("x" * 70000):
                pass
        self.assertIn("cut", str(prof.health()))
        self.assertIn("payloads cut" if prof.health().texts_cut > 1 else "payload cut", prof.key_averages().table())


if __name__ == "__main__":
    unittest.main()
