"""Sphinx configuration."""

from mporbm import __version__

project = "mporbm"
author = "The mporbm developers"
copyright = author  # noqa: A001
release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon"]
myst_enable_extensions = ["amsmath", "dollarmath"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
default_role = "py:obj"
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"mporbm {release}"
