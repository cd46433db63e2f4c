"""Version 1 of the API: stored runs and their parts, in bytes and seconds.

strict_input        strict JSON bodies
paging              lists in pages that do not shift
throttles           rate limits of costly requests, counted across processes
idempotency         a request sent twice stores one run
etags               ETag, If-None-Match, If-Match
serializer_bases    common bases of body serializers
serializers         rows -> JSON
runs                list, create, detail, change, delete
run_actions         cancel, retry, clone, restore
run_parts           measurements, attempts, events, points, result, certificate
run_wait            wait for the end of a run; a stream of its events
subscriptions       webhooks, Slack and e-mail for news, with the log of deliveries
run_document        a run as a file: JSON, CSV
evidence            stored probes and estimates -> curves and certificates
result_schema       the JSON Schema of a run's spec and result
openapi_parameters  parameters, headers and problems in the OpenAPI schema
root                the index of the API
"""
