"""Settings of the portal. What a deployment may change comes from the environment, through `env.py`.

MEMORYMARK_PRODUCTION=1   https only, secure cookies; SECRET_KEY must be given
MEMORYMARK_DEBUG=1        Django's debug pages
MEMORYMARK_DATA_DIR       database, secret, static files, locks; default: var/ beside manage.py
MEMORYMARK_ALLOWED_HOSTS, MEMORYMARK_CSRF_TRUSTED_ORIGINS, MEMORYMARK_CORS_ORIGINS   lists separated by commas
MEMORYMARK_THROTTLE_CREATE, ..._CHANGE, ..._EXPORT, ..._TOKEN   how often, such as 60/min
MEMORYMARK_ANALYZE_WAIT_SECONDS, MEMORYMARK_ANALYZE_WAITING_REQUESTS, MEMORYMARK_RUN_TIME_BUDGET_MAX_SECONDS
MEMORYMARK_STREAMS_OPEN   streams of events of runs that each web process may have open
MEMORYMARK_RUN_HEARTBEAT_SECONDS, ..._LEASE_SECONDS, ..._SUSPECT_SECONDS, ..._STALL_SECONDS   for tests and slow disks
MEMORYMARK_HOST           this host's name in the fleet; default: the system's host name
MEMORYMARK_LOCK_DIR       one lock per device; the same for every portal and worker of a machine
MEMORYMARK_ENGINE_COMMAND the engine in another virtual environment: `/opt/engine/bin/python -m engine`
MEMORYMARK_ENGINE_ENVIRONMENT   variables that the engine gets besides those it needs to run: `HF_TOKEN`
MEMORYMARK_COMMANDS       a TOML file with the training commands that can be started here (default: commands.toml in
                          MEMORYMARK_DATA_DIR, written by `manage.py command add`): docs/tune.md
MEMORYMARK_SECRET_NAMES   further words of names whose values are hidden on command lines: engine/text/masking.py
MEMORYMARK_METRICS_TOKEN  the Bearer token of scrapers of /metrics
MEMORYMARK_PUBLIC_URL     the portal's address in news, such as https://lab.example; default: links are paths
MEMORYMARK_NEWS_TIMEOUT_SECONDS, ..._RETRY_SECONDS, ..._GIVE_UP_SECONDS   deliveries of news: docs/notifications.md
EMAIL_HOST, EMAIL_PORT, EMAIL_HOST_USER, EMAIL_HOST_PASSWORD, EMAIL_USE_TLS, EMAIL_USE_SSL, DEFAULT_FROM_EMAIL
MEMORYMARK_TRUSTED_PROXIES   number of proxies in front; default: none, and X-Forwarded-For is ignored
MEMORYMARK_REMOTE_USER_HEADER, MEMORYMARK_REMOTE_USER_PROXIES   single sign-on by a proxy's header
MEMORYMARK_PUBLIC_READ_ONLY=1   everybody may read the pages without a login; they show no names of people
MEMORYMARK_GUEST_ESTIMATES=1   everybody may ask /estimates/ for stored estimates of the catalogue without a login
MEMORYMARK_LOCAL=1        set by `manage.py up` when it serves this machine alone
DATABASE_URL, SECRET_KEY, SECRET_KEY_FALLBACKS
"""

import socket
import sys
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from engine.machine.device_lock import default_folder
from engine.report.protocol import RESULT_BYTES_MOST
from memorymark_site.env import (
    env_bool,
    env_command,
    env_file,
    env_list,
    env_networks,
    env_number,
    env_origins,
    env_path,
    env_rate,
    env_text,
    env_url,
    keep_private,
    stored_secret,
    writable_file,
    writable_folder,
)

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = writable_folder(env_path("MEMORYMARK_DATA_DIR", BASE_DIR / "var"), remedy="set MEMORYMARK_DATA_DIR")
# machine-wide on purpose: two portals on one machine must not use a card at once
LOCK_DIR = env_path("MEMORYMARK_LOCK_DIR", default_folder())
HOST_NAME = env_text("MEMORYMARK_HOST") or socket.gethostname()

PRODUCTION = env_bool("MEMORYMARK_PRODUCTION")
DEBUG = env_bool("MEMORYMARK_DEBUG")
if PRODUCTION and DEBUG:
    raise ImproperlyConfigured("MEMORYMARK_DEBUG=1 shows settings and code with every error: not in production")
SERVES_THIS_MACHINE_ONLY = env_bool("MEMORYMARK_LOCAL")
SECRET_KEY = env_text("SECRET_KEY")
if PRODUCTION and not SECRET_KEY:
    raise ImproperlyConfigured("SECRET_KEY must be given when MEMORYMARK_PRODUCTION=1")
SECRET_KEY_IS_GIVEN = bool(SECRET_KEY)
SECRET_KEY = SECRET_KEY or stored_secret(DATA_DIR / "secret_key")
SECRET_KEY_FALLBACKS = env_list("SECRET_KEY_FALLBACKS")  # former keys: sessions that they signed stay valid

ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", *env_list("MEMORYMARK_ALLOWED_HOSTS")]
CSRF_TRUSTED_ORIGINS = env_list("MEMORYMARK_CSRF_TRUSTED_ORIGINS")
# pages of other sites reach the API and the classic endpoints alone, and never with a session: they show a token
CORS_ALLOW_ALL_ORIGINS, CORS_ALLOWED_ORIGINS = env_origins("MEMORYMARK_CORS_ORIGINS")
CORS_ALLOW_CREDENTIALS = False
CORS_URLS_REGEX = r"^/(?:api/|(?:health|models|analyze)$)"
CORS_ALLOW_HEADERS = (
    *("accept", "authorization", "content-type", "idempotency-key", "if-match", "if-none-match"),
    *("prefer", "x-request-id"),
)
CORS_EXPOSE_HEADERS = (
    *("ETag", "Location", "Retry-After", "X-Request-ID", "Idempotent-Replayed"),
    *("RateLimit", "RateLimit-Policy"),
)

INSTALLED_APPS = [
    "analysis",
    "axes",
    "memorymark_site.apps.Admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "memorymark_site.apps.StaticFiles",
    "corsheaders",
    "django_filters",
    "django_htmx",
    "django_q",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "rest_framework",
]
MIDDLEWARE = [
    "analysis.audit.middleware.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "analysis.http.csp.ContentPolicyMiddleware",
    "analysis.http.body_limit.RequestLimitsMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "analysis.accounts.single_sign_on.SingleSignOnMiddleware",
    "analysis.accounts.middleware.RightsMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
]
ROOT_URLCONF = "memorymark_site.urls"
WSGI_APPLICATION = "memorymark_site.wsgi.application"
_OWN_TAGS = ("analysis.templatetags.units", "analysis.templatetags.answer")  # nearly every template needs them
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "analysis.pages.frame.frame",
            ],
            "builtins": ["django.templatetags.static", "django_htmx.templatetags.django_htmx", *_OWN_TAGS],
        },
    }
]

# IMMEDIATE takes the write lock at BEGIN, where `timeout` waits for it; the default fails on lock upgrade
_SQLITE_OPTIONS = {
    "timeout": 20,
    "transaction_mode": "IMMEDIATE",
    "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA temp_store=MEMORY;"
    "PRAGMA mmap_size=134217728;PRAGMA journal_size_limit=67108864;PRAGMA cache_size=-16000;",
}
# an outage is noticed within seconds, and an unreachable server within a minute
_POSTGRESQL_OPTIONS = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 20,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 40_000,
    # a process that is frozen in a transaction holds its locks; no transaction of ours pauses nearly this long
    "options": "-c idle_in_transaction_session_timeout=20s",
}
_DATABASE = dj_database_url.parse(env_text("DATABASE_URL") or f"sqlite:///{DATA_DIR / 'memorymark.sqlite3'}")
if _DATABASE["ENGINE"] == "django.db.backends.sqlite3":
    writable_file(_DATABASE["NAME"], remedy="set DATABASE_URL or MEMORYMARK_DATA_DIR")
    keep_private(_DATABASE["NAME"])
    _DATABASE |= {"OPTIONS": _SQLITE_OPTIONS}
else:
    _DATABASE |= {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}
    _DATABASE["OPTIONS"] = {**_POSTGRESQL_OPTIONS, **_DATABASE.get("OPTIONS", {})}
DATABASES = {"default": _DATABASE}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
# Failed logins, counted in the database and so across processes; what is counted: analysis/accounts/lockout.py
AXES_HANDLER = "analysis.accounts.lockout.PerAddressLockoutHandler"
AXES_LOCKOUT_CALLABLE = "analysis.accounts.lockout.locked_out"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"], "ip_address"]
AXES_CLIENT_IP_CALLABLE = "analysis.http.client_ip.counted_address"
AXES_FAILURE_LIMIT = 5
LOCKOUT_FAILURES_PER_ADDRESS = 30
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False  # nor is one recorded: rows stay as few as the limits
AXES_RESET_ON_SUCCESS = True
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_SENSITIVE_PARAMETERS = ["username"]  # people type a password there
# number of proxies in front, each of which appends its client's address to X-Forwarded-For
TRUSTED_PROXIES = int(env_number("MEMORYMARK_TRUSTED_PROXIES", 0, minimum=0, maximum=10))
# single sign-on: the header in which a proxy names the person, and the proxies' own addresses; no header: off
REMOTE_USER_HEADER = env_text("MEMORYMARK_REMOTE_USER_HEADER")
REMOTE_USER_PROXIES = env_networks("MEMORYMARK_REMOTE_USER_PROXIES")
if REMOTE_USER_HEADER:
    AUTHENTICATION_BACKENDS += ["analysis.accounts.single_sign_on.ProxyBackend"]
if REMOTE_USER_HEADER and not REMOTE_USER_PROXIES:
    message = "MEMORYMARK_REMOTE_USER_PROXIES must name the proxies whose MEMORYMARK_REMOTE_USER_HEADER is believed"
    raise ImproperlyConfigured(message)
# whether everybody may read the pages without a login; never exports, the API, or people's names
PUBLIC_READ_ONLY = env_bool("MEMORYMARK_PUBLIC_READ_ONLY")
# whether everybody may ask for stored estimates of catalogue models: one page, which starts nothing
GUEST_ESTIMATES = env_bool("MEMORYMARK_GUEST_ESTIMATES")
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"

LANGUAGE_CODE = "en-us"
FORMAT_MODULE_PATH = "memorymark_site.formats"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = writable_folder(DATA_DIR / "static", remedy="set MEMORYMARK_DATA_DIR")  # WhiteNoise wants it there
STATICFILES_DIRS = [
    BASE_DIR / "static",
    ("fonts", Path(find_spec("unfold").origin).parent / "static/unfold/fonts/inter"),  # type: ignore[union-attr, arg-type]
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

CSRF_FAILURE_VIEW = "analysis.http.errors.csrf_failure"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True  # no script of ours reads either
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 7 * 86_400
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024  # a form of ours has some kilobytes
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1_000
DATA_UPLOAD_MAX_NUMBER_FILES = 0
if PRODUCTION:
    SECURE_REDIRECT_EXEMPT = [r"^health$", r"^readyz$"]  # load balancers use plain http
    SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
    SECURE_HSTS_SECONDS = 365 * 86_400
    SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = True
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["analysis.api.v1.base.strict_input.StrictJSONParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "analysis.accounts.authentication.TokenAuthentication",
        "analysis.accounts.authentication.PasswordAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["analysis.api.permissions.MayUse"],
    "NUM_PROXIES": TRUSTED_PROXIES,
    "DEFAULT_THROTTLE_CLASSES": ["analysis.api.v1.base.throttles.ScopeThrottle"],
    "DEFAULT_METADATA_CLASS": None,
    "EXCEPTION_HANDLER": "analysis.api.exception_handler.api_exception",
    "DEFAULT_SCHEMA_CLASS": "analysis.api.v1.base.openapi_parameters.ViewSchema",
}

SPECTACULAR_SETTINGS = {
    "TITLE": "MemoryMark",
    "DESCRIPTION": "Stored runs and all that belongs to them. Sizes are bytes, times seconds, moments UTC.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",  # its schemas are JSON Schema 2020-12, as /api/v1/settings/ answers it
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "TAGS": [
        {"name": "runs", "description": "Measure, read, change, export."},
        {"name": "estimates", "description": "Runs whose figures come from the predictor; they use no device."},
        {
            "name": "recommendation",
            "description": "The recommended batch size of an earlier measurement.",
        },
        {
            "name": "comparison",
            "description": "Comparison of runs, of all cards and models, and of one series over time.",
        },
        {"name": "catalogue", "description": "Models, settings and GPUs that a run can request."},
        {"name": "fleet", "description": "The devices of all hosts."},
        {"name": "validations", "description": "Checks of the backward pass and of torch.compile, with a verdict."},
        {"name": "reports", "description": "Runs that other machines execute, and their result documents."},
        {"name": "saved views", "description": "Named views of the history."},
        {"name": "share links", "description": "Links that show one run without a login, until they end."},
        {"name": "tokens", "description": "Credentials of programs. Only people create and revoke them, not tokens."},
        {"name": "notifications", "description": "Who gets news of runs and devices, and the log of deliveries."},
        {"name": "audit", "description": "The audit log, for GPU managers."},
        {"name": "index", "description": "Links to all lists."},
        {"name": "classic", "description": "The published contract, with its own names and its own form of errors."},
    ],
    "ENUM_NAME_OVERRIDES": {
        "RunKindEnum": "analysis.models.run_states.PUBLISHED_KINDS",
        "StateEnum": "analysis.models.State",
        "FigureKindEnum": [("measured", "measured"), ("derived", "derived")],
    },
    "PREPROCESSING_HOOKS": ["analysis.api.openapi.exclude_monitoring"],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "analysis.api.openapi.with_problems",
    ],
}

# How long a run may take. A spec asks for its own time budget, up to this one; the supervisor ends the
# engine `grace` seconds after the budget, and the queue's limits stand above both (see analysis/checks.py).
RUN_TIME_BUDGET_MAX_SECONDS = env_number(
    "MEMORYMARK_RUN_TIME_BUDGET_MAX_SECONDS", 6 * 3600, minimum=1, maximum=7 * 86_400
)
RUN_GRACE_SECONDS = 300.0
# A running run shows a sign of life each heartbeat. Past its lease it is suspect, and after a further
# RUN_SUSPECT_SECONDS it is taken from its worker. An engine that reports no progress for the stall time is ended.
RUN_HEARTBEAT_SECONDS = env_number("MEMORYMARK_RUN_HEARTBEAT_SECONDS", 5.0, minimum=0.05, maximum=600)
RUN_LEASE_SECONDS = env_number("MEMORYMARK_RUN_LEASE_SECONDS", 60.0, minimum=0.2, maximum=7200)
RUN_SUSPECT_SECONDS = env_number("MEMORYMARK_RUN_SUSPECT_SECONDS", 30.0, minimum=0.1, maximum=7200)
RUN_STALL_SECONDS = env_number("MEMORYMARK_RUN_STALL_SECONDS", 600.0, minimum=0.2, maximum=86_400)
ENGINE_COMMAND = env_command("MEMORYMARK_ENGINE_COMMAND", (sys.executable, "-m", "engine"))
ENGINE_ENVIRONMENT = env_list("MEMORYMARK_ENGINE_ENVIRONMENT")
COMMANDS_FILE_DEFAULT = DATA_DIR / "commands.toml"  # it may be missing
COMMANDS_FILE = env_file("MEMORYMARK_COMMANDS") or COMMANDS_FILE_DEFAULT
# News: a request ends after the timeout; a failed one is repeated after `retry`, twice that, ..., until it is given up
PUBLIC_URL = env_url("MEMORYMARK_PUBLIC_URL")
NEWS_TIMEOUT_SECONDS = env_number("MEMORYMARK_NEWS_TIMEOUT_SECONDS", 10.0, minimum=0.1, maximum=60)
NEWS_RETRY_SECONDS = env_number("MEMORYMARK_NEWS_RETRY_SECONDS", 10.0, minimum=0.05, maximum=3600)
NEWS_GIVE_UP_SECONDS = env_number("MEMORYMARK_NEWS_GIVE_UP_SECONDS", 86_400.0, minimum=1, maximum=7 * 86_400)
# Mail is off without a host: Django's default would try this machine
EMAIL_HOST = env_text("EMAIL_HOST")
EMAIL_PORT = int(env_number("EMAIL_PORT", 25, minimum=1, maximum=65_535))
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = env_text("EMAIL_HOST_USER"), env_text("EMAIL_HOST_PASSWORD")
EMAIL_USE_TLS, EMAIL_USE_SSL = env_bool("EMAIL_USE_TLS"), env_bool("EMAIL_USE_SSL")
EMAIL_TIMEOUT = NEWS_TIMEOUT_SECONDS
DEFAULT_FROM_EMAIL = env_text("DEFAULT_FROM_EMAIL") or "memorymark@localhost"
METRICS_TOKEN = env_text("MEMORYMARK_METRICS_TOKEN")
THROTTLES = {
    scope: env_rate(f"MEMORYMARK_THROTTLE_{scope.upper()}", rate)
    for scope, rate in {
        "create": "60/min",
        "change": "120/min",
        "report": "600/min",
        "events": "6000/min",
        "export": "10/min",
        "token": "10/min",
        "share": "240/min",  # per address: pages, charts and badges of share links
        "guest": "60/min",  # per address: questions for stored estimates without a login
    }.items()
}
# how long a process reuses its last forecast of the queue; a run that has come since always gets a new one
QUEUE_FORECAST_KEPT_SECONDS = 2.0
# a run's spec is a few hundred bytes, its note at most 40 KiB
API_BODY_MAX_BYTES = 64 * 1024
# what a sender on another machine may send: the events of a call, and a result with a line for each probe and round
REPORTED_EVENTS_MAX_BYTES = 1_000_000
REPORTED_RESULT_MAX_BYTES = RESULT_BYTES_MOST
BODY_MAX_BYTES_OF = {"/api/v1/results/": REPORTED_RESULT_MAX_BYTES}
# POST /analyze waits ANALYZE_WAIT_SECONDS for its run, in at most half of the server's threads, where these are known
# (gunicorn.conf.py); further requests get 202 at once
WEB_THREADS: int | None = None
ANALYZE_WAIT_SECONDS = env_number("MEMORYMARK_ANALYZE_WAIT_SECONDS", 90, minimum=0, maximum=600)
# streams of events that may be open at once in a process: never more than a quarter of its threads
STREAMS_OPEN = int(env_number("MEMORYMARK_STREAMS_OPEN", 4, minimum=0, maximum=1000))
ANALYZE_WAITING_REQUESTS = int(env_number("MEMORYMARK_ANALYZE_WAITING_REQUESTS", 4, minimum=0, maximum=1000))

_QUEUE_TIMEOUT_SECONDS = int(RUN_TIME_BUDGET_MAX_SECONDS + RUN_GRACE_SECONDS + 60)
Q_CLUSTER: dict[str, Any] = {
    "name": "memorymark",
    "orm": "default",
    "workers": 1,
    "poll": 0.5,
    "bulk": 1,
    "queue_limit": 1,
    "recycle": 50,
    "save_limit": 500,
    "catch_up": False,
    "scheduler": False,  # its rows name functions to call; `housekeep` does our periodic work
    "ack_failures": True,
    "max_attempts": 1,
    "timeout": _QUEUE_TIMEOUT_SECONDS,
    "retry": 3 * _QUEUE_TIMEOUT_SECONDS + 60,
    "ALT_CLUSTERS": {},  # a queue's name is taken from Q_CLUSTER_NAME only when this key exists
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"request_id": {"()": "analysis.audit.context.RequestIdFilter"}},
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s%(request_text)s: %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["request_id"]}},
    "loggers": {
        "analysis": {"handlers": ["console"], "level": "INFO", "propagate": True},
        # without DEBUG Django would mail an exception of a view, and log nothing
        "django": {"handlers": ["console"], "level": "WARNING", "propagate": True},
        "django.request": {"handlers": ["console"], "level": "ERROR", "propagate": False},
        "axes": {"handlers": ["console"], "level": "WARNING", "propagate": True},
        "django-q": {"handlers": ["console"], "level": "WARNING", "propagate": False},
    },
}
