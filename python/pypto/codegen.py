"""Nothing is here: drivers import this name. What a compile writes is described in docs/artifacts.md."""
