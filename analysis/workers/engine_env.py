"""The environment variables of an engine: the ones a program needs to run and to find its accelerator.

This is an allow-list, so a secret that is added to the portal later is not passed on. Further variables can be named
in MEMORYMARK_ENGINE_ENVIRONMENT (HF_TOKEN, for weights that require one).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from django.conf import settings

from engine.estimate.gpus import OWN_CATALOGUE
from engine.text.masking import NAMES_VARIABLE

_PASSES = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG(UAGE)?|LC_\w+|TZ|TMPDIR|TEMP|TMP|VIRTUAL_ENV|CONDA_\w+|PYTHON\w*"
    r"|LD_LIBRARY_PATH|LD_PRELOAD|DYLD_\w+|XDG_CACHE_HOME|SSL_CERT_(FILE|DIR)|(REQUESTS|CURL)_CA_BUNDLE"
    # frameworks, and where they store what they downloaded or compiled
    r"|(PYTORCH|TORCH\w*|TRITON|HF|HUGGINGFACE|TRANSFORMERS|SAFETENSORS)_\w+|CC|CXX"
    # accelerators: NVIDIA, AMD, Intel
    r"|(CUDA\w*|CUDNN|CUBLAS\w*|NVIDIA|NCCL)_\w+|(HIP|ROC[RM]|HSA|MIOPEN|AMD\w*|GPU)_\w+|(ONEAPI|SYCL|ZE|UR|IGC)_\w+"
    # threads and memory of the CPU
    r"|(OMP|GOMP|KMP|MKL|OPENBLAS|BLIS|VECLIB|NUMEXPR|DNNL|ONEDNN|MALLOC)_\w+|GLIBC_TUNABLES"
)
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|PRIVATE|AUTH", re.IGNORECASE)
_PROXY = re.compile(r"(https?|all|no)_proxy", re.IGNORECASE)


def engine_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that the engine needs: no secret, no database; the same cards and words of secrets."""
    passed = {name: value for name, value in environ.items() if _may_pass(name, value)}
    return {**passed, "PYTHONUNBUFFERED": "1"}


def _may_pass(name: str, value: str) -> bool:
    if name in (OWN_CATALOGUE, NAMES_VARIABLE) or name in settings.ENGINE_ENVIRONMENT:
        return True
    if _PROXY.fullmatch(name):
        return "@" not in value  # the part before it is a user name and password
    return bool(_PASSES.fullmatch(name)) and not _SECRET.search(name)
