"""All-to-all, scatter and gather: the operations of a communicator in which each message has one receiver."""
from ._buffers import locate
from ._errors import InvalidError, check


class Exchanges:
    """A part of :class:`banyan.Communicator`. These run between hosts, so the ranks must be connected."""

    def _share(self, name, array, dtype, writable=True):
        address, have, number = locate(array, name, writable, dtype)
        if have % self.size:
            raise InvalidError(f"{name} has {have} elements, which {self.size} ranks cannot share equally", -1)
        return address, have // self.size, number

    def _alltoall(self, send, recv=None, dtype=None):
        source, count, number = self._share("send", send, dtype, recv is None)
        if recv is None:
            return source, source, count, number
        return source, self._second(recv, "recv", count * self.size, number, dtype), count, number

    def _blocks(self, name, array, counts, offsets, number, dtype, writable):
        """Return (address, counts, offsets): the last None if the blocks follow each other."""
        shares = self._counts(counts)
        if offsets is None:
            return self._second(array, name, sum(counts), number, dtype, writable), shares, None
        starts = self._counts(offsets, "offsets")
        address, have, other = locate(array, name, writable, dtype)
        end = max((start + share for start, share in zip(offsets, counts) if share), default=0)
        if have < end or other != number:
            raise InvalidError(
                f"{name} has {have} elements of type {other}, and its blocks end at element {end} of type "
                f"{number} (banyan_dtype_t)",
                -1,
            )
        return address, shares, starts

    def _alltoallv(self, send, send_counts, recv, recv_counts, dtype=None, send_offsets=None, recv_offsets=None):
        number = locate(send, "send", False, dtype)[2]
        sent = self._blocks("send", send, send_counts, send_offsets, number, dtype, False)
        return *sent, *self._blocks("recv", recv, recv_counts, recv_offsets, number, dtype, True), number

    def _scatter(self, send, recv, root=0, dtype=None):
        root = self._root(root)
        target, count, number = locate(recv, "recv", True, dtype)
        source = None
        if self.rank == root:
            source = self._second(send, "send", count * self.size, number, dtype, False)
        return source, target, count, number, root

    def _scatterv(self, send, counts, recv, root=0, dtype=None, offsets=None):
        root = self._root(root)
        target, count, number = locate(recv, "recv", True, dtype)
        blocks = None, None, None
        if self.rank == root:
            blocks = self._blocks("send", send, counts, offsets, number, dtype, False)
        return *blocks, target, count, number, root

    def _gather(self, send, recv=None, root=0, dtype=None):
        root = self._root(root)
        source, count, number = locate(send, "send", False, dtype)
        target = None
        if self.rank == root:
            target = self._second(recv, "recv", count * self.size, number, dtype)
        return source, target, count, number, root

    def _gatherv(self, send, recv=None, counts=None, root=0, dtype=None, offsets=None):
        root = self._root(root)
        source, count, number = locate(send, "send", False, dtype)
        blocks = None, None, None
        if self.rank == root:
            blocks = self._blocks("recv", recv, counts, offsets, number, dtype, True)
        return source, count, *blocks, number, root

    def alltoall(self, send, recv=None, dtype=None):
        """Send block r of ``send`` [size * count] to rank r, and receive block s of ``recv`` from rank s.

        Without recv, in place.
        """
        check(self._lib.operation["alltoall"](self._alive(), *self._alltoall(send, recv, dtype)))

    def alltoallv(self, send, send_counts, recv, recv_counts, dtype=None, send_offsets=None, recv_offsets=None):
        """Like alltoall, with blocks of send_counts[r] elements for, and recv_counts[r] elements of, rank r.

        They follow each other, or start at elements send_offsets[r] and recv_offsets[r].
        """
        arguments = self._alltoallv(send, send_counts, recv, recv_counts, dtype, send_offsets, recv_offsets)
        check(self._lib.operation["alltoallv"](self._alive(), *arguments))

    def scatter(self, send, recv, root=0, dtype=None):
        """Copy block r of ``send`` [size * count] of ``root`` to ``recv`` [count] of rank r."""
        check(self._lib.operation["scatter"](self._alive(), *self._scatter(send, recv, root, dtype)))

    def scatterv(self, send, counts, recv, root=0, dtype=None, offsets=None):
        """Like scatter, with blocks of counts[r] elements, which follow each other or start at offsets[r].

        Other ranks than root pass None for send, counts and offsets.
        """
        arguments = self._scatterv(send, counts, recv, root, dtype, offsets)
        check(self._lib.operation["scatterv"](self._alive(), *arguments))

    def gather(self, send, recv=None, root=0, dtype=None):
        """Copy ``send`` [count] of rank r to block r of ``recv`` [size * count] of ``root``."""
        check(self._lib.operation["gather"](self._alive(), *self._gather(send, recv, root, dtype)))

    def gatherv(self, send, recv=None, counts=None, root=0, dtype=None, offsets=None):
        """Like gather, with blocks of counts[r] elements, which follow each other or start at offsets[r].

        Other ranks than root pass None for recv, counts and offsets.
        """
        arguments = self._gatherv(send, recv, counts, root, dtype, offsets)
        check(self._lib.operation["gatherv"](self._alive(), *arguments))

    def alltoall_init(self, send, recv=None, dtype=None):
        """Return a request of an all-to-all."""
        return self._start("alltoall", (send, recv), self._alltoall(send, recv, dtype))

    def alltoallv_init(self, send, send_counts, recv, recv_counts, dtype=None, send_offsets=None, recv_offsets=None):
        """Return a request of an all-to-all with unequal blocks."""
        arguments = self._alltoallv(send, send_counts, recv, recv_counts, dtype, send_offsets, recv_offsets)
        return self._start("alltoallv", (send, recv), arguments)

    def scatter_init(self, send, recv, root=0, dtype=None):
        """Return a request of a scatter."""
        return self._start("scatter", (send, recv), self._scatter(send, recv, root, dtype))

    def scatterv_init(self, send, counts, recv, root=0, dtype=None, offsets=None):
        """Return a request of a scatter with unequal blocks."""
        return self._start("scatterv", (send, recv), self._scatterv(send, counts, recv, root, dtype, offsets))

    def gather_init(self, send, recv=None, root=0, dtype=None):
        """Return a request of a gather."""
        return self._start("gather", (send, recv), self._gather(send, recv, root, dtype))

    def gatherv_init(self, send, recv=None, counts=None, root=0, dtype=None, offsets=None):
        """Return a request of a gather with unequal blocks."""
        return self._start("gatherv", (send, recv), self._gatherv(send, recv, counts, root, dtype, offsets))

    def ialltoall(self, send, recv=None, dtype=None):
        """Start an all-to-all; return its request."""
        return self.alltoall_init(send, recv, dtype).post()

    def ialltoallv(self, send, send_counts, recv, recv_counts, dtype=None, send_offsets=None, recv_offsets=None):
        """Start an all-to-all with unequal blocks; return its request."""
        return self.alltoallv_init(send, send_counts, recv, recv_counts, dtype, send_offsets, recv_offsets).post()

    def iscatter(self, send, recv, root=0, dtype=None):
        """Start a scatter; return its request."""
        return self.scatter_init(send, recv, root, dtype).post()

    def iscatterv(self, send, counts, recv, root=0, dtype=None, offsets=None):
        """Start a scatter with unequal blocks; return its request."""
        return self.scatterv_init(send, counts, recv, root, dtype, offsets).post()

    def igather(self, send, recv=None, root=0, dtype=None):
        """Start a gather; return its request."""
        return self.gather_init(send, recv, root, dtype).post()

    def igatherv(self, send, recv=None, counts=None, root=0, dtype=None, offsets=None):
        """Start a gather with unequal blocks; return its request."""
        return self.gatherv_init(send, recv, counts, root, dtype, offsets).post()
