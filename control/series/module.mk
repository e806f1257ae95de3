# series: periodic schedules of series of operations, their file, and how they run.
control_SRC += \
	control/series/read.c \
	control/series/run.c \
	control/series/series.c \
	control/series/write.c
