#!/bin/sh
# A2A Go SDK v0.3.3 (github.com/a2aproject/a2a-go): the card of a 1.0 agent is read
# without an error and has no address.
#
# Version 1.0 of the protocol moved url, preferredTransport and protocolVersion of an
# agent card into supportedInterfaces. The resolver of the SDK for 0.3 ignores fields
# that it does not know and misses none, so it returns a card with an empty URL. The
# first error comes from the client, and names a transport, not a version.
#
# A good guess: resolving fails because the required url is missing, or the error names
# the protocol version.
#
# Seen on 28 November 2026:
#   1.0: resolve <nil>, URL "", version ""
#   1.0: client no compatible transports found: available transports - []
#   0.3: resolve <nil>, URL "/rpc", version "0.3.0"
#   0.3: client <nil>
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
	"strings"

	"github.com/a2aproject/a2a-go/a2aclient"
	"github.com/a2aproject/a2a-go/a2aclient/agentcard"
)

const card = `{"name": "a", "description": "b", "version": "1", "capabilities": {}, "defaultInputModes": ["text/plain"],
	"defaultOutputModes": ["text/plain"], "skills": [], %s}`

func main() {
	ctx := context.Background()
	for _, c := range []struct{ version, address string }{
		{"1.0", `"supportedInterfaces": [{"url": "SERVER/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]`},
		{"0.3", `"url": "SERVER/rpc", "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"`},
	} {
		server := httptest.NewServer(nil)
		server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, card, strings.ReplaceAll(c.address, "SERVER", server.URL))
		})
		got, err := agentcard.DefaultResolver.Resolve(ctx, server.URL)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: resolve %v, URL %q, version %q\n", c.version, err, strings.TrimPrefix(got.URL, server.URL), got.ProtocolVersion)
		_, err = a2aclient.NewFromCard(ctx, got)
		fmt.Printf("%s: client %v\n", c.version, err)
		server.Close()
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require github.com/a2aproject/a2a-go@v0.3.3
go mod tidy >/dev/null 2>&1
go run . >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
