# flow: integer maximum flow and what it proves.
control_SRC += control/planner/flow/flow.c control/planner/flow/mesh.c control/planner/flow/reach.c
