# doctor: finds problems of the environment and reports them with remedies.
control_SRC += \
	control/view/doctor/check_cable.c \
	control/view/doctor/check_controller.c \
	control/view/doctor/check_machine.c \
	control/view/doctor/check_place.c \
	control/view/doctor/check_switch.c \
	control/view/doctor/doctor.c \
	control/view/doctor/interface.c \
	control/view/doctor/keys.c \
	control/view/doctor/machine.c \
	control/view/doctor/peer.c \
	control/view/doctor/switches.c
