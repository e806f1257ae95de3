# series: periodic schedules of series of operations, their file format, and their execution.
control_SRC += \
	control/study/series/read.c \
	control/study/series/run.c \
	control/study/series/series.c \
	control/study/series/write.c
