"""What the address of a trend asks for."""

from __future__ import annotations

from analysis.http.query_string import Query, count, flag, one_of, refuse_unknown, required_text
from analysis.runs.series import SeriesKey, default_input_size
from engine.spec import MODES, OPTIMIZERS, PRECISIONS


def parse_trend_query(query: Query) -> SeriesKey:
    """Read `?model=bert&gpu=A100&...`. Raises BadQuery.

    A setting that the address leaves out is the default of a new run.
    """
    refuse_unknown(query, SeriesKey.__slots__)
    model = required_text(query, "model")
    return SeriesKey(
        model=model,
        gpu=required_text(query, "gpu"),
        precision=one_of(query, "precision", PRECISIONS, "fp32"),
        optimizer=one_of(query, "optimizer", OPTIMIZERS, "adamw"),
        mode=one_of(query, "mode", MODES, "train"),
        gradient_checkpointing=flag(query, "gradient_checkpointing"),
        pretrained=flag(query, "pretrained"),
        input_size=count(query, "input_size") or default_input_size(model),
        memory_limit_bytes=count(query, "memory_limit_bytes"),
    )
