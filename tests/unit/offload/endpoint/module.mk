# Unit tests of the endpoint alone.
ENDPOINT_RIG := tests/unit/offload/endpoint/rig.c tests/sim/fabric.c tests/sim/image.c
TESTS += test_endpoint_share test_endpoint_call test_endpoint_send test_endpoint_accept test_endpoint_suspect \
	test_endpoint_session test_endpoint_guess test_endpoint_timer
test_endpoint_share_SRC     := tests/unit/offload/endpoint/test_share.c $(ENDPOINT_RIG)
test_endpoint_call_SRC      := tests/unit/offload/endpoint/test_call.c $(ENDPOINT_RIG)
test_endpoint_send_SRC      := tests/unit/offload/endpoint/test_send.c $(ENDPOINT_RIG)
test_endpoint_accept_SRC    := tests/unit/offload/endpoint/test_accept.c $(ENDPOINT_RIG)
test_endpoint_suspect_SRC   := tests/unit/offload/endpoint/test_suspect.c $(ENDPOINT_RIG)
test_endpoint_session_SRC   := tests/unit/offload/endpoint/test_session.c $(ENDPOINT_RIG)
test_endpoint_share_LIBS    := offload
test_endpoint_call_LIBS     := offload
test_endpoint_send_LIBS     := offload
test_endpoint_accept_LIBS   := offload
test_endpoint_suspect_LIBS  := offload
test_endpoint_share_LDLIBS  := -lcmocka
test_endpoint_call_LDLIBS   := -lcmocka
test_endpoint_send_LDLIBS   := -lcmocka
test_endpoint_accept_LDLIBS := -lcmocka
test_endpoint_suspect_LDLIBS := -lcmocka
test_endpoint_session_LIBS  := offload
test_endpoint_session_LDLIBS := -lcmocka
test_endpoint_guess_SRC     := tests/unit/offload/endpoint/test_guess.c $(ENDPOINT_RIG)
test_endpoint_guess_LIBS    := offload
test_endpoint_guess_LDLIBS  := -lcmocka
test_endpoint_timer_SRC     := tests/unit/offload/endpoint/test_timer.c
test_endpoint_timer_LIBS    := offload
test_endpoint_timer_LDLIBS  := -lcmocka
