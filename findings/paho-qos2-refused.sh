#!/bin/sh
# paho.golang v0.23.0 (github.com/eclipse/paho.golang/paho), client of MQTT 5.
#
# A broker refuses a message with an error code: 0x87, not authorized. With QoS 1
# Client.Publish returns the response and an error, as its documentation suggests. With
# QoS 2 the code comes with PUBREC, and the error is nil: a caller that checks only the
# error takes the message as delivered. The broker is mochi-mqtt v2.7.9, which lets
# nobody publish; mosquitto 2.0.11 with an access list is answered in the same way.
#
# A good guess: both return an error.
#
# Seen on 28 November 2026:
#   QoS 1: reason code 0x87, error true
#   QoS 2: reason code 0x87, error false
#
# Exits with 1 if the behaviour changed.
set -eu
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'MOD'
module finding

go 1.26

require (
	github.com/eclipse/paho.golang v0.23.0
	github.com/mochi-mqtt/server/v2 v2.7.9
)
MOD
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/eclipse/paho.golang/paho"
	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"
)

// readOnly lets every client connect and none publish.
type readOnly struct{ mochi.HookBase }

func (*readOnly) ID() string { return "read-only" }
func (*readOnly) Provides(b byte) bool {
	return b == mochi.OnConnectAuthenticate || b == mochi.OnACLCheck
}
func (*readOnly) OnConnectAuthenticate(*mochi.Client, packets.Packet) bool { return true }
func (*readOnly) OnACLCheck(_ *mochi.Client, _ string, write bool) bool   { return !write }

func main() {
	server := mochi.New(&mochi.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	must(server.AddHook(new(readOnly), nil))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	must(server.AddListener(listeners.NewNet("l", l)))
	must(server.Serve())
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for qos := byte(1); qos <= 2; qos++ {
		conn, err := net.Dial("tcp", l.Addr().String())
		must(err)
		client := paho.NewClient(paho.ClientConfig{Conn: conn})
		_, err = client.Connect(ctx, &paho.Connect{ClientID: "finding", KeepAlive: 30, CleanStart: true})
		must(err)
		response, err := client.Publish(ctx, &paho.Publish{Topic: "a", QoS: qos, Payload: []byte("x")})
		code := -1
		if response != nil {
			code = int(response.ReasonCode)
		}
		fmt.Printf("QoS %d: reason code %#x, error %v\n", qos, code, err != nil)
		_ = client.Disconnect(&paho.Disconnect{})
	}
	_ = server.Close()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
GO
export GOWORK=off GOFLAGS=-mod=mod
go mod tidy >/dev/null 2>&1
go run . | tee seen
diff seen - <<'WANT'
QoS 1: reason code 0x87, error true
QoS 2: reason code 0x87, error false
WANT
