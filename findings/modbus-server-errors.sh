#!/bin/sh
# simonvetter/modbus v1.6.4: an error that a handler wraps becomes exception 4, and unit
# 0 is answered.
#
# A handler refuses a request with one of the errors of the package, which the server
# sends as the exception of that code. The comparison is by value: an error that wraps
# it with its context is sent as "server device failure" (4), as every other error is.
# Unit 0 is the broadcast address of serial lines, which no device answers; the server
# passes it to the handler and answers.
#
# A good guess: errors.Is finds the exception in a wrapped error, so the client sees
# code 2.
#
# Seen on 28 November 2026:
#   illegal data address: illegal data address
#   pump 3: illegal data address: server device failure
#   unit 0: register 5, error <nil>
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
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"time"

	"github.com/simonvetter/modbus"
)

type device struct{ refuse error }

func (*device) HandleCoils(*modbus.CoilsRequest) ([]bool, error) { return nil, errors.New("none") }
func (*device) HandleDiscreteInputs(*modbus.DiscreteInputsRequest) ([]bool, error) {
	return nil, errors.New("none")
}
func (*device) HandleInputRegisters(*modbus.InputRegistersRequest) ([]uint16, error) {
	return nil, errors.New("none")
}
func (d *device) HandleHoldingRegisters(*modbus.HoldingRegistersRequest) ([]uint16, error) {
	return []uint16{5}, d.refuse
}

func main() {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	url := "tcp://" + free.Addr().String()
	must(free.Close())
	quiet := log.New(io.Discard, "", 0)
	d := &device{}
	server, err := modbus.NewServer(&modbus.ServerConfiguration{URL: url, Timeout: 30 * time.Second, MaxClients: 1, Logger: quiet}, d)
	must(err)
	must(server.Start())
	defer server.Stop()
	client, err := modbus.NewClient(&modbus.ClientConfiguration{URL: url, Timeout: 10 * time.Second, Logger: quiet})
	must(err)
	must(client.Open())
	defer client.Close()
	for _, refuse := range []error{modbus.ErrIllegalDataAddress, fmt.Errorf("pump 3: %w", modbus.ErrIllegalDataAddress)} {
		d.refuse = refuse
		_, err := client.ReadRegister(0, modbus.HOLDING_REGISTER)
		fmt.Printf("%v: %v\n", refuse, err)
	}
	d.refuse = nil
	must(client.SetUnitId(0))
	v, err := client.ReadRegister(0, modbus.HOLDING_REGISTER)
	fmt.Printf("unit 0: register %d, error %v\n", v, err)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require github.com/simonvetter/modbus@v1.6.4
go mod tidy >/dev/null 2>&1
go run . >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
