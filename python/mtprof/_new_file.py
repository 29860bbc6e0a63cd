# SPDX-License-Identifier: Apache-2.0
"""Files that appear at their path complete or not at all: base/new_file.h, for what Python writes."""
import contextlib
import errno
import os


@contextlib.contextmanager
def new_file(path, mode, **options):
    """open(path, mode, **options) for a temporary file next to the path, renamed at the end.

    Links are followed, the permissions of a file of our own that is replaced are kept, and nothing
    is left if the block fails. OSErrors name the path.
    """
    if not path:  # realpath() would make the current folder of it
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    target = os.path.realpath(path)
    beside = f".mtprof-{os.getpid()}-{os.urandom(4).hex()}.part"
    beside = os.path.join(os.path.dirname(target), beside)
    old = os.stat(target) if os.path.exists(target) else None
    bits = 0o666 if old is None else old.st_mode & 0o777  # less the umask, when it is made

    def opener(name, flags):
        return os.open(name, flags | os.O_EXCL, bits)

    try:
        with open(beside, mode, opener=opener, **options) as file:
            if old is not None and old.st_uid == os.geteuid():
                with contextlib.suppress(OSError):  # where it is refused the umask's stays
                    os.fchmod(file.fileno(), bits)
            yield file
        os.replace(beside, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        if isinstance(error, OSError) and error.errno and error.filename in (None, beside):
            raise type(error)(error.errno, error.strerror, path) from None
        raise


def is_special(path):
    """Whether the path is a pipe, a device or a folder: then there is nothing to rename."""
    return os.path.exists(path) and not os.path.isfile(path)
