"""What the tests inherit from whoever starts them, and must not depend on; their scripts inherit it from them."""

import os
import signal

# A shell lets what it starts in the background ignore Ctrl-C, nohup the end of the terminal. What is handled here, if only by doing
# nothing, is as by default in scripts.
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGALRM):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, lambda *_: None)

# Scripts write each line at once, or what kernels print comes in between.
os.environ.pop("PYTHONUNBUFFERED", None)
