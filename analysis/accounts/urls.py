"""URLs of the login and of a person's own account."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from analysis.accounts import views as accounts
from analysis.accounts.middleware import login_required_only

urlpatterns = [
    path("login/", accounts.Login.as_view(), name="login"),
    path("logout/", login_required_only(LogoutView.as_view()), name="logout"),
    path("account/", accounts.account, name="account"),
    path("account/password/", login_required_only(accounts.Password.as_view()), name="account_password"),
    path("account/tokens/", accounts.token_create_view, name="account_token_create"),
    path("account/tokens/report/", accounts.report_token_create, name="report_token_create"),
    path("account/tokens/<int:token_id>/revoke/", accounts.token_revoke_view, name="account_token_revoke"),
]
