"""Who may do what, as one table: every address, every method it knows, five people. A new address must be added here.

A cell is the status of a valid request, `login` where one is sent to sign in, with a `+` where something was changed.
The runs, the view and the token that an address names are the operator's; `other` is another operator.
"""

PAGES_AND_API = """
method address                                    anonymous viewer operator other manager
GET    /readyz                                    503       503    503      503   503
GET    /metrics                                   401       200    200      200   200
GET    /                                          200       200    200      200   200
GET    /health                                    200       200    200      200   200
GET    /models                                    200       200    200      200   200
POST   /analyze                                   401       403    202+     202+  202+
GET    /api/v1/                                   401       200    200      200   200
GET    /api/v1/runs/                              401       200    200      200   200
POST   /api/v1/runs/                              401       403    202+     202+  202+
GET    /api/v1/runs/export.csv                    401       200    200      200   200
GET    /api/v1/runs/export.json                   401       200    200      200   200
GET    /api/v1/runs/<int:pk>/                     401       200    200      200   200
PATCH  /api/v1/runs/<int:pk>/                     401       403    200+     403   200+
DELETE /api/v1/runs/<int:pk>/                     401       403    204+     403   204+
POST   /api/v1/runs/<int:pk>/cancel/              401       403    202+     403   202+
POST   /api/v1/runs/<int:pk>/retry/               401       403    202+     202+  202+
POST   /api/v1/runs/<int:pk>/clone/               401       403    202+     202+  202+
POST   /api/v1/runs/<int:pk>/restore/             401       403    409      403   409
GET    /api/v1/runs/<int:pk>/measurements/        401       200    200      200   200
GET    /api/v1/runs/<int:pk>/attempts/            401       200    200      200   200
GET    /api/v1/runs/<int:pk>/events/              401       200    200      200   200
GET    /api/v1/runs/<int:pk>/events/stream/       401       200    200      200   200
GET    /api/v1/runs/<int:pk>/wait/                401       200    200      200   200
GET    /api/v1/runs/<int:pk>/points/              401       200    200      200   200
GET    /api/v1/runs/<int:pk>/result/              401       200    200      200   200
GET    /api/v1/runs/<int:pk>/certificate/         401       200    200      200   200
GET    /api/v1/runs/<int:pk>/advice/              401       200    200      200   200
POST   /api/v1/runs/<int:pk>/measure-changes/     401       403    202+     202+  202+
GET    /api/v1/models/                            401       200    200      200   200
GET    /api/v1/settings/                          401       200    200      200   200
GET    /api/v1/gpus/                              401       200    200      200   200
GET    /api/v1/devices/                           401       200    200      200   200
GET    /api/v1/devices/<int:pk>/                  401       200    200      200   200
GET    /api/v1/estimates/                         401       200    200      200   200
POST   /api/v1/estimates/                         401       403    202+     202+  202+
GET    /api/v1/recommendation/                    401       200    200      200   200
GET    /api/v1/commands/                          401       200    200      200   200
POST   /api/v1/commands/<str:name>/runs/          401       403    202+     202+  202+
POST   /api/v1/fits/                              401       403    202+     202+  202+
POST   /api/v1/compare/                           401       200    200      200   200
GET    /api/v1/matrix/                            401       200    200      200   200
GET    /api/v1/trends/                            401       200    200      200   200
POST   /api/v1/trends/acknowledgements/           401       403    200+     403   200+
GET    /api/v1/saved-views/                       401       200    200      200   200
POST   /api/v1/saved-views/                       401       403    201+     201+  201+
GET    /api/v1/saved-views/<int:pk>/              401       404    200      404   200
DELETE /api/v1/saved-views/<int:pk>/              401       403    204+     404   204+
GET    /api/v1/share-links/                       401       200    200      200   200
POST   /api/v1/share-links/                       401       403    201+     400   201+
GET    /api/v1/share-links/<int:pk>/              401       404    200      404   200
DELETE /api/v1/share-links/<int:pk>/              401       403    204+     404   204+
GET    /api/v1/tokens/                            401       200    200      200   200
POST   /api/v1/tokens/                            401       201+   201+     201+  201+
GET    /api/v1/tokens/<int:pk>/                   401       404    200      404   200
DELETE /api/v1/tokens/<int:pk>/                   401       404    204+     404   204+
GET    /api/v1/subscriptions/                     401       200    200      200   200
POST   /api/v1/subscriptions/                     401       201+   201+     201+  201+
GET    /api/v1/subscriptions/<int:pk>/            401       404    200      404   404
PATCH  /api/v1/subscriptions/<int:pk>/            401       404    200+     404   404
DELETE /api/v1/subscriptions/<int:pk>/            401       404    204+     404   404
POST   /api/v1/subscriptions/<int:pk>/test/       401       404    202+     404   404
POST   /api/v1/subscriptions/<int:pk>/secret/     401       404    200+     404   404
GET    /api/v1/subscriptions/<int:pk>/deliveries/ 401       404    200      404   404
GET    /api/v1/validations/                       401       200    200      200   200
POST   /api/v1/validations/                       401       403    202+     202+  202+
POST   /api/v1/reports/                           401       403    201+     201+  201+
POST   /api/v1/reports/<str:run_key>/events/      401       403    200+     404   404
POST   /api/v1/results/                           401       403    201+     201+  201+
POST   /api/v1/results/known/                     401       403    200      200   200
GET    /api/v1/audit/                             401       403    403      403   200
GET    /api/schema/                               401       200    200      200   200
GET    /api/docs/                                 login     200    200      200   200
GET    /estimates/                                login     200    200      200   200
POST   /estimates/                                login     403    302+     302+  302+
GET    /devices/                                  login     200    200      200   200
GET    /runs/                                     login     200    200      200   200
POST   /runs/change/                              login     403    302+     302   302+
GET    /runs/export.csv                           login     200    200      200   200
GET    /runs/export.json                          login     200    200      200   200
POST   /runs/views/                               login     403    302+     302+  302+
POST   /runs/views/<int:view_id>/delete/          login     403    302+     302   302+
POST   /runs/<int:run_id>/annotate/               login     403    302+     302   302+
GET    /commands/                                 login     200    200      200   200
POST   /commands/<str:name>/                      login     403    302+     302+  302+
GET    /validations/                              login     200    200      200   200
POST   /validations/new/                          login     403    302+     302+  302+
GET    /what-to-change/                           login     200    200      200   200
POST   /what-to-change/                           login     403    302+     302+  302+
POST   /runs/<int:run_id>/what-to-change/         login     403    302+     302+  302+
POST   /runs/<int:run_id>/measure-changes/        login     403    302+     302+  302+
GET    /runs/new/                                 login     302    302      302   302
POST   /runs/outlook/                             login     403    200      200   200
POST   /runs/new/                                 login     403    302+     302+  302+
GET    /runs/<int:run_id>/                        login     200    200      200   200
GET    /runs/<int:run_id>/advice/                 login     200    200      200   200
GET    /runs/<int:run_id>/live/                   login     286    286      286   286
POST   /runs/<int:run_id>/cancel/                 login     403    302+     302   302+
POST   /runs/<int:run_id>/race/                   login     403    302+     302+  302+
POST   /runs/<int:run_id>/repeat/                 login     403    302+     302+  302+
POST   /runs/<int:run_id>/pin/                    login     403    302+     302   302+
GET    /runs/<int:run_id>/export.json             login     200    200      200   200
GET    /runs/<int:run_id>/export.csv              login     200    200      200   200
GET    /runs/<int:run_id>/charts/<slug:key>.svg   login     200    200      200   200
POST   /runs/<int:run_id>/share/                  login     403    200+     302   200+
POST   /share-links/<int:link_id>/withdraw/       login     403    302+     302   302+
GET    /share/<slug:secret>/                      200       200    200      200   200
GET    /share/<slug:secret>.svg                   200       200    200      200   200
GET    /share/<slug:secret>/charts/<slug:key>.svg 200       200    200      200   200
GET    /compare/                                  login     200    200      200   200
GET    /matrix/                                   login     200    200      200   200
GET    /fleet/                                    login     200    200      200   200
GET    /fleet/now/                                login     200    200      200   200
POST   /fleet/devices/<int:device_id>/drain/      login     403    403      403   302+
GET    /help/                                     login     200    200      200   200
GET    /help/<slug:name>/                         login     200    200      200   200
GET    /help/design/                              login     200    200      200   200
GET    /trend/                                    login     200    200      200   200
POST   /trend/acknowledge/<int:run_id>/           login     403    302+     302   302+
GET    /login/                                    200       302    302      302   302
POST   /login/                                    200       302    302      302   302
PUT    /login/                                    200       302    302      302   302
PATCH  /login/                                    405       302    302      302   302
DELETE /login/                                    405       302    302      302   302
POST   /logout/                                   login     login  login    login login
GET    /account/                                  login     200    200      200   200
GET    /account/password/                         login     200    200      200   200
POST   /account/password/                         login     302+   302+     302+  302+
PUT    /account/password/                         login     200    200      200   200
POST   /account/tokens/                           login     200+   200+     200+  200+
POST   /account/tokens/report/                    login     403    200+     200+  200+
POST   /account/tokens/<int:token_id>/revoke/     login     302    302+     302   302+
GET    /account/notifications/                    login     200    200      200   200
POST   /account/notifications/new/                login     200+   200+     200+  200+
GET    /account/notifications/<int:subscription_id>/ login  404    200      404   404
POST   /account/notifications/<int:subscription_id>/ login  404    302+     404   404
POST   /account/notifications/<int:subscription_id>/test/ login 404 302+    404   404
POST   /account/notifications/<int:subscription_id>/secret/ login 404 200+  404   404
POST   /account/notifications/<int:subscription_id>/delete/ login 404 302+  404   404
"""

ADMIN = """
kind                           list add view save delete
analysis/auditentry            200  403 200  403  403
analysis/host                  200  403 200  302  403
analysis/device                200  403 200  302  403
analysis/tag                   200  403 200  403  403
analysis/matrixcell            200  403 200  403  403
analysis/trendacknowledgement  200  403 200  403  403
analysis/report                200  403 200  403  403
analysis/trust                 200  200 200  403  403
auth/user                      200  200 200  200  403
auth/group                     200  200 200  302  403
analysis/gpuprice              200  200 200  200  200
analysis/retentionrule         200  403 200  302  403
analysis/run                   200  403 200  403  403
analysis/attempt               200  403 200  403  403
analysis/measurement           200  403 200  403  403
analysis/runlog                200  403 200  403  403
analysis/apitoken              200  403 200  403  403
analysis/quota                 200  200 200  200  200
analysis/sharelink             200  403 200  403  403
analysis/savedview             200  403 200  403  200
analysis/subscription          200  403 200  403  200
analysis/delivery              200  403 200  403  403
analysis/allowedhost           200  200 200  200  200
"""
"""What a GPU manager is answered, `save` with an empty form; nobody else is let in. Group 1 is a role: it stays."""

ADMIN_BESIDES = """
address                                             manager
admin/                                              200
admin/queue/                                        200
admin/login/                                        login
admin/logout/                                       login
admin/password_change/                              200
admin/password_change/done/                         200
admin/autocomplete/                                 403
admin/jsi18n/                                       200
admin/r/<path:content_type_id>/<path:object_id>/    302
admin/auth/user/<id>/password/                      200
admin/^(?P<app_label>analysis|auth)/$               200
admin/(?P<url>.*)$                                  404
"""
