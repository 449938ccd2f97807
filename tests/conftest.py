"""What the tests inherit from whoever starts them, and must not depend on; their scripts inherit it from them."""

import os
import signal

# A shell lets what it starts in the background ignore Ctrl-C, nohup the end of the terminal.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGTERM, signal.SIG_DFL)

# Scripts write each line at once, or what kernels print comes in between.
os.environ.pop("PYTHONUNBUFFERED", None)
