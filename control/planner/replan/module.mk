# replan: adapts a previous plan to a changed fabric.
control_SRC += \
	control/planner/replan/protect.c \
	control/planner/replan/protect_set.c \
	control/planner/replan/repair.c \
	control/planner/replan/repair_leaf.c \
	control/planner/replan/repair_low.c \
	control/planner/replan/repair_move.c \
	control/planner/replan/repair_tree.c \
	control/planner/replan/replan.c \
	control/planner/replan/replan_anew.c \
	control/planner/replan/replan_read.c \
	control/planner/replan/replan_write.c
