#!/bin/sh
# crane v0.22.1 (google/go-containerregistry): an OCI layout into which an image was pulled
# twice can no longer be pushed.
#
# crane pull --format=oci adds an entry to index.json each time, even for the image that
# is there. crane push of a layout needs exactly one entry, and refuses the directory. A
# job that updates its copy with the same command works only once. The entries have no tag
# either: --annotate-ref adds it.
#
# A good guess: a second pull of the same image changes nothing.
#
# Seen on 29 November 2026:
#   pulled once: 1 entry, pushed
#   pulled twice: 2 entries, layout contains 2 entries, consider --index
#
# Exits with 1 if the behaviour changed.
set -eu
self=$(realpath "$0")
dir=$(mktemp -d)
trap 'kill "${registry:-}" 2>/dev/null || true; chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
export GOWORK=off GOFLAGS=-mod=mod GOBIN="$dir"
go install github.com/google/go-containerregistry/cmd/crane@v0.22.1 >&2
./crane registry serve --address 127.0.0.1:0 >registry.log 2>&1 &
registry=$!
until address=$(sed -n 's/.*serving on port \([0-9]*\).*/127.0.0.1:\1/p' registry.log) && [ "$address" ]; do
	kill -0 "$registry"
	sleep 0.1
done
echo "75 C" >limit.txt
tar -cf layer.tar limit.txt
./crane append --oci-empty-base -f layer.tar -t "$address/pump:1" >/dev/null 2>&1
{
	./crane pull --format=oci "$address/pump:1" layout
	printf 'pulled once: %s entry, ' "$(grep -o '"digest"' layout/index.json | wc -l)"
	./crane push layout "$address/pump:2" >/dev/null 2>&1 && echo pushed
	./crane pull --format=oci "$address/pump:1" layout
	printf 'pulled twice: %s entries, ' "$(grep -o '"digest"' layout/index.json | wc -l)"
	./crane push layout "$address/pump:2" 2>&1 | sed -n 's/^Error: //p'
} >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
