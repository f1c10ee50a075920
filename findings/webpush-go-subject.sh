#!/bin/sh
# webpush-go v1.4.0 (github.com/SherClockHolmes/webpush-go): a subscriber "mailto:..."
# becomes "mailto:mailto:...".
#
# RFC 8292 wants the claim "sub" of the signature to be a mailto: or https: URI. The
# library puts "mailto:" before each Subscriber that does not begin with "https:", also
# before a complete URI. The signature is valid; a push service that checks the contact
# refuses the message.
#
# A good guess: the Subscriber is the URI of the RFC and is passed on, or gets "mailto:"
# only where it lacks it.
#
# Seen on 28 November 2026:
#   mailto:ada@example.com: sub mailto:mailto:ada@example.com
#   ada@example.com: sub mailto:ada@example.com
#   https://example.com/ada: sub https://example.com/ada
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
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	webpush "github.com/SherClockHolmes/webpush-go"
)

func main() {
	var sub string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "vapid t="), ",")
		var claims struct{ Sub string }
		text, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
		must(err)
		must(json.Unmarshal(text, &claims))
		sub = claims.Sub
		w.WriteHeader(http.StatusCreated)
	}))
	defer service.Close()
	private, public, err := webpush.GenerateVAPIDKeys()
	must(err)
	browser := &webpush.Subscription{Endpoint: service.URL, Keys: webpush.Keys{P256dh: public, Auth: base64.RawURLEncoding.EncodeToString(make([]byte, 16))}}
	for _, who := range []string{"mailto:ada@example.com", "ada@example.com", "https://example.com/ada"} {
		_, err := webpush.SendNotification([]byte("x"), browser, &webpush.Options{Subscriber: who, VAPIDPublicKey: public, VAPIDPrivateKey: private})
		must(err)
		fmt.Printf("%s: sub %s\n", who, sub)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require github.com/SherClockHolmes/webpush-go@v1.4.0
go mod tidy >/dev/null 2>&1
go run . >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
