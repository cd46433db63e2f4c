"""Addresses of the pages. `/` itself is in `api/urls.py`: it answers HTML or JSON."""

from django.urls import path

from analysis import views

app_name = "analysis"

urlpatterns = [
    path("devices/", views.device_list, name="devices"),
    path("runs/", views.run_list, name="runs"),
    path("runs/new/", views.run_create, name="run_create"),
    path("runs/<int:run_id>/", views.run_detail, name="run"),
    path("runs/<int:run_id>/live/", views.run_live, name="run_live"),
    path("runs/<int:run_id>/cancel/", views.run_cancel, name="run_cancel"),
    path("runs/<int:run_id>/repeat/", views.run_repeat, name="run_repeat"),
]
