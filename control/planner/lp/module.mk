# lp: exact linear programs. A separate library, so that only programs that solve them link with
# Clp.
LIBS += lp
lp_SRC := \
	control/planner/lp/check.c \
	control/planner/lp/clp.c \
	control/planner/lp/factor.c \
	control/planner/lp/lp.c \
	control/planner/lp/simplex.c \
	control/planner/lp/write.c
banyan_LIBS += lp
banyan_LDLIBS += -lClp
