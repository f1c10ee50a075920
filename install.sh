#!/bin/sh
# Verifies the signature and the checksum of a release and installs tea from it. If that
# fails or is interrupted, the installed version remains. --help lists the options.
set -eu
version='' key='' # scripts/release sets both
releases=https://github.com/the-edge-agent/tea/releases/download

usage() {
	cat <<'END'
sh install.sh [--user | --system] [--version V] [--from DIR|URL] [--key KEY|FILE]
sh install.sh --uninstall [--user | --system]

--user       into ~/.local, without root: the default, except for root
--system     into /usr/local
--version    another version than the one this script belongs to
--from       the directory or URL with the files of a release; a directory needs no network
--key        another public key (RW...), or a file with it, to verify the signature with
--uninstall  remove the programs; workflows, runs, memories and settings remain

It needs minisign or OpenSSL 3, and curl or wget unless --from is a directory.
END
}

fail() {
	printf 'install.sh: %s\n' "$1" >&2
	[ -z "${2-}" ] || printf '  hint: %s\n' "$2" >&2
	exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# platform prints this machine's platform as in the names of the archives.
platform() {
	os=$(uname -s) arch=$(uname -m)
	[ "$arch" != aarch64 ] || [ "$(getconf LONG_BIT 2>/dev/null)" != 32 ] || arch=armv7 # a 64-bit kernel with 32-bit programs
	case $arch in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	armv7* | armv8l) arch=armv7 ;;
	esac
	echo "$(echo "$os" | tr '[:upper:]' '[:lower:]')_$arch"
}

# fetch copies a file of the release into the directory $new.
fetch() {
	case $from in
	http://* | https://*)
		if has curl; then
			status=$(curl -fsSL --retry 3 --connect-timeout 30 --speed-limit 100 --speed-time 60 -w '%{http_code}' -o "$new/$1" "$from/$1") && return
		elif has wget; then
			wget -nv -t 3 -T 60 -O "$new/$1" "$from/$1" 2>"$new/log" && return
			cat "$new/log" >&2
			status=$(grep ' 404' "$new/log") || true
		else
			fail "a download needs curl or wget" "install one of them, or pass --from DIR"
		fi
		case $status in *404*) ;; *) fail "$from/$1 cannot be downloaded" ;; esac
		;;
	*)
		if [ -f "$from/$1" ]; then
			cp "$from/$1" "$new/$1" && return
			fail "$from/$1 cannot be copied"
		fi
		;;
	esac
	fail "$from has no $1"
}

# signed verifies the signature FILE.minisig of a file.
signed() {
	if has minisign; then
		minisign -V -q -P "$key" -m "$1" -x "$1.minisig" >/dev/null 2>&1
		return
	fi
	{ openssl dgst -blake2b512 -binary "$1" >"$new/digest" && openssl pkeyutl -help 2>&1 | grep -q -e -rawin; } 2>/dev/null ||
		fail "the signature cannot be verified" "install minisign or OpenSSL 3"
	{
		printf '\060\052\060\005\006\003\053\145\160\003\041\000' # DER of an Ed25519 public key
		echo "$key" | openssl base64 -d -A | tail -c 32
	} >"$new/key"
	sed -n 2p "$1.minisig" | openssl base64 -d -A | tail -c 64 >"$new/signature"
	openssl pkeyutl -verify -pubin -keyform DER -inkey "$new/key" -rawin -in "$new/digest" -sigfile "$new/signature" >/dev/null 2>&1
}

# ours reports whether a path does not exist or is a link that this script made.
ours() {
	[ -L "$1" ] || [ -e "$1" ] || return 0
	case $(readlink "$1") in */lib/tea/[0-9]*) return 0 ;; esac
	return 1
}

# running reports whether the installation that made a directory NAME-PID-XXXXXX is running.
running() {
	pid=${1##*/} pid=${pid%-*} pid=${pid##*-}
	[ "$pid" != $$ ] && kill -0 "$pid" 2>/dev/null
}

# linked prints the directory of the version that $prefix/bin/tea links to.
linked() {
	target=$(readlink "$prefix/bin/tea") || return 0
	target=${target%/bin/tea}
	echo "${target##*/}"
}

# shared prints the links in $prefix besides bin/tea, each with the file in an archive that
# it points to. Its arguments are directories with manual pages.
shared() {
	echo share/bash-completion/completions/tea completions/tea.bash
	echo share/zsh/site-functions/_tea completions/tea.zsh
	echo share/fish/vendor_completions.d/tea.fish completions/tea.fish
	for dir in "$@"; do
		for page in "$dir"/tea*.1.gz; do
			page=${page##*/}
			[ "$page" = 'tea*.1.gz' ] || echo "share/man/man1/$page man1/$page"
		done
	done
}

# unlink removes a link that this script has made.
unlink() { ! ours "$prefix/$1" || rm -f "${prefix:?}/$1" || echo "note: $prefix/$1 remains"; }

uninstall() {
	if ! [ -L "$prefix/bin/tea" ] || ! ours "$prefix/bin/tea"; then
		fail "$prefix/bin/tea does not exist or was not installed by this script" "--user removes it from ~/.local, --system from /usr/local"
	fi
	shared "$prefix/share/man/man1" | while read -r link _; do unlink "$link"; done
	rm -f "$prefix/bin/tea"
	rm -rf "${lib:?}"/[0-9]* "$lib"/.new*
	rmdir "$lib" 2>/dev/null || true
	echo "tea was removed from $prefix"
}

install() {
	ours "$prefix/bin/tea" || fail "$prefix/bin/tea exists and was not installed by this script" "remove it first"
	case $key in
	RW*) ;;
	?*) key=$(grep '^RW' "$key") || fail "the file for --key has no public key (RW...)" ;;
	*) fail "this file has no public key" "use the install.sh of a release, or pass --key" ;;
	esac
	[ -n "$from$version" ] || fail "no version is given" "pass --version or --from"
	from=${from:-$releases/v$version}
	mkdir -p "$lib" "$prefix/bin"
	for old in "$lib"/.new*; do # left by an installation that was killed
		running "$old" || rm -rf "$old"
	done
	new=$(mktemp -d "$lib/.new-$$-XXXXXX")
	trap 'rm -rf "$new"' EXIT
	trap 'exit 130' HUP INT TERM

	fetch checksums.txt
	fetch checksums.txt.minisig
	signed "$new/checksums.txt" || fail "the signature of $from/checksums.txt is not valid: the files are not signed with the key $key"
	platform=$(platform)
	archive=$(sed -n "s/^[0-9a-f]\{64\}  \(tea_[0-9][^/]*_$platform\.tar\.gz\)$/\1/p" "$new/checksums.txt")
	[ -n "$archive" ] || fail "the release has no archive for $platform"
	found=${archive#tea_} found=${found%"_$platform.tar.gz"}
	[ "$found" = "${version:-$found}" ] || fail "$from has version $found, not $version" "pass --version $found to install it"
	fetch "$archive"
	(cd "$new" && grep "  $archive\$" checksums.txt | { if has sha256sum; then sha256sum -c; else shasum -a 256 -c; fi; }) >/dev/null 2>&1 ||
		fail "the checksum of $archive is wrong: the file is damaged" "download it again"
	tar -C "$new" -xzf "$new/$archive"
	unpacked=$new/${archive%.tar.gz}
	"$unpacked/bin/tea" version >/dev/null || fail "tea does not run on this machine ($platform)"

	before=$(linked)
	dir=$found-${new##*/.new-} # a new directory: the new version is installed when the link changes
	mv "$unpacked" "$lib/$dir"
	ln -s "$lib/$dir/bin/tea" "$new/tea"
	mv -f "$new/tea" "$prefix/bin/tea"
	shared "$prefix/share/man/man1" "$lib/$dir/share/man1" | sort -u | while read -r link file; do
		[ -f "$lib/$dir/share/$file" ] || { unlink "$link" && continue; } # a page of the previous version
		! ours "$prefix/$link" || { mkdir -p "$prefix/${link%/*}" && ln -sf "$lib/$dir/share/$file" "$prefix/$link"; } ||
			echo "note: $prefix/$link cannot be written"
	done
	for old in "$lib"/[0-9]*; do # running programs may need the previous version
		case ${old##*/} in "$before" | "$dir" | "$(linked)") ;; *) running "$old" || rm -rf "$old" || echo "note: $old remains" ;; esac
	done
	echo "tea $found is installed: $prefix/bin/tea"
	case :$PATH: in
	*:"$prefix/bin":*) [ "$(command -v tea)" = "$prefix/bin/tea" ] || echo "note: $(command -v tea) comes first in PATH" ;;
	*) echo "note: $prefix/bin is not in PATH; add it with: export PATH=\"$prefix/bin:\$PATH\"" ;;
	esac
	echo "\`tea doctor\` checks this machine"
}

main() {
	from='' action=install where=user
	[ "$(id -u)" != 0 ] || where=system
	while [ $# -gt 0 ]; do
		case $1 in
		--user | --system) where=${1#--} ;;
		--uninstall) action=uninstall ;;
		--version | --from | --key)
			[ $# -gt 1 ] || fail "$1 needs a value"
			case $1 in --version) version=${2#v} ;; --from) from=${2%/} ;; --key) key=$2 ;; esac
			shift
			;;
		-h | --help)
			usage
			return
			;;
		*) fail "unknown option $1" "--help lists the options" ;;
		esac
		shift
	done
	prefix=/usr/local
	[ "$where" = system ] || prefix=${HOME:?install.sh: HOME is not set}/.local
	[ "$where" = user ] || [ "$(id -u)" = 0 ] || fail "--system needs root" "run it with sudo, or pass --user"
	lib=$prefix/lib/tea
	umask 022
	"$action"
}

main "$@"
