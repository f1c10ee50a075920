#!/bin/sh
# MCP Go SDK v1.8.0 (github.com/modelcontextprotocol/go-sdk): the HTTP handler speaks
# 2026-07-28 only if it is stateless.
#
# server/discover of a server lists 2026-07-28 over stdio, and Client.Connect uses it.
# Behind NewStreamableHTTPHandler with its default options the same server falls back to
# 2025-11-25, without a message, so a feature of the new version works in a test over
# stdio and not over HTTP. With Stateless it is the other way round: clients of the old
# version get no questions and no session.
#
# A good guess: a server of the SDK offers its newest version on every transport.
#
# Seen on 28 November 2026:
#   HTTP, Stateless false: 2025-11-25
#   HTTP, Stateless true: 2026-07-28
#   in memory: 2026-07-28
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
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	for _, stateless := range []bool{false, true} {
		web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: stateless}))
		show(fmt.Sprintf("HTTP, Stateless %v", stateless), &mcp.StreamableClientTransport{Endpoint: web.URL})
		web.Close()
	}
	near, far := mcp.NewInMemoryTransports()
	if _, err := server.Connect(context.Background(), near, nil); err != nil {
		panic(err)
	}
	show("in memory", far)
}

func show(name string, t mcp.Transport) {
	session, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(context.Background(), t, nil)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s: %s\n", name, session.InitializeResult().ProtocolVersion)
	_ = session.Close()
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require github.com/modelcontextprotocol/go-sdk@v1.8.0
go mod tidy >/dev/null 2>&1
go run . >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
