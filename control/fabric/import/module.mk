# import: fabrics from files of other programs.
control_SRC += \
	control/fabric/import/draft.c \
	control/fabric/import/import.c \
	control/fabric/import/import_dot.c \
	control/fabric/import/import_ib.c \
	control/fabric/import/import_lldp.c \
	control/fabric/import/import_nccl.c \
	control/fabric/import/lldp_json.c
