# SPDX-License-Identifier: Apache-2.0
"""Runs a profiler through a sequence of actions and notes what a user sees of it.

The same code runs under torch (tests/peers/torch_schedules.py, which keeps the answers) and under mtprof
(test_schedule_goldens.py, which compares).
"""
import itertools
import warnings

LETTERS = "nwrS"


def sequences(longest):
    """Every sequence of actions up to a length, as text: n(one), w(arm-up), r(ecord), S(ave)."""
    for length in range(1, longest + 1):
        for letters in itertools.product(LETTERS, repeat=length):
            yield "".join(letters)


def _names(events):
    return sorted(getattr(event, "trace_name", None) or event.name for event in events)


def run(library, letters):
    """What happens in a loop whose step i has the action letters[i].

    {"ready": [[step number, action, names of events], ...], "end": names or the exception's text,
     "warnings": [...]}; library is torch.profiler or what has its names.
    """
    actions = list(library.ProfilerAction)
    ready = []

    def schedule(step):
        return actions[LETTERS.index(letters[step])] if step < len(letters) else actions[0]

    def on_ready(prof):
        ready.append([prof.step_num, prof.current_action.value, _names(prof.events())])

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        prof = library.profile(activities=[library.ProfilerActivity.CPU], schedule=schedule,
                               on_trace_ready=on_ready)
        prof.start()
        for step in range(len(letters)):
            with library.record_function(f"s{step}"):
                pass
            if step + 1 < len(letters):
                prof.step()
        prof.stop()
        try:
            end = _names(prof.events())
        except AssertionError as error:
            end = str(error)
    odd = [str(one.message) for one in caught if str(one.message).startswith("Incorrect schedule")]
    return {"ready": ready, "end": end, "warnings": odd}
