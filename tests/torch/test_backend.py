"""The backend "banyan" of torch.distributed on one rank of a job; all ranks run the same program.

    banyan lab run fabric.json -- python3 test_backend.py
    BANYAN_FALLBACK=circulant banyan lab run fabric.json -- python3 test_backend.py --exchanges
    BANYAN_FALLBACK=circulant banyan lab run fabric.json --controller -- python3 test_backend.py --groups

Every collective, operator and element type, sizes from 0 to 64 MB, lists and whole tensors, several
in flight, groups, futures, DistributedDataParallel beside the gradients of one process, and wrong use.
Prints `N passed, N failed`; exit status 1 after a failure.
"""
import datetime
import os
import sys
import traceback

import banyan_torch
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

INTEGERS = (torch.uint8, torch.int8, torch.int32, torch.int64)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
TYPES = INTEGERS + FLOATS
# (operator, what it does with the numbers of all ranks)
OPERATORS = {
    dist.ReduceOp.SUM: lambda all_: sum(all_),
    dist.ReduceOp.PRODUCT: lambda all_: all_[0] if len(all_) == 1 else torch.stack(all_).prod(0),
    dist.ReduceOp.MIN: lambda all_: torch.stack(all_).min(0).values,
    dist.ReduceOp.MAX: lambda all_: torch.stack(all_).max(0).values,
}
BITS = {
    dist.ReduceOp.BAND: torch.bitwise_and,
    dist.ReduceOp.BOR: torch.bitwise_or,
    dist.ReduceOp.BXOR: torch.bitwise_xor,
}
SIZES = (0, 1, 3, 1000, 65537)


def numbers(rank, count, dtype):
    """Small integers, so that every sum and product is exact in every type."""
    return ((torch.arange(count) * 7 + rank) % 3).to(dtype)


def offloads(count, group=None):
    """Return a context that checks that `count` operations ran over banyan and none over Gloo."""

    class Check:
        def __enter__(self):
            self.before = banyan_torch.describe(group)

        def __exit__(self, kind, *_):
            if kind is None:
                after = banyan_torch.describe(group)
                assert (after[1] - self.before[1], after[2] - self.before[2]) == (count, 0), (self.before, after)

    return Check()


def allreduce_of_every_type_and_operator(rank, size):
    for dtype in TYPES:
        for op, reference in OPERATORS.items():
            data = numbers(rank, 333, dtype)
            expected = reference([numbers(other, 333, torch.int64) for other in range(size)]).to(dtype)
            with offloads(1):
                dist.all_reduce(data, op=op)
            assert data.equal(expected), (dtype, op)
    for dtype in INTEGERS:
        for op, function in BITS.items():
            data = numbers(rank, 77, dtype)
            expected = numbers(0, 77, dtype)
            for other in range(1, size):
                expected = function(expected, numbers(other, 77, dtype))
            dist.all_reduce(data, op=op)
            assert data.equal(expected), (dtype, op)


def sizes_from_zero_to_64_megabytes(rank, size):
    for count in SIZES:
        data = numbers(rank, count, torch.float32)
        dist.all_reduce(data)
        assert data.equal(sum(numbers(other, count, torch.float32) for other in range(size))), count
    data = torch.full((1 << 24,), float(rank))
    dist.all_reduce(data)
    assert (data == size * (size - 1) / 2).all()


def an_average_is_divided(rank, size):
    data = torch.full((100,), float(rank * size))
    with offloads(1):
        dist.all_reduce(data, op=dist.ReduceOp.AVG)
    assert (data == size * (size - 1) / 2).all()


def broadcast_and_reduce_have_any_root(rank, size):
    for root in range(size):
        data = numbers(rank, 999, torch.int64)
        dist.broadcast(data, root)
        assert data.equal(numbers(root, 999, torch.int64))
        data = numbers(rank, 999, torch.float64)
        dist.reduce(data, root)
        if rank == root:
            assert data.equal(sum(numbers(other, 999, torch.float64) for other in range(size)))


def allgather_of_lists_and_tensors(rank, size):
    for dtype in TYPES:
        own = numbers(rank, 51, dtype)
        parts = [torch.zeros(51, dtype=dtype) for _ in range(size)]
        whole = torch.zeros(size * 51, dtype=dtype)
        with offloads(3):
            dist.all_gather(parts, own)
            dist.all_gather_into_tensor(whole, own)
            dist.all_gather(list(whole.split(51)), own)  # parts that adjoin in memory
        for other in range(size):
            assert parts[other].equal(numbers(other, 51, dtype))
            assert whole[51 * other : 51 * (other + 1)].equal(numbers(other, 51, dtype))


def reduce_scatter_of_lists_and_tensors(rank, size):
    for dtype in TYPES:
        whole = numbers(rank, size * 40, dtype)
        expected = sum(numbers(other, size * 40, dtype) for other in range(size))[40 * rank : 40 * (rank + 1)]
        for parts in ([part.clone() for part in whole.split(40)], list(whole.split(40))):
            own = torch.zeros(40, dtype=dtype)
            with offloads(1):
                dist.reduce_scatter(own, parts)
            assert own.equal(expected), dtype
        own = torch.zeros(40, dtype=dtype)
        with offloads(1):
            dist.reduce_scatter_tensor(own, whole)
        assert own.equal(expected)


def coalesced_tensors_are_reduced_together(rank, size):
    for count in (1, 5, 40):
        data = [torch.full((3, i + 1), float(rank + i)) for i in range(count)]
        dist.all_reduce_coalesced(data)
        for i, one in enumerate(data):
            assert (one == size * (size - 1) / 2 + size * i).all()


def a_hundred_operations_are_in_flight(rank, size):
    data = [torch.full((1000,), rank + i) for i in range(100)]
    with offloads(100):
        work = [dist.all_reduce(one, async_op=True) for one in data]
        for one in work:
            one.wait()
    assert all(one.is_completed() for one in work)
    for i, one in enumerate(data):
        assert (one == size * (size - 1) // 2 + size * i).all()


def a_future_carries_the_result(rank, size):
    data = torch.ones(10)
    done = dist.all_reduce(data, async_op=True).get_future().then(lambda future: future.value()[0] * 2)
    assert (done.wait() == 2 * size).all()


def barriers_end(rank, size):
    with offloads(3):
        for _ in range(3):
            dist.barrier()


def groups_and_messages_run_over_gloo(rank, size):
    groups = [dist.new_group(list(range(first, size))) for first in range(size - 1)]
    for first, group in enumerate(groups):
        if rank >= first:
            data = torch.ones(5)
            dist.all_reduce(data, group=group)
            assert (data == size - first).all()
    data = torch.tensor([float(rank)])
    if rank % 2 == 0 and rank + 1 < size:
        dist.send(data, rank + 1)
    elif rank % 2 == 1:
        dist.recv(data, rank - 1)
        assert data.item() == rank - 1
    before = banyan_torch.describe()
    assert "no connections to the others; set BANYAN_FALLBACK" in before[0], before
    parts = [torch.zeros(2) for _ in range(size)] if rank == 0 else None
    dist.gather(torch.full((2,), float(rank)), parts, 0)
    assert rank != 0 or all((part == other).all() for other, part in enumerate(parts))
    own = torch.zeros(2)
    dist.scatter(own, [torch.full((2,), float(other)) for other in range(size)] if rank == 0 else None, 0)
    assert (own == rank).all()
    out = torch.zeros(size)
    dist.all_to_all_single(out, torch.full((size,), float(rank)))
    assert out.equal(torch.arange(size, dtype=torch.float32))
    after = banyan_torch.describe()
    assert (after[1] - before[1], after[2] - before[2]) == (0, 3), (before, after)
    found = [None] * size
    dist.all_gather_object(found, {"rank": rank})
    assert [one["rank"] for one in found] == list(range(size))


def gradients_of_ddp_are_those_of_one_process(rank, size):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8)).double()
    inputs, targets = torch.randn(size * 4, 64).double(), torch.randn(size * 4, 8).double()
    parallel = DistributedDataParallel(model, bucket_cap_mb=0.01)
    loss = torch.nn.functional.mse_loss(parallel(inputs[4 * rank : 4 * rank + 4]), targets[4 * rank : 4 * rank + 4])
    loss.backward()
    found = [one.grad.clone() for one in model.parameters()]
    model.zero_grad()
    torch.nn.functional.mse_loss(model(inputs), targets).backward()
    for one, grad in zip(model.parameters(), found):
        assert torch.allclose(one.grad, grad, rtol=1e-12, atol=1e-14)


def fails(words, function, *arguments, **more):
    try:
        function(*arguments, **more)
    except (RuntimeError, ValueError) as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"no error with '{words}'")


def wrong_use_is_an_error(rank, size):
    fails("contiguous", dist.all_reduce, torch.zeros(4, 4).t())
    fails("elements and requires", dist.all_gather_into_tensor, torch.zeros(3), torch.zeros(2))
    fails("elements and requires", dist.reduce_scatter_tensor, torch.zeros(2), torch.zeros(3))
    fails("trying to initialize the default process group twice", dist.init_process_group, "banyan")
    try:
        dist.all_gather([torch.zeros(2), torch.zeros(3)] + [torch.zeros(2)] * (size - 2), torch.zeros(2))
    except (RuntimeError, ValueError):
        pass
    else:
        raise AssertionError("a list with tensors of different sizes was accepted")
    dist.barrier()


def ranks_that_differ_are_an_error(rank, size):
    """Last: afterwards the communicator can only be destroyed."""
    fails("", dist.all_reduce, torch.ones(4, dtype=torch.float32 if rank else torch.int32))


# ---- all-to-all, scatter and gather, where the ranks are connected

COPIED = TYPES + (torch.bool, torch.int16, torch.complex64)
SHARES = (0, 1, 5, 1000, 1 << 18)  # elements; of float32 the last makes 1 MB for each rank


def share(sender, receiver, count, dtype):
    return ((torch.arange(count) * 5 + 7 * sender + receiver) % 2 if dtype == torch.bool else
            (torch.arange(count) * 5 + 7 * sender + receiver) % 113).to(dtype)  # fmt: skip


def exchange_shapes():
    return [(333, dtype) for dtype in COPIED] + [(count, torch.float32) for count in SHARES]


def gather_and_scatter_have_any_root_and_type(rank, size):
    for turn, (count, dtype) in enumerate(exchange_shapes()):
        root = turn % size
        for adjoining in (True, False):
            whole = torch.zeros(size * count, dtype=dtype)
            parts = list(whole.split(count)) if adjoining and count else [torch.zeros(count, dtype=dtype) for _ in range(size)]
            with offloads(1):
                dist.gather(share(rank, root, count, dtype), parts if rank == root else None, root)
            for other in range(size):
                assert rank != root or parts[other].equal(share(other, root, count, dtype)), (count, dtype, other)
            whole = torch.cat([share(root, other, count, dtype) for other in range(size)])
            parts = list(whole.split(count)) if adjoining and count else [share(root, other, count, dtype) for other in range(size)]
            own = torch.zeros(count, dtype=dtype)
            with offloads(1):
                dist.scatter(own, parts if rank == root else None, root)
            assert own.equal(share(root, rank, count, dtype)), (count, dtype)


def all_to_all_has_any_type_and_size(rank, size):
    for count, dtype in exchange_shapes():
        sent = [share(rank, other, count, dtype) for other in range(size)]
        expected = [share(other, rank, count, dtype) for other in range(size)]
        whole = torch.zeros(size * count, dtype=dtype)
        parts = [torch.zeros(count, dtype=dtype) for _ in range(size)]
        with offloads(2):
            dist.all_to_all_single(whole, torch.cat(sent))
            dist.all_to_all(parts, sent)
        assert whole.equal(torch.cat(expected)), (count, dtype)
        assert all(one.equal(other) for one, other in zip(parts, expected)), (count, dtype)


def all_to_all_has_uneven_splits(rank, size):
    for unit in (1, 1000, 40000):  # rows of three elements
        send = [(rank + 2 * other) % 3 * unit for other in range(size)]
        receive = [(other + 2 * rank) % 3 * unit for other in range(size)]
        for dtype in (torch.float32, torch.int64, torch.complex64):
            sent = [share(rank, other, 3 * send[other], dtype) for other in range(size)]
            expected = [share(other, rank, 3 * receive[other], dtype) for other in range(size)]
            whole = torch.zeros(sum(receive), 3, dtype=dtype)
            parts = [torch.zeros(rows, 3, dtype=dtype) for rows in receive]
            with offloads(2):
                dist.all_to_all_single(whole, torch.cat(sent).reshape(-1, 3), receive, send)
                dist.all_to_all(parts, [one.reshape(-1, 3) for one in sent])
            assert whole.flatten().equal(torch.cat(expected)), (unit, dtype)
            assert torch.cat(parts).flatten().equal(torch.cat(expected)), (unit, dtype)


def exchanges_are_in_flight_with_reductions(rank, size):
    data = [torch.full((size * 100,), float(rank)) for _ in range(20)]
    out = [torch.zeros(size * 100) for _ in range(20)]
    sums = [torch.ones(500) for _ in range(20)]
    with offloads(40):
        work = []
        for i in range(20):
            work += [dist.all_to_all_single(out[i], data[i], async_op=True), dist.all_reduce(sums[i], async_op=True)]
        for one in work:
            one.wait()
    assert all(one.equal(torch.arange(size).float().repeat_interleave(100)) for one in out)
    assert all((one == size).all() for one in sums)


def groups_exchange_over_gloo(rank, size):
    before = banyan_torch.describe()
    group = dist.new_group(list(range(size - 1)))
    if rank < size - 1:
        out = torch.zeros(size - 1)
        dist.all_to_all_single(out, torch.full((size - 1,), float(rank)), group=group)
        assert out.equal(torch.arange(size - 1).float())
    assert banyan_torch.describe()[1] == before[1]


def wrong_exchanges_are_errors(rank, size):
    two = [torch.zeros(2) for _ in range(size)]
    fails("contiguous", dist.all_to_all_single, torch.zeros(size, 4).t(), torch.zeros(4, size).t())
    fails("does not divide equally", dist.all_to_all_single, torch.zeros(size + 1), torch.zeros(size + 1))
    fails("Split sizes doesn't match", dist.all_to_all_single, torch.zeros(size), torch.zeros(size), [2] * size, [1] * size)
    fails("elements and requires", dist.all_to_all_single, torch.zeros(size), torch.zeros(2 * size))
    fails("must be equal", dist.all_to_all, two, [torch.zeros(3) for _ in range(size)])
    fails("one for each", dist.all_to_all, two[1:], two[1:])
    dist.barrier()


def splits_that_differ_are_an_error(rank, size):
    """Last, as ranks_that_differ_are_an_error: rank 0 expects more of rank 1 than it sends."""
    receive = [1] * size
    receive[1] += rank == 0
    try:
        dist.all_to_all_single(torch.zeros(sum(receive)), torch.zeros(size), receive, [1] * size)
    except RuntimeError as error:
        assert "all-to-all" in str(error), error
    else:
        assert rank != 0, "no error"  # other ranks may have all that they expect before rank 0 finds it


def groups_run_over_banyan(rank, size):
    """The groups that some ranks make run every kind of operation; each rank is in several."""
    ranks = [list(range(first, size)) for first in range(size - 1)] + [list(range(first, size, 2)) for first in (0, 1)]
    for members, group in [(one, dist.new_group(one)) for one in ranks]:
        if rank not in members:
            continue
        count, place = len(members), members.index(rank)
        assert banyan_torch.describe(group)[0].startswith("over banyan"), banyan_torch.describe(group)
        with offloads(9, group):
            data = torch.full((5000,), rank + 1.0)
            dist.all_reduce(data, group=group)
            assert (data == sum(members) + count).all()
            data = torch.full((3,), rank)
            dist.broadcast(data, members[-1], group=group)
            assert (data == members[-1]).all()
            parts = [torch.zeros(7) for _ in members]
            dist.all_gather(parts, torch.full((7,), float(rank)), group=group)
            assert all((part == other).all() for part, other in zip(parts, members))
            own = torch.zeros(7)
            dist.reduce_scatter(own, [torch.full((7,), float(i)) for i in range(count)], group=group)
            assert (own == place * count).all()
            data = torch.full((9,), 1.0)
            dist.reduce(data, members[0], group=group)
            assert place > 0 or (data == count).all()
            out = torch.zeros(count)
            dist.all_to_all_single(out, torch.full((count,), float(rank)), group=group)
            assert out.equal(torch.tensor(members).float())
            parts = [torch.zeros(2) for _ in members] if place == 0 else None
            dist.gather(torch.full((2,), float(rank)), parts, members[0], group=group)
            assert place > 0 or all((part == other).all() for part, other in zip(parts, members))
            dist.scatter(own[:1], [torch.tensor([float(i)]) for i in members] if place == 1 else None, members[1], group=group)
            assert own[0] == rank
            dist.barrier(group=group)


def operations_of_many_groups_are_in_flight(rank, size):
    groups = [None] + [dist.new_group(list(range(size))) for _ in range(3)]
    data = [[torch.full((10000,), float(rank + i)) for i in range(20)] for _ in groups]
    order = list(range(len(groups)))
    work = []
    for i in range(20):  # each rank starts them in another order of groups
        for k in order[rank:] + order[:rank]:
            work.append(dist.all_reduce(data[k][i], group=groups[k], async_op=True))
    for one in work:
        one.wait()
    for of_group in data:
        assert all((one == size * (size - 1) // 2 + size * i).all() for i, one in enumerate(of_group))
    for group in groups[1:]:
        assert banyan_torch.describe(group)[1:] == (20, 0), banyan_torch.describe(group)


def groups_are_made_and_destroyed(rank, size):
    for _ in range(20):
        group = dist.new_group(list(range(1, size)))
        if rank >= 1:
            data = torch.ones(100)
            with offloads(1, group):
                dist.all_reduce(data, group=group)
            assert (data == size - 1).all()
            dist.destroy_process_group(group)
        dist.barrier()


def a_group_on_one_host_shares_its_memory(rank, size):
    groups = [dist.new_group([one]) for one in range(size)]
    text = banyan_torch.describe(groups[rank])[0]
    assert "over banyan, transport host, but not gather, scatter and all-to-all: the memory that" in text, text
    data = torch.ones(3)
    with offloads(1, groups[rank]):
        dist.all_reduce(data, group=groups[rank])
    assert (data == 1).all()


def ddp_in_a_group(rank, size):
    group = dist.new_group(list(range(size - 1)))
    if rank == size - 1:
        return
    torch.manual_seed(2)
    model = torch.nn.Linear(64, 8).double()
    inputs = torch.randn(4 * (size - 1), 64).double()
    parallel = DistributedDataParallel(model, process_group=group)
    parallel(inputs[4 * rank : 4 * rank + 4]).square().mean().backward()
    assert banyan_torch.describe(group)[1] > 0
    alone = torch.nn.Linear(64, 8).double()
    alone.load_state_dict(model.state_dict())
    alone(inputs).square().mean().backward()
    assert torch.allclose(alone.weight.grad, model.weight.grad)


def beside():
    """Groups of the backend beside a default group of another one: of all ranks, and then of some."""
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    lone = dist.new_group([0, 1], backend="banyan")
    if rank < 2:
        assert "the group of all ranks is not over banyan" in banyan_torch.describe(lone)[0], banyan_torch.describe(lone)
    groups = [dist.new_group(backend="banyan"), dist.new_group(list(range(1, size)), backend="banyan")]
    for group in groups[: 1 + (rank > 0)]:
        data = torch.ones(1000)
        with offloads(1, group):
            dist.all_reduce(data, group=group)
        assert (data == dist.get_world_size(group)).all()
    dist.destroy_process_group()
    print("groups beside another backend are over banyan")


def main():
    if "--beside" in sys.argv:
        beside()
        return
    if "--again" in sys.argv:  # a rank that is missing: the others must end with an error that names it
        dist.init_process_group("banyan", timeout=datetime.timedelta(seconds=60))
        if dist.get_rank() != 1:
            fails("rank 1", dist.all_reduce, torch.ones(4))
            print("the missing rank is named")
        sys.stdout.flush()
        os._exit(0)
    dist.init_process_group("banyan")
    rank, size = dist.get_rank(), dist.get_world_size()
    passed = failed = 0
    collectives = (
        allreduce_of_every_type_and_operator,
        sizes_from_zero_to_64_megabytes,
        an_average_is_divided,
        broadcast_and_reduce_have_any_root,
        allgather_of_lists_and_tensors,
        reduce_scatter_of_lists_and_tensors,
        coalesced_tensors_are_reduced_together,
        a_hundred_operations_are_in_flight,
        a_future_carries_the_result,
        barriers_end,
        groups_and_messages_run_over_gloo,
        gradients_of_ddp_are_those_of_one_process,
        wrong_use_is_an_error,
        ranks_that_differ_are_an_error,
    )
    exchanges = (
        gather_and_scatter_have_any_root_and_type,
        all_to_all_has_any_type_and_size,
        all_to_all_has_uneven_splits,
        exchanges_are_in_flight_with_reductions,
        groups_exchange_over_gloo,
        wrong_exchanges_are_errors,
        splits_that_differ_are_an_error,
    )
    groups = (
        groups_run_over_banyan,
        operations_of_many_groups_are_in_flight,
        groups_are_made_and_destroyed,
        a_group_on_one_host_shares_its_memory,
        ddp_in_a_group,
    )
    for test in {"--exchanges": exchanges, "--groups": groups}.get(sys.argv[-1], collectives):
        try:
            test(rank, size)
            passed += 1
        except Exception:
            failed += 1
            print(f"FAIL {test.__name__}")
            traceback.print_exc()
    print(f"{passed} passed, {failed} failed", banyan_torch.describe()[0])
    dist.destroy_process_group()
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
