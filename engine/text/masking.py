"""Hides secrets on a command line and in lines of output. PURE, but for further names from the environment.

Where a name stands before a value, both decide: behind a strong name (`password`, `HF_TOKEN`) only what is plainly no
secret is shown, behind a weak one (`--key`, `--token`) words are, too. Behind a harmless name reading goes on at once,
so that `--env=HF_TOKEN=X` is seen. Then come the places where programs take a secret, and the forms of secrets.
Masking a masked text changes nothing, so that two masked commands can be compared.
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
_OWN_NAME = re.compile(r"[a-z0-9_.-]{1,40}", re.ASCII)

_END = "\0"  # of an argument
_NAMED = re.compile(
    r"""(?<!\w)(?P<name>(?P<option>--?)?(?(option)|(?:(?i:api|access|secret|auth|private)\ (?=(?i:key|token)))?)
        [A-Za-z_]\w*+(?:[.-]\w++){0,8})
    (?P<sign>\\{0,4}["']?\]?\s{0,3}(?:[:=]=?>?|\b(?:is|was)\s)\s{0,3}(?:(?i:bearer|basic|digest|token)[ ]+)?
        |(?(option)(?:[ \t]+|\0)|(?!)))
    """,
    re.VERBOSE,
)
_VALUE = re.compile(
    r"""(\\*["'])?(?P<value>(?(1)[^\0\n]*?(?=(?<!\\)\1|[\0\n]|\Z)
    |(?:[\[({][^\0\n\])}]*+[\])}]*+)?(?:[^\s\0"',;&|]|["'](?=\w)|[,;&|](?![\w.-]{1,60}[=:])(?=[^\s\0]))*+))""",
    re.VERBOSE,
)
_ARGUMENT = re.compile(r"()(?P<value>[^\0]*)")
_SCRIPT = ("-c\0", "-lc\0")
_DASHED = re.compile(r"-(?=[^-\s\0]*\d)[A-Za-z][\w+/=.-]{7,}")
_INNER = re.compile(r"(?P<name>[A-Za-z_][A-Za-z_.-]{0,60})[\"']?(?::\s{0,3}|=)[^\s\0=]")
_USER = re.compile(r"--?(?:[\w.-]*[_.-])?(?:user|username|usr)|-[fikLsSv]{0,6}[uU]")
_GIVES_USER = re.compile(rf"(?:{_USER.pattern}) [^-]\S*(?<!\.py)|.* (?:{_USER.pattern})=.*")
_USER_OF_PAIR = re.compile(r"(?!\d+:\d)[^\s\0:/$=\"']{1,64}:")
_CONTAINERS = re.compile(r"\b(?:docker|podman|nerdctl|apptainer|singularity|enroot)\b")
"""Programs with a user and a group behind `--user`."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_STRONG = re.compile(
    ".*(?:passw(?:or)?d|passphrase|passcode|pswd|pwd|secrets?|credentials?|apikeys?|accesskey|cookies?|auth|bearer"
    "|authorization)|pw|psw|creds?|(?:db|pg|smtp|user|admin|root|proxy|mail|ftp)pass"
)
_WEAK = re.compile(r".*(?:keys?|tokens?)|pass|login")
_SERVICE = re.compile(
    "api|access|private|wandb|hf|hub|huggingface|aws|openai|azure|ssh|encryption|license|client|service|account|signing"
    "|master|admin|comet|neptune|clearml|mlflow|gcp|google|anthropic|minio|github|gitlab|slack|db"
)
"""Beside one of these words, every key and token is a secret."""
_LOCATION = re.compile(
    "files?|filename|path|stdin|env|fd|dir|folder|var|variable|cmd|command|helper|error|exception|warning|type|mode"
    "|method|scheme|provider|ur[li]|hosts?|port|node|shell"
)
"""A name that ends with one of these words tells where a secret lies, of what kind it is, or an error about it."""
_COUNT = re.compile(
    "(?:n|num|max|min)(?:token|key)?|per|dims?|size|seed|p?rng|random|len|length|count|limit|budget|ids?"
)
_PLACEHOLDER = re.compile(r"\{(?:batch_size|out)[^{}]*\}")
_INNOCENT = re.compile(
    r"(?i:[-+]?\d{0,3}(?:\.\d{1,4})?|\d(?:\.\d+)?e-?\d\d?|true|false|none|null|nil|yes|not?|on|off|all|auto|ok|missing"
    r"|invalid|required|failed|found|expected)|\*\*\*|\$(?:\(.*|\{?[A-Z_][A-Z0-9_]*\}?|\d)|<[\w|/-]{1,40}>"
    rf"|(?:{_PLACEHOLDER.pattern})+"
)
_PATH = re.compile(r"(?:~|\.\.?|\$\{?[A-Z_]+\}?)?/.*|.+\.(?:json|ya?ml|toml|txt|pem|key|pub|crt|env|ini|cfg|py|sh)")
_PIECE = re.compile(r"(?:[a-z]+|[A-Z]+|[A-Z][a-z]+)?\d{0,8}")
_PLAIN_WORD = re.compile(r"[a-z]{0,11}|[A-Z]{1,11}|[A-Z][a-z]{1,10}")
_WORDS_MOST = 24
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e\+?\d+)?[kmbgt]?", re.IGNORECASE)
_ADDRESS = re.compile(r"[\"']?[a-z][\w+]{1,20}://|\{[\"']?\w{1,40}[\"']?:")

_PROGRAM = re.compile(
    r"(mysql\w*|mariadb|mongo\w*|sshpass|login)|(curl)|(redis-cli)|(ldapsearch)|(sqlcmd)|docker|podman|apptainer"
    r"|singularity|s(?:run|batch|alloc|queue|info|acct|control|sh|cp|ftp|udo|u)|psql|pg_dump|runuser"
)
_ITS_SECRET = ("(?!)", r"-\w*?p(.*)", r"-\w*?[ub](.*)", "-a(.*)", r"-\w*?w(.*)", "-P(.*)")
"""The option whose value is a secret, joined or behind, for each group of programs or subcommands."""

_FORMS = tuple(
    re.compile(form)
    for form in (
        r"(://[^\s\0/:@\"']{0,200}:)(?!\d{1,5}/)[^\s\0\"']{1,400}(?=@)",
        r"(https?://)(?![a-z._-]{1,15}[:@])[^\s\0/:@\"']{6,200}(?=(?::[^\s\0/@]{0,200})?@)",
        r"(?<![\w/:.@-])([\w.-]{1,60}:)[^\s\0/:@\"']{1,100}(?=@(?:[\w-]{1,60}\.){1,6}(?:[A-Za-z]{2,}|\d+\.\d+\.\d+)\b)",
        r"(https://(?:hooks\.slack\.com/\w+|\w*\.?discord(?:app)?\.com/api/webhooks|[\w.-]{1,99}\.office(?:365)?\.com/webhook\w*"
        r"|api\.telegram\.org)/)[^\s\0\"']+",
        r"([?&](?:[\w-]{0,20}-)?(?:sig|signature|code)=)[^&\s\0\"']+",
        r"(\b(?:Bearer|Basic)\s+)(?=[^\s\0]*?(?:[\d=]|[a-z][A-Z]))[\w.~+/=-]{8,}",
        r"(?i)(\bcookie:\s*)(?=[^\0\n\"'=]*=)[^\0\n\"']+",
        r"(\bwandb[\s\0]+login[\s\0]+(?:--?\w[^\s\0]*[\s\0]+)*)(?!-)[^\s\0\"';&|]+",
        r"()-----BEGIN [A-Z ]*PRIVATE KEY-----[^\0]*",
        r"((?<![A-Za-z0-9]))(?:(?:hf|api_org|gh[pousr]|[sr]k_(?:live|test)|whsec|dop_v1|npm|r8|gsk|wandb_v1)_[A-Za-z0-9]{16,}"
        r"|(?:github_pat|mm_[rwp]|mm_whsec)_[\w-]{20,}|(?:glpat|pypi|nvapi)-[\w-]{16,}|sk-(?=[\w-]{0,40}\d)[\w-]{20,}"
        r"|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{30,}|xox[abeprs]-[\w-]{10,}|ya29\.[\w-]{20,}|dapi[0-9a-f]{30,}(?:-\d)?"
        r"|SG\.[\w-]{10,}\.[\w-]{10,}|\d{8,10}:AA[\w-]{33}|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?)",
    )
)  # fmt: skip
_HEX = re.compile(r"(?<![\w@/])(?=\d*[a-fA-F])(?:[0-9a-f]{8}|[0-9A-F]{8}){4}(?:[0-9a-fA-F]{8}|[0-9a-fA-F]{32})?(?!\w)")
_HASH = re.compile(
    r"(?i)(?<![a-z])(?:rev|ref|commit|sha|md5|hash|version|tag|branch|digest|checksum|fingerprint|etag|snapshot|u?u?id|run"
    r"|ckpt|checkpoint|resume|parent|exp|trial|job|session|artifact|model|data|config|code|base|git)[\w.-]*[\s\0=:\"'@]*\Z"
    r"|(?<!\w)git[\s\0]"
)
_OPTION_OR_VARIABLE = re.compile(r"(?:(?<!\w)-[\w.-]+|(?<!\w)[A-Z][A-Z0-9_]*)[\s\0=:\"']*\Z")
"""As many hexadecimal digits as a key has, a commit, a checksum or a run has, too: the words before tell which."""
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9+_-]{19,}={0,2}")
_CHUNK = re.compile(r"[A-Za-z0-9]{20,}")
_HEX_ALONE = re.compile(r"(?:0x|g)?[0-9a-fA-F]+|[A-Za-z]+")
_SECOND_LETTERS = (
    "abcdgilmnprstuy baeflsu caefhiklot dabdeilopsu eacdefilmnpqrstx faeiop gbcehiprs habeiot iacdefglmnorstvz kbe "
    "laeilorstuy mabeilop nacdefgilostuv obcdklmnoprstuvw paeiloprtuxy quw racdegimnorst sadehiopstux tacefhioprstuy "
    "uaelmnprst vaeilq wadiv xlmpt ze"
)
"""Each first letter with those that follow it in nine of ten pairs of documented Python, and in abbreviations."""
_PAIRS_LEAST, _ODD_PAIRS = 4, 0.45
_COMMON = frozenset(group[0] + second for group in _SECOND_LETTERS.split() for second in group[1:])


def masked(command: Sequence[str]) -> list[str]:
    """Return a command line without its secrets, part by part."""
    parts = (part.replace(_END, " ") for part in command)
    return masked_text(f"{_END}{_END.join(parts)}").split(_END)[1:] if command else []


def masked_text(text: str) -> str:
    """Return text without the secrets in it: lines of output, an error, or a script given to `sh -c`."""
    for form in _FORMS:
        text = form.sub(rf"\1{HIDDEN}", text)
    is_hinted = _END in text or "wandb" in text.lower()
    text = _HEX.sub(lambda found: HIDDEN if _is_key(found, is_hinted) else found[0], text)
    text = _RUN.sub(lambda found: HIDDEN if any(map(_is_random, _CHUNK.findall(found[0]))) else found[0], text)
    return _by_place(_by_name(text, secret_names(os.environ)))


def secret_names(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words that an administrator added. Raises SpecError for an invalid one."""
    names = tuple(name for part in environ.get(NAMES_VARIABLE, "").split(",") if (name := part.strip().lower()))
    for name in names:
        if not _OWN_NAME.fullmatch(name) or name.startswith("-"):
            raise SpecError(
                NAMES_VARIABLE,
                f"{name[:80]!r} must be up to 40 letters, digits and _ . -, as `pin`; commas separate names",
            )
    return names


def _by_name(text: str, own: tuple[str, ...]) -> str:
    """Hide values behind names. What was read as a value is not read again, so the time is linear."""
    shown, at, has_groups = [], 0, bool(_CONTAINERS.search(text))
    while found := _NAMED.search(text, at):
        name, start = found["name"], found.end()
        weight = _weight(name[-99:], own)
        if not has_groups and _USER.fullmatch(name) and (user := _USER_OF_PAIR.match(text, start)):
            weight, start = "strong", user.end()
        if not weight or _is_no_value(found, weight, own):
            shown.append(text[at:start])
            at = start
            continue
        starts_argument = text.endswith(_END, 0, found.start()) and not text.endswith(_SCRIPT, 0, found.start())
        is_whole = found["sign"] == _END or starts_argument
        value = (_ARGUMENT if is_whole else _VALUE).match(text, start)
        assert value is not None
        inner = value["value"]
        if not value[1] and not is_whole:
            inner = inner.rstrip(",;:.`" if set("([{") & set(inner) else ",;:.`)]}")
        secret = HIDDEN + "".join(_PLACEHOLDER.findall(inner))
        shown += [text[at : value.start("value")], inner if _is_plain(name, inner, weight) else secret]
        at = value.start("value") + len(inner)
    return "".join(shown) + text[at:]


def _is_no_value(found: re.Match[str], weight: str, own: tuple[str, ...]) -> bool:
    """Whether another option stands behind a name, or another name whose value is the secret, or an address."""
    text, start = found.string, found.end()
    if not found["sign"].strip(f" \t{_END}"):
        return text.startswith("-", start) and not _DASHED.match(text, start)
    inner = _INNER.match(text, start)
    return bool(inner and _weight(inner["name"], own)) or (weight == "weak" and bool(_ADDRESS.match(text, start)))


@lru_cache(maxsize=1_024)
def _weight(name: str, own: tuple[str, ...]) -> str:
    """Return `strong` or `weak` for the name of a secret, else an empty text."""
    found = _WORD.findall(name)
    words = [word.lower() for word in found]
    if any(each in words or (not each.isalnum() and each in name.lower()) for each in own):
        return "strong"
    if words and _LOCATION.fullmatch(words[-1]):
        return ""
    if any(map(_STRONG.fullmatch, words)):
        return "strong"
    weak = [word for word in found if _WEAK.fullmatch(word.lower())] + found[-1:] * (words[-1:] == ["api"])
    is_variable = any(word.isupper() and not word.endswith("S") for word in weak)
    if weak and (is_variable or any(map(_SERVICE.fullmatch, words[:-1])) or ("pass" in words and len(words) > 1)):
        return "strong"
    return "weak" if weak else ""


def _is_plain(name: str, value: str, weight: str) -> bool:
    """Whether the value of a secret's name is none: a truth value, a count, a path, or for a weak name, words."""
    if _INNOCENT.fullmatch(value):
        return True
    if _PATH.fullmatch(value):
        return all(map(_PIECE.fullmatch, re.split(r"[/._~${}-]+", value)))
    words = [word.lower() for word in _WORD.findall(name)]
    is_counted = any(_COUNT.fullmatch(w) or (weight == "weak" and w.endswith(("tokens", "keys"))) for w in words)
    if is_counted and _NUMBER.fullmatch(value):
        return True
    items = re.split(r"[\[\](){}<>,;|/*+\s'\"]+", value)
    return weight == "weak" and all(
        len(item) <= _WORDS_MOST and all(map(_PLAIN_WORD.fullmatch, re.split("[_.-]", item))) for item in items
    )


def _by_place(text: str) -> str:
    """Hide what programs read as a secret by its place, as the `-p X` of mysql."""
    words = re.split(r"([\s\0]+)", text) + [""]
    option, hides, is_whole, before = None, False, False, ""
    for place in range(0, len(words), 2):
        word, after = words[place : place + 2]
        if hides and not word.startswith("-"):
            words[place], hides = HIDDEN, is_whole and after != _END
        elif option and (found := re.fullmatch(option, word)):
            hides, is_whole = not found[1], after == _END
            words[place] = f"{word[: found.start(1)]}{HIDDEN}" if found[1] else word
        elif program := _PROGRAM.fullmatch(word.strip("\"'(`").rpartition("/")[2]):
            option = _ITS_SECRET[program.lastindex or 0]
        elif option is None and _GIVES_USER.fullmatch(f"{before} {word}"):
            option = "-p()"  # `-u train.py` of Python gives none
        if "\n" in after or word.endswith(";") or word in ("&&", "||", "|"):
            option, hides = None, False
        before = word
    return "".join(words)


def _is_key(found: re.Match[str], is_hinted: bool) -> bool:
    """Whether hexadecimal digits may be a key: no name of a hash stands before, and in prose, that of an option."""
    before = found.string[max(found.start() - 64, 0) : found.start()]
    return not _HASH.search(before) and (is_hinted or bool(_OPTION_OR_VARIABLE.search(before)))


def _is_random(text: str) -> bool:
    """Whether the letters of this text follow each other as in no word."""
    pairs = [each[at : at + 2] for each in re.findall("[a-z]{2,}", text.lower()) for at in range(len(each) - 1)]
    is_long = len(pairs) >= _PAIRS_LEAST and not _HEX_ALONE.fullmatch(text)
    return is_long and sum(pair not in _COMMON for pair in pairs) >= _ODD_PAIRS * len(pairs)
