"""Addresses of the pages. `/` itself is in `api/urls.py`: it answers HTML or JSON."""

from django.urls import path

from analysis import views_compare, views_estimates, views_fleet, views_home, views_matrix, views_run, views_trend
from analysis.history import views as history

app_name = "analysis"

urlpatterns = [
    path("estimates/", views_estimates.estimates, name="estimates"),
    path("devices/", views_home.device_list, name="devices"),
    path("runs/", history.run_list, name="runs"),
    path("runs/change/", history.runs_change, name="runs_change"),
    path("runs/export.csv", history.run_export, {"form": "csv"}, name="runs_csv"),
    path("runs/export.json", history.run_export, {"form": "json"}, name="runs_json"),
    path("runs/views/", history.view_save, name="view_save"),
    path("runs/views/<int:view_id>/delete/", history.view_delete, name="view_delete"),
    path("runs/<int:run_id>/annotate/", history.run_annotate, name="run_annotate"),
    path("runs/new/", views_home.run_create, name="run_create"),
    path("runs/<int:run_id>/", views_run.run_detail, name="run"),
    path("runs/<int:run_id>/live/", views_run.run_live, name="run_live"),
    path("runs/<int:run_id>/cancel/", views_run.run_cancel, name="run_cancel"),
    path("runs/<int:run_id>/repeat/", views_run.run_repeat, name="run_repeat"),
    path("runs/<int:run_id>/pin/", views_run.run_pin, name="run_pin"),
    path("runs/<int:run_id>/export.json", views_run.run_json_file, name="run_json"),
    path("runs/<int:run_id>/export.csv", views_run.run_csv_file, name="run_csv"),
    path("runs/<int:run_id>/charts/<slug:key>.svg", views_run.run_chart, name="run_chart"),
    path("compare/", views_compare.compare, name="compare"),
    path("matrix/", views_matrix.matrix, name="matrix"),
    path("fleet/", views_fleet.fleet, name="fleet"),
    path("fleet/now/", views_fleet.fleet_now, name="fleet_now"),
    path("trend/", views_trend.trend, name="trend"),
    path("trend/acknowledge/<int:run_id>/", views_trend.trend_acknowledge, name="trend_acknowledge"),
]
