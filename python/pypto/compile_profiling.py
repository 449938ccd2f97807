"""Nothing is here: drivers import this name. `ir.compile(profiling=True)` writes how long a compile took."""
