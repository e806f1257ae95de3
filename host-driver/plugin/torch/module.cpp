/* The Python module banyan_torch._C: makes process groups. */
#include <torch/extension.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "group.hpp"

namespace banyan_torch
{

/* The text of a rank that could not make its group; the others end with it. */
constexpr const char *FAILED = "banyan/failed";

/* An error that another rank has reported. */
struct told : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/* Returns what a rank has stored. Waits in small steps, so that the failure of any rank ends it. */
static std::vector<uint8_t> answer_of(c10d::Store &store, const std::string &key, int rank, double timeout_s)
{
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);

    for (auto pause = std::chrono::milliseconds(1);;
         pause = std::min(2 * pause, std::chrono::milliseconds(50))) {
        if (store.check({key}))
            return store.get(key);
        if (store.check({FAILED})) {
            std::vector<uint8_t> text = store.get(FAILED);

            throw told(std::string(text.begin(), text.end()));
        }
        if (std::chrono::steady_clock::now() >= end)
            throw std::runtime_error("banyan: rank " + std::to_string(rank) + " has not answered within " +
                                     std::to_string((long)timeout_s) +
                                     " s in init_process_group or new_group; start all ranks, "
                                     "all with the backend banyan, or raise timeout=");
        std::this_thread::sleep_for(pause);
    }
}

/* Exchanges bytes through PyTorch's store; each call has its own keys. */
static exchange through(c10::intrusive_ptr<c10d::Store> store, int rank, int size, double timeout_s)
{
    auto calls = std::make_shared<unsigned>(0);

    return [store, rank, size, timeout_s, calls](const void *mine, void *all, std::size_t bytes) {
        std::string prefix = "banyan/" + std::to_string((*calls)++) + "/";
        const auto *from = static_cast<const uint8_t *>(mine);

        store->set(prefix + std::to_string(rank), std::vector<uint8_t>(from, from + bytes));
        for (int i = 0; i < size; i++) {
            std::vector<uint8_t> part = answer_of(*store, prefix + std::to_string(i), i, timeout_s);

            TORCH_CHECK(part.size() == bytes, "banyan: rank ", i, " has answered with ", part.size(),
                        " bytes, and rank ", rank, " requires ", bytes,
                        "; install one version of banyan on all hosts");
            std::copy(part.begin(), part.end(), static_cast<uint8_t *>(all) + (std::size_t)i * bytes);
        }
    };
}

/* Makes the group of all ranks, or with `whole` false one of some ranks of `parent`, if that is. */
static c10::intrusive_ptr<group> create(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
                                        double timeout_s, const c10::intrusive_ptr<base> &other, bool whole,
                                        const c10::intrusive_ptr<group> &parent)
{
    exchange share = through(store, rank, size, timeout_s);

    try {
        if (!whole)
            return c10::make_intrusive<group>(rank, size, share, other, parent);
        return c10::make_intrusive<group>(rank, size, std::chrono::milliseconds((int64_t)(timeout_s * 1000)),
                                          share, other);
    } catch (const told &) {
        throw;
    } catch (const std::exception &error) {
        std::string text = "banyan: rank " + std::to_string(rank) + " has failed: " + error.what();

        store->set(FAILED, std::vector<uint8_t>(text.begin(), text.end()));
        throw;
    }
}

/* A group that PyTorch owns: PyTorch 2 keeps no Python object of it, so weakref would lose it. */
struct watch {
    c10::weak_intrusive_ptr<group> owned;
};

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module)
{
    py::module_::import("torch.distributed");
    py::class_<group, c10::intrusive_ptr<group>, base>(module, "ProcessGroupBanyan")
        .def("describe", &group::describe, "Returns how the group's operations run, and why.")
        .def("close", &group::close, "Ends the operations that still run with an error, and leaves the job.")
        .def_property_readonly("open", &group::open, "Operations over banyan that have not ended.")
        .def_property_readonly("offloaded", &group::offloaded, "Operations that libbanyan ran.")
        .def_property_readonly("passed", &group::passed, "Operations that the other backend ran.");
    py::class_<watch>(module, "Watch")
        .def(py::init(
            [](const c10::intrusive_ptr<group> &one) { return watch{c10::weak_intrusive_ptr<group>(one)}; }))
        .def(
            "__call__", [](const watch &self) { return self.owned.lock(); },
            "Returns the group, or None if it is gone.");
    module.attr("torch_version") =
        std::to_string(TORCH_VERSION_MAJOR) + "." + std::to_string(TORCH_VERSION_MINOR);
    module.def("create", &create, py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout_s"),
               py::arg("other"), py::arg("whole"), py::arg("parent"),
               py::call_guard<py::gil_scoped_release>());
}

} // namespace banyan_torch
