package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/test/teaproc"
)

// durableBroker is a broker that keeps sessions and messages on disk.
type durableBroker struct {
	t      *testing.T
	port   int
	config string
	cmd    *exec.Cmd
	log    *teaproc.Log
}

func newDurableBroker(t *testing.T) *durableBroker {
	t.Helper()
	b := &durableBroker{t: t, config: "persistence true\npersistence_location " + t.TempDir() + "/\n"}
	if os.Geteuid() == 0 {
		b.config += "user root\n" // otherwise it cannot write there
	}
	for b.cmd == nil {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		b.port = l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		b.cmd, b.log = mosquittoWith(t, b.port, b.config)
	}
	return b
}

func (b *durableBroker) address() string { return fmt.Sprintf("mqtt://127.0.0.1:%d", b.port) }

// restart stops the broker, which writes its state, and starts it again.
func (b *durableBroker) restart() {
	b.t.Helper()
	_ = b.cmd.Process.Signal(syscall.SIGTERM)
	_ = b.cmd.Wait()
	if b.cmd, b.log = mosquittoWith(b.t, b.port, b.config); b.cmd == nil {
		b.t.Skip("another process has the port of the broker now")
	}
}

// A stream of mqtt.watch starts a run for each message while it is subscribed, over
// restarts of the broker and of the server, and none twice. It has no session: what is sent
// while the server is down is for the trigger mqtt, which gets it from the broker.
func TestStreamOfMessagesStartsARunForEach(t *testing.T) {
	t.Parallel()
	b := newDurableBroker(t)
	p := newProject(t, nil)
	p.write("queue.yaml", note(p, "queue {{ state.n }}", `
serve: {triggers: [{mqtt: "line/+", broker: "`+b.address()+`"}]}
`))
	p.write("stream.yaml", `
settings: {file: {root: "`+p.home+`"}, mqtt: {servers: {plant: {url: "`+b.address()+`"}}}}
nodes:
  - {name: note, uses: file.append, with: {path: notes, content: "\nstream {{ state.event.result.body.n }}"}}
serve: {triggers: [{stream: {uses: mqtt.watch, with: {topic: "line/+"}}}]}
`)
	dir, err := devicePlugin()
	if err != nil {
		t.Fatal(err)
	}
	p.env = append(p.env, "TEA_PLUGINS="+dir)
	s := p.serve()
	subscribed := func(clients int) {
		t.Helper()
		for range clients {
			b.log.Await(t, "line/+ (QoS 1)")
		}
	}
	next := 0
	send := func() {
		t.Helper()
		next++
		publish(t, b.address(), "line/a", fmt.Sprintf(`{"n": %d}`, next))
	}
	both := func(stream, queue int) {
		t.Helper()
		s.awaitStatuses("stream", map[string]int{"done": stream})
		s.awaitStatuses("queue", map[string]int{"done": queue})
	}
	subscribed(2)
	send()
	send()
	both(2, 2)
	b.restart()
	subscribed(2)
	send()
	both(3, 3)
	s.kill()
	send() // the broker keeps it for the session of the trigger mqtt
	b.restart()
	s = p.serve()
	subscribed(2)
	send()
	both(4, 5)
	s.interrupt()
	got := map[string]int{}
	for _, line := range p.notes() {
		got[line]++
	}
	want := map[string]int{"stream 1": 1, "stream 2": 1, "stream 3": 1, "stream 5": 1, "queue 1": 1, "queue 2": 1, "queue 3": 1, "queue 4": 1, "queue 5": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}
