# banyan: one dependency graph. This file contains the rules; each folder's module.mk only appends
# explicit lists of sources.
#
#   make            same as `make all`: builds libraries and programs into build/bin
#   make help       lists the targets
#
# Variables: O= (output folder), SANITIZE=address,undefined (builds a separate variant), BOARD=,
# PREFIX=, LIBDIR= (libraries; PREFIX/lib), DESTDIR=, V=1 (shows commands), CC=, CFLAGS= (appended to the default flags).

O        ?= build
PREFIX   ?= /usr/local
LIBDIR   ?= $(PREFIX)/lib
V        ?= 0
SANITIZE ?=
CC       ?= gcc
ifeq ($(origin CC),default)
CC       := gcc
endif
CLANG    ?= clang

ifeq ($(SANITIZE),)
VARIANT  := release
else
comma    := ,
VARIANT  := $(subst $(comma),-,$(SANITIZE))
endif
B        := $(O)/$(VARIANT)
GEN      := $(O)/gen
Q        := $(if $(filter 1,$(V)),,@)
say       = $(if $(filter 1,$(V)),,@printf '  %-6s %s\n' $(1) $(2))

.DEFAULT_GOAL := all
.SUFFIXES:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

VERSION  := 0.1.0

# ---- flags -----------------------------------------------------------------------------------------------------------------
# Before `make deps` there may be no compiler; uname then gives the architecture.
ARCH     := $(or $(shell $(CC) -dumpmachine 2>/dev/null | cut -d- -f1),$(shell uname -m))
BOARD_OF_x86_64  := x86-dpdk
BOARD_OF_aarch64 := arm64-dpdk
BOARD    ?= $(or $(BOARD_OF_$(ARCH)),lab-veth)
BASELINE_x86_64  := -march=x86-64-v2
BASELINE_aarch64 := -march=armv8-a+crc
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla -Wundef -Wswitch-enum -Werror
ifneq ($(findstring clang,$(CC)),)
# Requests to the kernel end in flexible arrays, which callers place before other members of structs.
WARN     += -Wno-ignored-optimization-argument -Wno-unknown-warning-option -Wno-gnu-variable-sized-type-not-at-end
else
NOLOOPS  := -fno-tree-loop-distribute-patterns # no calls of memset or memcpy in place of loops
endif
# AddressSanitizer's code compiles in two thirds of the time with -O1 and short debug information.
OPTIMISE := $(if $(findstring address,$(SANITIZE)),-O1 -g1,-O2 -g)
BASE     := -std=gnu11 $(OPTIMISE) -fno-strict-overflow -fno-common -I. -I$(GEN) -DBY_VERSION='"$(VERSION)"' $(BASELINE_$(ARCH)) $(WARN)
ifneq ($(SANITIZE),)
# -Wno-error: some warnings depend on the optimisation. The normal build has them as errors.
BASE     += -fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all -Wno-error
LDSAN    := -fsanitize=$(SANITIZE)
# DPDK's rings in a form that ThreadSanitizer understands.
BASE     += $(if $(findstring thread,$(SANITIZE)),-DRTE_USE_C11_MEM_MODEL -Wno-tsan)
endif
PICFLAG  := -fPIC

# The core uses no C library, only the freestanding headers of the compiler.
FREESTANDING := -std=c11 -ffreestanding -nostdinc -isystem $(shell $(CC) -print-file-name=include 2>/dev/null) -fno-stack-protector \
                $(NOLOOPS)
FLAGS_offload     := $(FREESTANDING)
FLAGS_dataplane    = -D_GNU_SOURCE $(shell pkg-config --cflags libdpdk 2>/dev/null) -Wno-pedantic
FLAGS_offload-linux := -D_GNU_SOURCE
FLAGS_firmware     = -D_GNU_SOURCE
FLAGS_control     := -D_GNU_SOURCE
FLAGS_host-driver := -D_GNU_SOURCE -Ihost-driver/include
FLAGS_tests       := -D_GNU_SOURCE -Ihost-driver/include

# ---- the graph: every module.mk appends to these ---------------------------------------------------------------------------
# LIBS       names of static libraries;  <name>_SRC: their sources
# PROGS      names of programs in bin/;  <name>_SRC, <name>_LIBS (this tree), <name>_LDLIBS (others)
# TESTS      names of test programs;     <name>_SRC, <name>_LIBS, <name>_LDLIBS; exit status 0: pass
# TOOLS      like PROGS, but only built when a target needs them (benches, fuzzers); in $(B)/tools/
# SRCFLAGS_<path of a source>            extra flags for one source
# A folder's targets are in its module.mk.
LIBS  :=
PROGS :=
TESTS :=
TOOLS :=
MODULES := offload dataplane boards firmware control host-driver tests docs debian
obj = $(patsubst %.c,$(B)/obj/%.o,$(filter-out $(GEN)/%,$(1))) $(patsubst $(GEN)/%.c,$(B)/obj/gen/%.o,$(filter $(GEN)/%,$(1)))
# The room that defines the flags of a source: its top folder, except for offload/linux, which is
# not freestanding.
room = $(if $(filter offload/linux/%,$(1)),offload-linux,$(firstword $(subst /, ,$(1))))
include $(wildcard $(addsuffix /module.mk,$(MODULES)))

# Archives also depend on these files: a newly listed object may be older than its archive.
MODULE_FILES := $(filter %module.mk,$(MAKEFILE_LIST))
define LIB_RULE
$(B)/lib/lib$(1).a: $(call obj,$($(1)_SRC)) $(MODULE_FILES)
endef
define PROG_RULE
$(B)/$(2)/$(1): $(call obj,$($(1)_SRC)) $(foreach l,$($(1)_LIBS),$(B)/lib/lib$(l).a)
	$$(call say,LD,$$@)
	@mkdir -p $$(@D)
	$(Q)$$(CC) $(LDSAN) -o $$@ $(call obj,$($(1)_SRC)) -Wl,--start-group $(foreach l,$($(1)_LIBS),$(B)/lib/lib$(l).a) -Wl,--end-group $$($(1)_LDLIBS) $$(LDFLAGS)
endef
$(foreach l,$(LIBS),$(eval $(call LIB_RULE,$(l))))
$(foreach p,$(PROGS),$(eval $(call PROG_RULE,$(p),bin)))
$(foreach p,$(TESTS),$(eval $(call PROG_RULE,$(p),tests)))
$(foreach p,$(TOOLS),$(eval $(call PROG_RULE,$(p),tools)))

$(B)/lib/%.a:
	$(call say,AR,$@)
	@mkdir -p $(@D)
	$(Q)rm -f $@ && ar crs $@ $(filter %.o,$^)

$(B)/obj/%.o: %.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE) $(PICFLAG) $(FLAGS_$(call room,$<)) $(SRCFLAGS_$<) -MMD -MP $(CFLAGS) -c -o $@ $<

$(B)/obj/gen/%.o: $(GEN)/%.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE) $(PICFLAG) $(SRCFLAGS_$<) -MMD -MP $(CFLAGS) -c -o $@ $<

# Control messages: one .proto file; nanopb encodes them at both ends of the channel. Included as
# "proto/control.pb.h".
$(GEN)/proto/%.pb.c: firmware/agent/%.proto firmware/agent/%.options
	$(call say,PROTO,$<)
	@mkdir -p $(@D)
	$(Q)protoc -I firmware/agent --nanopb_out="-q -I firmware/agent:$(@D)" $<
$(GEN)/proto/%.pb.h: $(GEN)/proto/%.pb.c ;
PROTO_HEADERS := $(GEN)/proto/control.pb.h
.SECONDARY: $(GEN)/proto/control.pb.c
$(patsubst %.c,$(B)/obj/%.o,$(wildcard firmware/*/*.c control/*/*.c control/*/*/*.c)): | $(PROTO_HEADERS)

ALL_SRC := $(sort $(foreach t,$(LIBS) $(PROGS) $(TESTS) $(TOOLS),$($(t)_SRC)))
-include $(patsubst %.o,%.d,$(call obj,$(ALL_SRC)))

# ---- targets ---------------------------------------------------------------------------------------------------------------
.PHONY: all help deps clean

all: deps $(ALL_EXTRA) ## build the libraries and programs into build/bin
	$(Q)$(MAKE) --no-print-directory build-all

.PHONY: build-all
build-all: $(foreach p,$(PROGS),$(B)/bin/$(p)) $(ALL_TARGETS)
ifeq ($(SANITIZE),)
	@mkdir -p $(B)/bin && ln -sfn $(VARIANT)/bin $(O)/bin
endif

help: ## print this list
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' $(filter %Makefile %module.mk,$(MAKEFILE_LIST))
	@echo "  variables: O=build SANITIZE=address,undefined PREFIX=/usr/local DESTDIR= V=1; see the head of the Makefile"

deps: ## install missing Debian packages (as root; otherwise list them)
	$(Q)tests/deps.sh $(if $(filter 1,$(V)),-v)

# For packagers: files are written below DESTDIR, for use below PREFIX. Manual pages, units, users and
# completion follow PREFIX.
INSTALL_UNITS := $(wildcard firmware/linux/*.service control/service/daemon/*.service)
INSTALL_USERS := $(wildcard debian/*.sysusers)
COMPLETED     := banyan banyand banyan-switchd banyan-perf banyan-run banyan-sim
.PHONY: install
install: build-all ## install programs, library, headers, Python package, manuals, units and completion under PREFIX
	$(Q)install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin include/banyan lib/systemd/system) $(DESTDIR)$(LIBDIR)/pkgconfig
	$(Q)install -m 755 $(foreach p,$(PROGS),$(B)/bin/$(p)) $(DESTDIR)$(PREFIX)/bin/
	$(Q)install -m 755 $(B)/lib/libbanyan.so.0 $(DPDK_PLUGIN) $(NCCL_PLUGIN) $(DESTDIR)$(LIBDIR)/
	$(Q)ln -sf libbanyan.so.0 $(DESTDIR)$(LIBDIR)/libbanyan.so
	$(Q)if [ -d $(MPI_LIB) ]; then mkdir -p $(DESTDIR)$(PREFIX)/lib && cp -r $(MPI_LIB) $(DESTDIR)$(PREFIX)/lib/; fi
	$(Q)install -m 644 $(B)/lib/libbanyan.a $(DESTDIR)$(LIBDIR)/
	$(Q)$(PC_EDIT) host-driver/banyan.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/banyan.pc
	$(Q)install -m 644 $(wildcard host-driver/include/banyan/*.h host-driver/include/banyan/*.hpp) $(DESTDIR)$(PREFIX)/include/banyan/
	$(Q)install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/banyan/fortran host-driver/fortran/banyan.f90
	$(Q)install -D -m 644 -t $(DESTDIR)$(PYTHON_DIR)/banyan $(PYTHON_SRC)
	$(Q)for unit in $(INSTALL_UNITS); do sed -e 's|/usr/local/bin|$(PREFIX)/bin|g' -e 's|/usr/bin/banyan|$(PREFIX)/bin/banyan|g' \
	    $$unit >$(DESTDIR)$(PREFIX)/lib/systemd/system/$${unit##*/} || exit 1; done
	$(Q)install -d $(DESTDIR)$(PREFIX)/lib/sysusers.d $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	$(Q)for users in $(INSTALL_USERS); do name=$${users##*/}; \
	    install -m 644 $$users $(DESTDIR)$(PREFIX)/lib/sysusers.d/$${name%.sysusers}.conf || exit 1; done
	$(Q)install -m 644 control/cli/completion.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/banyan
	$(Q)for name in $(filter-out banyan,$(COMPLETED)); do \
	    ln -sf banyan $(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$name || exit 1; done
	$(Q)for page in docs/man/*.[1-9]; do \
	    install -D -m 644 $$page $(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/$${page##*/} || exit 1; done
	@echo "  INSTALL $(DESTDIR)$(PREFIX)"

clean: ## remove all build results
	rm -rf $(O)
