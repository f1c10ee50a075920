#!/bin/sh
# shoutrrr v0.13.2 (github.com/nicholas-fedor/shoutrrr): a redirect drops the message,
# and Send reports success.
#
# The generic service posts with the HTTP client of Go, which follows a 301 or 302 with
# GET and without the body. The answer 200 of the other address counts as delivered. A
# web hook that moved, or moved from http to https, loses each message without an error.
#
# A good guess: a POST that is redirected is repeated with its body, or Send returns an
# error.
#
# Seen on 28 November 2026:
#   error <nil>
#   POST /hook with 17 bytes
#   GET /moved with 0 bytes
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
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/nicholas-fedor/shoutrrr"
)

func main() {
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests = append(requests, fmt.Sprintf("%s %s with %d bytes", r.Method, r.URL.Path, len(body)))
		if r.URL.Path == "/hook" {
			http.Redirect(w, r, "/moved", http.StatusFound)
		}
	}))
	defer server.Close()
	fmt.Println("error", shoutrrr.Send("generic+"+server.URL+"/hook", "the pump is leaky"))
	for _, r := range requests {
		fmt.Println(r)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require github.com/nicholas-fedor/shoutrrr@v0.13.2
go mod tidy >/dev/null 2>&1
go run . >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
