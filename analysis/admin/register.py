"""All subjects of the admin panel. Imported once, after Django's applications have registered theirs."""

from analysis.admin import (
    audit,
    devices,
    matrix,
    news,
    people,
    prices,
    queue,
    retention,
    runs,
    share_links,
    tokens,
    trust,
)
