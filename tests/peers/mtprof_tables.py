# SPDX-License-Identifier: Apache-2.0
"""Tables of libmtprof in Python, through its public functions (mtprof/model.h, mtprof/averages.h).

The command has no options for all that torch's table() takes (header, widths, top_level_events_only
after grouping), so peers ask the shared library itself.
"""
import ctypes
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_char, c_char_p, c_int, c_int32, c_int64,
                    c_size_t, c_uint32, c_void_p, sizeof)

SHAPES, OVERLOAD = 1, 2  # enum mtprof_group
TORCH = 0  # enum mtprof_table_format
ALL_ROWS, NO_ROWS = -1, -2

WRITE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)


class Output(Structure):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("context", c_void_p),
                ("write", WRITE)]


class AveragesOptions(Structure):
    _fields_ = [("struct_size", c_uint32), ("group", c_uint32), ("stack_n", c_uint32),
                ("functions", c_uint32), ("name", c_char_p), ("module_name", c_char_p),
                ("thread", c_char_p), ("steps_given", c_uint32), ("first_step", c_int32),
                ("last_step", c_int32), ("top_level", c_uint32), ("min_ns", c_int64)]


class TableOptions(Structure):
    _fields_ = [("struct_size", c_uint32), ("format", c_uint32), ("row_limit", c_int64),
                ("max_src_column_width", c_int32), ("max_name_column_width", c_int32),
                ("max_shapes_column_width", c_int32), ("top_level_only", c_uint32),
                ("header", c_char_p), ("time_unit", c_char_p), ("width", c_uint32),
                ("mindtorch", c_uint32), ("quantiles", c_uint32), ("hide_health", c_uint32)]


class Error(Structure):
    _fields_ = [("status", c_int), ("system_error", c_int32), ("offset", c_int64),
                ("message", c_char * 496)]


class Failed(Exception):
    pass


class Library:
    def __init__(self, path):
        self.lib = ctypes.CDLL(str(path))
        self.lib.mtprof_last_error.restype = POINTER(Error)
        self.lib.mtprof_model_open.argtypes = [c_char_p, c_void_p, POINTER(c_void_p)]
        self.lib.mtprof_model_free.argtypes = [c_void_p]
        self.lib.mtprof_model_free.restype = None
        for name in ("mtprof_averages_new", "mtprof_averages_from_events"):
            getattr(self.lib, name).argtypes = [c_void_p, POINTER(AveragesOptions), POINTER(c_void_p)]
        self.lib.mtprof_averages_sort.argtypes = [c_void_p, c_char_p]
        self.lib.mtprof_averages_table.argtypes = [c_void_p, POINTER(TableOptions), POINTER(Output)]
        self.lib.mtprof_averages_free.argtypes = [c_void_p]
        self.lib.mtprof_averages_free.restype = None

    def must(self, status):
        if status != 0:
            raise Failed("status %d: %s" % (status, self.lib.mtprof_last_error().contents.message.decode()))

    def open(self, path):
        return Model(self, path)


class Model:
    """A trace. Use in a with statement."""

    def __init__(self, library, path):
        self.library, self.handle = library, c_void_p()
        library.must(library.lib.mtprof_model_open(str(path).encode(), None, byref(self.handle)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.library.lib.mtprof_model_free(self.handle)

    def table(self, group, table, events=False):
        """The text of torch's key_averages(**group).table(**table); events: events().table()."""
        library, lib = self.library, self.library.lib
        options = AveragesOptions(struct_size=sizeof(AveragesOptions))
        options.group = (SHAPES if group.get("group_by_input_shape") else 0) | \
            (OVERLOAD if group.get("group_by_overload_name") else 0)
        options.stack_n = group.get("group_by_stack_n", 0)
        rows = c_void_p()
        make = lib.mtprof_averages_from_events if events else lib.mtprof_averages_new
        library.must(make(self.handle, byref(options), byref(rows)))
        try:
            if "sort_by" in table:
                library.must(lib.mtprof_averages_sort(rows, table["sort_by"].encode()))
            return self.text_of(rows, table)
        finally:
            lib.mtprof_averages_free(rows)

    def text_of(self, rows, table):
        pieces = []

        def write(_context, data, length):
            pieces.append(ctypes.string_at(data, length))
            return 0

        limit = table.get("row_limit", 100)
        options = TableOptions(struct_size=sizeof(TableOptions), format=TORCH)
        options.row_limit = NO_ROWS if limit == 0 else limit
        for width in ("max_src_column_width", "max_name_column_width", "max_shapes_column_width"):
            setattr(options, width, table.get(width, 0))
        options.top_level_only = bool(table.get("top_level_events_only"))
        for text in ("header", "time_unit"):
            if text in table:
                setattr(options, text, table[text].encode())
        output = Output(struct_size=sizeof(Output), write=WRITE(write))
        self.library.must(self.library.lib.mtprof_averages_table(rows, byref(options), byref(output)))
        return b"".join(pieces).decode("utf-8")
