#!/bin/sh
# The runs and memories in /var/lib/tea stay, on purge too; an empty directory
# does not.
set -e
rmdir --ignore-fail-on-non-empty /var/lib/tea 2>/dev/null || true
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
