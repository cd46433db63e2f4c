"""What the tests of traces share."""

import pytest
import torch


@pytest.fixture
def one_thread():
    """Real steps this small are slower on several threads, and not repeatable in time on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
