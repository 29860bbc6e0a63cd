# SPDX-License-Identifier: Apache-2.0
"""prof.profiler: the face of torch's autograd profiler over a profile's results."""

from . import _mtprof


class _Faces:
    """What torch's two profiler classes have in common: results of the latest window, under torch's names."""

    @property
    def function_events(self):
        """The events; None before anything was recorded."""
        return self._face_events()

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False,
                     include_python_functions=None):
        """Events grouped by name and, where asked, by shapes, stack and overload.

        include_python_functions: rows of Python's functions, too; None: where there are no ops.
        """
        return self._face_results("getting key averages").key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name, include_python_functions)

    def total_average(self):
        """All events as one row."""
        return self._face_events().total_average()

    @property
    def self_cpu_time_total(self):
        """Time spent on the CPU: the sum of all self times, in microseconds."""
        return self._face_events().self_cpu_time_total

    def table(self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55,
              max_shapes_column_width=80, header=None, top_level_events_only=False):
        """The events as a table."""
        return self._face_events().table(
            sort_by=sort_by, row_limit=row_limit, max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width, max_shapes_column_width=max_shapes_column_width,
            header=header, top_level_events_only=top_level_events_only)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """A line per event with a stack, for flame graphs."""
        return self._face_results("exporting stacks").export_stacks(path, metric)


class _Backend(_Faces):
    """prof.profiler: what torch calls the autograd profiler behind a profile."""

    def __init__(self, prof):
        self._prof = prof
        self.use_device = prof.use_device
        for name in ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules",
                     "acc_events", "experimental_config"):
            setattr(self, name, getattr(prof, name))

    @property
    def entered(self):
        """Whether a window is open."""
        return self._prof._window_now().results == _mtprof.RESULTS_RECORDING

    @property
    def trace_id(self):
        """The id of the latest trace."""
        return self._prof._trace_id()

    @property
    def kineto_results(self):
        """The results as torch's C++ object has them."""
        from mtprof.kineto_events import _KinetoResults
        return _KinetoResults(self._prof._results("accessing events"))

    def export_chrome_trace(self, path):
        """Writes the Chrome trace."""
        self._prof.export_chrome_trace(path)

    def toggle_collection_dynamic(self, enabled, activities):
        """See profile.toggle_collection_dynamic()."""
        self._prof.toggle_collection_dynamic(enabled, activities)

    def _face_results(self, what):
        return self._prof._results(what)

    def _face_events(self):
        return self._prof._results("accessing events").events()

    def __repr__(self):
        return f"<profiler of {self._prof!r}>"

    def __str__(self):
        return self.table()
