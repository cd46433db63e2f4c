"""URLs of a person's notifications."""

from django.urls import path

from analysis.news import views

_ONE = "account/notifications/<int:subscription_id>/"

urlpatterns = [
    path("account/notifications/", views.notifications, name="notifications"),
    path("account/notifications/new/", views.subscription_create, name="subscription_create"),
    path(_ONE, views.subscription, name="subscription"),
    path(f"{_ONE}test/", views.subscription_test, name="subscription_test"),
    path(f"{_ONE}secret/", views.subscription_rotate, name="subscription_rotate"),
    path(f"{_ONE}delete/", views.subscription_delete, name="subscription_delete"),
]
