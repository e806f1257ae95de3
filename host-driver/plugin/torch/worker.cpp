/* See worker.hpp. loop(), start() and advance() run on the worker's thread. */
#include "worker.hpp"

#include <chrono>
#include <utility>

namespace banyan_torch
{

/* Operations in flight; libbanyan's limit on requests is 64. */
constexpr std::size_t in_flight_most = 32;
/* How long a wait keeps the thread from operations that are queued meanwhile (microseconds). */
constexpr uint64_t slice_us = 100;

std::exception_ptr failure(banyan_status_t status)
{
    const char *text = banyan_last_error();

    return std::make_exception_ptr(
        std::runtime_error(std::string("banyan: ") + (text[0] != 0 ? text : banyan_strerror(status))));
}

/* An exception must not pass through libbanyan, so the constructor throws it. */
int worker::share_addresses(void *self, const void *mine, void *all, std::size_t bytes)
{
    auto *here = static_cast<worker *>(self);

    try {
        here->share_(mine, all, bytes);
        return 0;
    } catch (...) {
        here->share_error_ = std::current_exception();
        return 1;
    }
}

worker::worker(uint32_t rank, uint32_t rank_count, uint64_t timeout_ms, exchange share)
    : share_(std::move(share))
{
    banyan_bootstrap bootstrap = {sizeof(bootstrap), rank, rank_count, this, share_addresses};
    banyan_config config;
    const char *name = nullptr, *origin = nullptr;
    bool timeout_given = false;

    for (uint32_t i = 0; banyan_setting(i, &name, nullptr, nullptr, nullptr, &origin) == BANYAN_OK; i++)
        if (std::string(name) == "BANYAN_TIMEOUT")
            timeout_given = std::string(origin) != "default";
    banyan_config_init(&config);
    config.bootstrap = &bootstrap;
    if (!timeout_given)
        config.timeout_ms = timeout_ms;
    banyan_status_t status = banyan_init(&config, &context_);
    if (status == BANYAN_OK)
        status = banyan_comm_create(context_, 0, &comm_);
    if (status != BANYAN_OK) {
        std::exception_ptr error = share_error_ ? share_error_ : failure(status);

        if (context_ != nullptr)
            banyan_finalize(context_);
        std::rethrow_exception(error);
    }
    thread_ = std::thread([this] { loop(); });
}

worker::worker(std::shared_ptr<worker> parent, uint32_t rank, uint32_t rank_count, exchange share)
    : parent_(std::move(parent)), share_(std::move(share))
{
    banyan_bootstrap bootstrap = {sizeof(bootstrap), rank, rank_count, this, share_addresses};
    banyan_status_t status = banyan_comm_create_group(parent_->comm_, &bootstrap, &comm_);

    if (share_error_)
        std::rethrow_exception(share_error_);
    if (status != BANYAN_OK)
        throw refused(banyan_last_error());
    thread_ = std::thread([this] { loop(); });
}

worker::~worker()
{
    {
        std::lock_guard<std::mutex> lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
    banyan_comm_destroy(comm_);
    if (context_ != nullptr)
        banyan_finalize(context_);
}

bool worker::exchanges() const
{
    banyan_query query;

    if (parent_ && transport() == "host")
        return false; /* the forms with counts are refused there */
    banyan_query_init(&query);
    query.collective = BANYAN_ALLTOALL;
    query.count = 1;
    return banyan_comm_query(comm_, &query) == BANYAN_OK && query.path == BANYAN_HOSTS;
}

void worker::run(std::unique_ptr<operation> next)
{
    open_++;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        queue_.push_back(std::move(next));
    }
    wake_.notify_one();
}

/* Posts the requests of an operation; what cannot start ends it with an error. */
void worker::start(operation &next)
{
    try {
        next.make(comm_, next.requests);
    } catch (...) {
        next.error = std::current_exception();
    }
    for (std::size_t i = 0; i < next.requests.size(); i++) {
        banyan_status_t status = next.error ? BANYAN_EABORTED : banyan_post(next.requests[i]);

        if (status == BANYAN_OK)
            continue;
        if (!next.error)
            next.error = failure(status);
        for (std::size_t k = i; k < next.requests.size(); k++) /* these do not run */
            banyan_free(next.requests[k]);
        next.requests.resize(i);
    }
}

/* Moves packets for at most a slice; ends the oldest operation if it is complete. Returns whether it
 * did. */
bool worker::advance()
{
    operation &oldest = *running_.front();

    while (oldest.ended < oldest.requests.size()) {
        banyan_request *request = oldest.requests[oldest.ended];
        int done = 0;
        banyan_status_t status = banyan_wait_for(request, slice_us, &done);

        if (!done && status == BANYAN_OK)
            return false;
        if (status != BANYAN_OK && !oldest.error)
            oldest.error = failure(status);
        banyan_free(request);
        oldest.ended++;
    }
    open_--;
    oldest.end(oldest.error);
    running_.pop_front();
    return true;
}

void worker::loop()
{
    for (;;) {
        std::unique_ptr<operation> next;
        bool stopping;
        {
            std::unique_lock<std::mutex> lock(mutex_);

            if (running_.empty())
                wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
            stopping = stopping_;
            if (!queue_.empty() && running_.size() < in_flight_most) {
                next = std::move(queue_.front());
                queue_.pop_front();
            }
        }
        if (stopping && (next || !running_.empty()))
            banyan_abort(comm_); /* what is left ends with an error */
        if (next) {
            start(*next);
            running_.push_back(std::move(next));
        } else if (running_.empty() && stopping) {
            return;
        } else {
            advance();
        }
    }
}

} // namespace banyan_torch
