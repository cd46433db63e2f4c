#!/usr/bin/env python3
"""Make PyTorch's real CUDA build run over the made-up driver of `driver/`. Prints the folder it made.

    python tests/cuda_stand_in/build.py              build what is missing: about 0.5 GB of download the first time
    python tests/cuda_stand_in/build.py --env        print the variables to export for a shell

What is downloaded and what is compiled are kept apart, below MEMORYMARK_CUDA_STAND_IN (else the user's cache): a change
of the driver downloads nothing. Needs g++ with its binutils, pip and a package index; no CUDA, no GPU.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DRIVER = HERE / "driver"
HEADERS = ("nvidia-cuda-runtime~=13.0.0", "nvidia-cuda-crt~=13.0.0")
CORE = "libstand_in.so"

# a library of ours, and the files it is made of; every other one that PyTorch asks for has unwritten functions only
CORE_SOURCES = ("knobs", "calls", "cards", "memory", "process", "addresses")
LIBRARIES = {
    "libcudart.so": ("runtime_device", "runtime_memory", "runtime_work"),
    "libcuda.so": ("driver_api",),
    "libnvidia-ml.so": ("nvml_devices", "nvml_state"),
    "libcublas.so": ("cublas",),
    "libcublasLt.so": ("cublas",),
    "libcudnn.so": ("cudnn", "cudnn_backend"),
}
DEFINES = {"libcublasLt.so": ("-DSTAND_IN_CUBLAS_LT",)}
# symbols that carry no version, by how they begin
HOMES = {
    "nccl": "libnccl.so",
    "cusparseLt": "libcusparseLt.so",
    "cuFile": "libcufile.so",
    "nvshmem": "libnvshmem_host.so",
}
COMPILE = ("g++", "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC")
NOT_UNPACKED = ("torch/include/", "torch/share/")


class CannotBuild(Exception):
    """What is missing on this machine, in a sentence."""


def main(arguments: list[str]) -> None:
    try:
        environment = stand_in_environment()
    except CannotBuild as exc:
        sys.exit(f"the CUDA stand-in cannot be built: {exc}")
    if arguments == ["--env"]:
        for name, value in environment.items():
            print(f"export {name}='{value}'")
    else:
        print(environment["LD_LIBRARY_PATH"])


def stand_in_environment() -> dict[str, str]:
    """The variables with which a Python of this machine runs on the stand-in; builds what is missing."""
    version = torch_version()
    wheel = cache() / f"torch-{version}-{sys.implementation.cache_tag}"
    headers = cache() / f"headers-{_digest(*(name.encode() for name in HEADERS))}"
    _once(wheel, lambda folder: _fetch(f"torch==={version}", folder))  # `===`: no 2.13.0+cpu of a local index
    _once(headers, lambda folder: [_fetch(name, folder) for name in HEADERS])
    driver = cache() / f"driver-{_digest(version.encode(), *_sources())}"
    _once(driver, lambda folder: _compile(wheel, headers, folder))
    return {"PYTHONPATH": str(wheel), "LD_LIBRARY_PATH": str(driver), "OMP_NUM_THREADS": "1"}


def cache() -> Path:
    named = os.environ.get("MEMORYMARK_CUDA_STAND_IN")
    users = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named) if named else users / "memorymark" / "cuda_stand_in"


def torch_version() -> str:
    pinned = re.search(r"^torch==(\S+)$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    if pinned is None:
        raise CannotBuild("requirements.txt pins no torch")
    return pinned[1]


def _sources() -> list[bytes]:
    return [path.read_bytes() for path in [Path(__file__), *sorted(DRIVER.iterdir())]]


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _once(folder: Path, make) -> None:
    """Make a folder whole or not at all; a second process waits for the first."""
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.with_name(folder.name + ".lock")):
        if folder.exists():
            return
        print(f"making {folder} ...", file=sys.stderr)
        unfinished = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
        try:
            make(unfinished)
            unfinished.rename(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(requirement: str, folder: Path) -> None:
    options = ["-q", "--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    _run([sys.executable, "-m", "pip", "download", *options, requirement], f"{requirement} could not be downloaded")
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel) as content:
            content.extractall(folder, [n for n in content.namelist() if not n.startswith(NOT_UNPACKED)])
        wheel.unlink()
    if requirement.startswith("torch") and not (folder / "torch" / "lib" / "libtorch_cuda.so").exists():
        raise CannotBuild(f"{requirement} from this package index is not the CUDA build")


def _compile(wheel: Path, headers: Path, folder: Path) -> None:
    """Every library that PyTorch's own need, below the names it asks for."""
    if shutil.which("g++") is None or shutil.which("nm") is None:
        raise CannotBuild("there is no g++ (with nm and readelf) here")
    include = f"-I{next(headers.glob('nvidia/*/include'))}"
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        core = [_object(name, include, work) for name in CORE_SOURCES]
        _run(["g++", "-shared", f"-Wl,-soname,{CORE}", "-o", folder / CORE, *core], f"{CORE} could not be linked")
        for library, wanted in _wanted(wheel / "torch" / "lib").items():
            _library(library, wanted, include, work, folder)


def _object(name: str, include: str, work: Path, *defines: str) -> Path:
    made = work / f"{name}{len(defines)}.o"
    if not made.exists():
        _run(
            [*COMPILE, include, *defines, "-c", DRIVER / f"{name}.cpp", "-o", made], f"{name}.cpp could not be compiled"
        )
    return made


def _wanted(libraries: Path) -> dict[str, dict[str, str]]:
    """For each library that is asked for, the functions wanted of it, each with its version ("" for none)."""
    own = [p for p in sorted(libraries.glob("*.so*")) if re.match(r"lib(c10|torch|caffe2|shm)", p.name)]
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", _output("readelf", "-d", *own)))
    names = sorted(n for n in needed if re.match(r"lib(cu|nccl|nv)", n)) + ["libnvidia-ml.so.1", "libcuda.so.1"]
    wanted: dict[str, dict[str, str]] = {name: {} for name in names}
    by_stem = {_stem(name): name for name in wanted}
    for line in _output("nm", "-D", "--undefined-only", *own).splitlines():
        symbol, _, version = line.split()[-1].partition("@") if line.strip() else ("", "", "")
        home = wanted.get(version) if version.startswith("lib") else None
        if home is None and (version == "NVSHMEM" or not version):
            home = wanted.get(by_stem.get(_home(symbol), ""))
        if home is not None:
            home[symbol] = version
    for name in re.findall(rb"(?<!\w)((?:cu|nvml)[A-Z]\w+)\0", (libraries / "libc10_cuda.so").read_bytes()):
        symbol = name.decode()  # asked for by name, at run time
        wanted["libnvidia-ml.so.1" if symbol.startswith("nvml") else "libcuda.so.1"][symbol] = ""
    return wanted


def _home(symbol: str) -> str:
    known = next((home for start, home in HOMES.items() if symbol.startswith(start)), "")
    return known or ("libcuda.so" if re.match(r"cu[A-Z]", symbol) else "")


def _stem(library: str) -> str:
    return library.partition(".so")[0] + ".so"


def _library(library: str, wanted: dict[str, str], include: str, work: Path, folder: Path) -> None:
    """One library: what is written in driver/, and an answer from answers.toml for all else that is wanted."""
    stem = _stem(library)
    objects = [_object(name, include, work, *DEFINES.get(stem, ())) for name in LIBRARIES.get(stem, ())]
    written = set(re.findall(r" T (\w+)$", _defined(objects), re.MULTILINE))
    answers = tomllib.loads((DRIVER / "answers.toml").read_text()).get(stem, {})
    missing = sorted(wanted.keys() - written)
    source = work / f"{stem}.unwritten.c"
    source.write_text(_unwritten(missing, answers))
    versions = sorted({version for version in wanted.values() if version})
    script = work / f"{stem}.map"
    script.write_text("".join(f"{version} {{ *; }};\n" for version in versions))
    command = ["gcc", "-shared", "-fPIC", "-fno-builtin", f"-Wl,-soname,{library}", "-Wl,-rpath,$ORIGIN"]
    command += [f"-Wl,--version-script={script}"] if versions else []
    command += ["-o", folder / library, source, *objects, f"-L{folder}", f"-l:{CORE}", "-lstdc++", "-ldl"]
    _run(command, f"{library} could not be linked")


def _defined(objects: list[Path]) -> str:
    return _output("nm", "--defined-only", *objects) if objects else ""


def _unwritten(names: list[str], answers: dict) -> str:
    """C code of functions that nobody has written: they do nothing, or say that they are not supported."""
    unsupported, silent = answers.get("unwritten", 1), answers.get("does_nothing", ())
    lines = ["extern int stand_in_unwritten(const char* entry_point, int answer);"]
    for name in names:
        answer = 0 if any(fnmatchcase(name, pattern) for pattern in silent) else unsupported
        lines.append(f'int {name}(void) {{ return stand_in_unwritten("{name}", {answer}); }}')
    return "\n".join(lines) + "\n"


def _output(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _run(command: list[str | Path], sentence: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotBuild(f"{sentence}:\n{done.stderr[-2000:]}")


if __name__ == "__main__":
    main(sys.argv[1:])
