# docs: the pictures drawn by scripts. `banyan plot` draws the others; their pages give the
# commands.
.PHONY: picture
picture: lint-build ## draw docs/pictures/architecture.svg and rooms.svg; installs graphviz
	$(Q)tests/deps.sh picture
	$(Q)docs/pictures/architecture.py docs/pictures/architecture.svg
	$(Q)tests/lint/arrows.py $(B)/obj $(GEN) docs/pictures/rooms.svg
