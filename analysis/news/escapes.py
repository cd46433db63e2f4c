"""PURE: text of others in each medium of news. A reporter names runs, devices and hosts; their names are no markup.

One function for each medium, through which all of its text but our own link goes.
"""

from __future__ import annotations

import re

from engine.text.printable import printable

TEXT_MOST = 1_000
_LOOKALIKES = str.maketrans({"*": "∗", "`": "ˋ", "~": "∼", "[": "［", "]": "］", "|": "｜"})
_EDGE = re.compile(r"(?<!\w)_|_(?!\w)")


def one_line(text: str) -> str:
    return printable(" ".join(text.split()), TEXT_MOST)


def mail_line(text: str) -> str:
    """Return a line for a plain text mail or its subject: nothing with :// or www. in it becomes a link.

    A domain alone and a mail address stay: they look as train.py and host names do, and a mail program may link them.
    """
    return one_line(text).replace("://", "[:]//").replace("www.", "www[.]")


def mrkdwn(text: str) -> str:
    """Return text for Slack and what reads its format, which have no escape for markup: signs that look alike."""
    shown = _EDGE.sub("＿", one_line(text).translate(_LOOKALIKES))
    shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return shown.replace("://", "[:]//").replace("www.", "www[.]")
