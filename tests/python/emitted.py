"""What compilers say of emitted C. Programs are compiled without warnings being looked at, so tests ask here."""

import pathlib
import subprocess

import pypto

INSTALLED = pathlib.Path(pypto.__file__).parents[4] / "include"
HEADERS = INSTALLED if (INSTALLED / "pypto" / "pld.h").exists() else pathlib.Path(__file__).parents[2] / "include"


def warnings(files, compiler):
    """What `compiler` has to say against the files; empty when it is content."""
    flags = ["-std=c17", "-O2", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{HEADERS}"]
    # A comparison that is always true stands in the script, too.
    flags += ["-Wno-type-limits", "-Wno-tautological-compare", "-Wno-sign-compare"]
    done = subprocess.run([compiler, *flags, *map(str, files)], capture_output=True, text=True)
    return done.stderr if done.returncode != 0 else ""
