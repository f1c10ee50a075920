package device_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/device"
	tea "github.com/the-edge-agent/tea/sdk"
)

// register is a server with one value in all holding registers, which keeps what was
// written.
func register(t *testing.T) (url string, written func() []int) {
	t.Helper()
	var high, low byte
	var values []int
	turn := make(chan struct{}, 1)
	url, _ = double(t, func(c net.Conn, r []byte) {
		turn <- struct{}{}
		defer func() { <-turn }()
		if r[7] == 6 {
			high, low = r[10], r[11]
			values = append(values, int(high)<<8|int(low))
			_, _ = c.Write(r)
			return
		}
		_, _ = c.Write(append(r[:4:4], 0, 5, r[6], r[7], 2, high, low))
	})
	return url, func() []int {
		turn <- struct{}{}
		defer func() { <-turn }()
		return append([]int(nil), values...)
	}
}

func TestGuardsLimitWrites(t *testing.T) {
	t.Parallel()
	url, written := register(t)
	p := newPlant(t, onServer(url, object{
		"range": object{"address": 0, "scale": 0.5, "write": object{"min": 0, "max": 100}},
		"step":  object{"address": 0, "write": object{"max_step": 10}},
		"rate":  object{"address": 0, "write": object{"per_minute": 2}},
		"coil":  object{"table": "coil", "address": 0, "write": object{"max": 0}},
		"dry":   object{"address": 0, "write": object{"max": 5, "dry_run": true}},
	}))
	write := func(point string, v any) object { return object{"point": point, "value": v} }
	p.fails("modbus.write", write("range", 100.5), tea.PermissionDenied, "none")
	p.fails("modbus.write", write("range", -0.5), tea.ValidationError, "none")
	p.must("modbus.write", write("range", 10)) // 20 in the register
	p.fails("modbus.write", write("step", 31), tea.PermissionDenied, "none")
	p.must("modbus.write", write("step", 30))
	p.must("modbus.write", write("step", 40))
	p.fails("modbus.write", write("coil", true), tea.PermissionDenied, "none")
	p.must("modbus.write", write("rate", 1))
	p.must("modbus.write", write("rate", 2))
	if e := p.fails("modbus.write", write("rate", 3), tea.RateLimited, "none"); !e.Retryable || e.RetryAfter <= 0 {
		t.Errorf("rate: %v, retry after %s", e, e.RetryAfter)
	}
	p.close() // another run, another process
	p.fails("modbus.write", write("rate", 3), tea.RateLimited, "none")
	p.fails("modbus.write", write("dry", 6), tea.PermissionDenied, "none")
	if got := p.must("modbus.write", write("dry", 5)); got["dry_run"] != true {
		t.Errorf("dry run: %v", got)
	}
	if logs := p.host.Recorded().Logs; len(logs) != 1 || !strings.Contains(logs[0].Message, `5 is not sent to the point "dry"`) {
		t.Errorf("the log of a dry run: %v", logs)
	}
	if diff := cmp.Diff([]int{20, 30, 40, 1, 2}, written()); diff != "" {
		t.Errorf("written: %s", diff)
	}
}

func TestDryRunOfAllWrites(t *testing.T) {
	t.Parallel()
	url, written := register(t)
	settings := onServer(url, object{"p": object{"address": 0, "write": object{"per_minute": 1, "approval": true}}})
	settings["device"] = object{"state": t.TempDir(), "dry_run": true}
	p := newPlant(t, settings)
	for range 3 { // a dry run counts as no write
		p.must("modbus.write", object{"point": "p", "value": 1})
	}
	if len(written()) > 0 {
		t.Errorf("written: %v", written())
	}
}

func TestPersonApprovesWrites(t *testing.T) {
	t.Parallel()
	url, written := register(t)
	p := newPlant(t, onServer(url, object{"p": object{"address": 0, "write": object{"approval": true}}}))
	p.fails("modbus.write", object{"point": "p", "value": 1}, tea.NotFound, "none") // nobody can be asked
	var questions []any
	answer := "deny"
	p.host.Actions = map[string]func(context.Context, any) (any, error){"human.ask": func(_ context.Context, params any) (any, error) {
		questions = append(questions, params.(object)["question"])
		return object{"answer": answer}, nil
	}}
	p.fails("modbus.write", object{"point": "p", "value": 1}, tea.PermissionDenied, "none")
	answer = "approve"
	p.must("modbus.write", object{"point": "p", "value": 2})
	if diff := cmp.Diff([]any{`Write 1 to the point "p"?`, `Write 2 to the point "p"?`}, questions); diff != "" {
		t.Error(diff)
	}
	// A resumed run has another value: the answer for the first must not count.
	calls := p.host.Invocations()
	if last := len(calls) - 1; calls[last].Key == calls[last-1].Key {
		t.Errorf("both questions have the key %q", calls[last].Key)
	}
	if diff := cmp.Diff([]int{2}, written()); diff != "" {
		t.Error(diff)
	}
}

// A dry run of a workflow checks writes as the setting dry_run does.
func TestDryRunChecksWrites(t *testing.T) {
	t.Parallel()
	url, written := register(t)
	p := newPlant(t, onServer(url, object{"p": object{"address": 0, "write": object{"max": 50, "per_minute": 1, "approval": true}}}))
	p.dryRun = true
	p.fails("modbus.write", object{"point": "p", "value": 60}, tea.PermissionDenied, "none")
	for range 2 { // what is not sent does not count
		if got := p.must("modbus.write", object{"point": "p", "value": 50}); got["dry_run"] != true {
			t.Errorf("got %v", got)
		}
	}
	if w := written(); w != nil {
		t.Errorf("written: %v", w)
	}
	for _, a := range device.Bundle().Actions {
		if a.Reads == a.DryRun {
			t.Errorf("%s must be marked either with Reads or with DryRun", a.Name)
		}
	}
}

// The manifest marks the writes, and each error reports whether the write can have had an
// effect, so that the host does not repeat it.
func TestWritesHappenAtMostOnce(t *testing.T) {
	t.Parallel()
	var once []string
	for _, a := range device.Bundle().Actions {
		if a.Once {
			once = append(once, a.Name)
		}
	}
	if diff := cmp.Diff([]string{"modbus.write", "opcua.write", "opcua.call", "serial.exchange", "gpio.write", "gpio.pulse", "command.run"}, once); diff != "" {
		t.Errorf("at most once (-want +got):\n%s", diff)
	}
	points := object{"p": object{"address": 0, "write": object{}}}
	write := object{"point": "p", "value": 7}
	// The connection breaks in the middle of the answer.
	broken, _ := double(t, func(c net.Conn, r []byte) { _, _ = c.Write(r[:5]); _ = c.Close() })
	if e := newPlant(t, onServer(broken, points)).fails("modbus.write", write, tea.ConnectionError, "unknown"); e.Details["not_sent"] != false || e.Retryable {
		t.Errorf("a lost answer: %v, %v", e, e.Details)
	}
	if e := newPlant(t, onServer("tcp://127.0.0.1:1", points)).fails("modbus.write", write, tea.ConnectionError, "none"); e.Details["not_sent"] != true {
		t.Errorf("no connection: %v, %v", e, e.Details)
	}
}

// In every part, a value that no settings could allow is a validation_error, and one that
// these settings do not allow is a permission_denied error.
func TestLimitsOfTheSettingsArePermissionDenied(t *testing.T) {
	t.Parallel()
	number := func(more object) object {
		more["type"] = "integer"
		return more
	}
	p := newPlant(t, object{
		"modbus": object{"servers": object{"plc": object{"url": "tcp://127.0.0.1:1"}}, "points": object{"speed": object{"address": 0, "write": object{"max": 50}}, "level": object{"address": 1}}},
		"mqtt":   object{"servers": object{"site": object{"url": "mqtt://127.0.0.1:1", "publish": []any{object{"topics": []any{"speed"}, "max": 50}}}}},
		"opcua": object{"servers": object{"plant": object{"url": "opc.tcp://127.0.0.1:1"}}, "nodes": object{"level": object{"id": "i=7"}}, "methods": object{"fill": object{
			"object": "i=1", "method": "i=2", "inputs": []any{object{"type": "double", "max": 50}, object{"type": "string", "enum": []any{"a"}}},
		}}},
		"serial": object{"ports": object{"scale": object{"path": "/dev/null", "write": []any{object{"pattern": "SPEED ([0-9]+)", "max": 50}}}}},
		"system": object{"journal": []any{"pump.service"}},
		"command": object{"allow": object{
			"speed":  object{"argv": []any{"echo", "{v}"}, "params": object{"v": number(object{"max": 50})}},
			"choice": object{"argv": []any{"echo", "{v}"}, "params": object{"v": object{"type": "string", "enum": []any{"a"}}}},
			"match":  object{"argv": []any{"echo", "{v}"}, "params": object{"v": object{"type": "string", "pattern": "[-a]+"}}},
			"path":   object{"argv": []any{"echo", "{v}"}, "params": object{"v": object{"type": "path", "root": t.TempDir()}}},
		}},
	})
	run := func(command string, v any) object { return object{"command": command, "params": object{"v": v}} }
	fill := func(inputs ...any) object { return object{"method": "fill", "inputs": inputs} }
	for _, c := range []struct {
		action  string
		params  object
		refused bool
	}{
		{"modbus.write", object{"point": "speed", "value": 51}, true},
		{"modbus.write", object{"point": "level", "value": 1}, true},
		{"modbus.write", object{"point": "speed", "value": "fast"}, false},
		{"mqtt.publish", object{"topic": "speed", "payload": 51}, true},
		{"mqtt.publish", object{"topic": "other", "payload": 1}, true},
		{"mqtt.request", object{"topic": "speed", "payload": 51}, true},
		{"opcua.write", object{"node": "level", "value": 1}, true},
		{"opcua.call", fill(51, "a"), true},
		{"opcua.call", fill(1, "b"), true},
		{"opcua.call", fill("x", "a"), false},
		{"opcua.call", fill(1), false},
		{"serial.exchange", object{"write": "SPEED 51"}, true},
		{"serial.exchange", object{"write": "STOP"}, true},
		{"serial.exchange", object{"write": "a", "write_base64": "YQ=="}, false},
		{"command.run", run("speed", 51), true},
		{"command.run", run("speed", -1), true},
		{"command.run", run("speed", 1.5), false},
		{"command.run", run("choice", "b"), true},
		{"command.run", run("choice", 7), false},
		{"command.run", run("match", "b"), true},
		{"command.run", run("match", "-a"), true}, // an option
		{"command.run", run("match", "a\n"), false},
		{"command.run", run("path", "../out"), true},
		{"command.run", run("path", "/etc/passwd"), true},
		{"command.run", object{"command": "speed", "params": object{"v": 1}, "stdin": "x"}, true},
		{"command.run", object{"command": "speed"}, false},
	} {
		want := tea.ValidationError
		if c.refused {
			want = tea.PermissionDenied
		}
		p.fails(c.action, c.params, want, "none")
	}
	p.fails("system.journal", object{"unit": "other.service"}, tea.PermissionDenied, nil)
}

// In every part, a name that the settings do not define is not found, and nothing is sent.
func TestNamesThatTheSettingsDoNotDefineAreNotFound(t *testing.T) {
	t.Parallel()
	p := newPlant(t, object{})
	for _, c := range []struct {
		action string
		params object
		effect any
	}{
		{"modbus.read", object{"point": "other"}, nil},
		{"modbus.read", object{"server": "other", "address": 1}, nil},
		{"modbus.write", object{"point": "other", "value": 1}, "none"},
		{"mqtt.publish", object{"server": "other", "topic": "a", "payload": 1}, "none"},
		{"opcua.read", object{"node": "other"}, nil},
		{"opcua.write", object{"node": "other", "value": 1}, "none"},
		{"opcua.call", object{"method": "other"}, "none"},
		{"serial.exchange", object{"port": "other", "write": "a"}, "none"},
		{"gpio.read", object{"line": "other"}, nil},
		{"gpio.write", object{"line": "other", "value": true}, "none"},
		{"gpio.pulse", object{"line": "other", "seconds": 1}, "none"},
		{"command.run", object{"command": "other"}, "none"},
	} {
		p.fails(c.action, c.params, tea.NotFound, c.effect)
	}
}
