# lint: static checks. Each check runs alone (`make lint-arrows`); tests/lint/selftest.sh shows that
# each one detects its faults.

LINT_CHECKS := lint-arrows lint-symbols lint-api lint-format lint-tidy lint-cppcheck lint-man lint-text lint-names lint-guide lint-alerts lint-abi
LINT_TREES  := offload dataplane firmware boards control host-driver tests
lint_files   = $(shell find $(wildcard $(LINT_TREES)) -name '*.c' -o -name '*.h' -o -name '*.cpp' -o -name '*.hpp' -o -name '*.cc' | sort)
# Sources of the build, without generated ones.
lint_sources = $(filter-out $(GEN)/%,$(ALL_SRC) $(LINT_MORE))
# The analysers take most of the time. RECENT=100 limits them to sources that the last 100 commits
# changed; without that history they see all sources, but clang's analyzer does not run.
lint_history := $(if $(RECENT),$(shell git rev-parse --quiet --verify HEAD~$(RECENT) 2>/dev/null))
lint_recent  := $(if $(lint_history),$(shell git diff --name-only $(lint_history) -- '*.c'))
lint_some     = $(if $(lint_history),$(filter $(lint_recent),$(1)),$(1))
lint_quick   := $(if $(RECENT),$(if $(lint_history),,quick/))

.PHONY: lint lint-selftest lint-build $(LINT_CHECKS) format
lint: ## check includes, symbols, format, clang-tidy, cppcheck, manuals and texts; RECENT=100 analyses only what 100 commits changed
	$(Q)tests/lint/lint.sh "$(MAKE)" $(LINT_CHECKS)

lint-selftest: ## insert a fault for each check of `make lint` and verify that it is detected
	$(Q)tests/lint/selftest.sh "$(MAKE)"

lint-build: $(foreach l,$(LIBS),$(B)/lib/lib$(l).a) build-all build-tests build-tools

lint-arrows: lint-build
	$(Q)tests/lint/arrows.py $(B)/obj $(GEN)

lint-symbols: $(B)/lib/liboffload.a
	$(Q)tests/lint/symbols.sh $(B)/obj

lint-api: $(LIBBANYAN_SO)
	$(Q)tests/lint/api.sh $(LIBBANYAN_SO)

lint-format:
	$(Q)clang-format --dry-run -Werror $(lint_files)
	@echo "$(words $(lint_files)) files checked"

# One stamp for each source. It depends on the object, and so on every header that the source
# includes. clang gets gcc's flags, with its own headers in place of gcc's.
lint_clang_include = $(subst $(shell $(CC) -print-file-name=include),$(shell $(CLANG) -print-file-name=include),$(1))
lint_tidy_flags = $(filter-out -fno-tree-% -W%,$(BASE) $(call lint_clang_include,$(FLAGS_$(call room,$<))) $(SRCFLAGS_$<)) -Wno-everything -Xclang -analyzer-config -Xclang max-nodes=60000 \
                  -D_Float128=__float128
# $(1): options of clang-tidy, $(2): flags of the compiler.
define lint_tidy
@mkdir -p $(@D)
$(Q)clang-tidy --quiet $(1) $< -- $(2) >$@.log 2>$@.err || { cat $@.log; grep -v 'warnings\? \(generated\|treated\)' $@.err; exit 1; }
@touch $@
endef
$(B)/lint/%.tidy: %.c .clang-tidy $(B)/obj/%.o
	$(call lint_tidy,$(if $(filter tests/%,$<),--checks=-clang-analyzer-*),$(lint_tidy_flags))
$(B)/lint/quick/%.tidy: %.c .clang-tidy $(B)/obj/%.o
	$(call lint_tidy,--checks=-clang-analyzer-*,$(lint_tidy_flags))
lint-tidy:
	$(Q)$(MAKE) --no-print-directory --keep-going $(patsubst %.c,$(B)/lint/$(lint_quick)%.tidy,$(call lint_some,$(lint_sources))) \
	    $(patsubst %.c,$(B)/lint/metal/%.tidy,$(call lint_some,$(lint_metal_sources)))
	@echo "$(words $(call lint_some,$(lint_sources) $(lint_metal_sources))) sources checked"

lint_cppchecked = $(or $(call lint_some,$(filter-out %.bpf.c tests/unit/%,$(lint_sources)) $(baremetal_SRC)),$(firstword $(lint_sources)))
lint-cppcheck:
	@mkdir -p $(B)/lint/cppcheck
	$(Q)cppcheck --quiet --enable=warning,performance --inline-suppr --std=c11 --error-exitcode=1 \
	    --suppressions-list=tests/lint/cppcheck.txt --cppcheck-build-dir=$(B)/lint/cppcheck -j $(or $(LINT_JOBS),2) \
	    --template='{file}:{line}: {severity}: {message} [{id}]' -D__linux__ -D_GNU_SOURCE -DBY_VERSION='"$(VERSION)"' -I. -Ihost-driver/include \
	    $(lint_cppchecked)
	@echo "$(words $(lint_cppchecked)) sources checked"

lint-man:
	$(Q)tests/lint/man.sh

lint-text:
	$(Q)tests/lint/text.py

lint-names: lint-build
	$(Q)tests/lint/names.sh $(B)/obj

lint-guide:
	$(Q)tests/lint/guide.py

lint-alerts:
	$(Q)tests/lint/alerts.py

lint-abi: $(LIBBANYAN_SO)
	$(Q)tests/lint/abi.sh $(LIBBANYAN_SO)

.PHONY: abi
abi: $(LIBBANYAN_SO) ## store the interface of libbanyan, after something was added, for make lint-abi
	$(Q)abidw --headers-dir host-driver/include --no-show-locs --no-corpus-path --no-comp-dir-path --no-elf-needed \
	    --drop-private-types --exported-interfaces-only --out-file host-driver/libbanyan.abi $(LIBBANYAN_SO)

format: ## format all C files
	$(Q)clang-format -i $(lint_files)

# The image for bare metal has the flags of its board's compiler. Without that compiler it is not
# checked.
lint_metal_board := $(firstword $(foreach b,$(BOARDS_baremetal),$(if $(shell command -v $($(b)_CROSS)gcc),$(b))))
lint_metal_sources = $(if $(lint_metal_board),$(baremetal_SRC) boards/$(lint_metal_board)/board.c)
lint_metal_include = $(subst $(shell $($(lint_metal_board)_CROSS)gcc -print-file-name=include 2>/dev/null),$(shell $(CLANG) -print-file-name=include),$(1))
lint_metal_flags = --target=aarch64-none-elf $(filter-out -fno-tree-% -W% -mno-outline-atomics -mstrict-align,$(call lint_metal_include,$(call metal_flags,$(lint_metal_board))) \
                   $(METALFLAGS_$<)) $(if $(filter boards/%,$<),$(call board_limits,$(lint_metal_board))) -Wno-everything
$(B)/lint/metal/%.tidy: %.c .clang-tidy $(O)/boards/$(lint_metal_board)/obj/%.o
	$(call lint_tidy,,$(lint_metal_flags))
