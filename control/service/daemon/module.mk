# daemon: banyand, the controller of a fabric. A library for its tests, and the program.
LIBS += daemon
daemon_SRC := \
	control/service/daemon/admit.c \
	control/service/daemon/ahead.c \
	control/service/daemon/ahead_plans.c \
	control/service/daemon/apart.c \
	control/service/daemon/changes.c \
	control/service/daemon/daemon.c \
	control/service/daemon/etcd.c \
	control/service/daemon/event.c \
	control/service/daemon/fabric.c \
	control/service/daemon/follow.c \
	control/service/daemon/groups.c \
	control/service/daemon/history.c \
	control/service/daemon/recovery.c \
	control/service/daemon/recovery_waits.c \
	control/service/daemon/http.c \
	control/service/daemon/http_jobs.c \
	control/service/daemon/http_local.c \
	control/service/daemon/http_read.c \
	control/service/daemon/job.c \
	control/service/daemon/jobs.c \
	control/service/daemon/latency.c \
	control/service/daemon/lead.c \
	control/service/daemon/listen.c \
	control/service/daemon/live.c \
	control/service/daemon/loop.c \
	control/service/daemon/members.c \
	control/service/daemon/members_open.c \
	control/service/daemon/metrics.c \
	control/service/daemon/news.c \
	control/service/daemon/notice.c \
	control/service/daemon/options.c \
	control/service/daemon/page.c \
	control/service/daemon/paths.c \
	control/service/daemon/queue.c \
	control/service/daemon/rates.c \
	control/service/daemon/reduce.c \
	control/service/daemon/recover.c \
	control/service/daemon/recover_job.c \
	control/service/daemon/recover_part.c \
	control/service/daemon/renew.c \
	control/service/daemon/standby.c \
	control/service/daemon/standby_offer.c \
	control/service/daemon/standby_sets.c \
	control/service/daemon/start.c \
	control/service/daemon/say.c \
	control/service/daemon/state.c \
	control/service/daemon/state_etcd.c \
	control/service/daemon/state_folder.c \
	control/service/daemon/state_jobs.c \
	control/service/daemon/state_tables.c \
	control/service/daemon/status.c \
	control/service/daemon/blackhole.c \
	control/service/daemon/switches.c \
	control/service/daemon/watch.c \
	control/service/daemon/work.c \
	$(GEN)/page/files.c
# The live page.
PAGE_FILES := $(addprefix control/service/daemon/page/,index.html page.css page.svg page.js fabric.js layout.js tables.js chart.js text.js)
$(GEN)/page/files.c: control/service/daemon/page/embed.sh $(PAGE_FILES)
	$(call say,EMBED,$@)
	@mkdir -p $(@D)
	$(Q)$< $(PAGE_FILES) >$@
PROGS += banyand
banyand_SRC    := control/service/daemon/main.c
banyand_LIBS   := daemon control secure offload
daemon_LDLIBS  := -lsqlite3 -lmicrohttpd -lcurl
banyand_LDLIBS := $(daemon_LDLIBS) -ljansson -lexpat -lgmp -lm -lprotobuf-nanopb -lssl -lcrypto -lpthread
