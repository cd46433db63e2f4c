"""The filters of `presentation/formatting.py`, for templates."""

from analysis.presentation.formatting import register as register
