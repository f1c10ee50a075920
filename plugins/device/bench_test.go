package device_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/simonvetter/modbus"

	"github.com/the-edge-agent/tea/plugins/device"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/serve"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// asPlugin makes the test binary the plugin.
const asPlugin = "TEA_DEVICE_TEST_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" {
		serve.Main(device.Bundle())
		return
	}
	os.Exit(m.Run())
}

// cpu returns the processor time of a process in microseconds, in steps of 10 ms.
func cpu(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skip(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')'):]))
	user, _ := strconv.Atoi(fields[12])
	system, _ := strconv.Atoi(fields[13])
	return float64(user+system) * 10_000
}

// process opens the bundle in a process of its own.
func process(b *testing.B, settings object) (instance teatest.Instance, pid int) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asPlugin+"=1")
	p, err := teatest.Start(b.Context(), cmd, io.Discard)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Close)
	raw := tea.Settings{}
	for key, v := range settings {
		if raw[key], err = json.Marshal(v); err != nil {
			b.Fatal(err)
		}
	}
	instance, err = p.Open(b.Context(), raw)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = instance.Close() })
	return instance, cmd.Process.Pid
}

func invoke(b *testing.B, instance teatest.Instance, action string, params object) {
	req := &tea.Request{Action: action, Params: tea.ValuePayload(params), Call: tea.Call{Attempt: 1}, Host: &teatest.Host{}}
	if _, err := instance.Invoke(b.Context(), req); err != nil {
		b.Error(err)
	}
}

// BenchmarkModbusRead compares a read of ten registers through the plugin's process with
// the library's, on a server that answers at once, on one that answers after 2 ms, and on
// pymodbus. It reports the processor time of the plugin.
func BenchmarkModbusRead(b *testing.B) {
	after := func(wait time.Duration) string {
		at, _ := double(b, func(c net.Conn, r []byte) {
			<-time.After(wait)
			_, _ = c.Write(append(append(r[:4:4], 0, 23, r[6], r[7], 20), make([]byte, 20)...))
		})
		return at
	}
	for name, url := range map[string]string{"double": after(0), "double-2ms": after(2 * time.Millisecond), "pymodbus": fmt.Sprintf("tcp://127.0.0.1:%d", pymodbus(b, "tcp"))} {
		b.Run(name+"/plugin", func(b *testing.B) {
			instance, pid := process(b, onServer(url, nil))
			before := cpu(b, pid)
			for b.Loop() {
				invoke(b, instance, "modbus.read", object{"address": 0, "count": 10})
			}
			b.ReportMetric((cpu(b, pid)-before)/float64(b.N), "plugin-cpu-us/op")
		})
		b.Run(name+"/library", func(b *testing.B) {
			client, err := modbus.NewClient(&modbus.ClientConfiguration{URL: url, Logger: log.New(io.Discard, "", 0)})
			if err == nil {
				err = client.Open()
			}
			if err != nil {
				b.Fatal(err)
			}
			defer client.Close()
			for b.Loop() {
				if _, err := client.ReadRegisters(0, 10, modbus.HOLDING_REGISTER); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPublish publishes with QoS 1, eight at a time, through the plugin's process.
func BenchmarkPublish(b *testing.B) {
	instance, _ := process(b, onBroker(mosquitto(b, "").port, "5", anything))
	b.SetParallelism(4)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			invoke(b, instance, "mqtt.publish", object{"topic": "a", "payload": object{"bar": 8.7}})
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "publishes/s")
}
