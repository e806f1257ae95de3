# Unit tests of the parts of banyand that require no fabric.
TESTS += daemon-recover daemon-recover-part daemon-recover-orders
RECOVER_RIG := tests/unit/control/service/daemon/world.c control/service/daemon/recover.c control/service/daemon/recover_job.c control/service/daemon/recover_part.c
daemon-recover_SRC           := tests/unit/control/service/daemon/test_recover.c $(RECOVER_RIG)
daemon-recover_LIBS          := offload
daemon-recover_LDLIBS        := -lcmocka
daemon-recover-part_SRC      := tests/unit/control/service/daemon/test_recover_part.c $(RECOVER_RIG)
daemon-recover-part_LIBS     := offload
daemon-recover-part_LDLIBS   := -lcmocka
daemon-recover-orders_SRC    := tests/unit/control/service/daemon/test_recover_orders.c $(RECOVER_RIG)
daemon-recover-orders_LIBS   := offload
daemon-recover-orders_LDLIBS := -lcmocka
TESTS += daemon-swallow
daemon-swallow_SRC    := tests/unit/control/service/daemon/test_blackhole.c control/service/daemon/blackhole.c
daemon-swallow_LIBS   := offload
daemon-swallow_LDLIBS := -lcmocka
TESTS += daemon-apart
daemon-apart_SRC    := tests/unit/control/service/daemon/test_apart.c control/service/daemon/apart.c
daemon-apart_LIBS   := control offload
daemon-apart_LDLIBS := -lcmocka -ljansson -lgmp

# The whole daemon, and its parts for planning, admission and persistence.
DAEMON_RIG := tests/unit/control/service/daemon/rig.c tests/unit/control/service/daemon/ask.c tests/unit/control/service/controller/fake.c tests/unit/control/tables/bench.c
DAEMON_LDLIBS := -lcmocka -lsqlite3 -lmicrohttpd -lcurl -ljansson -lexpat -lgmp -lm -lprotobuf-nanopb -lssl -lcrypto -lpthread
TESTS += daemon-whole
daemon-whole_SRC    := tests/unit/control/service/daemon/test_daemon.c $(DAEMON_RIG)
daemon-whole_LIBS   := daemon control agent secure offload
daemon-whole_LDLIBS := $(DAEMON_LDLIBS)
TESTS += daemon-stored
daemon-stored_SRC    := tests/unit/control/service/daemon/test_stored.c $(DAEMON_RIG)
daemon-stored_LIBS   := daemon control agent secure offload
daemon-stored_LDLIBS := $(DAEMON_LDLIBS)
TESTS += daemon-standby
daemon-standby_SRC    := tests/unit/control/service/daemon/test_standby.c $(DAEMON_RIG)
daemon-standby_LIBS   := daemon control agent secure offload
daemon-standby_LDLIBS := $(DAEMON_LDLIBS)
TESTS += daemon-pushes
daemon-pushes_SRC    := tests/unit/control/service/daemon/test_pushes.c $(DAEMON_RIG)
daemon-pushes_LIBS   := daemon control agent secure offload
daemon-pushes_LDLIBS := $(DAEMON_LDLIBS)
TESTS += daemon-etcd
daemon-etcd_SRC    := tests/unit/control/service/daemon/test_etcd.c $(DAEMON_RIG)
daemon-etcd_LIBS   := daemon control agent secure offload
daemon-etcd_LDLIBS := $(DAEMON_LDLIBS)
TESTS += daemon-groups
daemon-groups_SRC    := tests/unit/control/service/daemon/test_groups.c $(DAEMON_RIG)
daemon-groups_LIBS   := daemon control agent secure offload
daemon-groups_LDLIBS := $(DAEMON_LDLIBS)
TESTS += daemon-tables
daemon-tables_SRC    := tests/unit/control/service/daemon/test_tables.c tests/unit/control/tables/bench.c
daemon-tables_LIBS   := daemon control secure offload
daemon-tables_LDLIBS := $(DAEMON_LDLIBS)

TESTS += daemon-latency
daemon-latency_SRC    := tests/unit/control/service/daemon/test_latency.c
daemon-latency_LIBS   := daemon control secure offload
daemon-latency_LDLIBS := $(DAEMON_LDLIBS)

# The live page.
TESTS += daemon-rates daemon-live daemon-http
daemon-rates_SRC    := tests/unit/control/service/daemon/test_rates.c control/service/daemon/rates.c
daemon-rates_LIBS   := offload
daemon-rates_LDLIBS := -lcmocka
daemon-live_SRC     := tests/unit/control/service/daemon/test_live.c
daemon-live_LIBS    := daemon control secure offload
daemon-live_LDLIBS  := $(DAEMON_LDLIBS) -Wl,--wrap=by_recovery_has_rank
TESTS += daemon-live-whole
daemon-live-whole_SRC    := tests/unit/control/service/daemon/test_live_whole.c tests/unit/control/tables/bench.c control/service/daemon/live.c control/service/daemon/job.c
daemon-live-whole_LIBS   := control offload
daemon-live-whole_LDLIBS := -lcmocka -ljansson -lgmp -lm
daemon-http_SRC     := tests/unit/control/service/daemon/test_http.c $(DAEMON_RIG)
daemon-http_LIBS    := daemon control agent secure offload
daemon-http_LDLIBS  := $(DAEMON_LDLIBS)

# The server of hosts; over TLS with the client of libbanyan.
TESTS += daemon-members daemon-members-tls
MEMBERS_RIG := tests/unit/control/service/daemon/loop.c tests/unit/control/tables/bench.c
daemon-members_SRC        := tests/unit/control/service/daemon/test_members.c tests/unit/control/service/daemon/printed.c $(MEMBERS_RIG)
daemon-members_LIBS       := $(banyand_LIBS)
daemon-members_LDLIBS      = -lcmocka $(banyand_LDLIBS)
daemon-members-tls_SRC    := tests/unit/control/service/daemon/test_members_tls.c tests/unit/firmware/secure/keys.c host-driver/line.c $(MEMBERS_RIG)
daemon-members-tls_LIBS   := $(banyand_LIBS)
daemon-members-tls_LDLIBS  = -lcmocka $(banyand_LDLIBS)
TESTS += daemon-members-frames
daemon-members-frames_SRC    := tests/unit/control/service/daemon/test_members_frames.c tests/unit/control/service/daemon/printed.c $(MEMBERS_RIG)
daemon-members-frames_LIBS   := $(banyand_LIBS)
daemon-members-frames_LDLIBS  = -lcmocka $(banyand_LDLIBS)
TESTS += daemon-members-groups
daemon-members-groups_SRC    := tests/unit/control/service/daemon/test_members_groups.c tests/unit/control/service/daemon/printed.c tests/unit/control/service/daemon/record.c $(MEMBERS_RIG)
daemon-members-groups_LIBS   := $(banyand_LIBS)
daemon-members-groups_LDLIBS  = -lcmocka $(banyand_LDLIBS) -Wl,--wrap=by_groups_create,--wrap=by_groups_refused,--wrap=by_groups_left,--wrap=by_lowering_rank
TESTS += daemon-ahead
daemon-ahead_SRC    := tests/unit/control/service/daemon/test_ahead.c tests/unit/control/tables/bench.c
daemon-ahead_LIBS   := daemon control secure offload
daemon-ahead_LDLIBS := $(DAEMON_LDLIBS)
TESTS += daemon-ahead-records
daemon-ahead-records_SRC    := tests/unit/control/service/daemon/test_ahead_records.c tests/unit/control/service/daemon/record.c tests/unit/control/tables/bench.c control/service/daemon/ahead.c control/service/daemon/ahead_plans.c
daemon-ahead-records_LIBS   := control offload
daemon-ahead-records_LDLIBS := -lcmocka -ljansson -lgmp -Wl,--wrap=kill,--wrap=waitpid
TESTS += daemon-loop
daemon-loop_SRC    := tests/unit/control/service/daemon/test_loop.c tests/unit/control/service/daemon/record.c tests/unit/control/service/daemon/said.c control/service/daemon/loop.c
daemon-loop_LIBS   := offload
daemon-loop_LDLIBS := -lcmocka -Wl,--wrap=clock_gettime,--wrap=epoll_ctl,--wrap=epoll_wait,--wrap=timerfd_create,--wrap=timerfd_settime,--wrap=signalfd,--wrap=sigprocmask,--wrap=read,--wrap=close
TESTS += daemon-options daemon-queue
daemon-options_SRC    := tests/unit/control/service/daemon/test_options.c
daemon-options_LIBS   := daemon control secure offload
daemon-options_LDLIBS := $(DAEMON_LDLIBS)
daemon-queue_SRC      := tests/unit/control/service/daemon/test_queue.c
daemon-queue_LIBS     := daemon control secure offload
daemon-queue_LDLIBS   := $(DAEMON_LDLIBS)
TESTS += daemon-history
daemon-history_SRC    := tests/unit/control/service/daemon/test_history.c
daemon-history_LIBS   := daemon control secure offload
daemon-history_LDLIBS := $(DAEMON_LDLIBS)
TESTS += daemon-status
daemon-status_SRC    := tests/unit/control/service/daemon/test_status.c tests/unit/control/tables/bench.c
daemon-status_LIBS   := daemon control secure offload
daemon-status_LDLIBS := $(DAEMON_LDLIBS)
TESTS += daemon-listen
daemon-listen_SRC    := tests/unit/control/service/daemon/test_listen.c
daemon-listen_LIBS   := daemon control secure offload
daemon-listen_LDLIBS := $(DAEMON_LDLIBS)
TESTS += daemon-etcd-client
daemon-etcd-client_SRC    := tests/unit/control/service/daemon/test_etcd_client.c
daemon-etcd-client_LIBS   := daemon control secure offload
daemon-etcd-client_LDLIBS := $(DAEMON_LDLIBS)
TESTS += daemon-etcd-requests
daemon-etcd-requests_SRC    := tests/unit/control/service/daemon/test_etcd_requests.c tests/unit/control/service/daemon/record.c control/service/daemon/etcd.c
daemon-etcd-requests_LIBS   := control secure offload
daemon-etcd-requests_LDLIBS := $(DAEMON_LDLIBS) -Wl,--wrap=curl_global_init,--wrap=curl_easy_init,--wrap=curl_easy_cleanup,--wrap=curl_easy_setopt,--wrap=curl_easy_perform,--wrap=by_dial_now_ms
TESTS += daemon-renew
daemon-renew_SRC    := tests/unit/control/service/daemon/test_renew.c tests/unit/control/tables/bench.c control/service/daemon/renew.c control/service/daemon/groups.c control/service/daemon/job.c
daemon-renew_LIBS   := control offload
daemon-renew_LDLIBS := -lcmocka -ljansson -lgmp
TESTS += daemon-recover-rank
daemon-recover-rank_SRC    := tests/unit/control/service/daemon/test_recover_rank.c tests/unit/control/service/daemon/acts.c control/service/daemon/recover.c control/service/daemon/recover_job.c control/service/daemon/recover_part.c
daemon-recover-rank_LIBS   := offload
daemon-recover-rank_LDLIBS := -lcmocka
TESTS += daemon-recover-times
daemon-recover-times_SRC    := tests/unit/control/service/daemon/test_recover_times.c tests/unit/control/service/daemon/acts.c control/service/daemon/recover.c control/service/daemon/recover_job.c control/service/daemon/recover_part.c
daemon-recover-times_LIBS   := offload
daemon-recover-times_LDLIBS := -lcmocka -Wl,--wrap=calloc,--wrap=realloc
TESTS += daemon-swallow-exact
daemon-swallow-exact_SRC    := tests/unit/control/service/daemon/test_blackhole_exact.c control/service/daemon/blackhole.c
daemon-swallow-exact_LIBS   := offload
daemon-swallow-exact_LDLIBS := -lcmocka
# Parts of the daemon alone, with the others replaced by the test.
TESTS += daemon-switches daemon-admit daemon-jobs daemon-start daemon-watch
daemon-switches_SRC    := tests/unit/control/service/daemon/test_switches.c tests/unit/control/service/daemon/record.c tests/unit/control/service/daemon/said.c tests/unit/control/tables/bench.c control/service/daemon/switches.c
daemon-switches_LIBS   := control offload
daemon-switches_LDLIBS := -lcmocka -ljansson -lgmp
daemon-admit_SRC       := tests/unit/control/service/daemon/test_admit.c tests/unit/control/tables/bench.c control/service/daemon/admit.c
daemon-admit_LIBS      := control offload
daemon-admit_LDLIBS    := -lcmocka -ljansson -lgmp
daemon-jobs_SRC        := tests/unit/control/service/daemon/test_jobs.c tests/unit/control/service/daemon/record.c tests/unit/control/service/daemon/said.c control/service/daemon/jobs.c
daemon-jobs_LIBS       := control offload
daemon-jobs_LDLIBS     := -lcmocka -ljansson -lgmp
daemon-start_SRC       := tests/unit/control/service/daemon/test_start.c tests/unit/control/service/daemon/record.c tests/unit/control/tables/bench.c control/service/daemon/start.c control/service/daemon/job.c
daemon-start_LIBS      := control offload
daemon-start_LDLIBS    := -lcmocka -ljansson -lgmp
daemon-watch_SRC       := tests/unit/control/service/daemon/test_watch.c tests/unit/control/service/daemon/record.c control/service/daemon/watch.c
daemon-watch_LIBS      := control offload
daemon-watch_LDLIBS    := -lcmocka -ljansson -lgmp -lpthread -Wl,--wrap=clock_gettime,--wrap=poll,--wrap=pthread_create,--wrap=pthread_join,--wrap=eventfd_read,--wrap=eventfd_write
TESTS += daemon-recovery
daemon-recovery_SRC    := tests/unit/control/service/daemon/test_recovery.c tests/unit/control/service/daemon/record.c tests/unit/control/service/daemon/said.c tests/unit/control/service/daemon/drive.c tests/unit/control/tables/bench.c control/service/daemon/recovery.c control/service/daemon/recovery_waits.c control/service/daemon/recover.c control/service/daemon/recover_job.c control/service/daemon/recover_part.c
daemon-recovery_LIBS   := control offload
daemon-recovery_LDLIBS := -lcmocka -ljansson -lgmp -Wl,--wrap=timerfd_settime,--wrap=read,--wrap=timerfd_create,--wrap=by_recover_open
TESTS += daemon-recovery-edges
daemon-recovery-edges_SRC    := tests/unit/control/service/daemon/test_recovery_edges.c tests/unit/control/service/daemon/record.c tests/unit/control/service/daemon/said.c tests/unit/control/service/daemon/drive.c tests/unit/control/tables/bench.c control/service/daemon/recovery.c control/service/daemon/recovery_waits.c control/service/daemon/recover.c control/service/daemon/recover_job.c control/service/daemon/recover_part.c
daemon-recovery-edges_LIBS   := control offload
daemon-recovery-edges_LDLIBS := -lcmocka -ljansson -lgmp -Wl,--wrap=timerfd_settime,--wrap=read,--wrap=timerfd_create,--wrap=by_recover_open
TESTS += daemon-lead
daemon-lead_SRC    := tests/unit/control/service/daemon/test_lead.c tests/unit/control/service/daemon/record.c tests/unit/control/service/daemon/said.c control/service/daemon/lead.c
daemon-lead_LIBS   := control offload
daemon-lead_LDLIBS := -lcmocka -ljansson -lgmp -lpthread -Wl,--wrap=gethostname,--wrap=poll,--wrap=pthread_create,--wrap=pthread_join
TESTS += daemon-changes
daemon-changes_SRC    := tests/unit/control/service/daemon/test_changes.c tests/unit/control/service/daemon/record.c tests/unit/control/service/daemon/steps.c tests/unit/control/tables/bench.c control/service/daemon/changes.c
daemon-changes_LIBS   := control offload
daemon-changes_LDLIBS := -lcmocka -ljansson -lgmp -Wl,--wrap=clock_gettime,--wrap=eventfd
TESTS += daemon-changes-standby
daemon-changes-standby_SRC    := tests/unit/control/service/daemon/test_changes_standby.c tests/unit/control/service/daemon/record.c tests/unit/control/service/daemon/steps.c tests/unit/control/tables/bench.c control/service/daemon/changes.c
daemon-changes-standby_LIBS   := control offload
daemon-changes-standby_LDLIBS := -lcmocka -ljansson -lgmp -Wl,--wrap=clock_gettime,--wrap=eventfd
TESTS += daemon-fabric
daemon-fabric_SRC    := tests/unit/control/service/daemon/test_fabric.c tests/unit/control/tables/bench.c
daemon-fabric_LIBS   := daemon control secure offload
daemon-fabric_LDLIBS := $(DAEMON_LDLIBS)
TESTS += daemon-fabric-plan
daemon-fabric-plan_SRC    := tests/unit/control/service/daemon/test_fabric_plan.c tests/unit/control/service/daemon/record.c tests/unit/control/tables/bench.c control/service/daemon/fabric.c
daemon-fabric-plan_LIBS   := daemon control secure offload
daemon-fabric-plan_LDLIBS := $(DAEMON_LDLIBS) -Wl,--wrap=by_apart_run,--wrap=by_plan_make,--wrap=by_replan,--wrap=by_plan_write,--wrap=by_verify_text,--wrap=by_plan_parse
TESTS += daemon-state-etcd
daemon-state-etcd_SRC    := tests/unit/control/service/daemon/test_state_etcd.c tests/unit/control/tables/bench.c
daemon-state-etcd_LIBS   := daemon control secure offload
daemon-state-etcd_LDLIBS := $(DAEMON_LDLIBS)
TESTS += daemon-begin
daemon-begin_SRC    := tests/unit/control/service/daemon/test_begin.c tests/unit/control/service/daemon/printed.c tests/unit/control/tables/bench.c
daemon-begin_LIBS   := daemon control secure offload
daemon-begin_LDLIBS := $(DAEMON_LDLIBS)
TESTS += daemon-http-local
daemon-http-local_SRC    := tests/unit/control/service/daemon/test_http_local.c control/service/daemon/http_local.c control/service/daemon/listen.c control/service/daemon/say.c
daemon-http-local_LIBS   := control secure offload
daemon-http-local_LDLIBS := -lcmocka -ljansson -lgmp
TESTS += daemon-follow
daemon-follow_SRC    := tests/unit/control/service/daemon/test_follow.c tests/unit/control/service/daemon/ask.c
daemon-follow_LIBS   := daemon control secure offload
daemon-follow_LDLIBS := $(DAEMON_LDLIBS)
TESTS += daemon-http-connections
daemon-http-connections_SRC    := tests/unit/control/service/daemon/test_http_connections.c control/service/daemon/http.c
daemon-http-connections_LIBS   := control offload
daemon-http-connections_LDLIBS := -lcmocka -ljansson -lgmp
TESTS += daemon-http-read
daemon-http-read_SRC    := tests/unit/control/service/daemon/test_http_read.c tests/unit/control/service/daemon/record.c control/service/daemon/http_read.c
daemon-http-read_LIBS   := control offload
daemon-http-read_LDLIBS := -lcmocka -ljansson -lgmp
TESTS += daemon-http-route
daemon-http-route_SRC    := tests/unit/control/service/daemon/test_http_route.c tests/unit/control/service/daemon/record.c control/service/daemon/http.c
daemon-http-route_LIBS   := control offload
daemon-http-route_LDLIBS := -lcmocka -ljansson -lgmp
TESTS += daemon-http-jobs daemon-notice daemon-reduce
daemon-http-jobs_SRC    := tests/unit/control/service/daemon/test_http_jobs.c tests/unit/control/tables/bench.c control/service/daemon/http_jobs.c control/service/daemon/job.c
daemon-http-jobs_LIBS   := control offload
daemon-http-jobs_LDLIBS := -lcmocka -ljansson -lgmp
daemon-notice_SRC       := tests/unit/control/service/daemon/test_notice.c tests/unit/control/tables/bench.c control/service/daemon/notice.c control/service/daemon/blackhole.c
daemon-notice_LIBS      := control offload
daemon-notice_LDLIBS    := -lcmocka -ljansson -lgmp
daemon-reduce_SRC       := tests/unit/control/service/daemon/test_reduce.c control/service/daemon/reduce.c
daemon-reduce_LIBS      := control offload
daemon-reduce_LDLIBS    := -lcmocka -ljansson
TESTS += daemon-job daemon-paths
daemon-job_SRC      := tests/unit/control/service/daemon/test_job.c tests/unit/control/tables/bench.c control/service/daemon/job.c
daemon-job_LIBS     := control offload
daemon-job_LDLIBS   := -lcmocka -ljansson -lgmp
daemon-paths_SRC    := tests/unit/control/service/daemon/test_paths.c tests/unit/control/service/daemon/record.c tests/unit/control/service/daemon/said.c control/service/daemon/paths.c control/service/daemon/news.c
daemon-paths_LIBS   := offload
daemon-paths_LDLIBS := -lcmocka -Wl,--wrap=clock_gettime
TESTS += daemon-members-open
daemon-members-open_SRC    := tests/unit/control/service/daemon/test_members_open.c tests/unit/control/service/daemon/printed.c tests/unit/control/service/daemon/record.c control/service/daemon/members_open.c
daemon-members-open_LIBS   := offload
daemon-members-open_LDLIBS := -lcmocka -Wl,--wrap=getrlimit,--wrap=setrlimit,--wrap=accept4
TESTS += daemon-work
daemon-work_SRC    := tests/unit/control/service/daemon/test_work.c control/service/daemon/work.c
daemon-work_LIBS   := offload
daemon-work_LDLIBS := -lcmocka -lpthread
TESTS += daemon-parts
daemon-parts_SRC    := tests/unit/control/service/daemon/test_parts.c tests/unit/control/service/daemon/printed.c tests/unit/control/service/daemon/record.c tests/unit/control/service/daemon/said.c tests/unit/control/tables/bench.c control/service/daemon/daemon.c
daemon-parts_LIBS   := daemon control secure offload
daemon-parts_LDLIBS := $(DAEMON_LDLIBS) -Wl,--wrap=pthread_create,--wrap=pthread_join,--wrap=clock_gettime,--wrap=sem_clockwait,--wrap=_exit,--wrap=by_topology_read,--wrap=by_topology_free,--wrap=by_site_read,--wrap=by_lower_mtu_least
TESTS += daemon-apart-calls
daemon-apart-calls_SRC    := tests/unit/control/service/daemon/test_apart_calls.c tests/unit/control/service/daemon/record.c control/service/daemon/apart.c
daemon-apart-calls_LIBS   := control offload
daemon-apart-calls_LDLIBS := -lcmocka -ljansson -lgmp -Wl,--wrap=pipe2,--wrap=fork,--wrap=clock_gettime,--wrap=poll,--wrap=read,--wrap=write,--wrap=kill,--wrap=waitpid
# The store alone.
TESTS += daemon-state-errors
daemon-state-errors_SRC    := tests/unit/control/service/daemon/test_state_errors.c tests/unit/control/service/daemon/record.c tests/unit/control/service/daemon/store.c tests/unit/control/tables/bench.c control/service/daemon/state.c control/service/daemon/state_jobs.c control/service/daemon/state_folder.c
daemon-state-errors_LIBS   := daemon control secure offload
daemon-state-errors_LDLIBS := $(DAEMON_LDLIBS) -Wl,--wrap=sqlite3_step,--wrap=sqlite3_prepare_v2,--wrap=sqlite3_exec,--wrap=sqlite3_close,--wrap=sqlite3_bind_int64,--wrap=sqlite3_bind_text,--wrap=sqlite3_bind_blob64
TESTS += daemon-state-folder
daemon-state-folder_SRC    := tests/unit/control/service/daemon/test_state_folder.c tests/unit/control/service/daemon/record.c tests/unit/control/service/daemon/said.c control/service/daemon/state_folder.c
daemon-state-folder_LIBS   := control offload
daemon-state-folder_LDLIBS := -lcmocka -ljansson -lgmp -Wl,--wrap=chmod,--wrap=fchmod,--wrap=stat,--wrap=flock,--wrap=nanosleep,--wrap=geteuid
TESTS += daemon-state daemon-state-late
daemon-state_SRC         := tests/unit/control/service/daemon/test_state.c tests/unit/control/service/daemon/store.c tests/unit/control/tables/bench.c
daemon-state_LIBS        := daemon control secure offload
daemon-state_LDLIBS      := $(DAEMON_LDLIBS)
daemon-state-late_SRC    := tests/unit/control/service/daemon/test_state_late.c tests/unit/control/service/daemon/store.c tests/unit/control/tables/bench.c
daemon-state-late_LIBS   := daemon control secure offload
daemon-state-late_LDLIBS := $(DAEMON_LDLIBS)
