# Parts of the bare-metal image, built for this machine, with models of devices that are not
# coherent with the caches and of failing flash chips.
METAL_TEST_DIR := tests/unit/firmware/baremetal
TESTS += metal_cache_test metal_note_test metal_store_test
metal_cache_test_SRC := $(METAL_TEST_DIR)/cache_test.c $(METAL_TEST_DIR)/model.c
metal_cache_test_DRIVERS := console line net pool virtio
metal_note_test_SRC := $(METAL_TEST_DIR)/note_test.c $(METAL_TEST_DIR)/model.c
metal_note_test_DRIVERS := note
metal_store_test_SRC := $(METAL_TEST_DIR)/store_test.c $(METAL_TEST_DIR)/chip.c tests/unit/firmware/star.c firmware/agent/saved.c
metal_store_test_DRIVERS := flash store
# The objects of the drivers are separate, since no other program uses them.
metal_driver = $(patsubst %,$(B)/obj/$(METAL_TEST_DIR)/driver/%.o,$(1))
$(B)/obj/$(METAL_TEST_DIR)/driver/%.o: firmware/baremetal/%.c | $(PROTO_HEADERS)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE) $(PICFLAG) $(FLAGS_firmware) -DBY_METAL_MODEL -MMD -MP $(CFLAGS) -c -o $@ $<
define METAL_TEST
-include $(patsubst %.o,%.d,$(call metal_driver,$($(1)_DRIVERS)))
$(B)/tests/$(1): $(call metal_driver,$($(1)_DRIVERS))
$(1)_LIBS := offload
$(1)_LDLIBS := $(call metal_driver,$($(1)_DRIVERS)) $(B)/lib/liboffload.a -lcmocka
$(patsubst %.c,$(B)/obj/%.o,$($(1)_SRC)): | $(PROTO_HEADERS)
endef
$(foreach t,metal_cache_test metal_note_test metal_store_test,$(eval $(call METAL_TEST,$(t))))
SRCFLAGS_$(METAL_TEST_DIR)/model.c := -DBY_METAL_MODEL
SRCFLAGS_$(METAL_TEST_DIR)/chip.c := -DBY_METAL_MODEL
