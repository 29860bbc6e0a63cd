# SPDX-License-Identifier: Apache-2.0
"""Messages between a loader and its workers, tensors without a copy in the receiver.

    pickle, protocol 5 ──── small ────────────────────────────► one packet of a Unix socket
          │                                                      ▲ file descriptor
          └─ buffers of tensors and arrays ─► anonymous memory ──┘ mapped by the receiver

  TP1  Memory is anonymous (memfd) and travels as a descriptor: the kernel frees it, whichever
       process dies. There are no names to clean up, no locks that a killed process can leave held,
       no helper threads.
  TP2  A packet is at most LIMIT bytes, so a sender is not blocked by a batch that is not read yet.
  TP3  A received tensor owns its mapping: no other process can write to it.
  TP4  A forked worker closes all ends that are its parent's (close_inherited), so that closing
       an end takes effect; end() reaches the other side even if a fork still has a copy.
"""

import io
import mmap
import os
import pickle
import select
import socket
import struct
import weakref

import mindtorch_v2 as torch

LIMIT = 4096  # TP2
_ALIGN = 64
_HEAD = struct.Struct("<IQ")  # number of buffers in memory, bytes of the pickle in memory or 0


class Closed(Exception):
    """The other end is gone."""


def _tensor_from_buffer(cls, buffer, dtype, shape, requires_grad):
    if not len(buffer):
        tensor = torch.empty(shape, dtype=dtype, device="cpu")
    else:
        tensor = torch.frombuffer(buffer, dtype=dtype).view(shape)
    if cls is not None:
        return cls(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad) if requires_grad else tensor


def _bytes_of(tensor):
    """The memory of a contiguous tensor as bytes."""
    if not tensor.numel():
        return b""
    if tensor.dtype == torch.bfloat16:  # no buffer format knows it
        return bytearray(torch._C._tensor_bytes(tensor))
    view = memoryview(tensor)
    return view.cast("B") if view.ndim else view.cast("B", shape=[view.nbytes])


class _Pickler(pickle.Pickler):
    """Tensors as a buffer and what it means. A gradient's history cannot leave its process."""

    def reducer_override(self, value):
        if not isinstance(value, torch.Tensor):
            return NotImplemented
        if value.requires_grad and not value.is_leaf:
            raise RuntimeError(
                "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not "
                "support crossing process boundaries.  If you just want to transfer the data, call detach() "
                "on the tensor before serializing (e.g., putting it on the queue)."
            )
        if value.device.type != "cpu":
            raise RuntimeError(f"a worker cannot hand over a tensor on {value.device}; call cpu() on it")
        cls = None if type(value) is torch.Tensor else type(value)
        data = value.detach().contiguous()
        buffer = pickle.PickleBuffer(_bytes_of(data))
        return _tensor_from_buffer, (cls, buffer, data.dtype, tuple(data.shape), value.requires_grad)


def _pickled(message):
    """The pickle of a message, and the buffers that stay outside of it."""
    buffers = []

    def outside(buffer):
        raw = buffer.raw()
        if raw.nbytes < LIMIT // 4:
            return True  # small enough to stay in
        buffers.append(raw)
        return False

    out = io.BytesIO()
    _Pickler(out, protocol=5, buffer_callback=outside).dump(message)
    return out.getbuffer(), buffers


def _write_all(fd, data, offset):
    view = memoryview(data)
    while len(view):
        written = os.pwrite(fd, view, offset)
        offset += written
        view = view[written:]


def _up(offset):
    return (offset + _ALIGN - 1) & -_ALIGN


class Channel:
    """One end of a pair. Sockets are pickled by multiprocessing, so a channel can go to a child."""

    def __init__(self, socket_):
        self.socket = socket_

    def fileno(self):
        return self.socket.fileno()

    def close(self):
        """Gives up this process's copy."""
        self.socket.close()

    def end(self):
        """Ends the connection: reads and writes that wait at the other side return."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the other side was first
        self.socket.close()

    def send(self, message, wait=True):
        """Sends; without `wait`, False says that there is no room at present."""
        body, buffers = _pickled(message)
        sizes = [buffer.nbytes for buffer in buffers]
        table = struct.pack(f"<{len(sizes)}Q", *sizes)
        large = len(body) + len(table) > LIMIT
        if not large and not buffers:
            return self._send_packet(_HEAD.pack(0, 0) + body, None, wait)
        fd = os.memfd_create("loader", os.MFD_CLOEXEC)
        try:
            inline = _HEAD.pack(len(sizes), len(body) + len(table) if large else 0)
            offset = 0
            if large:
                _write_all(fd, table, 0)
                _write_all(fd, body, len(table))
                offset = _up(len(table) + len(body))
            else:
                inline += table + bytes(body)
            for buffer in buffers:
                _write_all(fd, buffer, offset)
                offset = _up(offset + buffer.nbytes)
            os.ftruncate(fd, max(offset, 1))
            return self._send_packet(inline, fd, wait)
        finally:
            os.close(fd)

    def _send_packet(self, packet, fd, wait):
        flags = 0 if wait else socket.MSG_DONTWAIT
        try:
            if fd is None:
                self.socket.send(packet, flags)
            else:
                socket.send_fds(self.socket, [packet], [fd], flags)
            return True
        except BlockingIOError:
            return False
        except OSError as error:
            raise Closed(str(error)) from None

    def poll(self, timeout):
        """Whether there is something to receive within some seconds."""
        poller = select.poll()
        poller.register(self.socket, select.POLLIN)
        return bool(poller.poll(max(0, timeout) * 1000))

    def receive(self):
        """The next message; waits for it. Closed when the other end is."""
        try:
            packet, fds, _, _ = socket.recv_fds(self.socket, 2 * LIMIT + _HEAD.size, 1)
        except OSError as error:
            raise Closed(str(error)) from None
        if not packet:
            raise Closed("closed")
        count, large = _HEAD.unpack_from(packet)
        body = memoryview(packet)[_HEAD.size :]
        if not fds:
            return pickle.loads(body)
        try:
            memory = memoryview(mmap.mmap(fds[0], 0))
        finally:
            os.close(fds[0])
        offset = 0
        if large:
            body, offset = memory[:large], _up(large)
        sizes = struct.unpack_from(f"<{count}Q", body)
        buffers = []
        for size in sizes:
            buffers.append(memory[offset : offset + size])
            offset = _up(offset + size)
        return pickle.loads(body[8 * count :], buffers=buffers)


_parents = weakref.WeakSet()  # TP4


def pair():
    """Two connected channels: the parent's, and the one for a child."""
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    parent, child = Channel(ends[0]), Channel(ends[1])
    _parents.add(parent)
    return parent, child


def close_inherited():
    """In a new child: closes what belongs to its parent."""
    for channel in list(_parents):
        channel.close()
    _parents.clear()
