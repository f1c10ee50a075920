package device_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
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
