TESTS += unit-image unit-image-addresses
unit-image_SRC := tests/unit/offload/table/image.c tests/unit/offload/table/sample.c
unit-image_LIBS := offload
unit-image_LDLIBS := -lcmocka
unit-image-addresses_SRC := tests/unit/offload/table/addresses.c tests/unit/offload/table/sample.c
unit-image-addresses_LIBS := offload
unit-image-addresses_LDLIBS := -lcmocka
