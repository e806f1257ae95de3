# The backend of torch.distributed: a C++ extension of Python over the shared library. `make torch`
# builds it with Debian's PyTorch; docs/languages.md has the variables for another one.
TORCH_DIR      := $(B)/lib/banyan/torch
TORCH_SRC      := $(addprefix host-driver/plugin/torch/,group.cpp module.cpp worker.cpp)
TORCH_OBJ      := $(patsubst host-driver/plugin/torch/%.cpp,$(B)/obj/torch/%.o,$(TORCH_SRC))
TORCH_INCLUDE  ?= /usr/include /usr/include/torch/csrc/api/include
TORCH_LIB      ?= /usr/lib/python3/dist-packages/torch/lib
PYTHON_INCLUDE ?= $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_paths()["include"])' 2>/dev/null)
TORCH_PYTHON   := $(patsubst host-driver/plugin/torch/%,$(TORCH_DIR)/%,$(wildcard host-driver/plugin/torch/banyan_torch/*.py))
# more flags of the compiler, after those below
TORCH_FLAGS    ?=
-include $(TORCH_OBJ:.o=.d)

# /usr/include is searched by itself, in its place.
$(TORCH_OBJ): $(B)/obj/torch/%.o: host-driver/plugin/torch/%.cpp
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++17 -O2 -fPIC -fvisibility=hidden $(BASELINE_$(ARCH)) -Wall -Wextra -Wno-unused-parameter -Werror -Wno-error=maybe-uninitialized $(TORCH_FLAGS) \
		-DTORCH_EXTENSION_NAME=_C -Ihost-driver/include -isystem $(PYTHON_INCLUDE) \
		$(addprefix -isystem ,$(filter-out /usr/include,$(TORCH_INCLUDE))) -MMD -MP -c -o $@ $<
$(TORCH_DIR)/banyan_torch/_C.so: $(TORCH_OBJ) $(LIBBANYAN_SO)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -shared -o $@ $(TORCH_OBJ) $(LIBBANYAN_SO) -L$(TORCH_LIB) -ltorch_python -ltorch -ltorch_cpu -lc10 \
		-Wl,-rpath,'$$ORIGIN/../../../'
$(TORCH_PYTHON): $(TORCH_DIR)/%: host-driver/plugin/torch/%
	@mkdir -p $(@D)
	$(Q)cp $< $@

.PHONY: torch torch-deps torch-build
torch-deps:
	$(Q)tests/deps.sh base torch
torch-build: build-all $(TORCH_DIR)/banyan_torch/_C.so $(TORCH_PYTHON)
torch: torch-deps ## build the backend of torch.distributed (banyan_torch); installs Debian's PyTorch
	$(Q)$(MAKE) --no-print-directory torch-build
