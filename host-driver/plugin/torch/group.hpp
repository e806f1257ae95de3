/*
 * The process group: PyTorch's collectives as operations of libbanyan. One source for PyTorch 1.13,
 * whose backends are process groups, and 2.x, whose backends are backends. What libbanyan does not
 * run (point-to-point messages, reductions of element types without a counterpart, groups of some
 * ranks on several hosts without a controller; all-to-all, gather and scatter of ranks without
 * connections) is passed to another backend, `other`, and counted.
 */
#pragma once

#include <torch/version.h>
#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "worker.hpp"

namespace banyan_torch
{

#if TORCH_VERSION_MAJOR >= 2
using base = c10d::Backend;
#else
using base = c10d::ProcessGroup;
#endif
using work_ptr = c10::intrusive_ptr<c10d::Work>;
using tensors = std::vector<at::Tensor>;

/* The handle of an operation that runs. */
class group_work : public c10d::Work
{
  public:
    group_work(int rank, c10d::OpType type, tensors results);
    bool isCompleted() override
    {
        return future_->completed();
    }
    bool isSuccess() const override
    {
        return future_->completed() && !future_->hasError();
    }
    std::exception_ptr exception() const override;
    tensors result() override
    {
        return results_;
    }
    bool wait(std::chrono::milliseconds timeout) override;
    void synchronize() override
    {
    }
    void abort() override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override
    {
        return future_;
    }
    /* Called once, on the worker's thread. */
    void ended(std::exception_ptr error);

  private:
    tensors results_;
    c10::intrusive_ptr<c10::ivalue::Future> future_;
};

class group : public base
{
  public:
    /* The group of all ranks of the job. `share` exchanges bytes between the ranks; `other` may be
     * NULL: such operations then fail. */
    group(int rank, int size, std::chrono::milliseconds timeout, exchange share,
          c10::intrusive_ptr<base> other);
    /* A group of some ranks of `parent`, which may be NULL: all is then passed to `other`. */
    group(int rank, int size, exchange share, c10::intrusive_ptr<base> other,
          const c10::intrusive_ptr<group> &parent);
    ~group() override
    {
        close();
    }
    /* Ends the operations that still run with an error, and leaves the job. Threads that hold the
     * interpreter's lock release it meanwhile. */
    void close();
    /* Called when PyTorch drops the group; the destructor waits for those that watch it. */
    void release_resources() override;
    const std::string getBackendName() const override
    {
        return "banyan";
    }

    work_ptr broadcast(tensors &data, const c10d::BroadcastOptions &options) override;
    work_ptr allreduce(tensors &data, const c10d::AllreduceOptions &options) override;
    work_ptr allreduce_coalesced(tensors &data, const c10d::AllreduceCoalescedOptions &options) override;
    work_ptr reduce(tensors &data, const c10d::ReduceOptions &options) override;
    work_ptr allgather(std::vector<tensors> &out, tensors &in,
                       const c10d::AllgatherOptions &options) override;
    work_ptr _allgather_base(at::Tensor &out, at::Tensor &in, const c10d::AllgatherOptions &options) override;
    work_ptr reduce_scatter(tensors &out, std::vector<tensors> &in,
                            const c10d::ReduceScatterOptions &options) override;
    work_ptr _reduce_scatter_base(at::Tensor &out, at::Tensor &in,
                                  const c10d::ReduceScatterOptions &options) override;
    work_ptr barrier(const c10d::BarrierOptions &options) override;

    work_ptr allgather_coalesced(std::vector<tensors> &out, tensors &in,
                                 const c10d::AllgatherOptions &options) override;
    work_ptr gather(std::vector<tensors> &out, tensors &in, const c10d::GatherOptions &options) override;
    work_ptr scatter(tensors &out, std::vector<tensors> &in, const c10d::ScatterOptions &options) override;
    work_ptr alltoall(tensors &out, tensors &in, const c10d::AllToAllOptions &options) override;
    work_ptr alltoall_base(at::Tensor &out, at::Tensor &in, std::vector<int64_t> &out_sizes,
                           std::vector<int64_t> &in_sizes, const c10d::AllToAllOptions &options) override;
    work_ptr send(tensors &data, int rank, int tag) override;
    work_ptr recv(tensors &data, int rank, int tag) override;
    work_ptr recvAnysource(tensors &data, int tag) override;
    void monitoredBarrier(const c10d::BarrierOptions &options, bool all) override;
    void setSequenceNumberForGroup() override;
    uint64_t getSequenceNumberForGroup() override;

    /* Whether the network serves this group, and how: for messages and tests. */
    std::string describe() const;
    uint64_t offloaded() const
    {
        return offloaded_;
    }
    uint64_t passed() const
    {
        return passed_;
    }
    uint64_t open() const
    {
        return worker_ ? worker_->open() : 0;
    }

  private:
    void agree(const exchange &share);
    using maker = std::function<void(banyan_comm *, std::vector<banyan_request *> &)>;
    work_ptr start(c10d::OpType type, tensors results, tensors used, maker make,
                   std::function<void()> after = {});
    base &pass(const char *what, const std::string &apart = {});
    bool serves(const tensors &data, const char *what) const;
    bool reduces(const tensors &data, const c10d::ReduceOp &op, const char *what) const;

    std::shared_ptr<worker> worker_; /* NULL: not over banyan; shared with groups of its ranks */
    c10::intrusive_ptr<base> other_;
    std::string why_;      /* with worker_ NULL */
    std::string apart_;    /* why gather, scatter and all-to-all are passed on; empty: they are not */
    bool gpu_off_ = false; /* BANYAN_GPU=off */
    std::atomic<uint64_t> offloaded_{0}, passed_{0}, sequence_{0};
};

} // namespace banyan_torch
