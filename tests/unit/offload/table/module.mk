TESTS += unit-image
unit-image_SRC := tests/unit/offload/table/image.c tests/unit/offload/table/sample.c
unit-image_LIBS := offload
unit-image_LDLIBS := -lcmocka
