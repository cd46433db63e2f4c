"""Share links: each shows the result of one run without a login, until it ends or is withdrawn."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from analysis.api.v1.base.strict_input import StrictBody, validated
from analysis.api.v1.base.views import PageForm, Resource
from analysis.http.problem_details import Problem
from analysis.http.query_string import LARGEST_ID, WholeNumberField
from analysis.models import ShareLink
from analysis.permissions import signed_in_user
from analysis.runs.marks.share_links import DAYS_OFFERED, share_link_create, share_link_withdraw, share_links_of


class ShareLinkSerializer(serializers.ModelSerializer[ShareLink]):
    """A link without its secret, which is not stored."""

    created_by = serializers.CharField(source="created_by.username", default=None, allow_null=True)

    class Meta:
        model = ShareLink
        fields: tuple[str, ...] = ("id", "run", "prefix", "created_by", "created_at", "ends_at", "withdrawn_at")


class NewShareLinkSerializer(ShareLinkSerializer):
    """A link with its addresses. No other response contains them."""

    url = serializers.CharField(help_text="The page of the result, for everybody.")
    badge_url = serializers.CharField(help_text="The result in one line, as an SVG for a README.")

    class Meta(ShareLinkSerializer.Meta):
        fields = (*ShareLinkSerializer.Meta.fields, "url", "badge_url")


class ShareLinkBodySerializer(StrictBody):
    """The run to share."""

    run = serializers.IntegerField(min_value=1, max_value=LARGEST_ID, help_text="A run that you may change.")
    days = serializers.IntegerField(
        allow_null=True,
        min_value=1,
        help_text=f"Days that the link is valid: {', '.join(map(str, DAYS_OFFERED))}, as far as a GPU manager allows; "
        "null: until it is withdrawn, where that is allowed.",
    )


class ShareLinkListForm(PageForm):
    run = WholeNumberField(required=False, help_text="Only links of this run.")


@extend_schema_view(retrieve=extend_schema(description="One link of a run that the person may change."))
class ShareLinks(Resource[ShareLink]):
    """The links of the person's own runs, newest first, also ended ones; for GPU managers, of all runs."""

    serializer_class = ShareLinkSerializer
    queryset = ShareLink.objects.none()
    query_form = ShareLinkListForm
    lookups = {"run": "run"}
    throttle_scope = "create"

    def get_queryset(self) -> QuerySet[ShareLink]:
        return share_links_of(signed_in_user(self.request)).select_related("created_by")

    @extend_schema(request=ShareLinkBodySerializer, responses={201: NewShareLinkSerializer})
    def create(self, request: Request) -> Response:
        """Create a link that shows a run's result without a login. Only this response contains its addresses."""
        values: dict[str, Any] = validated(ShareLinkBodySerializer, request.data)
        link, secret = share_link_create(run_id=values["run"], by=signed_in_user(request), days=values["days"])
        pages = {"url": "analysis:shared_run", "badge_url": "analysis:shared_badge"}
        return self.created(link, **{name: reverse(page, [secret], request=request) for name, page in pages.items()})

    @extend_schema(operation_id="share_links_withdraw")
    def destroy(self, request: Request, pk: int) -> Response:
        """Withdraw a link: from now on it answers 404. Withdrawing it again changes nothing."""
        if share_link_withdraw(link_id=pk, by=signed_in_user(request)) or self.get_queryset().filter(pk=pk).exists():
            return Response(status=204)
        raise Problem(404, detail="There is no such link of a run of yours.")
