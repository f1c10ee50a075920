#!/bin/sh
# go-mail v0.8.1 (github.com/wneessen/go-mail): WithSSL without a port connects to port
# 25.
#
# WithSSL says that the connection is encrypted from its first byte, and keeps the port
# of an unencrypted server, where the handshake fails. WithSSLPort sets both,
# and the same pair exists for STARTTLS: WithTLSPolicy stays at 25, WithTLSPortPolicy
# takes 587.
#
# A good guess: WithSSL takes 465, the port for it, as WithTLSPolicy(TLSMandatory) takes
# 587, unless WithPort says otherwise.
#
# Seen on 28 November 2026:
#   WithSSL: port 25
#   WithSSLPort: port 465
#   WithTLSPolicy: port 25
#   WithTLSPortPolicy: port 587
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

	"github.com/wneessen/go-mail"
)

func main() {
	show("WithSSL", mail.WithSSL())
	show("WithSSLPort", mail.WithSSLPort(false))
	show("WithTLSPolicy", mail.WithTLSPolicy(mail.TLSMandatory))
	show("WithTLSPortPolicy", mail.WithTLSPortPolicy(mail.TLSMandatory))
}

func show(name string, o mail.Option) {
	c, err := mail.NewClient("mail.example.com", o)
	if err != nil {
		panic(err)
	}
	_, port, err := net.SplitHostPort(c.ServerAddr())
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s: port %s\n", name, port)
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require github.com/wneessen/go-mail@v0.8.1
go mod tidy >/dev/null 2>&1
go run . >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
