# SPDX-License-Identifier: Apache-2.0
"""Ready-made functions for on_trace_ready."""
import os
import time


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False, use_python_export=False):
    """Writes each window as a file that TensorBoard's plug-in finds in the folder.

    worker_name must differ between processes; the default is host name and process id. use_python_export is
    torch's and changes nothing here.
    """
    del use_python_export

    def handler(prof):
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
