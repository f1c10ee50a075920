package device_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/device/internal/ptytest"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/filelock"
)

func TestModbusOverASerialLine(t *testing.T) {
	t.Parallel()
	near, far := ptytest.Pair(t)
	pymodbus(t, "rtu", far)
	p := newPlant(t, onServer("rtu://"+near, object{"speed": object{"address": 1, "type": "int32", "write": object{"min": -10, "max": 10}}}))
	p.must("modbus.write", object{"point": "speed", "value": -7})
	if got := p.must("modbus.read", object{"point": "speed"})["value"]; got != int64(-7) {
		t.Errorf("got %v", got)
	}
	if got := p.must("modbus.read", object{"table": "input", "address": 101})["value"]; got != int64(65535) {
		t.Errorf("got %v", got)
	}
	other, err := os.OpenFile(near, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := filelock.TryLock(other); err != nil { // also after a call, the port is free
		t.Fatal(err)
	}
	short, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	write := object{"point": "speed", "value": 3}
	if _, err = p.callIn(short, "modbus.write", write); err == nil || tea.AsError(err).Details["effect"] != "none" {
		t.Errorf("a write to a port in use: %v", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	p.must("modbus.write", write)
}

// onPort are the settings for a serial port with rules for what can be written.
func onPort(path string, rules ...any) object {
	return object{"serial": object{"ports": object{"scale": object{"path": path, "baud": 115200, "write": rules}}}}
}

// machine answers each line that is written to a serial port with the next answer.
func machine(t *testing.T, answers ...string) (*os.File, string, <-chan string) {
	t.Helper()
	control, path := ptytest.Line(t)
	lines := make(chan string, len(answers))
	go func() {
		in := bufio.NewReader(control)
		for _, answer := range answers {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			lines <- line
			_, _ = control.WriteString(answer)
		}
	}()
	return control, path, lines
}

func TestSerialAnswersEndWhereTheyShould(t *testing.T) {
	t.Parallel()
	control, path, written := machine(t, "12.5 kg\r\nrest", "\x02\xff\x00\x03", "ab\r\n", "abc")
	p := newPlant(t, onPort(path, object{"text": []any{"W\r\n"}}, object{"base64": []any{"AP8K"}}))
	_, _ = control.WriteString("0.0 kg\r\n") // an older answer
	for _, c := range []struct{ params, want object }{
		{object{"write": "W\r\n", "until": "\r\n", "timeout_seconds": 60}, object{"text": "12.5 kg", "bytes": int64(7)}},
		{object{"write_base64": "AP8K", "until_base64": "Aw==", "timeout_seconds": 60}, object{"text": nil, "base64": "Av8A", "bytes": int64(3)}},
		{object{"write": "W\r\n", "until": "x", "count": 4, "timeout_seconds": 60}, object{"text": "ab\r\n", "bytes": int64(4)}},
		{object{"write": "W\r\n", "timeout_seconds": 0.3}, object{"text": "abc", "bytes": int64(3)}},
	} {
		c.want["success"], c.want["port"], c.want["dry_run"] = true, "scale", false
		if diff := cmp.Diff(c.want, p.must("serial.exchange", c.params)); diff != "" {
			t.Errorf("%v: %s", c.params, diff)
		}
		<-written
	}
	if got := p.must("serial.exchange", object{"timeout_seconds": 0}); got["bytes"] != int64(0) {
		t.Errorf("nothing was to be read: %v", got)
	}
}

func TestSaysWhatABrokenSerialExchangeDid(t *testing.T) {
	t.Parallel()
	const answer = "12.5\r\n"
	exchange := object{"write": "W\n", "until": "\r\n", "timeout_seconds": 60}
	for n := range len(answer) {
		control, path := ptytest.Line(t)
		go func() {
			_, _ = bufio.NewReader(control).ReadString('\n')
			_, _ = control.WriteString(answer[:n])
			_ = control.Close()
		}()
		p := newPlant(t, onPort(path, object{"pattern": "W\n"}))
		if e := p.fails("serial.exchange", exchange, tea.ConnectionError, "unknown"); e.Retryable {
			t.Errorf("cut after %d bytes: %v", n, e)
		}
	}
	_, path, _ := machine(t, "12")
	p := newPlant(t, onPort(path, object{"pattern": "W\n"}))
	exchange["timeout_seconds"] = 0.3
	if e := p.fails("serial.exchange", exchange, tea.Timeout, "unknown"); e.Details["received"] != `"12"` {
		t.Errorf("a half answer: %v, %v", e, e.Details)
	}
	p.fails("serial.exchange", object{"until": "x", "timeout_seconds": 0.05}, tea.Timeout, "none") // only a read
	p = newPlant(t, onPort("/dev/no-such-port", object{"pattern": "W\n"}))
	if e := p.fails("serial.exchange", exchange, tea.ConnectionError, "none"); !e.Retryable {
		t.Errorf("a port that is not plugged in: %v", e)
	}
	newPlant(t, onPort("/dev/null", object{"pattern": "W\n"})).fails("serial.exchange", exchange, tea.ValidationError, "none")
}

func TestSerialWritesObeyTheSettings(t *testing.T) {
	t.Parallel()
	control, path := ptytest.Line(t)
	p := newPlant(t, onPort(path,
		object{"text": []any{"W\r\n"}, "per_minute": 1},
		object{"pattern": "SET ([^ ]+)\r\n", "min": 0, "max": 50, "max_step": 10},
		object{"pattern": "...\n"},
	))
	write := func(text string) object {
		return object{"write_base64": base64.StdEncoding.EncodeToString([]byte(text)), "timeout_seconds": 0}
	}
	for _, text := range []string{
		"W", "W\r\n\n", "\nW\r\n", "DEL\r\n", "SET 5\r\nDEL\r\n", "SET  5\r\n", "SET 51\r\n", "SET -1\r\n", "SET 1e1\r\n",
		"SET nan\r\n", "SET inf\r\n", "SET 0x10\r\n", "SET 1_0\r\n", "SET ٣\r\n", "SET 5;DEL\r\n", "a\xffc\n", "\xff\xfe\xfd\n", "ab\n", "abcd\n",
	} {
		p.fails("serial.exchange", write(text), tea.PermissionDenied, "none")
	}
	if e := p.fails("serial.exchange", write("DEL\r\n"), tea.PermissionDenied, "none"); !strings.HasSuffix(e.Message, ".write has no rule for it") {
		t.Errorf("message %q", e.Message)
	}
	p.fails("serial.exchange", object{"port": path, "write": "W\r\n"}, tea.NotFound, "none")
	p.fails("serial.exchange", object{"write": "W\r\n", "write_base64": "AA=="}, tea.ValidationError, "none")
	p.must("serial.exchange", write("SET 5\r\n"))
	p.must("serial.exchange", write("SET 15.0\r\n"))
	p.fails("serial.exchange", write("SET 25.1\r\n"), tea.PermissionDenied, "none")
	p.must("serial.exchange", write("W\r\n"))
	p.fails("serial.exchange", write("W\r\n"), tea.RateLimited, "none")
	p.must("serial.exchange", write("äöü\n"))
	want := "SET 5\r\nSET 15.0\r\nW\r\näöü\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(control, got); err != nil || string(got) != want {
		t.Errorf("written: %q, %v, want %q", got, err, want)
	}
	for want, rule := range map[string]object{
		"needs text, base64 or pattern": {}, "one group": {"pattern": "SET .*", "max": 1}, "neither text": {"pattern": "SET (.*)", "text": []any{"a"}, "max": 1},
		"regular expression such as": {"pattern": ".*)|(?:.*"}, "illegal base64": {"base64": []any{"?"}}, "at most max": {"pattern": "(.)", "min": 2, "max": 1},
	} {
		if e := newPlant(t, onPort(path, rule)).fails("serial.list", nil, tea.ValidationError, nil); !strings.Contains(e.Message, want) {
			t.Errorf("%v: got %v, want %q", rule, e, want)
		}
	}
}

// As root, a port in exclusive use can be opened.
func TestSerialPortHasOneUser(t *testing.T) {
	t.Parallel()
	_, path, _ := machine(t, "ok\n")
	p := newPlant(t, onPort(path, object{"text": []any{"W\n"}}))
	other, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := filelock.TryLock(other); err != nil {
		t.Fatal(err)
	}
	exchange := object{"write": "W\n", "until": "\n", "timeout_seconds": 60}
	short, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	_, err = p.callIn(short, "serial.exchange", exchange)
	if e := tea.AsError(err); e == nil || !strings.Contains(e.Message, "another call or program uses it") || e.Details["effect"] != "none" {
		t.Errorf("a port in use: %v", err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := p.callIn(t.Context(), "serial.exchange", exchange)
		ended <- err
	}()
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the port was released: %v", err)
	}
}

func TestSerialWriteThatNobodyReadsEndsWithTheCall(t *testing.T) {
	t.Parallel()
	control, path := ptytest.Line(t)
	p := newPlant(t, onPort(path, object{"pattern": "x+"}))
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		_, _ = control.Read(make([]byte, 1)) // it has begun
		stop()
	}()
	_, err := p.callIn(ctx, "serial.exchange", object{"write": strings.Repeat("x", 1<<20), "timeout_seconds": 60})
	if e := tea.AsError(err); e == nil || e.Type != tea.Canceled || e.Details["effect"] != "unknown" {
		t.Errorf("got %v", err)
	}
	p.must("serial.exchange", object{"timeout_seconds": 0}) // the port is free
}

func TestSerialWatchPassesOnLines(t *testing.T) {
	t.Parallel()
	control, path := ptytest.Line(t)
	p := newPlant(t, onPort(path))
	p.must("serial.list", nil)
	lines, ended := p.watch("serial.watch", object{})
	_, _ = control.WriteString("first\r\nsec")
	_, _ = control.WriteString("ond\n\xff\n\n")
	for _, want := range []object{{"text": "first", "bytes": int64(5)}, {"text": "second", "bytes": int64(6)}, {"text": nil, "base64": "/w==", "bytes": int64(1)}, {"text": "", "bytes": int64(0)}} {
		want["success"], want["port"], want["dry_run"] = true, "scale", false
		if diff := cmp.Diff(want, <-lines); diff != "" {
			t.Error(diff)
		}
	}
	_ = control.Close()
	if e := tea.AsError(<-ended); e == nil || e.Type != tea.ConnectionError || !e.Retryable {
		t.Errorf("the port was unplugged: %v", e)
	}
}

func TestSerialListHasEveryPort(t *testing.T) {
	t.Parallel()
	if got, ok := newPlant(t, onPort("/dev/x")).must("serial.list", object{})["ports"].([]any); !ok {
		t.Errorf("ports: %v", got)
	}
}
