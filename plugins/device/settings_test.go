package device_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/device"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
)

func TestSettingsOfTheOperatorReplaceThoseOfAWorkflow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "device.json")
	t.Setenv("TEA_DEVICE_SETTINGS", file)
	p := newPlant(t, onServer("tcp://127.0.0.1:1", object{"p": object{"address": 1, "write": object{}}}))
	p.fails("modbus.write", object{"point": "p", "value": 1}, tea.PermissionDenied, nil)
	clear(p.settings)
	p.fails("modbus.write", object{"point": "p", "value": 1}, tea.ValidationError, nil) // no file
	for content, want := range map[string]tea.ErrorType{
		`{"modbsu": {}}`: tea.ValidationError,
		"{":              tea.ValidationError, `{"modbus": {"pionts": {}}}`: tea.ValidationError,
		`{"modbus": {"servers": {"plc": {"url": "tcp://127.0.0.1:1"}}, "points": {"p": {"address": 1}}}}`: tea.PermissionDenied,
	} {
		p.close()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := p.call("modbus.write", object{"point": "p", "value": 1})
		if err == nil || tea.AsError(err).Type != want {
			t.Errorf("%s: %v, want %s", content, err, want)
		}
		if want == tea.ValidationError && !strings.Contains(fmt.Sprint(err), file) {
			t.Errorf("%s: the error does not name the file: %v", content, err)
		}
	}
}

// tea validate knows the schemas of the manifest, and does not start the plugin.
func TestWrongAddressesAreFoundByTheSchema(t *testing.T) {
	t.Parallel()
	settings := device.Bundle().Settings
	server := func(url any) object { return object{"servers": object{"a": object{"url": url}}} }
	node := func(id any) object { return object{"nodes": object{"a": object{"id": id}}} }
	for _, c := range []struct {
		key   string
		value func(any) object
		at    string
		good  []any
		bad   []any
	}{
		{"modbus", server, "servers.a.url", []any{"tcp://192.0.2.7", "tcp://[::1]:502/", "tcp://[fe80::1%25eth0]", "tcp://plc-1_a.example:502", "rtuovertcp://plc:4001", "rtu:///dev/ttyUSB0", "rtu://COM3"}, []any{"http://plc", "plc:502", "rtu://", "tcp://", "", "tcp://2001:db8::1", "tcp://[::1", "tcp://plc:abc", "tcp://plc:502000", "tcp://:502", "tcp://plc/path", "tcp://user@plc", "tcp://p lc"}},
		{"mqtt", server, "servers.a.url", []any{"mqtt://broker", "mqtts://broker:8883"}, []any{"tcp://broker", "broker", "", "mqtt://user:secret@broker", "mqtt://broker:x"}},
		{"opcua", server, "servers.a.url", []any{"opc.tcp://192.0.2.7:4840/path"}, []any{"opc_tcp://plc", "http://plc", "", "opc.tcp://user@plc/path", "opc.tcp://:4840"}},
		{"opcua", node, "nodes.a.id", []any{"i=7", "ns=2;s=Pump", "ns=2;g=12345678-9abc-def0-1234-56789abcdef0", "nsu=urn:example:pump;b=AP8=", "ns=2;s=a;b=c"}, []any{"Pump", "ns=2", "", "ns=2;i=abc", "ns=2;g=123", "ns=2;b=***", "i=99999999999", "foo=3;i=3", "ns=2;ns=3;i=1"}},
	} {
		compiled, err := jsonschema.Compile(settings[c.key])
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range c.good {
			if problems := compiled.Validate(c.value(v)); len(problems) > 0 {
				t.Errorf("%s %v: %v", c.key, v, problems)
			}
		}
		for _, v := range c.bad {
			if problems := compiled.Validate(c.value(v)); len(problems) != 1 || problems[0].Path != c.at {
				t.Errorf("%s %v: %v, want one problem at %s", c.key, v, problems, c.at)
			}
		}
	}
}
