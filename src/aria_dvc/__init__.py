"""ARIA as a data-versioned pipeline: intentions, aggregated rewards and policies with DVC."""

__version__ = "0.1.0"
