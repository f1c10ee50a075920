#!/bin/sh
# Creates the user of the services, and the directory of their data.
set -e
if ! getent passwd tea >/dev/null; then
	if command -v systemd-sysusers >/dev/null; then
		systemd-sysusers /usr/lib/sysusers.d/tea.conf
	else
		groupadd --system tea
		useradd --system --gid tea --home-dir /var/lib/tea --no-create-home --shell /usr/sbin/nologin tea
	fi
fi
if [ ! -d /var/lib/tea ]; then
	mkdir -m 0750 /var/lib/tea
	chown tea:tea /var/lib/tea
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
