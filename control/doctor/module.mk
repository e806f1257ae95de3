# doctor: what would keep banyan from working, looked for and told with its remedy.
control_SRC += \
	control/doctor/check_controller.c \
	control/doctor/check_machine.c \
	control/doctor/check_place.c \
	control/doctor/check_switch.c \
	control/doctor/doctor.c \
	control/doctor/interface.c \
	control/doctor/keys.c \
	control/doctor/machine.c \
	control/doctor/peer.c \
	control/doctor/report.c \
	control/doctor/switches.c
