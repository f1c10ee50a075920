package examples

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// TestMeter runs the commands of the example meter against the simulator of the pump.
func TestMeter(t *testing.T) {
	t.Parallel()
	address, _ := startPump(t)
	url, got := webhook(t)
	dir, home := copyExample(t, "meter"), t.TempDir()
	readme, err := os.ReadFile("meter/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"tea run workflow.yaml -q", "tea run workflow.yaml", `tea run workflow.yaml -i '{"limit": 1}'`, "tea test"} {
		if !strings.Contains(string(readme), command) {
			t.Errorf("the README lacks %s", command)
		}
		got, err := shell(t.Context(), dir, home, fmt.Sprintf("export METER=%s ANN=%s; %s", address, url, command))
		if err != nil || got.code != 0 {
			t.Fatalf("%s: exit code %d, %v\n%s%s", command, got.code, err, got.stdout, got.stderr)
		}
		if command == "tea run workflow.yaml" && !strings.Contains(string(readme), "```json\n"+got.stdout+"```") {
			t.Errorf("the README does not show:\n%s", got.stdout)
		}
	}
	if n := len(got); n != 1 {
		t.Fatalf("%d alarms", n)
	}
	if m := <-got; m.Message != "1.2 kWh since the last reading. The limit is 1." {
		t.Errorf("alarm: %+v", m)
	}
}

// TestIrrigation has sensors publish to a broker, answers the question, and looks at
// what the valve gets.
func TestIrrigation(t *testing.T) {
	t.Parallel()
	broker := mosquitto(t)
	dir, home := copyExample(t, "irrigation"), t.TempDir()
	flow, err := os.ReadFile("irrigation/workflow.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		"workflow.yaml": string(flow),
		"valve.yaml": `
nodes: [{name: open, uses: file.write, with: {path: opened, content: "{{ state.event.topic }} {{ state.event.body }}"}}]
serve: {triggers: [{mqtt: valve/+, broker: "mqtt://127.0.0.1:1883"}]}
`,
		"sensor.yaml": `
settings: {mqtt: {servers: {garden: {url: "mqtt://127.0.0.1:1883", publish: [{topics: [soil/+/moisture]}]}}}}
nodes: [{name: none, run: 'return {}'}]
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, file), bytes.ReplaceAll([]byte(text), []byte("127.0.0.1:1883"), []byte(broker)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(command string) {
		t.Helper()
		if got, err := shell(t.Context(), dir, home, command); err != nil || got.code != 0 {
			t.Fatalf("%s: exit code %d, %v\n%s%s", command, got.code, err, got.stdout, got.stderr)
		}
	}
	run("tea test")
	s := serveExample(t, dir, home)
	for strings.Count(s.log.String(), "subscribed") < 2 { // possibly before it says where it serves
		s.await("subscribed")
	}
	publish := `tea call mqtt.publish '{"topic": "soil/%s/moisture", "payload": %d}' -f sensor.yaml`
	run(fmt.Sprintf(publish, "lawn", 45))
	s.await("of irrigation: done")
	run(fmt.Sprintf(publish, "roses", 14))
	line := s.await("of irrigation: waiting")
	_, id, _ := strings.Cut(line, "run ")
	id, _, _ = strings.Cut(id, " ")
	run(fmt.Sprintf(`tea --host %s resume %s --answer 'ask:ask="yes"'`, s.url, id))
	s.await("of valve: done")
	s.stop()
	if got, err := os.ReadFile(filepath.Join(dir, "served", "data", "valve", "opened")); err != nil || string(got) != "valve/roses 312" {
		t.Errorf("the valve got %q, %v", got, err)
	}
}

// mosquitto starts a broker and returns its address.
func mosquitto(t *testing.T) string {
	t.Helper()
	peertest.Long(t, "it starts mosquitto")
	path, err := exec.LookPath("mosquitto")
	if err != nil {
		path = "/usr/sbin/mosquitto"
	}
	if _, err := os.Stat(path); err != nil {
		missing(t, "mosquitto is missing: run scripts/mosquitto install")
	}
	for range 10 { // another process can take the port
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		_ = l.Close()
		if startBroker(t, path, address) {
			return address
		}
	}
	t.Fatal("mosquitto does not start")
	return ""
}

func startBroker(t *testing.T, path, address string) bool {
	t.Helper()
	_, port, _ := net.SplitHostPort(address)
	config := filepath.Join(t.TempDir(), "mosquitto.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, "listener %s 127.0.0.1\nallow_anonymous true\n", port), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, "-c", config)
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { stop(); <-ended })
	for {
		select {
		case err := <-ended:
			ended <- err
			return false
		default:
		}
		if c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address); err == nil {
			return c.Close() == nil
		}
	}
}
