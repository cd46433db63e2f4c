"""Shows of command lines and output what can be no secret, and hides the rest. PURE, but for a lab's own names.

Shown are names of options, numbers, paths, addresses without password and query, and words. Behind the name of a secret
and where clients take passwords (`-p X`), only a switch, a small number, a path or a variable is shown; behind `--key`
and `--token`, which many a training has, a short word, too. Masking a masked text changes nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from ..errors import SpecError

HIDDEN = "***"
NAMES_VARIABLE = "MEMORYMARK_SECRET_NAMES"
"""Environment variable with further words that mark a name as secret, separated by commas; set by an administrator."""
_END = "\0"  # of an argument

_PLACEHOLDER = r"\{(?:batch_size|out)[^{}]{0,40}\}"
_PIECE = r"(?:[a-z]+|[A-Z]+|[A-Z][a-z]+)?\d{0,8}"
_SHOWN = (
    r"(?:[-+]?\d{0,3}(?:\.\d{1,4})?|\de-?\d\d?|\*{3}|\$\(.*|(?:Bearer )?\$\{?[A-Z_][A-Z0-9_]*\}?|\$\d|<[\w|/-]{1,40}>"
    r"|\[[A-Z]{1,9}\]|(?i:true|false|none|null|yes|no|on|off|auto|missing|invalid|required|failed|found|not|not found"
    rf"|expected)|(?:{_PLACEHOLDER})+|(?=[~.]{{0,2}}/|\$\w*/|[^\s\0]*\.(?:json|ya?ml|toml|txt|pem|key|pub|crt|env|ini|cfg|py|sh)\b)"
    rf"[/._~$-]*(?:{_PIECE}[/._~-]+)*{_PIECE})"
)
_WORDS = r"(?:(?:[a-z]{1,11}|[A-Z]{1,11}|[A-Z][a-z]{1,10}|\d{1,5})(?:[][(){}<>:,._|/'\" -]+|\Z))+"
_NAMED = re.compile(
    r"(?<!\w)(?P<name>(?P<option>--?)?(?(option)|(?:(?i:api|access|secret|auth|private) (?=(?i:key|token)))?)"
    r"[A-Za-z_]\w*+(?:[.-]\w++){0,8})"
    r"(?:\\{0,4}[\"']?\]?\s{0,3}(?:[:=]=?>?|\b(?:is|was)\s)\s{0,3}|(?(option)(?:[ \t]+|\0)(?!-(?![^-\s\0]*\d))|(?!)))"
)
_VALUE = re.compile(
    r"(\\*[\"'])?(?P<value>(?(1)[^\0\n]*?(?=(?<!\\)\1|[\0\n]|\Z)"
    rf"|(?:{_SHOWN}(?=[\s\0,;)\]}}\"']|\Z)|(?<=:\ )(?!\d+[\s,}}]|{{)[^\0\n]+"
    r"|(?:[\[({][^\0\n\])}]*+)?(?:[^\s\0\"',;&|]|[\"'](?=\w)|[,;&|](?![\w.-]{1,60}[=:])(?=[^\s\0]))*+)))"
)
_SECRET = re.compile(
    "passw|passphrase|passcode|pswd|pwd|secret|credential|_creds?_|_psw_|_pw_|_login_|cookie|auth_|authoriz|bearer|apikey|accesskey|_api_\\Z"
    "|[a-z]_pass_|(?:db|pg|smtp|user|admin|root|proxy|mail|ftp)pass_|_(?:api|access|private|ssh|encryption|license|client|service|account"
    "|signing|master|db|wandb|hf|hub|aws|openai|anthropic|minio|azure|comet|neptune|clearml|mlflow|gcp|google|github|gitlab|slack)_.*(?:key|token)"
)
_TELLS_WHERE = re.compile(
    "_(?:files?|filename|path|stdin|env|fd|dir|folder|var|variable|cmd|command|helper|error|exception|warning|type|mode|method"
    "|scheme|provider|ur[li]|hosts?|port|node|shell)_\\Z"
)
"""A name that ends with one of these words tells where a secret lies, of what kind it is, or an error about it."""

_USER = r"(?:^|[\s\0\"'])(?:--?(?:[\w-]{0,40}[_.-])?(?:user|username|usr)[=\s\0]+|-[A-Za-z]{0,6}[uU][\s\0]*)"
_PASSWORD_PLACE = re.compile(
    r"((?:^|(?<!mkdir)[\s\0])-(?:[A-Za-z]{0,3}[abpPw](?:\0|[ \t]+(?!-))|[pw](?=\w{4})))"
    rf"(?!(?:{_SHOWN}|\d{{1,5}}|[\d.]+:\d+(?::\d+)?|(?:gpu|cpu|[ahlv]\d{{2,3}})\d?(?:-\d{{1,3}}g)?)(?:[\s\0]|\Z))"
    r"(?:(?<=\0)[^\0]+|(?<!\0)[^\s\0\"']+)"
)
_FORMS = (
    rf"({_USER}[^\s\0:/=$\"']{{1,64}}:)(?!\d{{1,5}}\b)[^\s\0\"']+",
    r"(://[^\s\0/:@\"']{0,200}:)(?!\d{1,5}/)[^\s\0\"']{1,400}(?=@)",
    r"(https?://)[^\s\0/:@\"']{1,200}(?=(?::[^\s\0/@]{0,200})?@)",
    r"(?<![\w/:.@-])([\w.-]{1,60}:)[^\s\0/:@\"']{1,100}(?=@[\w-]{1,60}\.)",
    r"(https?://(?:[^\s\0/\"']{0,60}(?:hook|telegram)[^\s\0/\"']{0,60}|[^\s\0\"']{0,99}?hook\w{0,9})/)[^\s\0\"']+",
    r"(https?://[^\s\0?\"']{1,400}\?)[^\s\0\"']+",
    r"(\bBearer\s+)[\w.~+/=-]{8,}",
    r"(\bwandb[\s\0]+login[\s\0]+(?:--?\w[^\s\0]*[\s\0]+)*)(?!-)[^\s\0\"';&|]+",
    r"()-----BEGIN [A-Z ]*PRIVATE KEY-----[^\0]*",
    r"((?<![A-Za-z0-9]))(?:xox\w-|SG\.|eyJ|glpat-|sk-(?=[\w-]{0,40}\d))[\w.-]{10,}",
)
_HASH = (
    r"(?i:(?<![a-z])(?:rev|commit|sha|md5|hash|checksum|checkout|digest|id|exp|run|resume)[\w.-]*[\s\0=:\"'@]*|[/@])\Z"
)


def masked(command: Sequence[str]) -> list[str]:
    parts = (part.replace(_END, " ") for part in command)
    return masked_text(f"{_END}{_END.join(parts)}").split(_END)[1:] if command else []


def masked_text(text: str) -> str:
    """Return text without the secrets in it: lines of output, an error, or a script given to `sh -c`."""
    for form in _FORMS:
        text = re.sub(form, rf"\1{HIDDEN}", text)
    text = _by_name(re.sub("[A-Za-z0-9]{20,}", _without_random, text), secret_names(os.environ))
    return "".join(map(_without_passwords, re.split(r"([;|&\n])", text)))


def secret_names(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words that an administrator added. Raises SpecError for an invalid one."""
    names = tuple(name for part in environ.get(NAMES_VARIABLE, "").split(",") if (name := part.strip().lower()))
    for name in names:
        if not re.fullmatch("[a-z0-9_.][a-z0-9_.-]{0,39}", name):
            said = "must be up to 40 letters, digits and _ . -, as `pin`; commas separate names"
            raise SpecError(NAMES_VARIABLE, f"{name[:80]!r} {said}")
    return names


def _without_random(found: re.Match[str]) -> str:
    """Return a long run of letters and digits if it is a number, made of words, or a hash by the name before it."""
    text, before = found[0], found.string[max(found.start() - 64, 0) : found.start()]
    is_hash = re.fullmatch("[0-9a-f]+", text) and re.search(_HASH, before)
    is_words = len(re.sub("[A-Z]{20,}|[A-Z][a-z]{2,}|[a-z]{3,}", "", text)) <= 4
    return text if text.isdigit() or is_hash or is_words else HIDDEN


def _by_name(text: str, own: tuple[str, ...]) -> str:
    """Hide values behind names. What was read as a value is not read again, so the time is linear."""
    shown, at = [], 0
    while found := _NAMED.search(text, at):
        shown.append(text[at : found.end()])
        at, allowed = found.end(), _shown_behind(found["name"][-99:], own)
        if allowed:
            starts = text.endswith(_END, 0, found.start()) and not text.endswith(("-c\0", "-lc\0"), 0, found.start())
            value = _VALUE.match(text, at)
            assert value is not None
            is_whole = starts or found[0].endswith(_END)  # argument
            start, end = (at, (text + _END).index(_END, at)) if is_whole else value.span("value")
            if allowed != _SHOWN and not value[1] and not is_whole:
                end = start + len(text[start:end].partition(" ")[0])
            inner = text[start:end]
            hidden = HIDDEN + "".join(re.findall(_PLACEHOLDER, inner))
            shown += text[at:start], inner if re.fullmatch(allowed, inner) else hidden
            at = end
    return "".join(shown) + text[at:]


@lru_cache(maxsize=1_024)
def _shown_behind(name: str, own: tuple[str, ...]) -> str:
    """Return an expression of the values that are shown behind a secret's name, else an empty text."""
    found = [word.lower() for word in re.findall("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)]
    words = f"_{'_'.join(found)}_"
    if any(each in found or (not each.isalnum() and each in name.lower()) for each in own):
        return _SHOWN
    if _TELLS_WHERE.search(words):
        return ""
    if _SECRET.search(words) or (name.rpartition(".")[2].isupper() and re.search("(?:key|token|pass)_", words)):
        return _SHOWN
    if re.search("(?:key|token)s_", words):
        return rf"{_SHOWN}|\d+(?:\.\d+)?[])}}]*|{_WORDS}"
    return rf"{_SHOWN}|(?=.{{1,24}}\Z){_WORDS}" if re.search("(?:key|token|_pass)_", words) else ""


def _without_passwords(command: str) -> str:
    """Hide what stands where clients take passwords: before a script's own options, or anywhere if a user is given."""
    script = None if re.search(_USER, command) else re.search(r"\bpython|\.py\b|[\s\0]-m[\s\0]", command)
    end = script.start() if script else len(command)
    return _PASSWORD_PLACE.sub(rf"\1{HIDDEN}", command[:end]) + command[end:]
