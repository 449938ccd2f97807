"""Nothing is here: drivers import this name."""
