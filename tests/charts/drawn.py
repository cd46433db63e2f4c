"""A drawn chart, read back as a browser would read it."""

import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from analysis.charts.drawing import draw
from analysis.charts.plots import Plot


def drawn(plot: Plot) -> Element:
    return ElementTree.fromstring(f"<svg>{draw(plot)}</svg>")


def having(drawing: Element, css_class: str) -> list[Element]:
    return [element for element in drawing.iter() if css_class in element.get("class", "").split()]


def places(drawing: Element, css_class: str) -> list[tuple[float, float]]:
    """Return where the markers of a class stand."""
    found = (re.match(r"translate\((\S+) (\S+)\)", mark.get("transform", "")) for mark in having(drawing, css_class))
    return [(float(each[1]), float(each[2])) for each in found if each]


def points(drawing: Element, css_class: str) -> list[tuple[float, float]]:
    """Return the points of the lines of a class."""
    pairs = (pair.split(",") for line in having(drawing, css_class) for pair in line.get("points", "").split())
    return [(float(x), float(y)) for x, y in pairs]


def tooltips(drawing: Element) -> list[str]:
    return [dot.findtext("title", "") for dot in having(drawing, "dot")]


def words(drawing: Element) -> list[str]:
    return [text.text or "" for text in drawing.iter("text")]
