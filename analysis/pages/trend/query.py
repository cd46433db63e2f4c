"""Reads the address of a trend."""

from __future__ import annotations

from analysis.http.query_string import Query, count, flag, one_of, refuse_unknown, required_text
from analysis.runs.series import PARAMETERS, SeriesKey, default_input_size
from engine.spec import CHOICES, DEFAULTS, TRAINING_SETTINGS


def parse_trend_query(query: Query) -> SeriesKey:
    """Read `?model=bert&gpu=A100&...`. Raises BadQuery.

    A setting that the address leaves out is the default of a new run.
    """
    refuse_unknown(query, PARAMETERS)
    model = required_text(query, "model")
    return SeriesKey(
        model=model,
        gpu=required_text(query, "gpu"),
        settings=tuple((name, _setting(query, name)) for name in TRAINING_SETTINGS),
        input_size=count(query, "input_size") or default_input_size(model),
        memory_limit_bytes=count(query, "memory_limit_bytes"),
    )


def _setting(query: Query, name: str) -> str | bool:
    return one_of(query, name, CHOICES[name], DEFAULTS[name]) if name in CHOICES else flag(query, name)
