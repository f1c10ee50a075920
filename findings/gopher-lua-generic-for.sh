#!/usr/bin/env bash
# gopher-lua v1.1.2: `for k, v in next, t do` does not visit all of t.
#
# The manual of Lua 5.1 (2.4.5) fills the missing third value of the list with nil,
# so that the loop starts at the first key. gopher-lua's compiler fills as many
# values as there are names, so with two names and two values the control variable
# is whatever its register had before. With an explicit nil the loop is right, and
# so is `in pairs(t)`, whose call returns three values. No error is raised.
#
# A good guess: the loop is the same as with an explicit nil, sum 18.
#
# Seen on 27 November 2026:
#   for k, v in next, {5, 6, 7} do ... end        sum 0
#   for k, v in next, {5, 6, 7}, nil do ... end   sum 18
#   for k, v in pairs({5, 6, 7}) do ... end       sum 18
#
# Exits with 1 if the behaviour changed.
set -euo pipefail
work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding >/dev/null 2>&1
go get github.com/yuin/gopher-lua@v1.1.2 >/dev/null 2>&1
cat >main.go <<'GO'
package main

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"
)

func main() {
	for _, list := range []string{"next, {5, 6, 7}", "next, {5, 6, 7}, nil", "pairs({5, 6, 7})"} {
		L := lua.NewState()
		if err := L.DoString("local sum = 0 for k, v in " + list + " do sum = sum + v end return sum"); err != nil {
			panic(err)
		}
		fmt.Printf("for k, v in %s: %v\n", list, L.Get(-1))
		L.Close()
	}
}
GO
go run . | tee seen
diff seen - <<'WANT'
for k, v in next, {5, 6, 7}: 0
for k, v in next, {5, 6, 7}, nil: 18
for k, v in pairs({5, 6, 7}): 18
WANT
