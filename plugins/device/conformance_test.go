package device_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/device"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// The samples fail without a machine.
func TestConformance(t *testing.T) {
	t.Parallel()
	settings := object{"modbus": object{"servers": object{"plc": object{"url": "tcp://127.0.0.1:1"}}, "points": object{"p": object{"address": 1, "write": object{}}}}}
	broker := object{"mqtt": object{"servers": object{"site": object{"url": "mqtt://127.0.0.1:1", "publish": []any{object{"topics": []any{"a/#"}}}}}}}
	plc := object{"opcua": object{"servers": object{"plc": object{"url": "opc.tcp://127.0.0.1:1"}}, "nodes": object{"n": node("n", object{"write": object{}})}, "methods": object{"m": method("m", nil)}}}
	lines := object{"gpio": object{"lines": object{"l": object{"chip": "no-such-chip", "line": "A", "write": object{}}}}}
	teatest.Conformance(t, device.Bundle(),
		teatest.Request{Action: "modbus.read", Settings: settings, Params: object{"address": 7}},
		teatest.Request{Action: "modbus.write", Settings: settings, Params: object{"point": "p", "value": 1}},
		teatest.Request{Action: "mqtt.publish", Settings: broker, Params: object{"topic": "a/b", "payload": 1}},
		teatest.Request{Action: "mqtt.request", Settings: broker, Params: object{"topic": "b", "payload": 1}},
		teatest.Request{Action: "mqtt.last", Settings: broker, Params: object{"topic": "a/+"}},
		teatest.Request{Action: "mqtt.watch", Settings: broker, Params: object{"topic": "a/+"}},
		teatest.Request{Action: "opcua.read", Settings: plc, Params: object{"id": "i=85"}},
		teatest.Request{Action: "opcua.write", Settings: plc, Params: object{"node": "n", "value": 1}},
		teatest.Request{Action: "opcua.call", Settings: plc, Params: object{"method": "m"}},
		teatest.Request{Action: "opcua.browse", Settings: plc},
		teatest.Request{Action: "opcua.watch", Settings: plc, Params: object{"node": "n"}},
		teatest.Request{Action: "serial.exchange", Settings: object{"serial": object{"ports": object{"p": object{"path": "/dev/no-such-port"}}}}, Params: object{"count": 1}},
		teatest.Request{Action: "serial.list", Params: object{}},
		teatest.Request{Action: "serial.watch", Params: object{}},
		teatest.Request{Action: "gpio.read", Settings: lines, Params: object{"line": "l"}},
		teatest.Request{Action: "gpio.write", Settings: lines, Params: object{"line": "l", "value": true}},
		teatest.Request{Action: "gpio.pulse", Settings: lines, Params: object{"line": "l", "seconds": 1}},
		teatest.Request{Action: "gpio.watch", Params: object{"line": "l"}},
		teatest.Request{Action: "command.run", Settings: allow(object{"c": object{"argv": []any{"no-such-program"}}}), Params: object{"command": "c"}},
		teatest.Request{Action: "command.run", Params: object{"command": "c"}},
		teatest.Request{Action: "system.journal", Params: object{"unit": "a.service"}},
	)
}

func TestAMinimalBuildNeedsAPart(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it runs the Go compiler")
	files, err := filepath.Glob("with_*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, tags := range []string{"minimal", "minimal,modbsu"} {
		out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", tags, ".").CombinedOutput()
		if err == nil {
			t.Errorf("%s: it was built", tags)
		}
		for _, file := range files {
			if name := strings.TrimSuffix(strings.TrimPrefix(file, "with_"), ".go"); !strings.Contains(string(out), name) {
				t.Errorf("%s: the error does not name the part %s:\n%s", tags, name, out)
			}
		}
	}
}
