"""Addresses of the login and of one's own account."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from analysis.access import views
from analysis.access.middleware import for_signed_in

urlpatterns = [
    path("login/", views.Login.as_view(), name="login"),
    path("logout/", for_signed_in(LogoutView.as_view()), name="logout"),
    path("account/", views.account, name="account"),
    path("account/password/", for_signed_in(views.Password.as_view()), name="account_password"),
    path("account/tokens/", views.token_make, name="account_token_make"),
    path("account/tokens/<int:token_id>/revoke/", views.token_end, name="account_token_end"),
]
