"""Settings of the portal. What a deployment may change comes from the environment, through `env.py`.

MEMORYMARK_PRODUCTION=1   https only, secure cookies; SECRET_KEY must be given
MEMORYMARK_DEBUG=1        Django's debug pages
MEMORYMARK_DATA_DIR       database, secret, static files, locks; default: var/ beside manage.py
MEMORYMARK_ALLOWED_HOSTS, MEMORYMARK_CSRF_TRUSTED_ORIGINS, MEMORYMARK_CORS_ORIGINS   words between commas
MEMORYMARK_ANALYZE_WAIT_SECONDS, MEMORYMARK_RUN_TIME_BUDGET_MAX_SECONDS
MEMORYMARK_RUN_HEARTBEAT_SECONDS, ..._LEASE_SECONDS, ..._SUSPECT_SECONDS, ..._STALL_SECONDS   for tests and slow disks
MEMORYMARK_HOST           this host's name in the fleet; default: what the system calls it
MEMORYMARK_LOCK_DIR       one lock per device; the same for every portal and worker of a machine
MEMORYMARK_ENGINE_COMMAND the engine in another virtual environment: `/opt/engine/bin/python -m engine`
MEMORYMARK_METRICS_TOKEN  what a scraper of /metrics shows as Bearer token
MEMORYMARK_LOCAL=1        set by `manage.py up` when it serves this machine alone
DATABASE_URL, SECRET_KEY
"""

import socket
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from memorymark_site.env import (
    env_bool,
    env_command,
    env_list,
    env_number,
    env_path,
    env_text,
    kept_secret,
    writable_file,
    writable_folder,
)

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = writable_folder(env_path("MEMORYMARK_DATA_DIR", BASE_DIR / "var"), remedy="set MEMORYMARK_DATA_DIR")
# machine-wide on purpose: two portals on one machine must not use a card at once
LOCK_DIR = env_path("MEMORYMARK_LOCK_DIR", Path(tempfile.gettempdir()) / "memorymark-locks")
HOST_NAME = env_text("MEMORYMARK_HOST") or socket.gethostname()

PRODUCTION = env_bool("MEMORYMARK_PRODUCTION")
DEBUG = env_bool("MEMORYMARK_DEBUG")
SERVES_THIS_MACHINE_ONLY = env_bool("MEMORYMARK_LOCAL")
SECRET_KEY = env_text("SECRET_KEY")
if PRODUCTION and not SECRET_KEY:
    raise ImproperlyConfigured("SECRET_KEY must be given when MEMORYMARK_PRODUCTION=1")
SECRET_KEY_IS_GIVEN = bool(SECRET_KEY)
SECRET_KEY = SECRET_KEY or kept_secret(DATA_DIR / "secret_key")

ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", *env_list("MEMORYMARK_ALLOWED_HOSTS")]
CSRF_TRUSTED_ORIGINS = env_list("MEMORYMARK_CSRF_TRUSTED_ORIGINS")
CORS_ALLOWED_ORIGINS = env_list("MEMORYMARK_CORS_ORIGINS")

INSTALLED_APPS = [
    "analysis",
    "django.contrib.admin",
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
    "rest_framework",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "analysis.content_policy.ContentPolicyMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "memorymark_site.urls"
WSGI_APPLICATION = "memorymark_site.wsgi.application"
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
                "analysis.context_processors.fleet_alarm",
                "analysis.context_processors.rights",
            ]
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
# an outage shows within seconds, and a server that vanished without a word within a minute
_POSTGRESQL_OPTIONS = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 20,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 40_000,
    # a process that is frozen within a transaction holds its locks: no pause in one of ours is near this long
    "options": "-c idle_in_transaction_session_timeout=20s",
}
_DATABASE = dj_database_url.parse(env_text("DATABASE_URL") or f"sqlite:///{DATA_DIR / 'memorymark.sqlite3'}")
if _DATABASE["ENGINE"] == "django.db.backends.sqlite3":
    writable_file(_DATABASE["NAME"], remedy="set DATABASE_URL or MEMORYMARK_DATA_DIR")
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
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = writable_folder(DATA_DIR / "static", remedy="set MEMORYMARK_DATA_DIR")  # WhiteNoise wants it there
# the chart library is served out of its wheel, found without importing it
_PLOTLY = find_spec("plotly")
if _PLOTLY is None or _PLOTLY.origin is None:
    raise ImproperlyConfigured("plotly is not installed: pip install -r requirements.txt")
STATICFILES_DIRS = [BASE_DIR / "static", ("vendor/plotly", Path(_PLOTLY.origin).parent / "package_data")]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

CSRF_FAILURE_VIEW = "analysis.api.errors.csrf_failure"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
if PRODUCTION:
    SECURE_REDIRECT_EXEMPT = [r"^health$", r"^readyz$"]  # load balancers ask over plain http
    SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
    SECURE_HSTS_SECONDS = 365 * 86_400
    SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = True
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rest_framework.authentication.BasicAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "EXCEPTION_HANDLER": "analysis.api.errors.api_exception",
}

# How long a run may take. A spec asks for its own time budget, up to this one; the supervisor ends the
# engine `grace` seconds after the budget, and the queue's limits stand above both (see analysis/checks.py).
RUN_TIME_BUDGET_MAX_SECONDS = env_number(
    "MEMORYMARK_RUN_TIME_BUDGET_MAX_SECONDS", 6 * 3600, minimum=1, maximum=7 * 86_400
)
RUN_GRACE_SECONDS = 300.0
# A running run shows a sign of life each heartbeat. Past its lease it is suspect; suspect for so long, it is
# taken from its worker. An engine that reports no progress for the stall time is ended.
RUN_HEARTBEAT_SECONDS = env_number("MEMORYMARK_RUN_HEARTBEAT_SECONDS", 5.0, minimum=0.05, maximum=600)
RUN_LEASE_SECONDS = env_number("MEMORYMARK_RUN_LEASE_SECONDS", 60.0, minimum=0.2, maximum=7200)
RUN_SUSPECT_SECONDS = env_number("MEMORYMARK_RUN_SUSPECT_SECONDS", 30.0, minimum=0.1, maximum=7200)
RUN_STALL_SECONDS = env_number("MEMORYMARK_RUN_STALL_SECONDS", 600.0, minimum=0.2, maximum=86_400)
ENGINE_COMMAND = env_command("MEMORYMARK_ENGINE_COMMAND", (sys.executable, "-m", "engine"))
METRICS_TOKEN = env_text("MEMORYMARK_METRICS_TOKEN")
# POST /analyze waits this long for its run, in so many requests at once; further ones get 202 at once
ANALYZE_WAIT_SECONDS = env_number("MEMORYMARK_ANALYZE_WAIT_SECONDS", 90, minimum=0, maximum=600)
ANALYZE_WAITING_REQUESTS = 4

_QUEUE_TIMEOUT_SECONDS = int(RUN_TIME_BUDGET_MAX_SECONDS + RUN_GRACE_SECONDS + 60)
Q_CLUSTER = {
    "name": "memorymark",
    "orm": "default",
    "workers": 1,
    "poll": 0.5,
    "bulk": 1,
    "queue_limit": 1,
    "recycle": 50,
    "save_limit": 500,
    "catch_up": False,
    "ack_failures": True,
    "max_attempts": 1,
    "timeout": _QUEUE_TIMEOUT_SECONDS,
    "retry": 3 * _QUEUE_TIMEOUT_SECONDS + 60,
    "ALT_CLUSTERS": {},  # a queue's name is taken from Q_CLUSTER_NAME only when this key exists
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "loggers": {
        "analysis": {"handlers": ["console"], "level": "INFO", "propagate": True},
        # without DEBUG Django would mail an exception in a view, and print nothing
        "django": {"handlers": ["console"], "level": "WARNING", "propagate": True},
        "django.request": {"handlers": ["console"], "level": "ERROR", "propagate": False},
        "django-q": {"handlers": ["console"], "level": "WARNING", "propagate": False},
    },
}
