#!/bin/sh
# gopher-lua v1.1.2 (github.com/yuin/gopher-lua): the text of string.format("%q") is
# read back as a different string.
#
# %q is for writing a string so that the Lua interpreter reads it back unchanged (manual
# of Lua 5.1, 5.4). gopher-lua formats it with %q of Go, which writes control characters
# as \x01; Lua 5.1 has no such escape, and the parser of gopher-lua reads it as "x01". A
# table that is stored as Lua code changes without an error. Also, the frontier pattern
# %f, which Lua 5.1 has, never matches.
#
# A good guess: %q round-trips in every Lua; that is its purpose.
#
# Seen on 28 November 2026:
#   %q of a control character reads back unchanged: false
#   its length: 5 instead of 3
#   %f matches: 0
#
# Exits with 1 if the behaviour changed.
set -eu
self=$(realpath "$0")
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
export GOWORK=off GOFLAGS=-mod=mod
cat >main.go <<'GO'
package main

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"
)

func main() {
	for _, c := range []struct{ name, code string }{
		{"%q of a control character reads back unchanged", `return loadstring("return " .. string.format("%q", "a\1b"))() == "a\1b"`},
		{"its length", `return #loadstring("return " .. string.format("%q", "a\1b"))() .. " instead of " .. #"a\1b"`},
		{"%f matches", `return (select(2, ("THE END"):gsub("%f[%a]%a+", "x")))`},
	} {
		L := lua.NewState()
		if err := L.DoString(c.code); err != nil {
			panic(err)
		}
		fmt.Printf("%s: %v\n", c.name, L.Get(-1))
		L.Close()
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require github.com/yuin/gopher-lua@v1.1.2
go mod tidy >/dev/null 2>&1
go run . >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
