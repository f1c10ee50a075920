#!/bin/sh
# gopcua v0.8.0 (github.com/gopcua/opcua/ua): a DateTime after April 2262 is read as a
# time of another century.
#
# OPC UA counts 100 nanoseconds from 1601 in 64 bits, which reaches beyond the year
# 30000, and the specification uses the end of 9999 for "no end". The library converts
# the count to nanoseconds from 1970 in 64 bits, which wraps around after 292 years.
# Buffer.Error reports nothing, in both directions.
#
# A good guess: a time.Time holds any year, so each of the values comes back unchanged.
#
# Seen on 28 November 2026:
#   2200-06-01: 2200-06-01, error <nil>
#   2263-06-01: 1678-11-10, error <nil>
#   2300-06-01: 1715-11-11, error <nil>
#   the largest count: 2185-07-21, error <nil>
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
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/gopcua/opcua/ua"
)

func main() {
	for _, year := range []int{2200, 2263, 2300} {
		at := time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC)
		written := ua.NewBuffer(nil)
		written.WriteTime(at)
		read := ua.NewBuffer(written.Bytes())
		fmt.Printf("%s: %s, error %v\n", at.Format(time.DateOnly), read.ReadTime().Format(time.DateOnly), read.Error())
	}
	read := ua.NewBuffer(binary.LittleEndian.AppendUint64(nil, math.MaxInt64))
	fmt.Printf("the largest count: %s, error %v\n", read.ReadTime().Format(time.DateOnly), read.Error())
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require github.com/gopcua/opcua@v0.8.0
go mod tidy >/dev/null 2>&1
go run . >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
