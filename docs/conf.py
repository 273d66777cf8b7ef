"""Sphinx configuration."""

from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

from mporbm import __version__

project = "mporbm"
author = "The mporbm developers"
copyright = author  # noqa: A001
release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
default_role = "py:obj"
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"mporbm {release}"
html_math_renderer = "mathml"


def setup(app: Any) -> None:
    """Write formulas as MathML, which browsers draw by themselves: no script, no network."""

    def visit_inline(translator: Any, node: Any) -> None:
        translator.body.append(convert(node.astext()))
        raise SkipNode

    def visit_block(translator: Any, node: Any) -> None:
        translator.body.append(f"<div>{convert(node.astext(), display='block')}</div>")
        raise SkipNode

    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))


myst_heading_anchors = 3
