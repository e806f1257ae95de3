// The average of an array over all ranks in C++: blocking, in flight, and an error. Checks its
// results. Run one process for each rank, with BANYAN_TABLE set to the rank's table image.
#include <banyan/banyan.hpp>
#include <cstdio>

int main()
{
    try {
        banyan::comm comm;
        std::vector<float> gradient(1 << 16, (float)comm.rank());

        comm.allreduce(gradient.data(), gradient.data(), gradient.size());
        for (float &value : gradient)
            value /= (float)comm.size();
        if (gradient[77] != (float)(comm.size() - 1) / 2)
            return 1;

        std::vector<int64_t> most(10, comm.rank());
        banyan::request running = comm.iallreduce(most.data(), most.data(), most.size(), BANYAN_MAX);
        while (!running.wait_for(std::chrono::milliseconds(1)))
            ; // work that does not touch `most`
        if (most[9] != comm.size() - 1)
            return 1;

        try {
            comm.allreduce(gradient.data(), gradient.data(), 4, BANYAN_BXOR);
            return 1;
        } catch (const banyan::error &error) {
            if (error.status() != BANYAN_EUNSUPPORTED)
                return 1;
        }
        std::printf("rank %u of %u over %s: average %g\n", comm.rank(), comm.size(), comm.transport().c_str(),
                    (double)gradient[0]);
        return 0;
    } catch (const banyan::error &error) {
        std::fprintf(stderr, "average: %s\n", error.what());
        return 1;
    }
}
