"""`python -m engine mcp`: a coding agent lists the tools and gets answers; the skill's commands run as they stand."""

import json
import re
import shlex
import sys
from pathlib import Path

import anyio
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from engine.cli.main import main
from tests.engine.cli.test_estimate_command import traces  # noqa: F401  (a fixture)
from tests.engine.gate.test_check_command import BASE
from tests.engine.training_files.test_training_file import AXOLOTL

ROOT = Path(__file__).parents[3]
SKILL = (ROOT / "packaging" / "skill" / "SKILL.md").read_text()
COMMANDS = re.findall(r"^memorymark (.*)$", "\n".join(re.findall(r"```sh\n(.*?)```", SKILL, re.DOTALL)), re.MULTILINE)


async def ask(folder: Path, questions: list[tuple[str, dict]]) -> tuple[list[str], list[dict]]:
    start = StdioServerParameters(
        command=sys.executable, args=["-m", "engine", "mcp"], cwd=str(folder), env={"PYTHONPATH": str(ROOT)}
    )
    async with stdio_client(start) as (reads, writes), ClientSession(reads, writes) as session:
        await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        answers = [await session.call_tool(name, arguments) for name, arguments in questions]
    return tools, [json.loads(answer.content[0].text) for answer in answers]


def test_an_agent_finds_the_tools_and_reads_their_answers(tmp_path: Path) -> None:
    for name in ("now.json", "base.json"):
        (tmp_path / name).write_text(json.dumps(BASE))
    on_cpu = ["--device", "cpu", "--memory-limit", "64MiB"]
    questions = [
        ("fit", {"training": "bert-tiny", "gpus": "a10"}),
        ("fit", {"training": "bert-tiny", "gpus": "t4", "options": ["--batch-size", "60000"]}),
        ("estimate", {"model": "bert-tiny", "gpus": "a10,t4"}),
        ("estimate", {"model": "no-such-model", "gpus": "a10"}),
        ("check", {"result": "now.json", "baseline": "base.json"}),
        (
            "tune",
            {"command": ["false"], "options": [*on_cpu, "--batch", "nothing"]},
        ),
        ("explain", {"text": "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0."}),
    ]
    tools, answers = anyio.run(ask, tmp_path, questions)
    assert tools == ["fit", "estimate", "tune", "check", "explain"]
    assert [answer["exit_status"] for answer in answers] == [0, 1, 0, 2, 0, 2, 0]
    assert answers[0]["result"]["fits"] == ["a10"]
    assert [each["gpu"]["id"] for each in answers[2]["result"]] == ["a10", "t4"]
    assert answers[6]["result"]["cause"] == "host_memory"
    assert "no-such-model" in " ".join(answers[3]["said"])


@pytest.mark.usefixtures("traces")
@pytest.mark.parametrize("line", [each for each in COMMANDS if not each.startswith("tune ")])
def test_each_command_of_the_skill_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qlora.yml").write_text(AXOLOTL)
    (tmp_path / "train.log").write_text("RuntimeError: CUDA out of memory.")
    for name in ("result.json", "baseline.json"):
        (tmp_path / name).write_text(json.dumps(BASE))
    assert main(shlex.split(line)) == 0
