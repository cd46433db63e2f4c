"""The processes that execute runs, and what survives their death.

worker, tasks           a django-q2 cluster for each device, and the tasks its queue accepts (django_q_adapter)
supervisor              runs one attempt: engine_process starts the engine, engine_events reads its lines,
                        event_buffer keeps them until the database takes them
heartbeat, stop_pipe    a worker's sign of life, and the signal that stops it
device_lock, recovery   one process per device; takes over what a dead worker left (attempt_files)
process_manager         starts the processes of `manage.py up` again when they die
device_discovery        the devices of this host; engine_env: the environment that its engine gets
estimates, calibration  estimates as runs; a device's own constants
health, metrics         whether workers are alive and the queue moves, for people and for Prometheus
"""
