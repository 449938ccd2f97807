"""Whether a thread sleeps in poll(), as one does that waits for a call: what a test does then meets a thread that waits.
No import of torch or pytest: scripts of their own use it too."""

import os
import platform
import signal
import threading
import time

# Numbers of the system call.
_POLL = {"x86_64": "7", "aarch64": "73"}.get(platform.machine())


def until_it_polls(thread, process="self", seconds=30):
    """Of a process that may be watched. Where the system does not tell, it waits for a while."""
    deadline = time.monotonic() + seconds
    try:
        while open(f"/proc/{process}/task/{thread}/syscall").read().split()[0] != _POLL:
            assert time.monotonic() < deadline, "the thread does not wait"
            time.sleep(0.001)
    except OSError:  # it has ended, or may not be watched
        time.sleep(0.3)


def send(number, after=0.2):
    """Sends a signal to this process when the main thread has been waiting for a call for a while; returns the thread that does."""

    def wait_and_send():
        until_it_polls(threading.main_thread().native_id)
        time.sleep(after)
        os.kill(os.getpid(), number)

    sender = threading.Thread(target=wait_and_send)
    sender.start()
    return sender


def interrupt(handle, after=0.2):
    """Ends a call that is in flight for ever by Ctrl-C while the main thread waits for it, also where another thread polls
    for both. A signal that comes before the wait ends nothing, and is sent again."""
    while not handle.done:
        timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            handle.result()
        except KeyboardInterrupt:
            timer.cancel()
            timer.join()
