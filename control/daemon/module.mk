# daemon: banyand, the controller of a fabric. A library for its tests, and the program.
LIBS += daemon
daemon_SRC := \
	control/daemon/admit.c \
	control/daemon/apart.c \
	control/daemon/change.c \
	control/daemon/daemon.c \
	control/daemon/event.c \
	control/daemon/fabric.c \
	control/daemon/heal.c \
	control/daemon/http.c \
	control/daemon/http_jobs.c \
	control/daemon/job.c \
	control/daemon/jobs.c \
	control/daemon/listen.c \
	control/daemon/loop.c \
	control/daemon/members.c \
	control/daemon/notice.c \
	control/daemon/options.c \
	control/daemon/react.c \
	control/daemon/recover.c \
	control/daemon/recover_job.c \
	control/daemon/recover_part.c \
	control/daemon/renew.c \
	control/daemon/start.c \
	control/daemon/state.c \
	control/daemon/state_jobs.c \
	control/daemon/status.c \
	control/daemon/swallow.c \
	control/daemon/switches.c \
	control/daemon/watch.c \
	control/daemon/work.c
PROGS += banyand
banyand_SRC    := control/daemon/main.c
banyand_LIBS   := daemon control secure offload
daemon_LDLIBS  := -lsqlite3 -lmicrohttpd
banyand_LDLIBS := $(daemon_LDLIBS) -ljansson -lexpat -lgmp -lm -lprotobuf-nanopb -lssl -lcrypto -lpthread
