#!/bin/sh
# gosnmp v1.47.0 (github.com/gosnmp/gosnmp): what an agent refuses is not an error, and
# in SNMPv1 one unknown OID empties the others.
#
# An agent answers a request that it refuses with an error status and the index of the
# variable. Get and Set return a nil error then; only SnmpPacket.Error has it. An
# SNMPv1 agent answers a Get with one unknown name in this way and sends the variables
# as they were asked, without values, so each of them is Null. The agent of this script
# does the same (RFC 1157, 4.1.2).
#
# A good guess: Set returns an error, and a Get of a known and an unknown OID has the
# value of the first.
#
# Seen on 28 November 2026:
#   Get: error <nil>, status NoSuchName at 2, types Null Null
#   Set: error <nil>, status NoSuchName at 2
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
	"net"
	"time"

	"github.com/gosnmp/gosnmp"
)

// agent refuses the second variable of each request.
func agent(conn net.PacketConn) {
	codec := &gosnmp.GoSNMP{Version: gosnmp.Version1, Community: "public"}
	buf := make([]byte, 4096)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		p, err := codec.SnmpDecodePacket(buf[:n])
		must(err)
		p.PDUType, p.Error, p.ErrorIndex = gosnmp.GetResponse, gosnmp.NoSuchName, 2
		out, err := p.MarshalMsg()
		must(err)
		_, err = conn.WriteTo(out, from)
		must(err)
	}
}

func main() {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(err)
	go agent(conn)
	g := &gosnmp.GoSNMP{Target: "127.0.0.1", Port: uint16(conn.LocalAddr().(*net.UDPAddr).Port), Version: gosnmp.Version1, Community: "public", Timeout: 10 * time.Second}
	must(g.Connect())
	p, err := g.Get([]string{".1.3.6.1.2.1.1.5.0", ".1.3.6.1.2.1.1.99.0"})
	fmt.Printf("Get: error %v, status %v at %d, types %v %v\n", err, p.Error, p.ErrorIndex, p.Variables[0].Type, p.Variables[1].Type)
	p, err = g.Set([]gosnmp.SnmpPDU{
		{Name: ".1.3.6.1.2.1.1.5.0", Type: gosnmp.OctetString, Value: "pump"},
		{Name: ".1.3.6.1.2.1.1.99.0", Type: gosnmp.OctetString, Value: "hall"},
	})
	fmt.Printf("Set: error %v, status %v at %d\n", err, p.Error, p.ErrorIndex)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require github.com/gosnmp/gosnmp@v1.47.0
go mod tidy >/dev/null 2>&1
go run . >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
