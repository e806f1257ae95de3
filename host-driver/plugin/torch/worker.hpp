/*
 * The thread that runs a process group's operations: one communicator of libbanyan, and a queue of
 * operations that it posts in order and completes in order, while others are in flight. Everything
 * here is called by the threads of PyTorch, except what worker.cpp says.
 */
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <banyan/banyan.h>

namespace banyan_torch
{

/* One operation. `make` creates its requests, in order; `end` is called once, on the worker's
 * thread, after all have ended: with the first error, or NULL. */
struct operation {
    std::function<void(banyan_comm *, std::vector<banyan_request *> &)> make;
    std::function<void(std::exception_ptr)> end;
    std::vector<banyan_request *> requests;
    std::size_t ended = 0;
    std::exception_ptr error;
};

/* Exchanges bytes between the ranks: mine[bytes] of each into all[rank_count * bytes]. Throws if a
 * rank does not answer. */
using exchange = std::function<void(const void *mine, void *all, std::size_t bytes)>;

/* A communicator that cannot be made: on all its ranks. */
struct refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class worker
{
  public:
    /* Joins the job of the settings BANYAN_*. Throws std::runtime_error with the library's text. */
    worker(uint32_t rank, uint32_t rank_count, uint64_t timeout_ms, exchange share);
    /* Makes a communicator of some ranks of `parent`, which lives at least as long. Throws `refused`
     * with the library's text, or what `share` throws. */
    worker(std::shared_ptr<worker> parent, uint32_t rank, uint32_t rank_count, exchange share);
    /* Ends all operations that still run with an error, and leaves the job. */
    ~worker();
    worker(const worker &) = delete;
    worker &operator=(const worker &) = delete;

    /* Queues an operation. */
    void run(std::unique_ptr<operation> next);
    /* Operations that have not ended. */
    uint64_t open() const
    {
        return open_;
    }
    uint32_t rank() const
    {
        return banyan_comm_rank(comm_);
    }
    uint32_t size() const
    {
        return banyan_comm_size(comm_);
    }
    /* Whether it runs all-to-all, scatter and gather: the ranks are connected. */
    bool exchanges() const;
    std::string transport() const
    {
        return banyan_comm_transport(comm_);
    }

  private:
    void loop();
    void start(operation &next);
    bool advance();

    static int share_addresses(void *self, const void *mine, void *all, std::size_t bytes);

    const std::shared_ptr<worker> parent_; /* NULL: of all ranks of the job */
    exchange share_;
    std::exception_ptr share_error_; /* what share_ threw, if it did */
    std::atomic<uint64_t> open_{0};
    banyan_context *context_ = nullptr; /* without a parent */
    banyan_comm *comm_ = nullptr;
    std::mutex mutex_; /* of queue_ and stopping_ */
    std::condition_variable wake_;
    std::deque<std::unique_ptr<operation>> queue_;
    bool stopping_ = false;
    std::deque<std::unique_ptr<operation>> running_; /* the worker's thread only */
    std::thread thread_;
};

/* Returns the exception for a status, with the text of the calling thread's last error. */
std::exception_ptr failure(banyan_status_t status);

} // namespace banyan_torch
