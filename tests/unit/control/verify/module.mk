# Unit tests of control/verify.
TESTS += verify
verify_SRC    := tests/unit/control/verify/test_verify.c tests/unit/control/planner/rig.c
verify_LIBS   := control offload
verify_LDLIBS := -lcmocka -ljansson -lgmp
TESTS += verify-proof
verify-proof_SRC    := tests/unit/control/verify/test_proof.c tests/unit/control/planner/rig.c
verify-proof_LIBS   := control lp offload
verify-proof_LDLIBS := -lcmocka -ljansson -lgmp -lClp
