"""The backend "banyan" of torch.distributed: collectives that the network computes.

    import banyan_torch, torch.distributed as dist

    dist.init_process_group("banyan")      # under torchrun, srun, mpirun, or with RANK and related variables

broadcast, allreduce, reduce, allgather, reduce-scatter and barrier run over banyan, and so do gather,
scatter and all-to-all where the ranks are connected (without a table, or with ``BANYAN_FALLBACK``);
other operations run over Gloo. Groups of some ranks on several hosts require a controller
(``BANYAN_CONTROLLER``), and run over Gloo without one. The job's table and transport come from the
settings ``BANYAN_*``. ``banyan_torch.describe()`` reports what runs where.
"""
import atexit
import os
import sys

import torch as _torch
import torch.distributed as _dist

_REMEDY = "build it with this one: make torch-build TORCH_INCLUDE= TORCH_LIB= PYTHON= (docs/languages.md)"
if not _dist.is_available():
    raise ImportError(f"banyan_torch: PyTorch {_torch.__version__} has no torch.distributed; install another build")
try:
    from . import _C
except ImportError as error:
    raise ImportError(
        f"banyan_torch: its extension cannot be loaded with PyTorch {_torch.__version__} ({error}); {_REMEDY}"
    ) from error
if _torch.__version__.split(".")[:2] != _C.torch_version.split("."):
    raise ImportError(
        f"banyan_torch was built with PyTorch {_C.torch_version}, and this is PyTorch {_torch.__version__}; {_REMEDY}"
    )

_groups = []  # watches of the groups: of all ranks first
_reasons = set()


def _create(store, rank, size, timeout):
    """Make a process group: of all ranks of the job, or of some ranks of that group."""
    other = None
    if _dist.is_gloo_available():
        other = _dist.ProcessGroupGloo(_dist.PrefixStore("banyan/gloo", store), rank, size, timeout)
    if not _dist.is_initialized():  # a destroyed group lives on where a model refers to it
        _close()
    parent = _groups[0]() if _groups else None
    whole = not _dist.is_initialized() or (parent is None and size == _dist.get_world_size())
    group = _C.create(_dist.PrefixStore("banyan", store), rank, size, timeout.total_seconds(), other, whole, parent)
    text = group.describe()
    if whole:
        _groups[:] = [_C.Watch(group)]
        atexit.register(_leave, _groups[0], os.getpid())
        if rank == 0:
            print(f"banyan_torch: {text}; other operations over Gloo", file=sys.stderr)
    elif parent is not None:
        _groups[1:] = [one for one in _groups[1:] if one() is not None] + [_C.Watch(group)]
        if rank == 0 and size > 1 and text.startswith("not") and text not in _reasons:
            _reasons.add(text)
            print(f"banyan_torch: a group of {size} ranks is {text}; it runs over Gloo", file=sys.stderr)
    return group


def _close():
    """Close all groups, that of all ranks last."""
    while _groups:
        group = _groups.pop()()
        if group is not None:
            group.close()


def _leave(whole, process):
    """At exit: leave the job, while the interpreter still runs; not in a copy that fork() has made."""
    group = whole()
    if group is None or os.getpid() != process:
        return
    if _dist.is_initialized():
        print(
            f"banyan_torch: the program ends without torch.distributed.destroy_process_group(), and {group.open} "
            "operations have not ended; call it before the program ends",
            file=sys.stderr,
            flush=True,
        )
    if _groups and _groups[0] is whole:
        _close()
    group.close()


def describe(group=None):
    """Return (text, operations over banyan, operations over Gloo) of a group, or of that of all ranks."""
    if group is None:
        group = _groups[0]() if _groups else None
        if group is None:
            raise RuntimeError('banyan_torch: there is no process group: call init_process_group("banyan") first')
    elif hasattr(group, "_get_backend"):  # PyTorch 2
        group = group._get_backend(_torch.device("cpu"))
    if not hasattr(group, "describe"):
        raise ValueError('banyan_torch: the group has another backend than "banyan"')
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
