# Functions of the scripts that install what tests use. A script sources this file.

# usage prints the description at the top of the script, and fails.
usage() {
	sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2
	exit 2
}

# as_root runs a command as root, with sudo without a password if need be.
as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# apt_update reads the lists of Debian's packages.
apt_update() { as_root apt-get update -q >&2; }

# apt_install installs Debian packages.
apt_install() { # package...
	apt_update
	# RUNLEVEL keeps a package from starting its service.
	as_root env RUNLEVEL=1 apt-get install -q -y --no-install-recommends "$@" >&2
}

# tool_dir prints a directory of the cache for a tool at the versions that files pin.
tool_dir() { # name, file...
	local name=$1
	shift
	echo "${XDG_CACHE_HOME:-$HOME/.cache}/tea/tools/$name-$(cat "$@" | sha256sum | cut -c1-12)"
}

# cached carries out install and path for $dir, which the function install of the
# script fills. A concurrent call waits, and an interrupted one is repeated.
cached() { # the arguments of the script
	case ${1-} in
	install)
		if [ ! -f "$dir/complete" ]; then
			mkdir -p "${dir%/*}"
			exec 9>"$dir.lock"
			flock 9 2>/dev/null || true # not on every system
		fi
		if [ ! -f "$dir/complete" ]; then
			rm -rf "$dir"
			mkdir "$dir"
			install
			touch "$dir/complete"
		fi
		echo "$dir"
		;;
	path) echo "$dir" ;;
	*) usage ;;
	esac
}

# npm_install installs the packages that the files of a directory pin into $dir.
npm_install() { # directory
	cp "$1"/package.json "$1"/package-lock.json "$dir/"
	(cd "$dir" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
}

# pip_install installs the packages that a file pins into $dir/python.
pip_install() { # file
	python3 -m venv "$dir/python"
	"$dir/python/bin/pip" install -q --disable-pip-version-check --require-hashes -r "$1" >&2
}
