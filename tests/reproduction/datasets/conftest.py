"""No test of this folder downloads anything."""

from dataset_fixtures import home, offline, put

__all__ = ["home", "offline", "put"]
