"""GPU x model: the batch size of each model on each card, from the newest measurement, or else an estimate."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.v1.base.serializers import ORIGIN_HELP, OriginSerializer
from analysis.api.v1.base.views import StrictView
from analysis.api.v1.catalog import PriceSerializer
from analysis.lists.matrix.query import MatrixForm, card_prices, stored_cells
from analysis.lists.matrix.table import CardColumn, WorkloadRow, matrix_table
from analysis.models import Device


class CardSerializer(serializers.Serializer[CardColumn]):
    """A column: one card. `is_here`: a device of this portal is such a card."""

    id = serializers.CharField(source="key")
    name = serializers.CharField()
    memory_bytes = serializers.IntegerField()
    is_cpu = serializers.BooleanField()
    is_here = serializers.BooleanField()
    price = PriceSerializer(allow_null=True)


class MatrixCellSerializer(OriginSerializer):
    """One model on one card. `kind` and `origin` are null where there is neither a measurement nor an estimate."""

    reported_from = serializers.CharField(
        source="origin.reported_from", allow_null=True, help_text=ORIGIN_HELP["reported_from"]
    )
    is_trusted = serializers.BooleanField(
        source="origin.is_trusted", allow_null=True, help_text=ORIGIN_HELP["is_trusted"]
    )
    card = serializers.CharField(source="card.key")
    kind = serializers.ChoiceField(["measured", "estimated"], source="cell.kind", allow_null=True)
    run = serializers.IntegerField(source="cell.run_id", allow_null=True)
    answered_at = serializers.DateTimeField(source="cell.answered_at", allow_null=True)
    largest_batch_size = serializers.IntegerField(source="cell.largest_batch_size", allow_null=True)
    safe_batch_size = serializers.IntegerField(
        source="cell.safe_batch_size",
        allow_null=True,
        help_text="Estimates only: the largest size within the margin of error.",
    )
    recommended_batch_size = serializers.IntegerField(
        source="cell.recommended_batch_size",
        allow_null=True,
        help_text=(
            "Measurements only: the size that compared speeds recommend, at which `samples_per_second` was measured. "
            "null where they recommend none."
        ),
    )
    batch_size_with_reserve = serializers.IntegerField(
        source="cell.with_reserve_batch_size",
        allow_null=True,
        help_text=(
            "Largest size that leaves the reserve free: measured, or predicted and never above the safe size. null: "
            "not known."
        ),
    )
    reserve_fraction = serializers.FloatField(
        source="cell.reserve_fraction",
        allow_null=True,
        help_text="Share of memory that the reserve is. null in runs before version 0.5.",
    )
    samples_per_second = serializers.FloatField(source="cell.samples_per_second", allow_null=True)
    headroom_bytes = serializers.IntegerField(source="cell.headroom_bytes", allow_null=True)
    million_samples_usd = serializers.FloatField(
        source="cost_usd", allow_null=True, help_text="Derived: price per hour divided by samples per hour."
    )
    is_fastest = serializers.BooleanField()
    is_cheapest = serializers.BooleanField()
    refusal = serializers.CharField(help_text="Why this GPU cannot run these settings. Empty: it can.")


class MatrixRowSerializer(serializers.Serializer[WorkloadRow]):
    """A model at one input size; one cell for each card, in the order of the cards."""

    model = serializers.CharField()
    input_size = serializers.SerializerMethodField(help_text="Tokens, or the side of the image in pixels.")
    parameter_count = serializers.IntegerField()
    cells = MatrixCellSerializer(many=True)

    def get_input_size(self, row: WorkloadRow) -> int:
        return next(shown.cell.input_size for shown in row.cells if shown.cell)


class MatrixSerializer(serializers.Serializer[Any]):
    """The matrix. Rows without any figure are left out."""

    settings = serializers.DictField(child=serializers.JSONField(), help_text="Settings of all figures in the matrix.")
    cards = CardSerializer(many=True)
    rows = MatrixRowSerializer(many=True)


class Matrix(StrictView):
    query_form = MatrixForm

    @extend_schema(operation_id="matrix_retrieve", responses=MatrixSerializer)
    def get(self, request: Request) -> Response:
        """Return all models and cards. A measurement takes precedence over an estimate."""
        form = self.query
        cells = stored_cells(form)
        devices = Device.objects.enabled().exclude(kind="cpu").defer("calibration")
        shown = matrix_table(form, cells, devices, card_prices())
        answer = {"settings": form.settings, "cards": shown["cards"], "rows": shown["rows"]}
        return Response(MatrixSerializer(answer).data)
