"""All subjects of the admin panel. Imported once, after Django's applications have registered theirs."""

from analysis.admin import audit, devices, news, people, queue, runs, trust
