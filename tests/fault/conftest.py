"""The fixtures of the fault tests; pytest finds them here."""

from script_fixtures import as_script, script  # noqa: F401
