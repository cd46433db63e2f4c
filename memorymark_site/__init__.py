"""The Django project: settings, URLs, middleware. It does not depend on what the application does."""
