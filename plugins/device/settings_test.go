package device_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/device"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
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
		"{":              tea.ValidationError, `{"modbus": {"servers": {"plc": {"url": "tcp://127.0.0.1:1"}}, "points": {"p": {"address": 1, "write": {"max": 0}, "write": {}}}}}`: tea.ValidationError, `{"modbus": {"pionts": {}}}`: tea.ValidationError,
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
	filter := func(topic any) object {
		return object{"servers": object{"a": object{"url": "mqtt://broker", "publish": []any{object{"topics": []any{topic}}}}}}
	}
	for _, c := range []struct {
		key   string
		value func(any) object
		at    string
		good  []any
		bad   []any
	}{
		{"modbus", server, "servers.a.url", []any{"tcp://192.0.2.7", "tcp://[::1]:502/", "tcp://[fe80::1%25eth0]", "tcp://plc-1_a.example:502", "rtuovertcp://plc:4001", "rtu:///dev/ttyUSB0", "rtu://COM3"}, []any{"http://plc", "plc:502", "rtu://", "tcp://", "", "tcp://2001:db8::1", "tcp://[::1", "tcp://plc:abc", "tcp://plc:502000", "tcp://:502", "tcp://plc/path", "tcp://user@plc", "tcp://p lc"}},
		{"mqtt", filter, "servers.a.publish[0].topics[0]", []any{"a", "#", "+", "/", "a/+/b/#", "+/+", "a//b", "$SYS/#"}, []any{"", "a/#/b", "a+/b", "a#", "#/a", "a/b+", "++", "a\x00"}},
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

// The schemas contain the rules that relate several settings.
func TestMistakesOverSeveralSettingsAreFoundByTheSchema(t *testing.T) {
	t.Parallel()
	servers := object{"plc": object{"url": "tcp://plc"}}
	point := func(members object) object {
		members["address"] = 1
		return object{"servers": servers, "points": object{"p": members}}
	}
	opc := func(members object) object {
		members["url"] = "opc.tcp://plc"
		return object{"servers": object{"plc": members}}
	}
	command := func(argv string, param object) object {
		return object{"allow": object{"c": object{"argv": []any{"ls", argv}, "params": object{"name": param}}}}
	}
	for _, c := range []struct {
		key   string
		value object
		want  string // "" if there is no mistake
	}{
		{"modbus", point(object{"server": "plc", "write": object{"min": 1, "max": 1}}), ""},
		{"modbus", point(object{"server": "plk"}), `points.p.server: "plk" is not in servers; did you mean "plc"?`},
		{"modbus", point(object{"write": object{"min": 2, "max": 1}}), "points.p.write.min: must be at most max, which is 1, got 2"},
		{"modbus", point(object{"table": "coil", "type": "int16"}), "points.p.type: is not allowed here, because table is coil or discrete"},
		{"modbus", point(object{"table": "input", "write": object{}}), "points.p.write: is not allowed here, because table is discrete or input"},
		{"modbus", point(object{"bit": 3, "scale": 2}), "points.p.scale: is not allowed here, because bit is given"},
		{"modbus", point(object{"type": "float64", "count": 32}), "points.p.count: must be at most 31, got 32, because type is int64, uint64 or float64"},
		{"opcua", opc(object{"security_policy": "None"}), ""},
		{"opcua", opc(object{"cert_file": "a"}), "servers.plc.cert_file: is not allowed here, because security_policy is None"},
		{"opcua", opc(object{"security_policy": "Basic256Sha256", "cert_file": "a", "key_file": "b"}), `servers.plc: "server_cert_file" is required`},
		{"opcua", object{"nodes": object{"n": object{"id": "i=7", "server": "plc"}}}, `nodes.n.server: "plc" is not in servers`},
		{"opcua", object{"methods": object{"m": object{"object": "i=7", "method": "i=8", "inputs": []any{object{"type": "byte", "min": 2, "max": 1}}}}}, "methods.m.inputs[0].min: must be at most max, which is 1, got 2"},
		{"mqtt", object{"servers": object{"b": object{"url": "mqtts://b", "cert_file": "a"}}}, `servers.b: "key_file" is required where "cert_file" is given`},
		{"mqtt", object{"servers": object{"b": object{"url": "mqtt://b", "publish": []any{object{"topics": []any{"a"}, "min": 2, "max": 1}}}}}, "servers.b.publish[0].min: must be at most max, which is 1, got 2"},
		{"command", command("{name}", object{"type": "string", "pattern": "[a-z]+"}), ""},
		{"command", command("{nmae}", object{"type": "integer"}), `allow.c.argv[1]: "nmae" is not in params; did you mean "name"?`},
		{"command", command("{name}", object{"type": "string"}), "allow.c.params.name: needs enum or pattern, because type is string"},
		{"command", command("{name}", object{"type": "string", "pattern": "("}), `allow.c.params.name.pattern: must be a regular expression such as [a-z]+, got "("`},
		{"command", command("{name}", object{"type": "path"}), `allow.c.params.name: "root" is required, because type is path`},
		{"command", command("{name}", object{"type": "number", "min": 2, "max": 1}), "allow.c.params.name.min: must be at most max, which is 1, got 2"},
		{"serial", object{"ports": object{"a": object{"path": "/dev/a", "write": []any{object{"per_minute": 1}}}}}, "ports.a.write[0]: needs text, base64 or pattern"},
		{"serial", object{"ports": object{"a": object{"path": "/dev/a", "write": []any{object{"text": []any{"a"}, "min": 1}}}}}, `ports.a.write[0]: "pattern" is required where "min" is given`},
		{"gpio", object{"lines": object{"a": object{"chip": "gpiochip0"}}}, "lines.a: needs line or offset"},
		{"gpio", object{"lines": object{"a": object{"chip": "gpiochip0", "line": "GPIO1", "offset": 1}}}, "lines.a: only one of line, offset is allowed: remove line or offset"},
	} {
		compiled, err := jsonschema.Compile(device.Bundle().Settings[c.key])
		if err != nil {
			t.Fatal(err)
		}
		settings, err := value.From(c.value)
		if err != nil {
			t.Fatal(err)
		}
		if got := jsonschema.Join(compiled.Validate(settings)); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s %v:\n%s\nwant %s", c.key, c.value, got, c.want)
		}
	}
}
