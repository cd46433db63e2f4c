"""Imported first by the scripts of public libraries: no network, and no torchvision. Imports none of them.

Beside the CPU build of torch the compiled part of torchvision does not load, and transformers imports it where it is.
"""

import os
import sys

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
sys.modules["torchvision"] = None
