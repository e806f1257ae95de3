# classes: plans of fabrics made of alike parts, by classes of trees.
control_SRC += \
	control/planner/classes/alike.c \
	control/planner/classes/around.c \
	control/planner/classes/classes.c \
	control/planner/classes/fold.c \
	control/planner/classes/class_trees.c \
	control/planner/classes/inner.c \
	control/planner/classes/routes.c \
	control/planner/classes/symmetry.c
