"""Hides secrets on a command line and in lines of output. PURE, but for further names from the environment.

A value is hidden because of the name of its option or variable (`--wandb-key X`, `HF_TOKEN=X`), because of its own form
(a token of a known service, a password in an address), because of its place (`-p X` after `--user Y`), or because it is
too random to be a name, a path or a number.
Masking a masked text changes nothing, so that two masked commands can be compared.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import PurePath

from ..errors import SpecError
from .random_text import is_random

HIDDEN = "***"
NAMES_VARIABLE = "MEMORYMARK_SECRET_NAMES"
"""Environment variable with further words that mark a name as secret, separated by commas; set by an administrator."""

_OWN_NAME = re.compile(r"[a-z0-9_.-]{1,40}", re.ASCII)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_STRONG = re.compile(r"passw(or)?d|passphrase|passcode|secrets?|credentials?|creds|apikey|accesskey|cookie|bearer")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_POINTS_TO_IT = _words(
    "file files path stdin env fd dir folder var variable cmd command helper error exception warning"
)
"""With one of these words in the name, too, the value is the secret's location, or an error about it."""
_ORDINARY_BESIDE = {
    "key": _words(
        "text image img label labels input inputs output outputs prompt prompts response answer question chosen "
        "rejected query value values q k v kv dim dims head heads size padding pad mask sort checkpoint ckpt state "
        "dict model teacher student data dataset column field json feature features target caption audio video lang "
        "src tgt metric monitor group proj bias num n len length type map weight weights id index idx instruction "
        "reward score message messages content role conversation doc document sample record batch class missing "
        "unexpected unused cache attn attention layer norm rng prng random seed"
    ),
    "token": _words(
        "max min num n new per pad padding eos bos mask unk sep cls special image img audio video text think type "
        "dropout id ids idx extra start end begin batch count budget limit length len level drop merge merging size "
        "stop total chunk vocab prompt gen generated input output context ctx seq sequence window train eval val "
        "warmup pos shift register prefix suffix ratio weight loss acc reduction rate position k avgpool patch keep "
        "dense"
    ),
    "pass": _words("single one two multi first second third forward backward num n through k band low high"),
    "auth": _words("type mode method mechanism scheme provider url uri host port"),
    "login": _words("node host hosts url shell"),
}
"""With one of these words in the name, too, the value is a setting, as in `--label-key` and `--max-tokens`."""
_OF_A_SERVICE = _words(
    "api access secret private auth wandb hf hub huggingface aws openai azure ssh encryption license client service "
    "account signing master admin user comet neptune clearml mlflow gcp google anthropic s3 minio"
)
"""With one of these words in the name, too, the value is a secret nevertheless."""
_ENDS = {
    "key": {"monkey", "turkey"},
    "token": set[str](),
    "pass": {"bypass", "compass", "lowpass", "highpass"},
    "pwd": set[str](),
}
"""A word with one of these endings counts as that word, as in `--hftoken`, except for the listed words."""
_PLAIN_VALUE = re.compile(
    r"[-+]?(\d{1,3}|\d*\.\d+)|true|false|none|null|yes|no|on|off|all|auto|\*\*\*|\$.*|", re.IGNORECASE
)
"""No secret under any name: a figure of four digits may be a PIN."""
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?[kmbgt]?", re.IGNORECASE)
_COUNTED = _words("keys tokens")
"""What `--tokens 100000` counts: a number there is no secret, unless the tokens are those of a service."""
_PATH_VALUE = re.compile(r"(~|\.{0,2})/[\w./-]*", re.ASCII)
_IN_A_FILE = _words("ssh tls ssl pem cert certificate public private identity deploy host")
"""With one of these words beside `key`, a path is where the key lies."""
_LIKE_AN_OPTION = re.compile(r"--?[A-Za-z]")
_DASHED = r"-(?=[^-\s]*\d)[A-Za-z][\w+/=.-]{7,}"
_DASHED_SECRET = re.compile(_DASHED)
_USER = re.compile(r"(?i)-{0,2}(?:[\w.-]*[_.-])?(?:user|username|usr)|-[fikLsSv]{0,6}[uU]")
_USER_AND_SECRET = re.compile(r"([^\s:/$]+:)([^\s:/$]\S*)")
_PORT = re.compile(r"\d{1,5}(:\d{1,5})*")
"""A port, a mapping of ports, or the numbers of a user and a group."""
_HASHES = _words(
    "revision rev commit sha sha1 sha256 md5 hash git ref version tag branch digest checksum fingerprint etag snapshot "
    "id uuid checkpoint ckpt run resume parent experiment exp trial job session artifact model tokenizer dataset data "
    "config code base"
)
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh"})
_CLIENTS = {
    **dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mariadb", "mongo", "mongosh", "mongodump", "sshpass"), "p"),
    **dict.fromkeys(("docker", "podman", "apptainer", "singularity", "helm", "oras"), "login -p"),
    **{"redis-cli": "a", "ldapsearch": "w", "sqlcmd": "P", "curl": "u", "wandb": "login"},
}
"""Programs whose argument after this short option or joined to it, or after this subcommand, is a secret."""
_FLAGS = {"curl": "[#0-46BGIJLMNORSVZafgijklnqsv]*", "ldapsearch": "[ALMNZcnvx]*", "sshpass": "v*"}
"""The options without a value that may stand joined before it, as in `curl -su me:hunter2`."""
_CONTAINERS = _words("docker podman nerdctl apptainer singularity enroot")
"""Programs with a user and a group behind `--user`, and a folder behind `--pwd`."""
_OTHER_P = _CONTAINERS | _words(
    "srun sbatch salloc squeue sinfo sacct scontrol ssh scp sftp psql pg_dump sudo su runuser"
)
"""Programs after whose user `-p` is a partition, a port, or an option of another program."""

_ASSIGNED_PART = re.compile(r"^([+~-]{0,2}[A-Za-z_][\w./-]*=)(.*)$", re.DOTALL)
_BARE_WITHOUT_SIGN = frozenset({"key", "keys", "token", "tokens", "auth", "login", "pass"})
"""Words that stand before a colon in ordinary sentences, without a secret after it."""
_ASSIGNED = re.compile(
    r"""(?<![\w.-])(-{0,2}[A-Za-z_][\w.-]{0,60})(["']?\s{0,3}[=:]\s{0,3})("[^"\s]*"|'[^'\s]*'|[^\s,;&|"'})\]]+)"""
)
_OPTION = re.compile(r"(?<!\S)(-{1,2}[A-Za-z][\w.-]{0,60})(\s+)([^\s;&|-][^\s;&|]*|" + _DASHED + ")")
_SAID = re.compile(r"(?i)\b(passw(?:or)?d|passphrase|secret|api[ _-]?key|credential)(s? (?:is|was) )(\S+)")

_FORMS = (
    (re.compile(r"(?i)\b(authorization\s*[:=]\s*)[^\s\"']+(\s+[^\s\"']+)?"), rf"\1{HIDDEN}"),
    (re.compile(r"\b(Bearer|Basic)\s+[\w.~+/=-]{8,}"), rf"\1 {HIDDEN}"),
    (re.compile(r"(https://(?:hooks\.slack\.com/services|discord(?:app)?\.com/api/webhooks)/)[\w/-]+"), rf"\1{HIDDEN}"),
    (re.compile(r"([A-Za-z][\w+.-]{0,30}://[^\s/:@\"']{0,200}:)[^\s/\"'](?:[^\s/\"']{0,400})@"), rf"\1{HIDDEN}@"),
    (re.compile(r"(?<![\w/:.@-])([\w.-]{1,60}:)[^\s/:@\"']{1,100}(@[\w-]+\.[\w.-]+)"), rf"\1{HIDDEN}\2"),
    (re.compile(r"(?i)([?&][\w-]{0,40}(?:token|key|secret|sig|signature|passw(?:or)?d|pwd|auth|credential)=)[^&\s\"']+"),
     rf"\1{HIDDEN}"),
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*", re.DOTALL), HIDDEN),
)  # fmt: skip
_TOKENS = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_[A-Za-z0-9]{16,}|api_org_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{20,}"
    r"|glpat-[\w-]{16,}|sk-(?=[\w-]{0,40}\d)[\w-]{20,}|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{30,}|xox[abeprs]-[\w-]{10,}"
    r"|eyJ[\w-]{8,400}\.[\w-]{8,2000}(?:\.[\w-]*)?|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{30,}|mm_[rwp]_[\w-]{20,}|ya29\.[\w-]{20,}"
    r"|nvapi-[\w-]{20,}|r8_[A-Za-z0-9]{20,}|gsk_[A-Za-z0-9]{20,}|wandb_v1_\w{20,})"
)
_RUN = re.compile(r"[A-Za-z0-9+=_-]{20,}")
_CHUNK = re.compile(r"[A-Za-z0-9]{20,}")
_HEX40 = re.compile(r"(?<![\w@/])[0-9a-f]{40}(?!\w)")
_HEX = re.compile(r"(?:[0-9a-f]{8}|[0-9A-F]{8}){4}(?:[0-9a-fA-F]{8}|[0-9a-fA-F]{32})?")
"""As many digits as a key, a commit or a checksum has: its name tells which."""
_OF_A_COMMAND = re.compile(r"-.*|[A-Z][A-Z0-9_]*")
_LOOK_BACK = 12
"""The number of preceding arguments in which a value's option and program are looked for."""


def masked(command: Sequence[str]) -> list[str]:
    """Return a command line without its secrets, part by part."""
    names = secret_names(os.environ)
    return [_part(command[max(place - _LOOK_BACK, 0) : place], part, names) for place, part in enumerate(command)]


def masked_text(text: str) -> str:
    """Return text without the secrets in it: lines of output, an error, or a script given to `sh -c`."""
    names = secret_names(os.environ)
    for form, shown in _FORMS:
        text = form.sub(shown, text)
    text = _ASSIGNED.sub(lambda found: _assigned(found, names), text)
    text = _OPTION.sub(lambda found: _given(found, names), text)
    text = _SAID.sub(rf"\1\2{HIDDEN}", text)
    if "wandb" in text.lower():
        text = _HEX40.sub(HIDDEN, text)
    return _RUN.sub(
        lambda found: HIDDEN if any(map(is_random, _CHUNK.findall(found[0]))) else found[0], _TOKENS.sub(HIDDEN, text)
    )


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


def _part(before: Sequence[str], part: str, names: tuple[str, ...]) -> str:
    if (shown := _of_its_place(before, part)) is not None:
        return shown
    if before and before[-1] == "-c" and any(PurePath(each).name in _SHELLS for each in before):
        return _script(part)
    programs = frozenset(PurePath(each).name for each in before)
    option = before[-1] if before else ""
    is_value = option.startswith("-") and "=" not in option
    is_value = is_value and (not _LIKE_AN_OPTION.match(part) or bool(_DASHED_SECRET.fullmatch(part)))
    is_login_shell = option == "--login" and len(before) > 1 and PurePath(before[-2]).name in _SHELLS
    is_folder = option == "--pwd" and bool(programs & _CONTAINERS)
    if is_value and _is_secret(option, part, names) and not is_login_shell and not is_folder:
        return HIDDEN
    assigned = _ASSIGNED_PART.match(part)
    name, value = (assigned[1][:-1], assigned[2]) if assigned else (option if is_value else "", part)
    shown = HIDDEN if assigned and _is_secret(name, value, names) else None
    if _HEX.fullmatch(value) and not _is_hash(name, programs):
        shown = HIDDEN
    if shown is None and not programs & _CONTAINERS:
        shown = _without_password(name, value)
    if shown is None:
        return masked_text(part)
    return f"{assigned[1]}{shown}" if assigned else shown


def _script(text: str) -> str:
    """Return a script of a shell without its secrets."""
    words = re.split(r"(\s+)", masked_text(text))
    given = words[::2]
    shown = (_of_its_place(given[max(place - _LOOK_BACK, 0) : place], each) for place, each in enumerate(given))
    words[::2] = [word if new is None else new for word, new in zip(given, shown, strict=True)]
    return "".join(words)


def _of_its_place(before: Sequence[str], part: str) -> str | None:
    """Return the masked form of an argument that is a secret by what stands before it; None for any other."""
    if (client := _client_secret(before, part)) is not None:
        return client
    if not before or before[-1] != "-p" or _PORT.fullmatch(part) or part.startswith("-"):
        return None
    if any(PurePath(each).name in _OTHER_P for each in before):
        return None
    return HIDDEN if any(map(_names_user, before, [*before[1:-1], "-", "-"])) else None


def _names_user(option: str, value: str) -> bool:
    """Whether these arguments name a user; `-u train.py` of Python does not."""
    name, sign, _ = option.partition("=")
    is_given = bool(sign) or (not value.startswith("-") and not value.endswith(".py"))
    return is_given and name.startswith("-") and _USER.fullmatch(name) is not None


def _without_password(name: str, value: str) -> str | None:
    """Return `me:***` for the `me:hunter2` of `--user`; None for any other value, as the `1000:1000` of a container."""
    found = _USER_AND_SECRET.fullmatch(value) if _USER.fullmatch(name) else None
    return f"{found[1]}{HIDDEN}" if found and not _PORT.fullmatch(value) else None


def _is_secret(name: str, value: str, names: tuple[str, ...]) -> bool:
    """Whether the value of an option or variable of this name is to be hidden."""
    if "{batch_size" in value or "{out" in value or name in ("PWD", "OLDPWD"):
        return False
    weight = _weight(name, names)
    return weight == "strong" or (weight == "weak" and not _is_plain(name, value))


def _is_plain(name: str, value: str) -> bool:
    """Whether a value is none of the secrets that its name may mean: a count, a truth value, where a key lies."""
    words = {word.lower() for word in _WORD.findall(name)}
    is_count = bool(words & _COUNTED) and not words & _OF_A_SERVICE
    if _PLAIN_VALUE.fullmatch(value) or (is_count and _NUMBER.fullmatch(value)):
        return True
    return bool(words & _IN_A_FILE) and _PATH_VALUE.fullmatch(value) is not None


@lru_cache(maxsize=1_024)
def _weight(name: str, names: tuple[str, ...]) -> str:
    """Return `strong` where every value of a name is secret, `weak` where some are, else an empty text."""
    words = [word.lower() for word in _WORD.findall(name)]
    others = frozenset(words)
    if others & _POINTS_TO_IT:
        return ""
    joined = name.lower().strip("-+~")
    if others & frozenset(names) or any(own in joined for own in names if not own.isalnum()):
        return "strong"
    if any(_STRONG.search(word) for word in words):
        return "strong"
    for word in words:
        base = _base(word)
        if base and word[: word.rindex(base)] in _ORDINARY_BESIDE.get(base, frozenset()):
            continue  # as `maxtokens`
        if base and ((others - {word}) & _OF_A_SERVICE or not others & _ORDINARY_BESIDE.get(base, frozenset())):
            return "weak"
    return ""


def _base(word: str) -> str:
    """Return the word for a secret that this one is or ends with, as `token` for `hftoken`; empty for none."""
    if word in ("auth", "authorization", "authentication", "login"):
        return "login" if word == "login" else "auth"
    singular = word.removesuffix("s") if word in ("keys", "tokens") else word
    return next((end for end, others in _ENDS.items() if singular.endswith(end) and singular not in others), "")


def _client_secret(before: Sequence[str], part: str) -> str | None:
    """Return the masked form of an argument that a known program reads as a secret; None for any other."""
    for place in range(len(before) - 1, -1, -1):
        program = PurePath(before[place]).name[:40]
        if (taken := _CLIENTS.get(program)) is None:
            continue
        since = before[place + 1 :]
        command, _, letter = taken.rpartition(" ") if taken != "login" else ("login", "", "")
        if command and command not in since:
            return None
        if not letter:
            return HIDDEN if since[-1] == command and not part.startswith("-") else None
        option = re.compile(f"(-{_FLAGS.get(program, '')}{letter.strip('-')})(.*)")
        if since and (before_it := option.fullmatch(since[-1])) and not before_it[2]:
            return HIDDEN
        joined = option.fullmatch(part)
        return f"{joined[1]}{HIDDEN}" if joined and joined[2] else None
    return None


def _is_hash(name: str, programs: frozenset[str] = frozenset()) -> bool:
    """Whether hexadecimal digits are a commit or a checksum here; keys of many services look the same."""
    words = {word.lower() for word in (*_WORD.findall(name), *re.split(r"[\W_]+", name))}  # `md5` is one word, too
    return bool(words & _HASHES) or "git" in programs


def _assigned(found: re.Match[str], names: tuple[str, ...]) -> str:
    name, sign, value = found.groups()
    bare = value.strip("\"'")
    if ":" in sign and "=" not in sign and name.lower() in _BARE_WITHOUT_SIGN:
        return found[0]
    if (shown := _shown(found, name, bare, names)) is None or (shown != HIDDEN and "=" not in sign):
        return found[0]
    quote = value[0] if value[0] in "\"'" else ""
    return f"{name}{sign}{quote}{shown}{quote}"


def _given(found: re.Match[str], names: tuple[str, ...]) -> str:
    name, blank, value = found.groups()
    shown = _shown(found, name, value.strip("\"'"), names)
    return found[0] if shown is None else f"{name}{blank}{shown}"


def _shown(found: re.Match[str], name: str, value: str, names: tuple[str, ...]) -> str | None:
    """Return what is shown in place of a value in text, which may be a script given to `sh -c`; None for the value."""
    is_of_a_container = any(program in found.string for program in _CONTAINERS)
    if _is_secret(name, value, names):
        return None if name == "--pwd" and is_of_a_container else HIDDEN
    if _HEX.fullmatch(value) and _OF_A_COMMAND.fullmatch(name) and not _is_hash(name):
        return HIDDEN
    return None if is_of_a_container else _without_password(name, value)
