# preset: named fabrics.
control_SRC += \
	control/fabric/preset/preset.c \
	control/fabric/preset/preset_box.c \
	control/fabric/preset/preset_fabric.c \
	control/fabric/preset/preset_irregular.c \
	control/fabric/preset/preset_regular.c
