"""URLs of the pages, except `/`, which answers HTML or JSON."""

from django.urls import include, path

from analysis.api.v1.run import run_document
from analysis.pages import advice, matrix, share
from analysis.pages.compare import views as compare
from analysis.pages.fleet import views as fleet
from analysis.pages.help import views as help_pages
from analysis.pages.history import views as history
from analysis.pages.home import views as home
from analysis.pages.kinds import BY_KIND
from analysis.pages.run import share_views as run_share
from analysis.pages.run import views as run
from analysis.pages.trend import views as trend
from analysis.pages.what_to_change import views as what_to_change

app_name = "analysis"

urlpatterns = [
    *(path(f"{kind}s/", include(pages.views)) for kind, pages in BY_KIND.items() if pages.views),
    path("devices/", home.device_list, name="devices"),
    path("runs/", history.run_list, name="runs"),
    path("runs/change/", history.runs_change, name="runs_change"),
    path("runs/export.csv", history.run_export, {"form": "csv"}, name="runs_csv"),
    path("runs/export.json", history.run_export, {"form": "json"}, name="runs_json"),
    path("runs/views/", history.view_save, name="view_save"),
    path("runs/views/<int:view_id>/delete/", history.view_delete, name="view_delete"),
    path("runs/<int:run_id>/annotate/", history.run_annotate, name="run_annotate"),
    path("runs/new/", home.run_create, name="run_create"),
    path("runs/outlook/", home.run_outlook, name="run_outlook"),
    path("runs/<int:run_id>/", run.run_detail, name="run"),
    path("runs/<int:run_id>/advice/", advice.advice, name="advice"),
    path("runs/<int:run_id>/live/", run.run_live, name="run_live"),
    path("runs/<int:run_id>/cancel/", run.run_cancel, name="run_cancel"),
    path("runs/<int:run_id>/repeat/", run.run_repeat, name="run_repeat"),
    path("runs/<int:run_id>/race/", run.run_race, name="run_race"),
    path("runs/<int:run_id>/pin/", run.run_pin, name="run_pin"),
    path("runs/<int:run_id>/what-to-change/", what_to_change.changes_estimate, name="changes_estimate"),
    path("runs/<int:run_id>/measure-changes/", what_to_change.changes_measure, name="changes_measure"),
    path("runs/<int:run_id>/export.json", run_document.run_json_file, name="run_json"),
    path("runs/<int:run_id>/export.csv", run_document.run_csv_file, name="run_csv"),
    path("runs/<int:run_id>/charts/<slug:key>.svg", run.run_chart, name="run_chart"),
    path("runs/<int:run_id>/share/", run_share.share_create, name="share_create"),
    path("share-links/<int:link_id>/withdraw/", run_share.share_withdraw, name="share_withdraw"),
    path("share/<slug:secret>/", share.shared_run, name="shared_run"),
    path("share/<slug:secret>.svg", share.shared_badge, name="shared_badge"),
    path("share/<slug:secret>/charts/<slug:key>.svg", share.shared_chart, name="shared_chart"),
    path("what-to-change/", what_to_change.overview, name="what_to_change"),
    path("compare/", compare.compare, name="compare"),
    path("matrix/", matrix.matrix, name="matrix"),
    path("fleet/", fleet.fleet, name="fleet"),
    path("fleet/now/", fleet.fleet_now, name="fleet_now"),
    path("fleet/devices/<int:device_id>/drain/", fleet.device_drain, name="device_drain"),
    path("help/", help_pages.help_page, name="help"),
    path("help/design/", help_pages.design, name="design"),
    path("help/<slug:name>/", help_pages.document, name="document"),
    path("trend/", trend.trend, name="trend"),
    path("trend/acknowledge/<int:run_id>/", trend.trend_acknowledge, name="trend_acknowledge"),
]
