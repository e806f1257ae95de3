/* See group.hpp. */
#include <Python.h>

#include "group.hpp"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/distributed/c10d/Utils.hpp>

#include <cstring>

namespace banyan_torch
{

/* Returns the element type, or 0 if libbanyan has none. */
static banyan_dtype_t dtype_of(const at::Tensor &tensor)
{
    switch (tensor.scalar_type()) {
    case at::kByte:
        return BANYAN_U8;
    case at::kChar:
        return BANYAN_I8;
    case at::kInt:
        return BANYAN_I32;
    case at::kLong:
        return BANYAN_I64;
    case at::kHalf:
        return BANYAN_F16;
    case at::kBFloat16:
        return BANYAN_BF16;
    case at::kFloat:
        return BANYAN_F32;
    case at::kDouble:
        return BANYAN_F64;
    default:
        return (banyan_dtype_t)0;
    }
}

/* Returns the operator, or 0; an average is a sum that is divided afterwards. */
static banyan_op_t op_of(const c10d::ReduceOp &op)
{
    switch ((c10d::ReduceOp::RedOpType)op) {
    case c10d::ReduceOp::SUM:
    case c10d::ReduceOp::AVG:
        return BANYAN_SUM;
    case c10d::ReduceOp::PRODUCT:
        return BANYAN_PROD;
    case c10d::ReduceOp::MIN:
        return BANYAN_MIN;
    case c10d::ReduceOp::MAX:
        return BANYAN_MAX;
    case c10d::ReduceOp::BAND:
        return BANYAN_BAND;
    case c10d::ReduceOp::BOR:
        return BANYAN_BOR;
    case c10d::ReduceOp::BXOR:
        return BANYAN_BXOR;
    default:
        return (banyan_op_t)0;
    }
}

static bool is_average(const c10d::ReduceOp &op)
{
    return (c10d::ReduceOp::RedOpType)op == c10d::ReduceOp::AVG;
}

static void check(banyan_status_t status)
{
    if (status != BANYAN_OK)
        std::rethrow_exception(failure(status));
}

/* ---- the handle of an operation */

group_work::group_work(int rank, c10d::OpType type, tensors results)
    : c10d::Work(rank, type), results_(std::move(results)),
      future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get())))
{
}

std::exception_ptr group_work::exception() const
{
    return future_->completed() && future_->hasError() ? future_->exception_ptr() : nullptr;
}

void group_work::ended(std::exception_ptr error)
{
    if (error)
        future_->setError(error);
    else
        future_->markCompleted(c10::IValue(results_));
    finish(error);
}

bool group_work::wait(std::chrono::milliseconds timeout)
{
    std::unique_lock<std::mutex> lock(mutex_);
    auto done = [this] { return completed_; };

    if (timeout == kNoTimeout)
        cv_.wait(lock, done);
    else if (!cv_.wait_for(lock, timeout, done))
        TORCH_CHECK(false, "banyan: the operation did not end within ", timeout.count(),
                    " ms; it still runs: wait for it again, or destroy the process group");
    if (exception_)
        std::rethrow_exception(exception_);
    return true;
}

void group_work::abort()
{
    TORCH_CHECK(false, "banyan: one operation cannot be aborted; destroy the process group");
}

/* ---- the group */

/* All ranks require one version, so each reads the versions of all before anything else can fail. */
static void check_versions(const exchange &share, int size)
{
    uint32_t mine[2] = {(uint32_t)banyan_version(), BANYAN_VERSION};
    std::vector<uint32_t> all((size_t)size * 2);
    auto text = [](uint32_t number) {
        return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
               std::to_string(number % 100);
    };

    share(mine, all.data(), sizeof(mine));
    for (int i = 0; i < size; i++) {
        uint32_t library = all[2 * (size_t)i], built = all[2 * (size_t)i + 1];

        TORCH_CHECK(library / 100 == built / 100, "banyan: at rank ", i,
                    " banyan_torch was built with libbanyan ", text(built), " and has loaded version ",
                    text(library), "; install both of one release there, or run make torch again");
        TORCH_CHECK(library == all[0], "banyan: rank ", i, " has libbanyan ", text(library),
                    ", and rank 0 has ", text(all[0]), "; install one version on all hosts");
    }
}

static bool setting_is(const char *wanted, const char *value)
{
    const char *name = nullptr, *found = nullptr;

    for (uint32_t i = 0; banyan_setting(i, &name, &found, nullptr, nullptr, nullptr) == BANYAN_OK; i++)
        if (std::strcmp(name, wanted) == 0)
            return found != nullptr && std::strcmp(found, value) == 0;
    return false;
}

group::group(int rank, int size, std::chrono::milliseconds timeout, exchange share,
             c10::intrusive_ptr<base> other)
    : base(rank, size), other_(std::move(other)), gpu_off_(setting_is("BANYAN_GPU", "off"))
{
    check_versions(share, size);
    worker_ = std::make_shared<worker>((uint32_t)rank, (uint32_t)size, (uint64_t)timeout.count(), share);
    agree(share);
}

group::group(int rank, int size, exchange share, c10::intrusive_ptr<base> other,
             const c10::intrusive_ptr<group> &parent)
    : base(rank, size), other_(std::move(other)), gpu_off_(setting_is("BANYAN_GPU", "off"))
{
    if (!parent || !parent->worker_) {
        why_ = "the group of all ranks is not over banyan";
        return;
    }
    try {
        worker_ = std::make_shared<worker>(parent->worker_, (uint32_t)rank, (uint32_t)size, share);
    } catch (const refused &error) {
        why_ = error.what();
    }
    agree(share);
}

/* All ranks must decide alike, so the answer is that of all. */
void group::agree(const exchange &share)
{
    struct {
        uint32_t rank, size, exchanges;
    } mine = {};
    std::vector<decltype(mine)> all((size_t)getSize());

    if (worker_)
        mine = {worker_->rank(), worker_->size(), worker_->exchanges()};
    share(&mine, all.data(), sizeof(mine));
    for (int i = 0; i < getSize() && why_.empty(); i++) {
        const auto &one = all[(size_t)i];

        if (one.size == 0)
            why_ = "rank " + std::to_string(i) + " of the group could not join";
        else if (one.size != (uint32_t)getSize())
            why_ = "the job of the table has " + std::to_string(one.size) + " ranks, the group " +
                   std::to_string(getSize()) + "; start one process for each rank of the table";
        else if (one.rank != (uint32_t)i)
            why_ = "rank " + std::to_string(i) + " of the group is rank " + std::to_string(one.rank) +
                   " of the table; start the ranks in the order of the table";
        else if (!one.exchanges && apart_.empty())
            apart_ = worker_ && worker_->transport() == "host"
                         ? "the memory that a group of one host shares carries only shares of equal size"
                         : "rank " + std::to_string(i) +
                               " has no connections to the others; set BANYAN_FALLBACK at all ranks";
    }
    if (!why_.empty())
        worker_.reset();
}

/* The worker's thread frees tensors, which takes the interpreter's lock where Python has used them. */
void group::close()
{
    if (!worker_)
        return;
    PyThreadState *state = Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread() : nullptr;

    worker_.reset();
    why_ = "the process group is closed";
    if (state != nullptr)
        PyEval_RestoreThread(state);
}

void group::release_resources()
{
    close();
    other_.reset();
}

std::string group::describe() const
{
    if (!worker_)
        return "not over banyan: " + why_ + (other_ ? "" : "; there is no other backend");
    return "over banyan, transport " + worker_->transport() +
           (apart_.empty() ? "" : ", but not gather, scatter and all-to-all: " + apart_);
}

/* Returns the backend for what libbanyan does not do. */
base &group::pass(const char *what, const std::string &apart)
{
    const std::string &why = why_.empty() ? apart : why_;

    TORCH_CHECK(other_, "banyan: ", what, " is not offloaded", why.empty() ? "" : " (", why,
                why.empty() ? "" : ")", ", and there is no other backend to run it; build PyTorch with Gloo");
    passed_++;
    return *other_;
}

/* Whether tensors can be used in place by libbanyan. Throws for those that no backend takes. */
bool group::serves(const tensors &data, const char *what) const
{
    TORCH_CHECK(!data.empty(), "banyan: ", what, " requires a tensor");
    for (const at::Tensor &one : data) {
        TORCH_CHECK(one.layout() == at::kStrided && one.is_contiguous(), "banyan: ", what,
                    " requires contiguous dense tensors; pass tensor.contiguous() and copy the result back");
        TORCH_CHECK(one.device().is_cpu() || one.device().is_cuda(), "banyan: ", what,
                    " does not support a tensor on the device ", one.device().str(),
                    "; supported are cpu and cuda: pass tensor.cpu() and copy the result back");
        TORCH_CHECK(
            !(gpu_off_ && one.device().is_cuda()), "banyan: ", what, " of a tensor on the device ",
            one.device().str(),
            " requires BANYAN_GPU=auto or on, and it is off: change it at all ranks, or pass tensor.cpu()");
        if (!worker_ || one.scalar_type() != data[0].scalar_type())
            return false;
    }
    return true;
}

/* The same, for an operation that computes. */
bool group::reduces(const tensors &data, const c10d::ReduceOp &op, const char *what) const
{
    if (!serves(data, what))
        return false;
    TORCH_CHECK(dtype_of(data[0]) != 0, "banyan: ", what, " does not support elements of type ",
                data[0].dtype().name(),
                "; supported are uint8, int8, int32, int64, float16, bfloat16, float32 and "
                "float64: convert the tensor, such as tensor.to(torch.int32)");
    TORCH_CHECK(!is_average(op) || data[0].is_floating_point(), "banyan: ", what,
                " does not support the average of integers; use ReduceOp.SUM and divide");
    return op_of(op) != 0 && banyan_supports(op_of(op), dtype_of(data[0])) != 0;
}

work_ptr group::start(c10d::OpType type, tensors results, tensors used, maker make,
                      std::function<void()> after)
{
    auto work = c10::make_intrusive<group_work>(getRank(), type, std::move(results));
    auto next = std::make_unique<operation>();

    /* Work that the caller's stream still has to do on the tensors comes first. */
    for (const at::Tensor &one : used)
        if (one.device().is_cuda()) {
            c10::impl::VirtualGuardImpl guard(one.device().type());

            guard.synchronizeStream(guard.getStream(one.device()));
        }
    next->make = std::move(make);
    next->end = [work, used = std::move(used), after = std::move(after)](std::exception_ptr error) {
        if (!error && after) {
            try {
                after();
            } catch (...) {
                error = std::current_exception();
            }
        }
        work->ended(error);
    };
    offloaded_++;
    worker_->run(std::move(next));
    return work;
}

/* Adds a request to those of an operation; F is an _init function with all arguments but the last. */
template <typename F> static void add(std::vector<banyan_request *> &requests, F &&init)
{
    banyan_request *request = nullptr;

    check(init(&request));
    requests.push_back(request);
}

static uint64_t count_of(const at::Tensor &tensor)
{
    return (uint64_t)tensor.numel();
}

/* Elements of any type, for operations that only copy: bytes where libbanyan has no such type. */
static banyan_dtype_t copied_as(const at::Tensor &tensor)
{
    return dtype_of(tensor) != 0 ? dtype_of(tensor) : BANYAN_U8;
}

static uint64_t copied_count(const at::Tensor &tensor)
{
    return dtype_of(tensor) != 0 ? count_of(tensor) : (uint64_t)tensor.nbytes();
}

static std::function<void()> divide(bool average, tensors data, int size)
{
    if (!average)
        return {};
    return [data, size] {
        for (at::Tensor one : data)
            one.div_(size);
    };
}

work_ptr group::broadcast(tensors &data, const c10d::BroadcastOptions &options)
{
    if (!serves(data, "broadcast") || data.size() != 1)
        return pass("broadcast").broadcast(data, options);
    at::Tensor one = data[0];
    uint32_t root = (uint32_t)options.rootRank;

    return start(c10d::OpType::BROADCAST, data, data, [one, root](banyan_comm *comm, auto &requests) {
        add(requests, [&](banyan_request **out) {
            return banyan_broadcast_init(comm, one.data_ptr(), copied_count(one), copied_as(one), root, out);
        });
    });
}

work_ptr group::allreduce(tensors &data, const c10d::AllreduceOptions &options)
{
    c10d::AllreduceCoalescedOptions same;

    if (data.size() != 1 || !reduces(data, options.reduceOp, "allreduce"))
        return pass("allreduce").allreduce(data, options);
    same.reduceOp = options.reduceOp;
    same.timeout = options.timeout;
    return allreduce_coalesced(data, same);
}

work_ptr group::allreduce_coalesced(tensors &data, const c10d::AllreduceCoalescedOptions &options)
{
    banyan_op_t op = op_of(options.reduceOp);
    /* More would not fit into the requests of a communicator. */
    constexpr size_t most = 16;

    if (!reduces(data, options.reduceOp, "allreduce"))
        return pass("allreduce").allreduce_coalesced(data, options);
    if (data.size() > most) { /* one buffer in place of many requests */
        at::Tensor whole = at::cat([&] {
            tensors flat;

            for (const at::Tensor &one : data)
                flat.push_back(one.reshape({-1}));
            return flat;
        }());
        bool average = is_average(options.reduceOp);
        int size = getSize();

        return start(
            c10d::OpType::ALLREDUCE_COALESCED, data, {whole},
            [whole, op](banyan_comm *comm, auto &requests) {
                add(requests, [&](banyan_request **out) {
                    return banyan_allreduce_init(comm, whole.data_ptr(), whole.data_ptr(), count_of(whole),
                                                 dtype_of(whole), op, out);
                });
            },
            [whole, copies = data, average, size] {
                int64_t at = 0;

                for (at::Tensor one : copies) {
                    one.copy_(whole.narrow(0, at, one.numel()).reshape(one.sizes()));
                    at += one.numel();
                    if (average)
                        one.div_(size);
                }
            });
    }
    return start(
        c10d::OpType::ALLREDUCE, data, data,
        [all = data, op](banyan_comm *comm, auto &requests) {
            for (const at::Tensor &one : all)
                add(requests, [&](banyan_request **out) {
                    return banyan_allreduce_init(comm, one.data_ptr(), one.data_ptr(), count_of(one),
                                                 dtype_of(one), op, out);
                });
        },
        divide(is_average(options.reduceOp), data, getSize()));
}

work_ptr group::reduce(tensors &data, const c10d::ReduceOptions &options)
{
    if (data.size() != 1 || !reduces(data, options.reduceOp, "reduce"))
        return pass("reduce").reduce(data, options);
    at::Tensor one = data[0];
    banyan_op_t op = op_of(options.reduceOp);
    uint32_t root = (uint32_t)options.rootRank;
    bool here = getRank() == options.rootRank;

    return start(
        c10d::OpType::REDUCE, data, data,
        [one, op, root, here](banyan_comm *comm, auto &requests) {
            add(requests, [&](banyan_request **out) {
                return banyan_reduce_init(comm, one.data_ptr(), here ? one.data_ptr() : nullptr,
                                          count_of(one), dtype_of(one), op, root, out);
            });
        },
        divide(is_average(options.reduceOp) && here, data, getSize()));
}

work_ptr group::_allgather_base(at::Tensor &out, at::Tensor &in, const c10d::AllgatherOptions &options)
{
    if (!serves({in, out}, "allgather"))
        return pass("allgather")._allgather_base(out, in, options);
    TORCH_CHECK(out.numel() == in.numel() * getSize(), "banyan: allgather: the output has ", out.numel(),
                " elements and requires ", in.numel() * getSize(), ": those of ", getSize(), " ranks");
    return start(c10d::OpType::_ALLGATHER_BASE, {out}, {in, out},
                 [in, out](banyan_comm *comm, auto &requests) {
                     add(requests, [&](banyan_request **request) {
                         return banyan_allgather_init(comm, in.data_ptr(), out.data_ptr(), copied_count(in),
                                                      copied_as(in), request);
                     });
                 });
}

/* Whether tensors lie one after another in memory, so that they can be used as one. */
static bool adjoin(const tensors &parts)
{
    const char *next = nullptr;

    for (const at::Tensor &one : parts) {
        const char *here = (const char *)one.data_ptr();

        if (one.numel() == 0)
            continue;
        if (next != nullptr && here != next)
            return false;
        next = here + one.nbytes();
    }
    return true;
}

static void check_parts(const tensors &parts, const at::Tensor &own, int size, const char *what)
{
    TORCH_CHECK((int)parts.size() == size, "banyan: ", what, ": the list has ", parts.size(),
                " tensors and requires one for each of ", size, " ranks");
    for (const at::Tensor &one : parts)
        TORCH_CHECK(one.numel() == own.numel() && one.scalar_type() == own.scalar_type(), "banyan: ", what,
                    ": all tensors require the size and type of the rank's own");
}

work_ptr group::allgather(std::vector<tensors> &out, tensors &in, const c10d::AllgatherOptions &options)
{
    if (!serves(in, "allgather") || in.size() != 1 || out.size() != 1 || !serves(out[0], "allgather"))
        return pass("allgather").allgather(out, in, options);
    check_parts(out[0], in[0], getSize(), "allgather");
    at::Tensor own = in[0];
    tensors parts = out[0];
    bool direct = adjoin(parts);
    at::Tensor whole = direct ? parts[0] : at::empty({getSize() * own.numel()}, own.options());

    return start(
        c10d::OpType::ALLGATHER, parts, {own, whole},
        [own, whole](banyan_comm *comm, auto &requests) {
            add(requests, [&](banyan_request **request) {
                return banyan_allgather_init(comm, own.data_ptr(), whole.data_ptr(), copied_count(own),
                                             copied_as(own), request);
            });
        },
        [parts, whole, direct] {
            for (size_t i = 0; i < parts.size() && !direct; i++)
                at::Tensor(parts[i]).copy_(whole.narrow(0, (int64_t)i * parts[i].numel(), parts[i].numel())
                                               .reshape(parts[i].sizes()));
        });
}

work_ptr group::_reduce_scatter_base(at::Tensor &out, at::Tensor &in,
                                     const c10d::ReduceScatterOptions &options)
{
    if (!reduces({in, out}, options.reduceOp, "reduce-scatter"))
        return pass("reduce-scatter")._reduce_scatter_base(out, in, options);
    TORCH_CHECK(in.numel() == out.numel() * getSize(), "banyan: reduce-scatter: the input has ", in.numel(),
                " elements and requires ", out.numel() * getSize(), ": those of ", getSize(), " ranks");
    banyan_op_t op = op_of(options.reduceOp);

    return start(
        c10d::OpType::_REDUCE_SCATTER_BASE, {out}, {in, out},
        [in, out, op](banyan_comm *comm, auto &requests) {
            add(requests, [&](banyan_request **request) {
                return banyan_reduce_scatter_init(comm, in.data_ptr(), out.data_ptr(), count_of(out),
                                                  dtype_of(out), op, request);
            });
        },
        divide(is_average(options.reduceOp), {out}, getSize()));
}

work_ptr group::reduce_scatter(tensors &out, std::vector<tensors> &in,
                               const c10d::ReduceScatterOptions &options)
{
    if (out.size() != 1 || in.size() != 1 || !reduces(out, options.reduceOp, "reduce-scatter") ||
        !serves(in[0], "reduce-scatter"))
        return pass("reduce-scatter").reduce_scatter(out, in, options);
    check_parts(in[0], out[0], getSize(), "reduce-scatter");
    at::Tensor whole;

    if (adjoin(in[0])) {
        whole = at::from_blob(in[0][0].data_ptr(), {getSize() * out[0].numel()}, out[0].options());
    } else {
        tensors flat;

        for (const at::Tensor &one : in[0])
            flat.push_back(one.reshape({-1}));
        whole = at::cat(flat);
    }
    at::Tensor result = out[0];
    banyan_op_t op = op_of(options.reduceOp);
    tensors used = in[0]; /* keeps the memory of `whole` */

    used.push_back(result);
    used.push_back(whole);
    return start(
        c10d::OpType::REDUCE_SCATTER, out, used,
        [whole, result, op](banyan_comm *comm, auto &requests) {
            add(requests, [&](banyan_request **request) {
                return banyan_reduce_scatter_init(comm, whole.data_ptr(), result.data_ptr(), count_of(result),
                                                  dtype_of(result), op, request);
            });
        },
        divide(is_average(options.reduceOp), out, getSize()));
}

work_ptr group::barrier(const c10d::BarrierOptions &options)
{
    if (!worker_)
        return pass("barrier").barrier(options);
    return start(c10d::OpType::BARRIER, {}, {}, [](banyan_comm *comm, auto &requests) {
        add(requests, [&](banyan_request **out) { return banyan_barrier_init(comm, out); });
    });
}

/* ---- operations in which each message has one receiver */

/* Shares of all ranks in one piece of memory of the host, where libbanyan requires them: that of the
 * tensors, or a copy. */
struct shares {
    tensors parts;
    at::Tensor memory; /* defined: a copy of all parts */

    shares(const tensors &all, bool filled) : parts(all)
    {
        tensors flat;

        if (adjoin(all) && all[0].device().is_cpu())
            return;
        for (const at::Tensor &one : all)
            flat.push_back(one.reshape({-1}));
        memory = filled ? at::cat(flat).cpu() : at::empty({total()}, all[0].options().device(at::kCPU));
    }
    int64_t total() const
    {
        int64_t sum = 0;

        for (const at::Tensor &one : parts)
            sum += one.numel();
        return sum;
    }
    void *data() const
    {
        if (memory.defined())
            return memory.data_ptr();
        for (const at::Tensor &one : parts)
            if (one.numel() > 0)
                return one.data_ptr();
        return nullptr;
    }
    /* The elements of each part as libbanyan counts them, which copied_as describes. */
    std::vector<uint64_t> counts() const
    {
        std::vector<uint64_t> each;

        for (const at::Tensor &one : parts)
            each.push_back(copied_count(one));
        return each;
    }
    /* Copies what has been received to the tensors. */
    void deliver() const
    {
        int64_t at = 0;

        for (at::Tensor one : parts) {
            if (memory.defined())
                one.copy_(memory.narrow(0, at, one.numel()).reshape(one.sizes()));
            at += one.numel();
        }
    }
};

/* The tensors of both lists: their streams must have ended their work on them. */
static tensors both(const tensors &in, const tensors &out)
{
    tensors all = in;

    all.insert(all.end(), out.begin(), out.end());
    return all;
}

work_ptr group::gather(std::vector<tensors> &out, tensors &in, const c10d::GatherOptions &options)
{
    bool here = getRank() == options.rootRank;

    if (!serves(in, "gather") || !apart_.empty() || in.size() != 1)
        return pass("gather", apart_).gather(out, in, options);
    TORCH_CHECK(here ? out.size() == 1 : out.empty(),
                "banyan: gather: the root, and no other rank, requires a list "
                "for the tensors of all ranks");
    if (here) {
        check_parts(out[0], in[0], getSize(), "gather");
        serves(out[0], "gather");
    }
    uint32_t root = (uint32_t)options.rootRank;
    shares own(in, true), all(here ? out[0] : in, false);

    return start(
        c10d::OpType::GATHER, here ? out[0] : tensors(), here ? both(in, out[0]) : in,
        [own, all, root, here](banyan_comm *comm, auto &requests) {
            add(requests, [&](banyan_request **request) {
                return banyan_gather_init(comm, own.data(), here ? all.data() : nullptr, own.counts()[0],
                                          copied_as(own.parts[0]), root, request);
            });
        },
        [all, here] {
            if (here)
                all.deliver();
        });
}

work_ptr group::scatter(tensors &out, std::vector<tensors> &in, const c10d::ScatterOptions &options)
{
    bool here = getRank() == options.rootRank;

    if (!serves(out, "scatter") || !apart_.empty() || out.size() != 1)
        return pass("scatter", apart_).scatter(out, in, options);
    TORCH_CHECK(here ? in.size() == 1 : in.empty(),
                "banyan: scatter: the root, and no other rank, requires a list of "
                "tensors for all ranks");
    if (here) {
        check_parts(in[0], out[0], getSize(), "scatter");
        serves(in[0], "scatter");
    }
    uint32_t root = (uint32_t)options.rootRank;
    shares own(out, false), all(here ? in[0] : out, here);

    return start(
        c10d::OpType::SCATTER, out, here ? both(in[0], out) : out,
        [own, all, root, here](banyan_comm *comm, auto &requests) {
            add(requests, [&](banyan_request **request) {
                return banyan_scatter_init(comm, here ? all.data() : nullptr, own.data(), own.counts()[0],
                                           copied_as(own.parts[0]), root, request);
            });
        },
        [own] { own.deliver(); });
}

/* Each rank has a tensor for each other one, of any size. */
work_ptr group::alltoall(tensors &out, tensors &in, const c10d::AllToAllOptions &options)
{
    if (!serves(in, "all-to-all") || !serves(out, "all-to-all") || !apart_.empty())
        return pass("all-to-all", apart_).alltoall(out, in, options);
    TORCH_CHECK((int)in.size() == getSize() && (int)out.size() == getSize(),
                "banyan: all-to-all: the lists have ", in.size(), " and ", out.size(),
                " tensors and require one for each of ", getSize(), " ranks");
    TORCH_CHECK(in[0].scalar_type() == out[0].scalar_type(),
                "banyan: all-to-all: both lists require one element type");
    shares sent(in, true), got(out, false);

    return start(
        c10d::OpType::ALLTOALL, out, both(in, out),
        [sent, got](banyan_comm *comm, auto &requests) {
            add(requests, [&](banyan_request **request) {
                return banyan_alltoallv_init(comm, sent.data(), sent.counts().data(), nullptr, got.data(),
                                             got.counts().data(), nullptr, copied_as(sent.parts[0]), request);
            });
        },
        [got] { got.deliver(); });
}

/* The elements of each rank's share of a tensor, which is divided along its first dimension. */
static std::vector<uint64_t> split_counts(const at::Tensor &tensor, const std::vector<int64_t> &sizes)
{
    uint64_t rows = (uint64_t)tensor.size(0), row = rows > 0 ? copied_count(tensor) / rows : 0;
    std::vector<uint64_t> counts;

    for (int64_t size : sizes) {
        TORCH_CHECK(size >= 0, "banyan: all-to-all: a split has ", size, " rows");
        counts.push_back((uint64_t)size * row);
    }
    return counts;
}

work_ptr group::alltoall_base(at::Tensor &out, at::Tensor &in, std::vector<int64_t> &out_sizes,
                              std::vector<int64_t> &in_sizes, const c10d::AllToAllOptions &options)
{
    if (!serves({in, out}, "all-to-all") || !apart_.empty())
        return pass("all-to-all", apart_).alltoall_base(out, in, out_sizes, in_sizes, options);
    TORCH_CHECK(in.dim() > 0 && out.dim() > 0,
                "banyan: all-to-all requires tensors with a dimension to divide");
    c10d::checkSplitSizes(in_sizes, in, getSize());
    c10d::checkSplitSizes(out_sizes, out, getSize());
    bool equal = in_sizes.empty() && out_sizes.empty();
    auto filled = [this](const at::Tensor &tensor, const std::vector<int64_t> &sizes) {
        return sizes.empty() ? std::vector<int64_t>((size_t)getSize(), tensor.size(0) / getSize()) : sizes;
    };
    std::vector<uint64_t> send = split_counts(in, filled(in, in_sizes)),
                          receive = split_counts(out, filled(out, out_sizes));
    shares sent({in}, true), got({out}, false);

    TORCH_CHECK(!equal || in.numel() == out.numel(),
                "banyan: all-to-all: without split sizes the output has ", out.numel(),
                " elements and requires ", in.numel(), ": those of the input");
    return start(
        c10d::OpType::ALLTOALL_BASE, {out}, {in, out},
        [sent, got, send, receive, equal](banyan_comm *comm, auto &requests) {
            banyan_dtype_t type = copied_as(sent.parts[0]);

            add(requests, [&](banyan_request **request) {
                return equal ? banyan_alltoall_init(comm, sent.data(), got.data(), send[0], type, request)
                             : banyan_alltoallv_init(comm, sent.data(), send.data(), nullptr, got.data(),
                                                     receive.data(), nullptr, type, request);
            });
        },
        [got] { got.deliver(); });
}

/* ---- passed to the other backend */

work_ptr group::allgather_coalesced(std::vector<tensors> &out, tensors &in,
                                    const c10d::AllgatherOptions &options)
{
    return pass("allgather of a list").allgather_coalesced(out, in, options);
}

work_ptr group::send(tensors &data, int rank, int tag)
{
    return pass("send").send(data, rank, tag);
}

work_ptr group::recv(tensors &data, int rank, int tag)
{
    return pass("recv").recv(data, rank, tag);
}

work_ptr group::recvAnysource(tensors &data, int tag)
{
    return pass("recv").recvAnysource(data, tag);
}

void group::monitoredBarrier(const c10d::BarrierOptions &options, bool all)
{
    pass("monitored barrier").monitoredBarrier(options, all);
}

void group::setSequenceNumberForGroup()
{
    sequence_ = 0;
    if (other_)
        other_->setSequenceNumberForGroup();
}

uint64_t group::getSequenceNumberForGroup()
{
    return sequence_ + offloaded_ + passed_;
}

} // namespace banyan_torch
