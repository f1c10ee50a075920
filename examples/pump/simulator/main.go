// The simulator is a pump as a Modbus server: go run ./simulator [ADDRESS]. Input register 0 is
// the pressure in tenths of a bar, input register 1 the counter of a meter, which 12 tenths of a
// kWh pass between two reads, and holding register 0 the speed in percent. It reports each write.
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"slices"
	"sync/atomic"
)

const (
	pressure = 87
	// The functions of the protocol.
	readHolding, readInput, writeSingle = 3, 4, 6
	illegalFunction                     = 1
)

var speed, counter atomic.Uint32

func main() {
	address := "127.0.0.1:5020"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	speed.Store(40)
	fmt.Println("pump: listening at", l.Addr())
	for {
		conn, err := l.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go serve(conn)
	}
}

// serve answers requests until the connection ends.
func serve(conn net.Conn) {
	defer conn.Close()
	for {
		header := make([]byte, 7) // transaction, protocol, length, unit
		if _, err := io.ReadFull(conn, header); err != nil {
			return
		}
		request := make([]byte, binary.BigEndian.Uint16(header[4:])-1)
		if _, err := io.ReadFull(conn, request); err != nil || len(request) < 5 {
			return
		}
		response := answer(request)
		binary.BigEndian.PutUint16(header[4:], uint16(len(response)+1)) //nolint:gosec // at most 252
		if _, err := conn.Write(slices.Concat(header, response)); err != nil {
			return
		}
	}
}

// answer returns the response to a request. Further registers have the value of the first.
func answer(request []byte) []byte {
	value := uint16(pressure)
	switch request[0] {
	case readHolding:
		value = uint16(speed.Load()) //nolint:gosec // a register
	case readInput:
		if binary.BigEndian.Uint16(request[1:]) == 1 {
			value = uint16(counter.Add(12)) //nolint:gosec // it wraps around, like a meter
		}
	case writeSingle:
		to := uint32(binary.BigEndian.Uint16(request[3:]))
		fmt.Printf("pump: speed %d -> %d\n", speed.Swap(to), to)
		return request
	default:
		return []byte{request[0] | 0x80, illegalFunction}
	}
	count := min(request[4], 125)
	response := []byte{request[0], 2 * count}
	for range count {
		response = binary.BigEndian.AppendUint16(response, value)
	}
	return response
}
