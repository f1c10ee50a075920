package device_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// pymodbus starts a server of test/pymodbus and returns its port.
func pymodbus(t testing.TB, args ...string) int {
	t.Helper()
	peertest.Long(t, "it starts pymodbus")
	python := filepath.Join(peertest.Dir(t, "../..", "pymodbus"), "python", "bin", "python")
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, python, append([]string{"../../test/pymodbus/server.py"}, args...)...)
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); _ = cmd.Wait() })
	var ready struct{ Port int }
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&ready); err != nil {
		t.Fatalf("pymodbus: %v", err)
	}
	return ready.Port
}

// onServer are the settings for a server, with points.
func onServer(url string, points object) object {
	return object{"modbus": object{"servers": object{"plc": object{"url": url, "timeout_seconds": 20}}, "points": points}}
}

var limits = []object{
	{"type": "int16", "value": int64(math.MinInt16)},
	{"type": "uint16", "value": int64(math.MaxUint16)},
	{"type": "int32", "value": int64(math.MinInt32)},
	{"type": "uint32", "value": int64(math.MaxUint32)},
	{"type": "int64", "value": int64(math.MinInt64)},
	{"type": "uint64", "value": json.Number("18446744073709551615")},
	{"type": "float32", "value": 3.4028235e38},
	{"type": "float64", "value": -math.MaxFloat64},
	{"type": "float32", "value": 0.1},
}

func width(kind any) int {
	return map[any]int{"int16": 1, "uint16": 1, "int32": 2, "uint32": 2, "float32": 2}[kind] + map[any]int{"int64": 4, "uint64": 4, "float64": 4}[kind]
}

// The input registers were encoded by pymodbus.
func TestReadsEachTypeInBothWordOrders(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"tcp", "rtuovertcp"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			p := newPlant(t, onServer(fmt.Sprintf("%s://127.0.0.1:%d", transport, pymodbus(t, transport)), nil))
			address := 100
			for _, order := range []string{"big", "little"} {
				for _, c := range limits {
					got := p.must("modbus.read", object{"table": "input", "address": address, "type": c["type"], "word_order": order})
					if diff := cmp.Diff(c["value"], got["value"]); diff != "" {
						t.Errorf("%s %s at %d: %s", order, c["type"], address, diff)
					}
					address += width(c["type"])
				}
			}
			if got := p.must("modbus.read", object{"table": "input", "address": address, "type": "float32"}); got["value"] != nil {
				t.Errorf("NaN is %v, want null", got["value"])
			}
			if got := p.must("modbus.read", object{"table": "discrete", "address": 0, "count": 3})["value"]; !cmp.Equal(got, []any{true, false, true}) {
				t.Errorf("discrete inputs: %v", got)
			}
		})
	}
}

func TestWritesEachTypeInEachOrder(t *testing.T) {
	t.Parallel()
	points := object{
		"level":  object{"address": 300, "type": "int16", "scale": 0.1, "offset": -50, "write": object{}},
		"flag":   object{"address": 301, "bit": 9, "write": object{}},
		"word":   object{"address": 301, "write": object{}},
		"valve":  object{"table": "coil", "address": 3, "write": object{}},
		"valves": object{"table": "coil", "address": 4, "count": 3, "write": object{}},
		"curve":  object{"address": 310, "count": 2, "type": "float32", "multiple": true, "write": object{}},
	}
	address := 400
	for _, words := range []string{"big", "little"} {
		for _, bytes := range []string{"big", "little"} {
			for i, c := range limits {
				points[fmt.Sprint(words, bytes, i)] = object{"address": address, "type": c["type"], "word_order": words, "byte_order": bytes, "write": object{}}
				address += 4
			}
		}
	}
	p := newPlant(t, onServer(fmt.Sprintf("tcp://127.0.0.1:%d", pymodbus(t, "tcp")), points))
	for _, order := range []string{"bigbig", "biglittle", "littlebig", "littlelittle"} {
		for i, c := range limits {
			point := fmt.Sprint(order, i)
			p.must("modbus.write", object{"point": point, "value": c["value"]})
			if diff := cmp.Diff(c["value"], p.must("modbus.read", object{"point": point})["value"]); diff != "" {
				t.Errorf("%s: %s", point, diff)
			}
		}
	}
	p.must("modbus.write", object{"point": "level", "value": -9.8})
	if got := p.must("modbus.read", object{"point": "level"}); got["value"] != -9.8 || !cmp.Equal(got["raw"], []any{int64(402)}) {
		t.Errorf("level: %v", got)
	}
	p.must("modbus.write", object{"point": "word", "value": 5})
	p.must("modbus.write", object{"point": "flag", "value": true})
	if got := p.must("modbus.read", object{"point": "word"})["value"]; got != int64(5+1<<9) {
		t.Errorf("a bit was set in 5: %v", got)
	}
	p.must("modbus.write", object{"point": "valve", "value": 1})
	p.must("modbus.write", object{"point": "valves", "value": []any{true, false, true}})
	if got := p.must("modbus.read", object{"table": "coil", "address": 3, "count": 4})["value"]; !cmp.Equal(got, []any{true, true, false, true}) {
		t.Errorf("coils: %v", got)
	}
	p.must("modbus.write", object{"point": "curve", "value": []any{1.5, -2}})
	if got := p.must("modbus.read", object{"point": "curve"})["value"]; !cmp.Equal(got, []any{1.5, -2.0}) {
		t.Errorf("curve: %v", got)
	}
	e := p.fails("modbus.read", object{"address": 5000}, tea.QueryError, nil)
	if e.Details["exception"] != "illegal_data_address" || e.Retryable {
		t.Errorf("exception: %v, %v", e, e.Details)
	}
}

func TestRefusesValuesThatDoNotFit(t *testing.T) {
	t.Parallel()
	p := newPlant(t, onServer("tcp://127.0.0.1:1", object{
		"small": object{"address": 0, "write": object{}}, "signed": object{"address": 0, "type": "int16", "write": object{}},
		"tenth": object{"address": 0, "scale": 0.1, "write": object{}}, "real": object{"address": 0, "type": "float32", "write": object{}},
		"big": object{"address": 0, "type": "uint64", "write": object{}}, "coil": object{"table": "coil", "address": 0, "write": object{}},
		"two": object{"address": 0, "count": 2, "write": object{}}, "input": object{"table": "input", "address": 0}, "holding": object{"address": 0},
	}))
	for point, values := range map[string][]any{
		"small": {-1, 65536, 1.5, "7", "5e1", nil, true}, "signed": {32768, -32769}, "tenth": {40.25, 6553.6, -0.1}, "real": {3.5e38, -3.5e38},
		"big": {-1, json.Number("18446744073709551616")}, "coil": {2, "true", nil, 0.5}, "two": {1, []any{1}, []any{1, 2, 3}, []any{1, -1}},
	} {
		for _, v := range values {
			p.fails("modbus.write", object{"point": point, "value": v}, tea.ValidationError, "none")
		}
	}
	p.fails("modbus.write", object{"point": "input", "value": 1}, tea.PermissionDenied, "none")
	p.fails("modbus.write", object{"point": "holding", "value": 1}, tea.PermissionDenied, "none")
	if e := p.fails("modbus.write", object{"point": "smal", "value": 1}, tea.NotFound, "none"); !strings.Contains(e.Message, `did you mean "small"?`) {
		t.Error(e)
	}
	p.fails("modbus.read", object{"point": "small", "address": 7}, tea.ValidationError, nil)
	p.fails("modbus.read", object{"address": 65535, "type": "int32"}, tea.ValidationError, nil)
	p.fails("modbus.read", object{"address": 0, "count": 126}, tea.ValidationError, nil)
}

func TestRefusesMistakesInTheSettings(t *testing.T) {
	t.Parallel()
	for want, settings := range map[string]object{
		"rtu:///dev/ttyUSB0":             onServer("http://plc", nil),
		"address is missing":             onServer("tcp://plc", object{"a": object{"write": object{}}}),
		"points.a.write: is not allowed": onServer("tcp://plc", object{"a": object{"address": 1, "table": "input", "write": object{}}}),
		"at most max":                    onServer("tcp://plc", object{"a": object{"address": 1, "write": object{"min": 2, "max": 1}}}),
		"points.a.type: is not allowed":  onServer("tcp://plc", object{"a": object{"address": 1, "table": "coil", "type": "int16"}}),
		"is not in servers":              onServer("tcp://plc", object{"a": object{"address": 1, "server": "plx"}}),
		"scale is 0":                     onServer("tcp://plc", object{"a": object{"address": 1, "scale": 0}}),
	} {
		if e := newPlant(t, settings).fails("modbus.read", object{"address": 0}, tea.ValidationError, nil); !strings.Contains(e.Message, want) {
			t.Errorf("got %v, want %q", e, want)
		}
	}
}

// double is a server that answers a request with any bytes. It counts the requests.
func double(t testing.TB, answer func(c net.Conn, request []byte)) (string, *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	count := new(atomic.Int32)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for {
					request := make([]byte, 12)
					if _, err := io.ReadFull(c, request); err != nil {
						return
					}
					count.Add(1)
					answer(c, request)
				}
			}()
		}
	}()
	return "tcp://" + l.Addr().String(), count
}

func TestSaysWhatABrokenWriteDid(t *testing.T) {
	t.Parallel()
	point := object{"p": object{"address": 7, "write": object{}}}
	// The answer to the write of a register repeats the request.
	for n := range 13 {
		url, count := double(t, func(c net.Conn, request []byte) {
			_, _ = c.Write(request[:n])
			if n < 12 {
				_ = c.Close()
			}
		})
		p := newPlant(t, onServer(url, point))
		if n == 12 {
			p.must("modbus.write", object{"point": "p", "value": 1})
		} else if e := p.fails("modbus.write", object{"point": "p", "value": 1}, tea.ConnectionError, "unknown"); e.Retryable {
			t.Errorf("cut after %d bytes: the error can be retried: %v", n, e)
		}
		if got := count.Load(); got != 1 {
			t.Errorf("cut after %d bytes: %d requests, want 1", n, got)
		}
	}
	p := newPlant(t, onServer("tcp://127.0.0.1:1", point))
	if e := p.fails("modbus.write", object{"point": "p", "value": 1}, tea.ConnectionError, "none"); !e.Retryable {
		t.Error("a write that was not sent cannot be retried")
	}
	for code, effect := range map[byte]string{1: "refused", 2: "refused", 3: "refused", 4: "unknown", 5: "unknown", 6: "refused", 10: "refused", 11: "unknown", 99: "unknown"} {
		url, _ := double(t, func(c net.Conn, request []byte) {
			_, _ = c.Write(append(request[:4:4], 0, 3, request[6], request[7]|0x80, code))
		})
		kind := tea.QueryError
		if code == 99 {
			kind = tea.ConnectionError
		}
		newPlant(t, onServer(url, point)).fails("modbus.write", object{"point": "p", "value": 1}, kind, effect)
	}
}

func TestReportsSilentAndWrongServers(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it waits for time limits")
	silent := func(net.Conn, []byte) {}
	wrong := map[string]func(r []byte) []byte{
		"another unit":        func(r []byte) []byte { return append(r[:4:4], 0, 5, r[6]+1, r[7], 2, 0, 1) },
		"another function":    func(r []byte) []byte { return append(r[:4:4], 0, 5, r[6], 6, 2, 0, 1) },
		"too many registers":  func(r []byte) []byte { return append(r[:4:4], 0, 7, r[6], r[7], 4, 0, 1, 0, 1) },
		"a wrong byte count":  func(r []byte) []byte { return append(r[:4:4], 0, 5, r[6], r[7], 9, 0, 1) },
		"a length of nothing": func(r []byte) []byte { return append(r[:4:4], 0, 0, r[6], r[7], 2, 0, 1) },
		"a huge length":       func(r []byte) []byte { return append(r[:4:4], 255, 255, r[6], r[7], 2, 0, 1) },
		"text":                func([]byte) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") },
	}
	for name, answer := range wrong {
		url, _ := double(t, func(c net.Conn, r []byte) { _, _ = c.Write(answer(r)); _ = c.Close() })
		p := newPlant(t, onServer(url, nil))
		if e := p.fails("modbus.read", object{"address": 0}, tea.ConnectionError, nil); !e.Retryable {
			t.Errorf("%s: %v", name, e)
		}
	}
	url, count := double(t, silent)
	settings := onServer(url, object{"p": object{"address": 0, "write": object{}}})
	settings["modbus"].(object)["servers"].(object)["plc"].(object)["timeout_seconds"] = 0.5
	p := newPlant(t, settings)
	p.fails("modbus.read", object{"address": 0}, tea.Timeout, nil)
	if e := p.fails("modbus.write", object{"point": "p", "value": 1}, tea.Timeout, "unknown"); e.Retryable {
		t.Error(e)
	}
	if got := count.Load(); got != 2 {
		t.Errorf("%d requests, want one read and one write", got)
	}
}

func TestConnectionsAreOpenedAgain(t *testing.T) {
	t.Parallel()
	conns := make(chan net.Conn, 10)
	url, count := double(t, func(c net.Conn, r []byte) {
		conns <- c
		_, _ = c.Write(append(r[:4:4], 0, 5, r[6], r[7], 2, 0, 9))
	})
	p := newPlant(t, onServer(url, nil))
	p.must("modbus.read", object{"address": 0})
	first := <-conns
	p.must("modbus.read", object{"address": 0})
	if second := <-conns; first != second {
		t.Error("the second read has a connection of its own")
	}
	_ = first.Close()
	p.must("modbus.read", object{"address": 0}) // once more on a new one
	if <-conns == first || count.Load() != 3 {
		t.Errorf("%d requests", count.Load())
	}
}

// A call that has ended must not write later.
func TestNoWriteAfterTheCallHasEnded(t *testing.T) {
	t.Parallel()
	release, reading := make(chan struct{}), make(chan struct{}, 10)
	url, count := double(t, func(c net.Conn, r []byte) {
		reading <- struct{}{}
		<-release
		_, _ = c.Write(append(r[:4:4], 0, 5, r[6], r[7], 2, 0, 9))
	})
	p := newPlant(t, onServer(url, object{"flag": object{"address": 0, "bit": 3, "write": object{}}}))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := p.callIn(ctx, "modbus.write", object{"point": "flag", "value": true})
		ended <- err
	}()
	<-reading // the register, before it is written
	stop()
	if e := tea.AsError(<-ended); e.Type != tea.Canceled || e.Details["effect"] != "none" {
		t.Errorf("got %v, %v", e, e.Details)
	}
	close(release)
	p.must("modbus.read", object{"address": 0})
	if got := count.Load(); got != 2 {
		t.Errorf("%d requests, want the read of the register and this one", got)
	}
}
