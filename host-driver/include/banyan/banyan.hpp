/*
 * libbanyan for C++17: objects that free what they own, exceptions that carry the library's text,
 * and element types that follow from pointers. Only this header; link with -lbanyan.
 *
 *   banyan::comm comm;                       // settings BANYAN_*, the only job of the table
 *   std::vector<float> x(1 << 20, 1.0f);
 *   comm.allreduce(x.data(), x.data(), x.size());
 *   banyan::request r = comm.iallreduce(x.data(), x.data(), x.size(), BANYAN_MAX);
 *   r.wait();
 *
 * Semantics, ownership of buffers and threads are those of banyan.h. Objects can be moved, not
 * copied. A request must be destroyed before its communicator, and holds no buffer.
 */
#ifndef BANYAN_BANYAN_HPP
#define BANYAN_BANYAN_HPP

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <banyan/banyan.h>

namespace banyan
{

/* A function of the library failed. what() names the object, the limit and the remedy. */
class error : public std::runtime_error
{
  public:
    error(banyan_status_t status, const char *text) : std::runtime_error(text), status_(status)
    {
    }
    banyan_status_t status() const noexcept
    {
        return status_;
    }

  private:
    banyan_status_t status_;
};

/* Throws banyan::error unless the status is BANYAN_OK. */
inline void check(banyan_status_t status)
{
    if (status != BANYAN_OK)
        throw error(status, banyan_last_error());
}

/* The element type of T. 16-bit floats have no type in C++17: pass BANYAN_F16 or BANYAN_BF16. */
template <typename T> constexpr banyan_dtype_t dtype_of()
{
    static_assert(
        (std::is_integral<T>::value && sizeof(T) != 2 && !std::is_same<T, bool>::value) ||
            std::is_same<T, float>::value || std::is_same<T, double>::value,
        "banyan: integers of 8, 32 and 64 bits, float and double are supported; convert the data, or pass "
        "a banyan_dtype_t with pointers to void");
    if (std::is_same<T, float>::value)
        return BANYAN_F32;
    if (std::is_same<T, double>::value)
        return BANYAN_F64;
    return sizeof(T) == 1   ? (std::is_signed<T>::value ? BANYAN_I8 : BANYAN_U8)
           : sizeof(T) == 4 ? (std::is_signed<T>::value ? BANYAN_I32 : BANYAN_U32)
                            : (std::is_signed<T>::value ? BANYAN_I64 : BANYAN_U64);
}

/* One operation: posted once or many times. */
class request
{
  public:
    request() noexcept = default;
    explicit request(banyan_request *handle) noexcept : handle_(handle)
    {
    }
    request(request &&other) noexcept : handle_(std::exchange(other.handle_, nullptr))
    {
    }
    request &operator=(request &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    request(const request &) = delete;
    request &operator=(const request &) = delete;
    /* Waits for the operation if it runs, since the library still uses its buffers. */
    ~request()
    {
        if (handle_ != nullptr && banyan_free(handle_) == BANYAN_EBUSY) {
            banyan_wait(handle_);
            banyan_free(handle_);
        }
    }

    request &post()
    {
        check(banyan_post(handle_));
        return *this;
    }
    bool test()
    {
        int done = 0;

        check(banyan_test(handle_, &done));
        return done != 0;
    }
    void wait()
    {
        check(banyan_wait(handle_));
    }
    /* Returns whether the operation has ended within the time. */
    bool wait_for(std::chrono::microseconds time)
    {
        int done = 0;

        check(banyan_wait_for(handle_, time.count() > 0 ? (uint64_t)time.count() : 0, &done));
        return done != 0;
    }
    void mode(banyan_mode_t mode)
    {
        check(banyan_request_mode(handle_, mode));
    }
    banyan_request *get() const noexcept
    {
        return handle_;
    }

  private:
    banyan_request *handle_ = nullptr;
};

/* One rank of a job, with the context that it needs. */
class comm
{
  public:
    /* Joins job `job` of the table; `config` may be NULL: all from the settings. */
    explicit comm(const banyan_config *config = nullptr, uint32_t job = 0)
    {
        check(banyan_init(config, &context_));
        banyan_status_t status = banyan_comm_create(context_, job, &handle_);

        if (status != BANYAN_OK) {
            error failure(status, banyan_last_error());

            banyan_finalize(context_);
            throw failure;
        }
    }
    comm(comm &&other) noexcept
        : context_(std::exchange(other.context_, nullptr)), handle_(std::exchange(other.handle_, nullptr))
    {
    }
    comm &operator=(comm &&other) noexcept
    {
        std::swap(context_, other.context_);
        std::swap(handle_, other.handle_);
        return *this;
    }
    comm(const comm &) = delete;
    comm &operator=(const comm &) = delete;
    ~comm()
    {
        if (handle_ != nullptr)
            banyan_comm_destroy(handle_);
        if (context_ != nullptr)
            banyan_finalize(context_);
    }

    /* The communicator of the ranks with the same color, in the order of `key` (banyan_comm_split);
     * with the color BANYAN_UNDEFINED an empty one, whose get() is nullptr. Must end before this one. */
    comm split(int color, int key = 0) const
    {
        comm made{nullptr_handle{}};

        check(banyan_comm_split(handle_, color, key, &made.handle_));
        return made;
    }
    /* The same ranks, with an order of calls of their own. Must end before this one. */
    comm dup() const
    {
        comm made{nullptr_handle{}};

        check(banyan_comm_dup(handle_, &made.handle_));
        return made;
    }

    uint32_t rank() const noexcept
    {
        return banyan_comm_rank(handle_);
    }
    uint32_t size() const noexcept
    {
        return banyan_comm_size(handle_);
    }
    std::string transport() const
    {
        return banyan_comm_transport(handle_);
    }
    void abort() const
    {
        check(banyan_abort(handle_));
    }
    banyan_comm *get() const noexcept
    {
        return handle_;
    }

    /* Blocking operations; counts are in elements, as in banyan.h. */
    template <typename T>
    void allreduce(const T *send, T *recv, uint64_t count, banyan_op_t op = BANYAN_SUM) const
    {
        check(banyan_allreduce(handle_, send, recv, count, dtype_of<T>(), op));
    }
    template <typename T>
    void reduce_scatter(const T *send, T *recv, uint64_t count, banyan_op_t op = BANYAN_SUM) const
    {
        check(banyan_reduce_scatter(handle_, send, recv, count, dtype_of<T>(), op));
    }
    template <typename T>
    void reduce_scatterv(const T *send, T *recv, const std::vector<uint64_t> &counts,
                         banyan_op_t op = BANYAN_SUM) const
    {
        check(banyan_reduce_scatterv(handle_, send, recv, checked(counts), dtype_of<T>(), op));
    }
    template <typename T> void allgather(const T *send, T *recv, uint64_t count) const
    {
        check(banyan_allgather(handle_, send, recv, count, dtype_of<T>()));
    }
    template <typename T> void allgatherv(const T *send, T *recv, const std::vector<uint64_t> &counts) const
    {
        check(banyan_allgatherv(handle_, send, recv, checked(counts), dtype_of<T>()));
    }
    template <typename T> void broadcast(T *buffer, uint64_t count, uint32_t root = 0) const
    {
        check(banyan_broadcast(handle_, buffer, count, dtype_of<T>(), root));
    }
    template <typename T>
    void reduce(const T *send, T *recv, uint64_t count, uint32_t root = 0, banyan_op_t op = BANYAN_SUM) const
    {
        check(banyan_reduce(handle_, send, recv, count, dtype_of<T>(), op, root));
    }
    void barrier() const
    {
        check(banyan_barrier(handle_));
    }

    /* Each message has one receiver (exchange.h). Blocks of unequal size follow each other, or start at
     * the offsets, where some are passed. Ranks other than the root may pass no counts. */
    template <typename T> void alltoall(const T *send, T *recv, uint64_t count) const
    {
        check(banyan_alltoall(handle_, send, recv, count, dtype_of<T>()));
    }
    template <typename T>
    void alltoallv(const T *send, const std::vector<uint64_t> &send_counts, T *recv,
                   const std::vector<uint64_t> &recv_counts, const std::vector<uint64_t> &send_offsets = {},
                   const std::vector<uint64_t> &recv_offsets = {}) const
    {
        check(banyan_alltoallv(handle_, send, checked(send_counts), starts(send_offsets), recv,
                               checked(recv_counts), starts(recv_offsets), dtype_of<T>()));
    }
    template <typename T> void scatter(const T *send, T *recv, uint64_t count, uint32_t root = 0) const
    {
        check(banyan_scatter(handle_, send, recv, count, dtype_of<T>(), root));
    }
    template <typename T>
    void scatterv(const T *send, const std::vector<uint64_t> &counts, T *recv, uint64_t count,
                  uint32_t root = 0, const std::vector<uint64_t> &offsets = {}) const
    {
        check(banyan_scatterv(handle_, send, rank() == root ? checked(counts) : nullptr, starts(offsets),
                              recv, count, dtype_of<T>(), root));
    }
    template <typename T> void gather(const T *send, T *recv, uint64_t count, uint32_t root = 0) const
    {
        check(banyan_gather(handle_, send, recv, count, dtype_of<T>(), root));
    }
    template <typename T>
    void gatherv(const T *send, uint64_t count, T *recv, const std::vector<uint64_t> &counts,
                 uint32_t root = 0, const std::vector<uint64_t> &offsets = {}) const
    {
        check(banyan_gatherv(handle_, send, count, recv, rank() == root ? checked(counts) : nullptr,
                             starts(offsets), dtype_of<T>(), root));
    }

    /* Requests of these operations, not yet posted. */
    template <typename T>
    request allreduce_init(const T *send, T *recv, uint64_t count, banyan_op_t op = BANYAN_SUM) const
    {
        return make([&](banyan_request **out) {
            return banyan_allreduce_init(handle_, send, recv, count, dtype_of<T>(), op, out);
        });
    }
    template <typename T>
    request reduce_scatter_init(const T *send, T *recv, uint64_t count, banyan_op_t op = BANYAN_SUM) const
    {
        return make([&](banyan_request **out) {
            return banyan_reduce_scatter_init(handle_, send, recv, count, dtype_of<T>(), op, out);
        });
    }
    template <typename T>
    request reduce_scatterv_init(const T *send, T *recv, const std::vector<uint64_t> &counts,
                                 banyan_op_t op = BANYAN_SUM) const
    {
        return make([&](banyan_request **out) {
            return banyan_reduce_scatterv_init(handle_, send, recv, checked(counts), dtype_of<T>(), op, out);
        });
    }
    template <typename T> request allgather_init(const T *send, T *recv, uint64_t count) const
    {
        return make([&](banyan_request **out) {
            return banyan_allgather_init(handle_, send, recv, count, dtype_of<T>(), out);
        });
    }
    template <typename T>
    request allgatherv_init(const T *send, T *recv, const std::vector<uint64_t> &counts) const
    {
        return make([&](banyan_request **out) {
            return banyan_allgatherv_init(handle_, send, recv, checked(counts), dtype_of<T>(), out);
        });
    }
    template <typename T> request broadcast_init(T *buffer, uint64_t count, uint32_t root = 0) const
    {
        return make([&](banyan_request **out) {
            return banyan_broadcast_init(handle_, buffer, count, dtype_of<T>(), root, out);
        });
    }
    template <typename T>
    request reduce_init(const T *send, T *recv, uint64_t count, uint32_t root = 0,
                        banyan_op_t op = BANYAN_SUM) const
    {
        return make([&](banyan_request **out) {
            return banyan_reduce_init(handle_, send, recv, count, dtype_of<T>(), op, root, out);
        });
    }
    request barrier_init() const
    {
        return make([&](banyan_request **out) { return banyan_barrier_init(handle_, out); });
    }
    template <typename T> request alltoall_init(const T *send, T *recv, uint64_t count) const
    {
        return make([&](banyan_request **out) {
            return banyan_alltoall_init(handle_, send, recv, count, dtype_of<T>(), out);
        });
    }
    template <typename T>
    request alltoallv_init(const T *send, const std::vector<uint64_t> &send_counts, T *recv,
                           const std::vector<uint64_t> &recv_counts,
                           const std::vector<uint64_t> &send_offsets = {},
                           const std::vector<uint64_t> &recv_offsets = {}) const
    {
        return make([&](banyan_request **out) {
            return banyan_alltoallv_init(handle_, send, checked(send_counts), starts(send_offsets), recv,
                                         checked(recv_counts), starts(recv_offsets), dtype_of<T>(), out);
        });
    }
    template <typename T>
    request scatter_init(const T *send, T *recv, uint64_t count, uint32_t root = 0) const
    {
        return make([&](banyan_request **out) {
            return banyan_scatter_init(handle_, send, recv, count, dtype_of<T>(), root, out);
        });
    }
    template <typename T>
    request scatterv_init(const T *send, const std::vector<uint64_t> &counts, T *recv, uint64_t count,
                          uint32_t root = 0, const std::vector<uint64_t> &offsets = {}) const
    {
        return make([&](banyan_request **out) {
            return banyan_scatterv_init(handle_, send, rank() == root ? checked(counts) : nullptr,
                                        starts(offsets), recv, count, dtype_of<T>(), root, out);
        });
    }
    template <typename T> request gather_init(const T *send, T *recv, uint64_t count, uint32_t root = 0) const
    {
        return make([&](banyan_request **out) {
            return banyan_gather_init(handle_, send, recv, count, dtype_of<T>(), root, out);
        });
    }
    template <typename T>
    request gatherv_init(const T *send, uint64_t count, T *recv, const std::vector<uint64_t> &counts,
                         uint32_t root = 0, const std::vector<uint64_t> &offsets = {}) const
    {
        return make([&](banyan_request **out) {
            return banyan_gatherv_init(handle_, send, count, recv, rank() == root ? checked(counts) : nullptr,
                                       starts(offsets), dtype_of<T>(), root, out);
        });
    }

    /* The same, started. */
    template <typename... A> request iallreduce(A &&...a) const
    {
        return started(allreduce_init(a...));
    }
    template <typename... A> request ireduce_scatter(A &&...a) const
    {
        return started(reduce_scatter_init(a...));
    }
    template <typename... A> request ireduce_scatterv(A &&...a) const
    {
        return started(reduce_scatterv_init(a...));
    }
    template <typename... A> request iallgather(A &&...a) const
    {
        return started(allgather_init(a...));
    }
    template <typename... A> request iallgatherv(A &&...a) const
    {
        return started(allgatherv_init(a...));
    }
    template <typename... A> request ibroadcast(A &&...a) const
    {
        return started(broadcast_init(a...));
    }
    template <typename... A> request ireduce(A &&...a) const
    {
        return started(reduce_init(a...));
    }
    request ibarrier() const
    {
        return started(barrier_init());
    }
    template <typename... A> request ialltoall(A &&...a) const
    {
        return started(alltoall_init(a...));
    }
    template <typename... A> request ialltoallv(A &&...a) const
    {
        return started(alltoallv_init(a...));
    }
    template <typename... A> request iscatter(A &&...a) const
    {
        return started(scatter_init(a...));
    }
    template <typename... A> request iscatterv(A &&...a) const
    {
        return started(scatterv_init(a...));
    }
    template <typename... A> request igather(A &&...a) const
    {
        return started(gather_init(a...));
    }
    template <typename... A> request igatherv(A &&...a) const
    {
        return started(gatherv_init(a...));
    }

  private:
    struct nullptr_handle {
    };
    explicit comm(nullptr_handle) noexcept
    {
    }
    template <typename F> static request make(F &&init)
    {
        banyan_request *handle = nullptr;

        check(init(&handle));
        return request(handle);
    }
    static request started(request fresh)
    {
        fresh.post();
        return fresh;
    }
    const uint64_t *starts(const std::vector<uint64_t> &offsets) const
    {
        return offsets.empty() ? nullptr : checked(offsets, "offsets");
    }
    const uint64_t *checked(const std::vector<uint64_t> &counts, const std::string &name = "counts") const
    {
        if (counts.size() != size())
            throw error(BANYAN_EINVAL,
                        (name + " has " + std::to_string(counts.size()) +
                         " elements; it requires one for each of " + std::to_string(size()) + " ranks")
                            .c_str());
        return counts.data();
    }

    banyan_context *context_ = nullptr;
    banyan_comm *handle_ = nullptr;
};

} // namespace banyan

#endif
