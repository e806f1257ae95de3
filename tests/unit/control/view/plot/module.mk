# Unit tests of control/view/plot.
TESTS += plot-picture plot-summary
plot-summary_SRC    := tests/unit/control/view/plot/test_summary.c
plot-summary_LIBS   := control offload
plot-summary_LDLIBS := -lcmocka -ljansson -lgmp -lm
plot-picture_SRC    := tests/unit/control/view/plot/test_picture.c
plot-picture_LIBS   := control offload
plot-picture_LDLIBS := -lcmocka -ljansson -lgmp -lm
