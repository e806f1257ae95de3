/* The Python module banyan_torch._C: makes process groups. */
#include <torch/extension.h>

#include "group.hpp"

namespace banyan_torch {

/* Exchanges bytes through PyTorch's store; each call has its own keys. */
static exchange through(c10::intrusive_ptr<c10d::Store> store, int rank, int size)
{
    auto calls = std::make_shared<unsigned>(0);

    return [store, rank, size, calls](const void *mine, void *all, std::size_t bytes) {
        std::string prefix = "banyan/" + std::to_string((*calls)++) + "/";
        const auto *from = static_cast<const uint8_t *>(mine);

        try {
            store->set(prefix + std::to_string(rank), std::vector<uint8_t>(from, from + bytes));
            for (int i = 0; i < size; i++) {
                std::vector<uint8_t> part = store->get(prefix + std::to_string(i));

                if (part.size() != bytes)
                    return 1;
                std::copy(part.begin(), part.end(), static_cast<uint8_t *>(all) + (std::size_t)i * bytes);
            }
            return 0;
        } catch (const std::exception &error) {
            TORCH_WARN("banyan: the store of PyTorch: ", error.what());
            return 1;
        }
    };
}

static c10::intrusive_ptr<group> create(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
                                        double timeout_s, const c10::intrusive_ptr<base> &other, bool whole)
{
    return c10::make_intrusive<group>(rank, size, std::chrono::milliseconds((int64_t)(timeout_s * 1000)),
                                      through(store, rank, size), other, whole);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module)
{
    py::module_::import("torch.distributed");
    py::class_<group, c10::intrusive_ptr<group>, base>(module, "ProcessGroupBanyan")
        .def("describe", &group::describe, "Returns how the group's operations run, and why.")
        .def_property_readonly("offloaded", &group::offloaded, "Operations that libbanyan ran.")
        .def_property_readonly("passed", &group::passed, "Operations that the other backend ran.");
    module.def("create", &create, py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout_s"),
               py::arg("other"), py::arg("whole"), py::call_guard<py::gil_scoped_release>());
}

} // namespace banyan_torch
