package device_test

import (
	"testing"

	"github.com/the-edge-agent/tea/plugins/device/internal/ptytest"
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
}
