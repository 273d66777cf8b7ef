"""Kept until the estimators call it no more: see `mporbm.enable_compilation_cache`."""


def keep_compiled() -> None:
    """Do nothing: training and inference have no side effects on JAX's configuration."""
