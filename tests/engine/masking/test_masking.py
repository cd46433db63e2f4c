"""Secrets of a command line are hidden by the name of their option and by their own form; ordinary values are not."""

from __future__ import annotations

import random
import shlex
from pathlib import Path
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits

import pytest

from engine.errors import SpecError
from engine.text.masking import HIDDEN, NAMES_VARIABLE, masked, masked_text, secret_names
from engine.text.random_text import is_random

BASE32, BASE36, BASE62 = f"{ascii_uppercase}234567", f"{ascii_lowercase}{digits}", f"{ascii_letters}{digits}"
ORDINARY = [
    line for line in Path(__file__).with_name("ordinary_commands.txt").read_text().splitlines() if line[:1] != "#"
]
X = "hunter2hunter2"
HEX40 = "0123456789abcdef0123456789abcdef01234567"
HEX32 = "0123456789abcdef0123456789abcdef"
RANDOM = "aB3dE5gH7jK9mN1pQ3sT5vW7"
RANDOM_OF_ONE_CASE = "q7xk2vzj9wq4tzk8bnxg1p5d"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (f"--wandb-key {X}", "--wandb-key ***"),
        (f"--hf_key {X}", "--hf_key ***"),
        (f"--hf_key={X}", "--hf_key=***"),
        (f"--key {X}", "--key ***"),
        (f"--access-key {X}", "--access-key ***"),
        (f"--wandbKey {X}", "--wandbKey ***"),
        (f"--pwd {X}", "--pwd ***"),
        (f"--pass {X}", "--pass ***"),
        (f"--db-pass={X}", "--db-pass=***"),
        (f"--password {X}", "--password ***"),
        ("--password 123456", "--password ***"),
        (f"--passphrase {X}", "--passphrase ***"),
        (f"--auth {X}", "--auth ***"),
        (f"--login u:{X}", "--login ***"),
        (f"--token {X}", "--token ***"),
        (f"--hftoken {X}", "--hftoken ***"),
        (f"--use_auth_token {X} --fp16", "--use_auth_token *** --fp16"),
        ("--use_auth_token --fp16", "--use_auth_token --fp16"),
        (f"--api-key {X}", "--api-key ***"),
        (f"--credential {X}", "--credential ***"),
        (f"-secret {X}", "-secret ***"),
        (f"WANDB_API_KEY={X} python", "WANDB_API_KEY=*** python"),
        (f"PGPASSWORD={X} python", "PGPASSWORD=*** python"),
        (f"AWS_SECRET_ACCESS_KEY={X}", "AWS_SECRET_ACCESS_KEY=***"),
        (f"+trainer.logger.api_key={X}", "+trainer.logger.api_key=***"),
        (f"mysql -u root -p {X} db", "mysql -u root -p *** db"),
        (f"mysql -uroot -p{X} db", "mysql -uroot -p*** db"),
        (f"sshpass -p {X} ssh node", "sshpass -p *** ssh node"),
        (f"docker login -u me -p {X}", "docker login -u me -p ***"),
        (f"docker login -u me -p{X}", "docker login -u me -p***"),
        (f"docker login -p={X} registry.example", "docker login -p*** registry.example"),
        ("docker run -p8080:80 -u me image", "docker run -p8080:80 -u me image"),
        (f"ldapsearch -x -w{X}", "ldapsearch -x -w***"),
        (f"curl -s -ume:{X} https://x.example", "curl -s -u*** https://x.example"),
        (f"curl -su me:{X} https://x.example", "curl -su *** https://x.example"),
        (f"curl -fsSLume:{X} https://x.example", "curl -fsSLu*** https://x.example"),
        (f"sh -c 'curl -sSu me:{X} https://x.example'", "sh -c 'curl -sSu *** https://x.example'"),
        ("curl -so out.json https://x.example", "curl -so out.json https://x.example"),
        (f"ldapsearch -xw {X}", "ldapsearch -xw ***"),
        (f"redis-cli -a {X}", "redis-cli -a ***"),
        (f"curl -u me:{X} https://x.example", "curl -u *** https://x.example"),
        (f"wandb login {X}", "wandb login ***"),
        (f"--db postgres://u:{X}@h/d", "--db postgres://u:***@h/d"),
        (f"--db=mysql+pymysql://u:{X}@h:3306/d?x=1", "--db=mysql+pymysql://u:***@h:3306/d?x=1"),
        (f"--db postgres://u:p@ss@{X}@h/d", "--db postgres://u:***@h/d"),
        ("https://ghp_0123456789abcdefABCDEF0123456789abcd@github.com/a/b", "https://***@github.com/a/b"),
        (f"--url https://h/x?a=1\\&sig={X}\\&b=2", "--url 'https://h/x?a=1&sig=***&b=2'"),
        ("--hook https://hooks.slack.com/services/T0/B0/abcdef", "--hook https://hooks.slack.com/services/***"),
        ("--model hf_abcdefghijklmnopqrstuvwxyzABCDEFGH", "--model ***"),
        ("x ghp_0123456789abcdefABCDEF0123456789abcd", "x ***"),
        ("x github_pat_11ABCDEFG0abcdefghijkl_0123456789abcdefghij", "x ***"),
        ("x glpat-abcdefghij0123456789", "x ***"),
        ("x sk-ant-api03-abcdefghijklmnop0123456789", "x ***"),
        ("x AKIAIOSFODNN7EXAMPLE", "x ***"),
        ("x xoxb-123456789012-abcdefghijkl", "x ***"),
        ("x AIzaSyA1234567890abcdefghijklmnopqrstuv", "x ***"),
        ("x eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N", "x ***"),
        ("x mm_w_abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG", "x ***"),
        (f"x {HEX40}", "x ***"),
        (f"--wandb {HEX40}", "--wandb ***"),
        (f"x {RANDOM}", "x ***"),
        (f"--weights=/x/{RANDOM}/y", "--weights=/x/***/y"),
        (f"sh -c 'export WANDB_API_KEY={X}; python t.py --hf-token {X} --lr 1'",
         "sh -c 'export WANDB_API_KEY=***; python t.py --hf-token *** --lr 1'"),
        (f"""--config '{{"wandb_key": "{X}", "lr": 1}}'""", """--config '{"wandb_key": "***", "lr": 1}'"""),
        (f"curl -H 'Authorization: Bearer {X}'", "curl -H 'Authorization: ***'"),
        ("--pwd 123456", "--pwd ***"),
        ("--pass 12345678", "--pass ***"),
        ("--api-key 1234567890123456", "--api-key ***"),
        ("--api-key=1234567890123456", "--api-key=***"),
        ("--auth 987654", "--auth ***"),
        ("--api-tokens 987654", "--api-tokens ***"),
        ("DB_PASS=12345678 python", "DB_PASS=*** python"),
        ("--api-key /s3cr3t/abc", "--api-key ***"),
        ("--pwd /s3cr3t/abc", "--pwd ***"),
        ("WANDB_API_KEY=/s3cr3t/abc", "WANDB_API_KEY=***"),
        ("--wandb-key -abc123secret", "--wandb-key ***"),
        ("--password -abcsecret123 --fp16", "--password *** --fp16"),
        ("--user me:hunter2", "--user me:***"),
        ("--user=me:123456", "--user=me:***"),
        ("--proxy-user lab.me@example:hunter2", "--proxy-user lab.me@example:***"),
        ("-u me:hunter2", "-u me:***"),
        ("train --user me -p hunter2", "train --user me -p ***"),
        ("train -u me --db runs -p hunter2", "train -u me --db runs -p ***"),
        ("train --username=me -p hunter2 --lr 1", "train --username=me -p *** --lr 1"),
        ("train --user me -p 123456", "train --user me -p ***"),
        (f"x {HEX32}", "x ***"),
        (f"--comet {HEX32}", "--comet ***"),
        (f"DD={HEX32} python", "DD=*** python"),
        (f"--salt {HEX32}{HEX32}", "--salt ***"),
        (f"--salt {HEX32.upper()}", "--salt ***"),
        (f"x {RANDOM_OF_ONE_CASE}", "x ***"),
        (f"x {RANDOM_OF_ONE_CASE.upper()}", "x ***"),
        (f"--weights=/x/{RANDOM_OF_ONE_CASE}/y", "--weights=/x/***/y"),
        (f"sh -c 'python t.py --api-key 12345678 --wandb-key -abc123secret --user me:{X} --comet {HEX32} --lr 1'",
         "sh -c 'python t.py --api-key *** --wandb-key *** --user me:*** --comet *** --lr 1'"),
        ("sh -c 'docker run --user root:root -p 80:80 image; apptainer exec --pwd /work i.sif python t.py'",
         "sh -c 'docker run --user root:root -p 80:80 image; apptainer exec --pwd /work i.sif python t.py'"),
        (f"bash -c 'mysql -u root -p{X} db;  train --user me -p {X}'",
         "bash -c 'mysql -u root -p*** db;  train --user me -p ***'"),
        ("--key {batch_size} --token={batch_size}", "--key '{batch_size}' '--token={batch_size}'"),
    ],
)  # fmt: skip
def test_a_secret_is_hidden(command: str, shown: str) -> None:
    found = masked(shlex.split(command))
    assert shlex.join(found).replace(f"'{HIDDEN}'", HIDDEN).replace("'", "") == shown.replace("'", "").replace("'", "")
    assert masked(found) == found, "hidden once more, it would be another command"


@pytest.mark.parametrize("command", ORDINARY)
def test_an_ordinary_command_stays_as_it_is(command: str) -> None:
    assert masked(shlex.split(command)) == shlex.split(command)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"db password is {X}", "db password is ***"),
        (f"password: {X}, host: db", "password: ***, host: db"),
        (f"connecting to postgres://u:{X}@h/d failed", "connecting to postgres://u:***@h/d failed"),
        (f"wandb: logging in with {HEX40}", "wandb: logging in with ***"),
        (f"WANDB_API_KEY={X}", "WANDB_API_KEY=***"),
        ("ValueError: unknown key: lr", "ValueError: unknown key: lr"),
        ("KeyError: 'input_ids'", "KeyError: 'input_ids'"),
        ("CUDA out of memory. Tried to allocate 2.00 GiB", "CUDA out of memory. Tried to allocate 2.00 GiB"),
        ("Token indices sequence length is longer than 512", "Token indices sequence length is longer than 512"),
        ("pad_token: None, tokens: 128, auth failed", "pad_token: None, tokens: 128, auth failed"),
        (f"at commit {HEX40}", f"at commit {HEX40}"),
        (f"checksum {HEX32} differs", f"checksum {HEX32} differs"),
        ("user: alice:users, tokens: 131072, num_keys=65536", "user: alice:users, tokens: 131072, num_keys=65536"),
        ("at 0x7f3a2c1b9d80, <object at 0x00007f3a2c1b9d80>", "at 0x7f3a2c1b9d80, <object at 0x00007f3a2c1b9d80>"),
        ("torch.nn.modules.module.ModuleAttributeError", "torch.nn.modules.module.ModuleAttributeError"),
    ],
)
def test_a_line_of_output_is_shown_without_secrets(text: str, shown: str) -> None:
    assert masked_text(text) == shown


@pytest.mark.parametrize(("letters", "found"), [(BASE36, 85), (BASE32, 85), (BASE62, 95)])
def test_random_text_is_found_at_a_known_rate(letters: str, found: int) -> None:
    chosen = random.Random(20)
    texts = ["".join(chosen.choices(letters, k=24)) for _ in range(2_000)]
    assert sum(map(is_random, texts)) >= found / 100 * len(texts)


def test_an_administrator_adds_names(monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["train", "--lab-pin", "abcd", "--vault=abcd", "LAB_PIN=abcd"]
    assert masked(command) == command
    monkeypatch.setenv(NAMES_VARIABLE, "pin, vault")
    assert masked(command) == ["train", "--lab-pin", HIDDEN, f"--vault={HIDDEN}", f"LAB_PIN={HIDDEN}"]


def test_a_name_that_no_option_has_is_refused() -> None:
    assert secret_names({NAMES_VARIABLE: " pin,,Vault "}) == ("pin", "vault")
    for text in ("a b", "--pin", "p*n", "x" * 41):
        with pytest.raises(SpecError, match=NAMES_VARIABLE):
            secret_names({NAMES_VARIABLE: text})


def test_a_long_command_takes_no_time() -> None:
    hostile = ["a" * 20_000, "=" * 20_000, "-" * 20_000, "a:" * 10_000, "a@" * 10_000, "http://" * 3_000, "a.-" * 7_000]
    masked(hostile)
    masked_text("\n".join(hostile))
