# topology: fabrics, their files and presets.
control_SRC += \
	control/topology/build.c \
	control/topology/draft.c \
	control/topology/fraction.c \
	control/topology/import.c \
	control/topology/import_dot.c \
	control/topology/import_ib.c \
	control/topology/import_lldp.c \
	control/topology/import_nccl.c \
	control/topology/json.c \
	control/topology/links.c \
	control/topology/locate.c \
	control/topology/members.c \
	control/topology/names.c \
	control/topology/preset.c \
	control/topology/preset_box.c \
	control/topology/preset_fabric.c \
	control/topology/preset_irregular.c \
	control/topology/preset_regular.c \
	control/topology/read.c \
	control/topology/topology.c \
	control/topology/unit.c \
	control/topology/vary.c \
	control/topology/xml.c
banyan_SRC += control/cli/import.c
