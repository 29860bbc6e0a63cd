# SPDX-License-Identifier: Apache-2.0
"""Ready-made functions for on_trace_ready."""
import os
import time
from collections.abc import Callable
from typing import Any


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False,
                              use_python_export: bool = False) -> Callable[[Any], None]:
    """Writes each window as a file that TensorBoard's plug-in finds in the folder.

    dir_name is the folder, made where it is missing. use_gzip compresses the files. worker_name must differ
    between processes; the default is host name and process id. use_python_export is torch's and changes nothing
    here.
    """
    del use_python_export

    def handler(prof: Any) -> None:
        nonlocal worker_name
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"Can't create directory: {dir_name}") from error
        if not worker_name:
            import socket
            worker_name = f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker_name}.{time.time_ns()}.pt.trace.json"
        prof.export_chrome_trace(os.path.join(dir_name, name + ".gz" if use_gzip else name))

    return handler
