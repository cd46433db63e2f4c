"""The pictures of charts, for templates: whole for a page, the elements alone for a file."""

from django import template

from analysis.presentation.charts.drawing import draw, picture

register = template.Library()
register.filter(draw)
register.filter(picture)
