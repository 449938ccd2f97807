"""What the numbered examples share: their command line, and how they end."""

import argparse
import sys

from pypto.ir import DistributedConfig
from pypto.runtime import RunConfig


def options(modes=(), flags={}):
    """The command line: which devices, which platform, whether to stop after compiling; which of its modes, of an
    example that shows several ways of one thing (the first is the default); and flags of its own, with their help."""
    caller = sys.modules["__main__"].__doc__.partition("\n")[0]
    parser = argparse.ArgumentParser(description=caller)
    parser.add_argument(
        "-d", "--devices", type=lambda ids: [int(i) for i in ids.split(",")], default=[0, 1], metavar="IDS",
        help="device ids, separated by commas; one rank for each (default: 0,1)",
    )
    parser.add_argument("-p", "--platform", default="cpu", help="cpu, a2a3, a2a3sim, a5 or a5sim (default: cpu)")
    if modes:
        parser.add_argument("--mode", choices=modes, default=modes[0], help=f"which way to show (default: {modes[0]})")
    for flag, meaning in flags.items():
        parser.add_argument(f"--{flag}", action="store_true", help=meaning)
    parser.add_argument("--compile-only", action="store_true", help="compile, and do not run")
    return parser.parse_args()


def config(options):
    """How a call runs: on which platform, on which devices."""
    devices = DistributedConfig(device_ids=options.devices)
    return RunConfig(platform=options.platform, distributed_config=devices)


def finish(correct):
    """Ends the script with its verdict."""
    print("OK" if correct else "WRONG")
    sys.exit(0 if correct else 1)
