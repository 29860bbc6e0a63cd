# SPDX-License-Identifier: Apache-2.0
"""The workers of a loader, as the loader's process sees them.

  CR1  Sending never blocks: a worker that waits for us to read would wait forever.
  CR2  A crew that lost a member, or timed out, is dismissed as a whole before the error is raised.
  CR3  When dismiss() returns, no process of the crew is left. A fork's copy of a crew only closes
       its connections; the processes are its parent's.
"""

import os
import time
from collections import deque

from . import transport
from .worker import CHECK_SECONDS, FETCH, RESUME, work


def _describe_exit(process):
    """How a worker died."""
    code = process.exitcode
    if code is None or code >= 0:
        return f"DataLoader worker (pid {process.pid}) exited unexpectedly with exit code {code}."
    import signal

    try:
        name = signal.strsignal(-code)
    except ValueError:
        name = None
    return f"DataLoader worker (pid {process.pid}) is killed by signal: {name or f'signal {-code}'}."


class Member:
    """One worker."""

    def __init__(self, context, plan, place):
        self.seat = place[0]
        self.finished = False  # its copy of an iterable data set has ended
        self.owes = 0  # batches that it was asked for
        self.exitcode = None  # once it has ended
        self._unsent = deque()
        self.channel, child = transport.pair()
        try:
            self.process = context.Process(target=work, args=(child, plan, *place), daemon=True)
            self.process.start()
        except BaseException:
            self.channel.close()
            raise
        finally:
            child.close()

    def begin(self, seed):
        """Starts an iteration; what is left of the one before is forgotten."""
        self.finished = False
        self.owes = 0
        self._unsent.clear()
        self._send((RESUME, seed))

    def ask(self, number, request):
        """Asks for a batch."""
        self.owes += 1
        self._send((FETCH, number, request))

    def _send(self, message):
        self._unsent.append(message)
        self._flush()

    def _flush(self):  # CR1
        try:
            while self._unsent and self.channel.send(self._unsent[0], wait=False):
                self._unsent.popleft()
        except transport.Closed:
            self._unsent.clear()  # it died; the next read from it raises

    def hear(self):
        """Its next message."""
        message = self.channel.receive()
        self._flush()
        return message

    def leave(self, deadline):
        """Waits for its end, which is asked for, then demanded, then made."""
        process = self.process
        process.join(max(0.0, deadline - time.monotonic()))
        for end, patience in ((process.terminate, 1.0), (process.kill, None)):
            if process.is_alive():
                end()
                process.join(patience)
        self.exitcode = process.exitcode
        process.close()


class Crew:
    """All workers of an iteration."""

    dismissed = True  # until there are members

    def __init__(self, context, plan, size, timeout, initialise):
        self.members = []
        self.dismissed = False
        self._timeout = timeout
        self._home = os.getpid()
        try:
            for seat in range(size):
                self.members.append(Member(context, plan, (seat, size, initialise)))
        except BaseException:
            self.dismiss()
            raise

    def begin(self, seed):
        """A new iteration: every member starts afresh, with a seed of its own."""
        for member in self.members:
            member.begin(seed + member.seat)
        absent = set(self.members)
        while absent:  # batches of an iteration that was left early come before the answer
            member, message = self.hear()
            if message[0] == RESUME:
                absent.discard(member)

    def hear(self):
        """The first (member, message) to arrive; raises when a member died or the time is over."""
        from multiprocessing.connection import wait

        by_channel = {member.channel: member for member in self.members}
        by_sentinel = {member.process.sentinel: member for member in self.members}
        deadline = time.monotonic() + self._timeout if self._timeout > 0 else float("inf")
        while True:
            left = max(0.0, deadline - time.monotonic())
            signs = wait([*by_channel, *by_sentinel], min(left, CHECK_SECONDS))
            speaker = next((by_channel[sign] for sign in signs if sign in by_channel), None)
            if speaker is not None:
                try:
                    return speaker, speaker.hear()
                except transport.Closed:
                    self._mourn(speaker)
            if signs:
                self._mourn(by_sentinel[signs[0]])
            if time.monotonic() >= deadline:
                self.dismiss()
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")

    def _mourn(self, member):  # CR2
        member.process.join(1.0)
        text = _describe_exit(member.process)
        self.dismiss()
        raise RuntimeError(text)

    def dismiss(self):
        """Sends all of them away (CR3)."""
        if self.dismissed:
            return
        self.dismissed = True
        ours = os.getpid() == self._home
        for member in self.members:
            if ours:
                member.channel.end()
            else:
                member.channel.close()
        deadline = time.monotonic() + CHECK_SECONDS
        for member in self.members if ours else ():
            member.leave(deadline)

    def __del__(self):
        self.dismiss()
