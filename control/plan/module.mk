# plan: the planner, and the commands that make topologies and plans.
banyan_SRC += control/cli/topo.c
