"""Launchers that the C library does not serve by itself: torchrun.

torchrun's own store listens at MASTER_ADDR and MASTER_PORT, so rank 0 cannot. Ranks then exchange
their addresses through that store. mpirun (PMIx, PMI-1), srun and plain RANK, WORLD_SIZE,
MASTER_ADDR, MASTER_PORT are left to the library.
"""
import datetime
import os

_calls = 0
_stores = []


def rendezvous():
    """Return (rank, size, allgather) under torchrun, else None."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True" or "BANYAN_BOOTSTRAP" in os.environ:
        return None
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

    def allgather(mine):
        from torch.distributed import PrefixStore, TCPStore

        global _calls
        if not _stores:
            address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
            _stores.append(TCPStore(address, port, size, False, datetime.timedelta(seconds=60)))
        round_, _calls = _calls, _calls + 1
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = PrefixStore(f"banyan/{attempt}/{round_}", _stores[0])
        store.set(str(rank), mine)
        return [store.get(str(other)) for other in range(size)]

    return rank, size, allgather
