# SPDX-License-Identifier: Apache-2.0
"""`mtprof view`: what is served, to whom, and what is refused."""
import contextlib
import http.client
import io
import os
import tempfile
import threading
import unittest

import mtprof
from mtprof import view


def record(path):
    with mtprof.profile() as prof:
        with mtprof.record_function("seen"):
            pass
    prof.save(path)


class View(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names, text=None):
        path = os.path.join(self.folder, *names)
        if text is not None:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def serve(self, **options):
        """A server of a small JSON file, in a thread."""
        server = view.Server(self.path("a b.json", text="[1]"), 0, **options)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()

        def end():
            server.shutdown()
            thread.join()
            server.server_close()

        self.addCleanup(end)
        return server

    def get(self, server, path, host=None, method="GET"):
        connection = http.client.HTTPConnection(*server.server_address)
        connection.request(method, path, headers={"Host": host} if host else {})
        answer = connection.getresponse()
        with contextlib.closing(connection):
            return answer.status, answer.read(), dict(answer.getheaders())

    def test_the_trace_and_nothing_else(self):
        server = self.serve()
        status, body, headers = self.get(server, "/a%20b.json?x=1")
        self.assertEqual((status, body), (200, b"[1]"))
        self.assertEqual(headers["Access-Control-Allow-Origin"], "https://ui.perfetto.dev")
        self.assertEqual(self.get(server, "/a%20b.json", method="HEAD")[:2], (200, b""))
        self.path("secret", text="no")
        for path in ("/", "/secret", "/../secret", "/a b.json/../secret".replace(" ", "%20"), "/%2e%2e/secret"):
            self.assertEqual(self.get(server, path)[0], 404, path)
        self.assertEqual(self.get(server, "/a%20b.json", host="evil.example:9001")[0], 403)
        self.assertEqual(self.get(server, "/a%20b.json", method="POST")[0], 501)
        port = server.server_address[1]
        self.assertEqual(server.url(),
                         f"https://ui.perfetto.dev/#!/?url=http%3A%2F%2F127.0.0.1%3A{port}%2Fa%2520b.json")

    def test_a_copy_of_the_ui(self):
        self.path("ui", "index.html", text="<html>")
        self.path("ui", "v1", "code.js", text="1")
        self.path("secret", text="no")
        os.symlink(self.path("secret"), self.path("ui", "link"))
        server = self.serve(ui=self.path("ui"))
        self.assertEqual(self.get(server, "/")[:2], (200, b"<html>"))
        status, body, headers = self.get(server, "/v1/code.js")
        self.assertEqual((status, body, headers["Content-Type"]), (200, b"1", "text/javascript"))
        self.assertNotIn("Access-Control-Allow-Origin", headers)
        self.assertEqual(self.get(server, "/localtrace")[1], b"[1]")
        for path in ("/../secret", "/link", "/v1", "/nothing"):
            self.assertEqual(self.get(server, path)[0], 404, path)
        self.assertEqual(server.url(), f"http://127.0.0.1:{server.server_address[1]}/")

    def run_main(self, *words):
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            status = view.main(list(words))
        return status, out.getvalue(), errors.getvalue()

    def test_it_ends_when_the_trace_was_fetched(self):
        record(self.path("t.mtt"))
        made = view.ready_file(self.path("t.mtt"), self.folder)
        self.assertEqual(made, self.path("t.pftrace"))
        with view.Server(made, 0) as server:
            fetched = []
            thread = threading.Thread(target=lambda: fetched.append(self.get(server, "/t.pftrace")))
            thread.start()
            view.serve(server, keep=False)
            thread.join()
        self.assertIn(b"seen", fetched[0][1])

    def test_problems_are_told(self):
        trace = self.path("a.json", text="[]")
        with view.Server(trace, 0) as server:
            port = str(server.server_address[1])
            status, _, text = self.run_main("--port", port, trace)
        self.assertEqual(status, 1)
        self.assertIn(f"port {port} of this machine cannot be had", text)
        for words, code, part in (((), 2, "one trace is needed"), ((trace, trace), 2, "one trace at a time"),
                                  (("--port", "70000", trace), 2, "'70000' is not a port"),
                                  (("--prt", "1", trace), 2, "did you mean '--port'"),
                                  ((self.path("none.json"),), 1, "no such file"), ((self.folder,), 1, "not a file"),
                                  (("--ui", self.folder, trace), 1, "index.html is missing"),
                                  ((self.path("bad.mtt", text="x"),), 1, "bad.mtt")):
            status, _, text = self.run_main("--no-browser", *words)
            self.assertEqual(status, code, (words, text))
            self.assertIn(part, text)
        status, text, _ = self.run_main("--help")
        self.assertEqual(status, 0)
        self.assertIn("--no-browser", text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
