# Examples of the public interface, one file for each group of functions; linked with the shared
# library, like users' programs.
EXAMPLES := abort alloc allgather allgatherv allreduce alltoall barrier broadcast capability counters groups in_process modes persistent query reduce reduce_scatter reduce_scatterv register scatter_gather
TOOLS += $(addprefix example-,$(EXAMPLES))
define EXAMPLE_RULE
example-$(1)_SRC := host-driver/examples/$(1).c
example-$(1)_LDLIBS = $$(LIBBANYAN_SO) -Wl,-rpath,'$$$$ORIGIN/../lib'
$(B)/tools/example-$(1): $$(LIBBANYAN_SO)
endef
$(foreach e,$(EXAMPLES),$(eval $(call EXAMPLE_RULE,$(e))))
