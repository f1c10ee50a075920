package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"

	"github.com/the-edge-agent/tea/test/teaproc"
)

// mosquitto starts a broker at a port that was free; nil if it is not free any more.
func mosquitto(t *testing.T, port int) *exec.Cmd {
	t.Helper()
	cmd, _ := mosquittoWith(t, port, "")
	return cmd
}

// mosquittoWith starts a broker with further lines of its configuration.
func mosquittoWith(t *testing.T, port int, config string) (*exec.Cmd, *teaproc.Log) {
	t.Helper()
	path, err := exec.LookPath("mosquitto")
	if err != nil {
		path = "/usr/sbin/mosquitto"
	}
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("mosquitto is missing; run scripts/mosquitto install")
		}
		t.Skip("mosquitto is missing; run scripts/mosquitto install")
	}
	file := filepath.Join(t.TempDir(), "mosquitto.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, "listener %d 127.0.0.1\nallow_anonymous true\n%s", port, config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), path, "-c", file, "-v")
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines, log := bufio.NewScanner(out), teaproc.NewLog()
	for lines.Scan() {
		if strings.Contains(lines.Text(), "running") {
			go func() {
				for lines.Scan() {
					_, _ = log.Write(append(lines.Bytes(), '\n'))
				}
			}()
			return cmd, log
		}
	}
	_ = cmd.Wait()
	return nil, nil
}

// broker starts a broker at any port.
func broker(t *testing.T) *url.URL {
	t.Helper()
	address, _ := startBroker(t)
	return address
}

func startBroker(t *testing.T) (*url.URL, *exec.Cmd) {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		if cmd := mosquitto(t, port); cmd != nil { // else another process has the port now
			return &url.URL{Scheme: "mqtt", Host: fmt.Sprintf("127.0.0.1:%d", port)}, cmd
		}
	}
}

func TestMessageStartsRun(t *testing.T) {
	t.Parallel()
	address := broker(t)
	p := newProject(t, map[string]string{"sensor.yaml": `
nodes: [{name: n, run: 'return {double = state.celsius * 2}'}]
serve:
  triggers:
    - {mqtt: "sensors/+/raw", broker: "` + address.String() + `", result_topic: results, key: "{{ event.body.id }}"}
`})
	s := p.serve()
	s.log.await(t, "subscribed")
	results := make(chan map[string]any, 10)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client, err := autopaho.NewConnection(ctx, autopaho.ClientConfig{
		ServerUrls: []*url.URL{address}, KeepAlive: 30,
		ClientConfig: paho.ClientConfig{ClientID: "test", OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
			var doc map[string]any
			if err := json.Unmarshal(p.Packet.Payload, &doc); err != nil {
				t.Errorf("result: %v", err)
			}
			results <- doc
			return true, nil
		}}},
	})
	if err == nil {
		err = client.AwaitConnection(ctx)
	}
	if err == nil {
		_, err = client.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: "results", QoS: 1}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	send := func(id int) {
		t.Helper()
		payload := fmt.Appendf(nil, `{"id": %d, "celsius": %d}`, id, id+20)
		if _, err := client.Publish(ctx, &paho.Publish{Topic: "sensors/a/raw", QoS: 1, Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	receive := func(want float64) {
		t.Helper()
		doc := <-results
		if state, _ := doc["state"].(map[string]any); doc["status"] != "done" || state["double"] != want {
			t.Errorf("result: %v, want double = %v\n%s", doc, want, s.log)
		}
	}
	send(1)
	receive(42)
	send(1) // the key was used
	send(2)
	receive(44)
	s.kill()
	send(3) // the broker keeps it
	s = p.serve()
	receive(46)
	select {
	case doc := <-results:
		t.Errorf("further result: %v", doc)
	default:
	}
	stop, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	_ = client.Disconnect(stop)
}

// A broker that restarts without its sessions gets the subscription again.
func TestBrokerThatRestartsIsUsedAgain(t *testing.T) {
	t.Parallel()
	address, process := startBroker(t)
	s := newProject(t, map[string]string{"sensor.yaml": "nodes: [{name: n}]\nserve: {triggers: [{mqtt: raw, broker: \"" + address.String() + "\"}]}\n"}).serve()
	sendOne := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		client, err := autopaho.NewConnection(ctx, autopaho.ClientConfig{ServerUrls: []*url.URL{address}, KeepAlive: 30, ClientConfig: paho.ClientConfig{ClientID: "test"}})
		if err == nil {
			err = client.AwaitConnection(ctx)
		}
		if err == nil {
			_, err = client.Publish(ctx, &paho.Publish{Topic: "raw", QoS: 1, Payload: []byte("{}")})
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = client.Disconnect(ctx)
	}
	s.log.await(t, "subscribed")
	sendOne()
	s.awaitStatuses("sensor", map[string]int{"done": 1})
	_ = process.Process.Kill()
	_ = process.Wait()
	teaproc.Poll(t, func() (bool, any) {
		r := s.request("GET", "/v1/workflows/sensor", "")
		return r.body["triggers"].([]any)[0].(map[string]any)["problem"] != nil, r
	})
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		t.Fatal(err)
	}
	if mosquitto(t, port) == nil {
		t.Skip("another process has the port of the broker now")
	}
	s.log.await(t, "subscribed")
	sendOne()
	s.awaitStatuses("sensor", map[string]int{"done": 2})
}

func TestCircleOfMessagesEnds(t *testing.T) {
	t.Parallel()
	address := broker(t).String()
	p := newProject(t, map[string]string{
		"ping.yaml": "nodes: [{name: n}]\nserve: {keep_runs: 1000, triggers: [{at_start: true}, {mqtt: to/ping, broker: \"" + address + "\", result_topic: to/pong, input: {x: 1}}]}\n",
		"pong.yaml": "nodes: [{name: n}]\nserve: {keep_runs: 1000, triggers: [{mqtt: to/pong, broker: \"" + address + "\", result_topic: to/ping, input: {x: 1}}]}\n",
	})
	s := p.serve()
	s.log.await(t, "subscribed")
	s.log.await(t, "subscribed")
	publish(t, address, "to/ping", "{}")
	s.log.await(t, "16 runs followed each other")
	if n := strings.Count(s.log.String(), ": done"); n > 18 {
		t.Errorf("%d runs:\n%s", n, s.log)
	}
}

// publish sends a message.
func publish(t *testing.T, address, topic, text string) { send(t, address, topic, text, false) }

func send(t *testing.T, address, topic, text string, retain bool) {
	t.Helper()
	server, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client, err := autopaho.NewConnection(ctx, autopaho.ClientConfig{ServerUrls: []*url.URL{server}, KeepAlive: 30, ClientConfig: paho.ClientConfig{ClientID: "test-" + topic}})
	if err == nil {
		err = client.AwaitConnection(ctx)
	}
	if err == nil {
		_, err = client.Publish(ctx, &paho.Publish{Topic: topic, QoS: 1, Payload: []byte(text), Retain: retain})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestRetainedMessageIsHandledOnce(t *testing.T) {
	t.Parallel()
	address := broker(t)
	workflow := func(option string) string {
		return "nodes: [{name: n}]\nserve: {triggers: [{mqtt: \"cmd/#\", broker: \"" + address.String() + "\"" + option + "}]}\n"
	}
	p := newProject(t, map[string]string{
		"once.yaml": workflow(""), "ignore.yaml": workflow(", retained: ignore"), "always.yaml": workflow(", retained: always"),
	})
	send(t, address.String(), "cmd/pump", "on", true)
	start := func() *service {
		t.Helper()
		s := p.serve()
		for range 3 {
			s.log.await(t, "subscribed")
		}
		return s
	}
	s := start()
	// A live message after them shows that no retained one is on its way.
	live := 0
	await := func(once, ignore, always int) {
		t.Helper()
		publish(t, address.String(), "cmd/live", "same")
		live++
		s.awaitStatuses("once", map[string]int{"done": live + once})
		s.awaitStatuses("ignore", map[string]int{"done": live + ignore})
		s.awaitStatuses("always", map[string]int{"done": live + always})
	}
	await(1, 0, 1)
	s.kill()
	s = start()
	await(1, 0, 2)
	s.kill()
	for _, name := range []string{"once", "ignore", "always"} { // the broker forgets the session
		id := sha256.Sum256([]byte(filepath.Join(p.home, "tea", "runs") + "\x00" + name + "\x00mqtt cmd/#"))
		connect(t, address, "tea-"+hex.EncodeToString(id[:8]))
	}
	s = start()
	await(1, 0, 3)
	send(t, address.String(), "cmd/pump", "off", true) // is live for the subscriptions
	live++
	await(1, 0, 3)
}

// connect ends the session of a client.
func connect(t *testing.T, address *url.URL, id string) {
	t.Helper()
	client, err := autopaho.NewConnection(t.Context(), autopaho.ClientConfig{ServerUrls: []*url.URL{address}, KeepAlive: 30, CleanStartOnInitialConnection: true, ClientConfig: paho.ClientConfig{ClientID: id}})
	if err == nil {
		err = client.AwaitConnection(t.Context())
	}
	if err == nil {
		err = client.Disconnect(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestBrokerThatCannotBeReachedIsShown(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for { // not a broker
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	s := newProject(t, map[string]string{"flow.yaml": "nodes: [{name: n}]\nserve: {triggers: [{mqtt: t, broker: \"mqtt://" + listener.Addr().String() + "\"}]}\n"}).serve()
	for {
		r := s.request("GET", "/v1/workflows/flow", "")
		if trigger := r.body["triggers"].([]any)[0].(map[string]any); trigger["problem"] != nil {
			return
		}
	}
}
