"""Hides secrets on a command line and in lines of output. PURE, but for further names from the environment.

A value is hidden because of the name of its option or variable (`--wandb-key X`, `HF_TOKEN=X`), because of its own form
(a token of a known service, a password in an address), or because it is too random to be a name, a path or a number.
Masking a masked text changes nothing, so that two masked commands can be compared.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import PurePath

from ..errors import SpecError

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
        "unexpected unused cache attn attention layer norm"
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
    r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?[kmbgt]?|true|false|none|null|yes|no|on|off|all|auto|\*\*\*|\$.*|",
    re.IGNORECASE,
)
_PATH_VALUE = re.compile(r"(~|\.{0,2})/[\w./-]*", re.ASCII)
_HASHES = _words(
    "revision rev commit sha sha1 hash git ref version tag branch digest checksum snapshot id checkpoint ckpt run "
    "model tokenizer dataset data config code base"
)
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh"})
_CLIENTS = {
    **dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mariadb", "mongo", "mongosh", "mongodump", "sshpass"), "p"),
    **dict.fromkeys(("docker", "podman", "apptainer", "singularity", "helm", "oras"), "login -p"),
    **{"redis-cli": "a", "ldapsearch": "w", "sqlcmd": "P", "curl": "u", "wandb": "login"},
}
"""Programs whose argument after this short option or joined to it, or after this subcommand, is a secret."""

_ASSIGNED_PART = re.compile(r"^([+~-]{0,2}[A-Za-z_][\w./-]*=)(.*)$", re.DOTALL)
_BARE_WITHOUT_SIGN = frozenset({"key", "keys", "token", "tokens", "auth", "login", "pass"})
"""Words that stand before a colon in ordinary sentences, without a secret after it."""
_ASSIGNED = re.compile(
    r"""(?<![\w.-])(-{0,2}[A-Za-z_][\w.-]{0,60})(["']?\s{0,3}[=:]\s{0,3})("[^"\s]*"|'[^'\s]*'|[^\s,;&|"'})\]]+)"""
)
_OPTION = re.compile(r"(?<!\S)(-{1,2}[A-Za-z][\w.-]{0,60})(\s+)([^\s;&|-][^\s;&|]*)")
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
_RANDOM_CHANGES, _RANDOM_BITS = 0.4, 3.6
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
        lambda found: HIDDEN if any(map(_is_random, _CHUNK.findall(found[0]))) else found[0], _TOKENS.sub(HIDDEN, text)
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
    if (client := _client_secret(before, part)) is not None:
        return client
    option = before[-1] if before else ""
    is_value = option.startswith("-") and "=" not in option and not re.match(r"--?[A-Za-z]", part)
    is_login_shell = option == "--login" and len(before) > 1 and PurePath(before[-2]).name in _SHELLS
    if is_value and _is_secret(option, part, names) and not is_login_shell:
        return HIDDEN
    assigned = _ASSIGNED_PART.match(part)
    if assigned and _is_secret(assigned[1][:-1], assigned[2], names):
        return f"{assigned[1]}{HIDDEN}"
    name, value = (assigned[1], assigned[2]) if assigned else (option if is_value else "", part)
    if _HEX40.fullmatch(value) and not _is_hash(name, before):
        return f"{assigned[1]}{HIDDEN}" if assigned else HIDDEN
    return masked_text(part)


def _is_secret(name: str, value: str, names: tuple[str, ...]) -> bool:
    """Whether the value of an option or variable of this name is to be hidden."""
    if "{batch_size" in value or "{out" in value or name in ("PWD", "OLDPWD"):
        return False
    weight = _weight(name, names)
    # numbers, truth values, variables and paths belong to options whose names only sound secret
    is_plain = _PLAIN_VALUE.fullmatch(value) or _PATH_VALUE.fullmatch(value)
    return weight == "strong" or (weight == "weak" and not is_plain)


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
        short = letter if letter.startswith("-") else f"-{letter}"
        if since and since[-1] == short:
            return HIDDEN
        return f"{short}{HIDDEN}" if part.startswith(short) and part != short else None
    return None


def _is_hash(name: str, before: Sequence[str]) -> bool:
    """Whether 40 hexadecimal digits are a commit here; a key of Weights & Biases looks the same."""
    words = {word.lower() for word in _WORD.findall(name)}
    return bool(words & _HASHES) or any(PurePath(part).name[:10] == "git" for part in before)


def _assigned(found: re.Match[str], names: tuple[str, ...]) -> str:
    name, sign, value = found.groups()
    bare = value.strip("\"'")
    if ":" in sign and "=" not in sign and name.lower() in _BARE_WITHOUT_SIGN:
        return found[0]
    if not _is_secret(name, bare, names):
        return found[0]
    quote = value[0] if value[0] in "\"'" else ""
    return f"{name}{sign}{quote}{HIDDEN}{quote}"


def _given(found: re.Match[str], names: tuple[str, ...]) -> str:
    name, blank, value = found.groups()
    return f"{name}{blank}{HIDDEN}" if _is_secret(name, value.strip("\"'"), names) else found[0]


def _is_random(text: str) -> bool:
    """Whether letters and digits alternate too often, and vary too much, to be made of words."""
    kinds = ["d" if each.isdigit() else "u" if each.isupper() else "l" for each in text]
    changes = sum(a != b for a, b in zip(kinds, kinds[1:], strict=False)) / (len(text) - 1)
    if len(set(kinds)) < len("dul") or changes < _RANDOM_CHANGES:
        return False
    counts = Counter(text).values()
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts) >= _RANDOM_BITS
