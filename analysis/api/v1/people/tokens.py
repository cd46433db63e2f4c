"""API tokens. Only people create and revoke them: a leaked token can neither create another nor revoke others."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.accounts.tokens import token_create, token_revoke
from analysis.api.permissions import MayRead
from analysis.api.v1.base.strict_input import StrictBody, StrictFlag, StrictText, validated
from analysis.api.v1.base.views import PageForm, Resource
from analysis.http.problem_details import Problem, bad_field, bad_parameter
from analysis.models import ApiToken
from analysis.models.accounts import TOKEN_NAME_LENGTH
from analysis.permissions import may_manage, may_start, signed_in_user

_BY_PEOPLE = "A token cannot create or revoke tokens: sign in, or send name and password with HTTP Basic."


class MayReadAndActInPerson(MayRead):
    """Allows every person who may read to have tokens, but only the person to change them, not another token."""

    def has_permission(self, request: Any, view: Any) -> bool:
        if not super().has_permission(request, view):
            return False
        self.message, self.code = _BY_PEOPLE, "in_person"
        return request.method in SAFE_METHODS or not isinstance(request.auth, ApiToken)


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    """A token without its secret, which is not stored."""

    owner = serializers.CharField(source="owner.username")

    class Meta:
        model = ApiToken
        fields: tuple[str, ...] = (
            *("id", "name", "owner", "prefix", "may_write"),
            *("created_at", "expires_at", "last_used_at", "last_used_address", "revoked_at"),
        )


class NewTokenSerializer(TokenSerializer):
    """A token with its secret. No other response contains the secret."""

    secret = serializers.CharField(help_text="Send it as `Authorization: Bearer ...`.")

    class Meta(TokenSerializer.Meta):
        fields = (*TokenSerializer.Meta.fields, "secret")


class TokenBodySerializer(StrictBody):
    """A token to create."""

    name = StrictText(max_length=TOKEN_NAME_LENGTH, help_text="Purpose of the token.")
    may_write = StrictFlag(default=False, help_text="Whether the token may also change data.")
    expires_at = serializers.DateTimeField(default=None, allow_null=True, help_text="null: valid until it is revoked.")


class TokenListForm(PageForm):
    owner = forms.ChoiceField(
        choices=[("me", "me"), ("all", "all")], initial="me", required=False, help_text="`all` requires a GPU manager."
    )


@extend_schema_view(retrieve=extend_schema(description="One token."))
class Tokens(Resource[ApiToken]):
    """The person's own tokens, newest first, including revoked ones."""

    permission_classes = (MayReadAndActInPerson,)
    serializer_class = TokenSerializer
    queryset = ApiToken.objects.none()
    query_form = TokenListForm
    throttle_scope = "token"

    def get_queryset(self) -> QuerySet[ApiToken]:
        tokens, is_manager = ApiToken.objects.select_related("owner"), may_manage(self.request.user)
        is_any = self.parameters["owner"] == "all" if self.action == "list" else is_manager
        if is_any and not is_manager:
            raise bad_parameter("owner", "all is for GPU managers", "role")
        return tokens if is_any else tokens.filter(owner=signed_in_user(self.request))

    @extend_schema(request=TokenBodySerializer, responses={201: NewTokenSerializer})
    def create(self, request: Request) -> Response:
        """Create a token for oneself. Requires a login, or name and password with HTTP Basic; a token is refused."""
        values = validated(TokenBodySerializer, request.data)
        if values["may_write"] and not may_start(request.user):
            raise bad_field("may_write", "a viewer's token can only read", "role")
        token, secret = token_create(owner=signed_in_user(request), **values)
        return self.created(token, secret=secret)

    @extend_schema(operation_id="tokens_revoke")
    def destroy(self, request: Request, pk: int) -> Response:
        """Revoke a token of one's own; GPU managers, any. Revoking it again changes nothing."""
        if token_revoke(token_id=pk, by=signed_in_user(request)) or self.get_queryset().filter(pk=pk).exists():
            return Response(status=204)
        raise Problem(404, detail="There is no such token of yours.")
