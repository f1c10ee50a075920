#!/bin/sh
# MCP Go SDK v1.8.0 (github.com/modelcontextprotocol/go-sdk), streamable HTTP client.
#
# A server says that a session has expired with the status 404. With a text as the
# body the client reports mcp.ErrSessionMissing. With a JSON-RPC error as the body,
# whose id is not null, it reports that error alone: errors.Is(err,
# mcp.ErrSessionMissing) is false, the session stays open, and every further call fails
# in the same way. Without an id, as the Python SDK 2.3.0 sends it ("id": null), it is
# ErrSessionMissing again.
#
# A good guess: the status decides, so all of them are ErrSessionMissing.
#
# Seen on 27 November 2026:
#   text body: session missing true
#   JSON-RPC error body: session missing false
#   JSON-RPC error body, second call: session missing false
#   JSON-RPC error body without an id: session missing true
#
# Exits with 1 if the behaviour changed.
set -eu
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'MOD'
module finding

go 1.26

require github.com/modelcontextprotocol/go-sdk v1.8.0
MOD
cat >main.go <<'GO'
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "t"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	try := func(name, kind, body string, calls int) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(text))
			if !bytes.Contains(text, []byte(`"tools/call"`)) {
				handler.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, body)
		}))
		defer s.Close()
		client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil)
		session, err := client.Connect(context.Background(), &mcp.StreamableClientTransport{Endpoint: s.URL}, nil)
		if err != nil {
			panic(err)
		}
		defer session.Close()
		for i := range calls {
			_, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: "t"})
			if i == 1 {
				name += ", second call"
			}
			fmt.Printf("%s: session missing %v\n", name, errors.Is(err, mcp.ErrSessionMissing))
		}
	}
	try("text body", "text/plain", "session not found", 1)
	try("JSON-RPC error body", "application/json", `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session has expired"}}`, 2)
	try("JSON-RPC error body without an id", "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Session not found"}}`, 1)
}
GO
export GOWORK=off GOFLAGS=-mod=mod
go mod tidy >/dev/null 2>&1
go run . >out
cat out
cat >want <<'WANT'
text body: session missing true
JSON-RPC error body: session missing false
JSON-RPC error body, second call: session missing false
JSON-RPC error body without an id: session missing true
WANT
cmp -s out want || { echo "the behaviour has changed" >&2; exit 1; }
