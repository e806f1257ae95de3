# Unit tests of control/plot.
TESTS += plot-picture
plot-picture_SRC    := tests/unit/control/plot/test_picture.c
plot-picture_LIBS   := control offload
plot-picture_LDLIBS := -lcmocka -ljansson -lgmp -lm
