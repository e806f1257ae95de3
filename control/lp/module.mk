# lp: exact linear programs. A library of its own: only what solves programs is linked with Clp.
LIBS += lp
lp_SRC := \
	control/lp/check.c \
	control/lp/clp.c \
	control/lp/factor.c \
	control/lp/lp.c \
	control/lp/simplex.c \
	control/lp/write.c
banyan_LIBS += lp
banyan_LDLIBS += -lClp
