"""The backend "banyan" of torch.distributed: collectives that the network computes.

    import banyan_torch, torch.distributed as dist

    dist.init_process_group("banyan")      # under torchrun, srun, mpirun, or with RANK and related variables

broadcast, allreduce, reduce, allgather, reduce-scatter and barrier of the whole job run over banyan;
other groups and operations run over Gloo. The job's table and transport come from the settings
``BANYAN_*``. ``banyan_torch.describe()`` reports what runs where.
"""
import sys
import weakref

import torch.distributed as _dist

from . import _C

_groups = []


def _create(store, rank, size, timeout):
    """Make a process group: of the whole job over banyan, of other ranks over Gloo."""
    other = None
    if _dist.is_gloo_available():
        other = _dist.ProcessGroupGloo(_dist.PrefixStore("banyan/gloo", store), rank, size, timeout)
    whole = not any(one() is not None for one in _groups)
    group = _C.create(_dist.PrefixStore("banyan", store), rank, size, timeout.total_seconds(), other, whole)
    if whole:
        _groups[:] = [weakref.ref(group)]
        if rank == 0:
            print(f"banyan_torch: {group.describe()}; other operations over Gloo", file=sys.stderr)
    return group


def describe():
    """Return (text, operations over banyan, operations over Gloo) of the default group."""
    group = _groups[0]() if _groups else None
    if group is None:
        raise RuntimeError('banyan_torch: there is no process group: call init_process_group("banyan") first')
    return group.describe(), group.offloaded, group.passed


def _register():
    if hasattr(_dist.Backend, "BANYAN"):
        return
    register = _dist.Backend.register_backend
    try:
        register("banyan", _create, devices=["cpu", "cuda"])
    except TypeError:  # PyTorch 1
        register("banyan", _create)


_register()
