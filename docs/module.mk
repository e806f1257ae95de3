# docs: the pictures that programs of the tree draw. `banyan plot` draws the others; their pages name the commands.
.PHONY: picture
picture: lint-build ## draw docs/pictures/architecture.svg and rooms.svg; installs graphviz
	$(Q)tests/deps.sh picture
	$(Q)docs/pictures/architecture.py docs/pictures/architecture.svg
	$(Q)tests/lint/arrows.py $(B)/obj $(GEN) docs/pictures/rooms.svg
