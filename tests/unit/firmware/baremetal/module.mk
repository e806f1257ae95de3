# Drivers of the bare-metal image, built for this machine, against a model of devices that do not see the processor's caches.
TESTS += metal_cache_test
metal_cache_test_SRC := tests/unit/firmware/baremetal/cache_test.c tests/unit/firmware/baremetal/model.c
metal_cache_test_LIBS := offload
metal_cache_test_LDLIBS := -lcmocka
# The drivers' objects lie apart, since they are not those of any program here.
METAL_MODEL_SRC := console line net pool virtio
METAL_MODEL_OBJ := $(patsubst %,$(B)/obj/tests/unit/firmware/baremetal/driver/%.o,$(METAL_MODEL_SRC))
$(B)/obj/tests/unit/firmware/baremetal/driver/%.o: firmware/baremetal/%.c | $(PROTO_HEADERS)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE) $(PICFLAG) $(FLAGS_firmware) -DBY_METAL_MODEL -MMD -MP $(CFLAGS) -c -o $@ $<
-include $(METAL_MODEL_OBJ:.o=.d)
$(B)/tests/metal_cache_test: $(METAL_MODEL_OBJ)
metal_cache_test_LDLIBS += $(METAL_MODEL_OBJ) $(B)/lib/liboffload.a
SRCFLAGS_tests/unit/firmware/baremetal/model.c := -DBY_METAL_MODEL
$(patsubst %.c,$(B)/obj/%.o,$(metal_cache_test_SRC)): | $(PROTO_HEADERS)
