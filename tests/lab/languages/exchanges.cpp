// All-to-all, scatter and gather through the C++ header. Prints "right"; exit 1 if a value is wrong.
#include <banyan/banyan.hpp>

#include <cstdio>

int main()
{
    banyan::comm comm;
    const unsigned rank = comm.rank(), size = comm.size();
    const std::vector<uint64_t> counts(size, 2);
    std::vector<int32_t> send(size * 2), recv(size * 2);
    bool right = true;

    for (unsigned i = 0; i < 2 * size; i++)
        send[i] = static_cast<int32_t>(100 * rank + i);
    comm.alltoall(send.data(), recv.data(), 2);
    for (unsigned r = 0; r < size; r++)
        right = right && recv[2 * r] == static_cast<int32_t>(100 * r + 2 * rank);
    recv.assign(size * 2, 0);
    comm.ialltoallv(send.data(), counts, recv.data(), counts).wait();
    for (unsigned r = 0; r < size; r++)
        right = right && recv[2 * r + 1] == static_cast<int32_t>(100 * r + 2 * rank + 1);
    comm.scatter(send.data(), recv.data(), 2, 1);
    right = right && recv[0] == static_cast<int32_t>(100 + 2 * rank);
    comm.scatterv(send.data(), rank == 1 ? counts : std::vector<uint64_t>(), recv.data(), 2, 1);
    right = right && recv[1] == static_cast<int32_t>(100 + 2 * rank + 1);
    comm.gather(send.data(), recv.data(), 2);
    comm.igatherv(send.data(), 2, recv.data(), counts).wait();
    for (unsigned r = 0; r < size && rank == 0; r++)
        right = right && recv[2 * r] == static_cast<int32_t>(100 * r);
    // Blocks in reverse order, with a gap of one element between them.
    std::vector<uint64_t> back(size);
    for (unsigned r = 0; r < size; r++)
        back[r] = 3 * (size - 1 - r);
    std::vector<int32_t> spread(size * 3, -1);
    comm.alltoallv(send.data(), counts, spread.data(), counts, {}, back);
    for (unsigned r = 0; r < size; r++)
        right = right && spread[back[r]] == static_cast<int32_t>(100 * r + 2 * rank) &&
                (r == 0 || spread[back[r] + 2] == -1);
    comm.iscatterv(spread.data(), counts, recv.data(), 2, 0, back).wait(); // which rank 0 has just received
    right = right && recv[0] == static_cast<int32_t>(100 * rank) &&
            recv[1] == static_cast<int32_t>(100 * rank + 1);
    spread.assign(size * 3, -1);
    comm.gatherv(send.data(), 2, spread.data(), counts, 1, back);
    for (unsigned r = 0; r < size && rank == 1; r++)
        right = right && spread[back[r] + 1] == static_cast<int32_t>(100 * r + 1);
    try {
        comm.alltoallv(send.data(), counts, recv.data(), counts, {1});
        right = false;
    } catch (const banyan::error &error) {
        right = right && std::string(error.what()).find("offsets has 1 elements") != std::string::npos;
    }
    std::puts(right ? "right" : "WRONG");
    return right ? 0 : 1;
}
