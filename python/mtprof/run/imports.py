# SPDX-License-Identifier: Apache-2.0
"""What `mtprof run` learns from a program's tensor library: that it was imported, and when an optimizer has made a
step."""
import sys

from mtprof import _mtprof


class Imports:
    """A finder on sys.meta_path that finds nothing itself: it calls functions when modules have been imported.

    actions: by a module's name, a function of the module. What one raises is given to `failed` with the name: the
    program did nothing wrong.
    """

    def __init__(self, actions, failed):
        self.actions, self.failed = actions, failed

    def find_spec(self, name, path=None, target=None):
        """The spec that the other finders make of a module that is waited for; None for all others."""
        if name not in self.actions:
            return None
        finders = (finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec"))
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in finders)), None)
        loader = getattr(spec, "loader", None)
        if hasattr(loader, "exec_module"):
            def loaded():
                del loader.exec_module
                self._act(name)
            # Not a function of Python's: it would be in the traceback of an import that fails.
            loader.exec_module = _mtprof.wrap_call(loader.exec_module, None, loaded)
        return spec

    def _act(self, name):
        action = self.actions.pop(name, None)
        if not self.actions and self in sys.meta_path:
            sys.meta_path.remove(self)
        try:
            if action is not None:
                action(sys.modules[name])
        except Exception as error:
            self.failed(name, error)


class Steps:
    """Calls a function after each step of the first optimizer that makes one.

    The hook that torch calls after a step is called inside the step's own scope, where no window should end: what
    counts is the return of the function around it.
    """

    def __init__(self, counted):
        self.counted = counted
        self.count = 0
        self._optimizer = None
        self._codes = set()  # whose returns are watched
        self._pending = False

    def watch(self, module):
        """The module of a tensor library that has its optimizers."""
        module.register_optimizer_step_post_hook(self._hook)

    def _hook(self, optimizer, *_):
        if self._optimizer is None:
            self._optimizer = id(optimizer)
        if id(optimizer) != self._optimizer:
            return
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_back.f_code.co_filename == frame.f_code.co_filename:
            frame = frame.f_back
        self._pending = True
        if hasattr(sys, "monitoring"):
            self._watch_code(frame.f_code)
        elif sys.gettrace() is None:
            self._watch_frame(frame)
        else:  # a debugger is there
            self._returned()

    def _returned(self, *_):
        if self._pending:
            self._pending = False
            self.count += 1
            self.counted()

    def _watch_code(self, code):
        """Python 3.12 and later: every return of this code is told, for as long as the program runs."""
        monitoring = sys.monitoring
        if code in self._codes:
            return
        tool = next((n for n in (3, 4, 1) if monitoring.get_tool(n) in (None, "mtprof run")), None)
        if tool is None:
            self._returned()
            return
        if monitoring.get_tool(tool) is None:
            monitoring.use_tool_id(tool, "mtprof run")
            monitoring.register_callback(tool, monitoring.events.PY_RETURN, self._returned)
        monitoring.set_local_events(tool, code, monitoring.events.PY_RETURN)
        self._codes.add(code)

    def _watch_frame(self, frame):
        """Python 3.11: this frame's return is told."""
        def look(seen, event, _):
            if seen is not frame_of[0]:
                return None
            if event != "return":
                return look
            seen.f_trace = frame_of[0] = None
            sys.settrace(None)
            self._returned()
            return None

        frame_of = [frame]
        frame.f_trace = look
        sys.settrace(look)
