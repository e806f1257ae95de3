# flow: integer maximum flow and what it proves.
control_SRC += control/flow/flow.c control/flow/mesh.c control/flow/reach.c
