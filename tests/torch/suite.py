"""PyTorch's own tests of a distributed backend, as far as they are installed, for the backend "banyan":
three processes between hosts on the loopback interface.

    suite.py [unittest's arguments]       python3 -m unittest's -k selects tests
"""
import atexit
import os
import shutil
import sys
import tempfile

os.environ.setdefault("BACKEND", "banyan")
os.environ.setdefault("WORLD_SIZE", "3")
if "TEMP_DIR" not in os.environ:  # in the processes that this one starts, it is the same
    os.environ["TEMP_DIR"] = tempfile.mkdtemp(prefix="banyan-torch-")
    atexit.register(shutil.rmtree, os.environ["TEMP_DIR"], ignore_errors=True)
os.environ.setdefault("INIT_METHOD", "file://" + os.environ["TEMP_DIR"] + "/init")
os.environ.setdefault("BANYAN_OFFLOAD", "off")
os.environ.setdefault("BANYAN_LOG", "0")
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
os.environ.pop("CI", None)  # PyTorch would write its report by a module that Debian does not package

import banyan_torch  # noqa: E402,F401
from torch.testing._internal.common_utils import run_tests  # noqa: E402
from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend  # noqa: E402


class TestBanyan(TestDistBackend, DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._spawn_processes()


if __name__ == "__main__":
    sys.exit(run_tests())
