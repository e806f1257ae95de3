# flow: integer maximum flow and its certificates.
control_SRC += control/planner/flow/flow.c control/planner/flow/mesh.c control/planner/flow/reach.c
