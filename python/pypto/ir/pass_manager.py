"""How programs are optimised, by the name that drivers import it by."""

from .options import OptimizationStrategy as OptimizationStrategy
