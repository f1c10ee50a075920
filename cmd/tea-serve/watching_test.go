package main

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	s := newProject(t, map[string]string{"greet.yaml": greet, "bad.yaml": "nodes: [{name: n, uses: jsn.parse}]"}).serve()
	s.run("greet", `{"name": "x"}`)
	s.run("greet", `{"name": "y"}`)
	r := s.request("GET", "/metrics", "")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(r.text))
	if err != nil {
		t.Fatalf("%v:\n%s", err, r.text)
	}
	for _, want := range []string{
		`tea_runs_total{status="done",workflow="greet"} 2`, `tea_node_seconds_count{node="hello",workflow="greet"} 2`, `tea_runs_running{workflow="greet"} 0`,
		`tea_broken_files 1`, `tea_runs_parked 0`,
	} {
		if !strings.Contains(r.text, want+"\n") {
			t.Errorf("the metrics have no %s:\n%s", want, r.text)
		}
	}
	if families["tea_journal_bytes"].GetMetric()[0].GetGauge().GetValue() <= 0 {
		t.Errorf("journal bytes: %v", families["tea_journal_bytes"])
	}
}

// activated returns a call of tea serve to which systemd passes a socket.
func (p *project) activated(log *logs, listener net.Listener, args ...string) *exec.Cmd {
	p.t.Helper()
	socket, ok := listener.(interface{ File() (*os.File, error) })
	if !ok {
		p.t.Fatalf("listener: %T", listener)
	}
	file, err := socket.File()
	if err != nil {
		p.t.Skip(err)
	}
	p.t.Cleanup(func() { _ = file.Close() })
	cmd := p.command(log, append([]string{"serve", p.dir}, args...)...)
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `LISTEN_PID=$$ WATCHDOG_PID=$$ exec "$@"`, "sh"}, cmd.Args...)
	cmd.Env = append(cmd.Env, "LISTEN_FDS=1")
	cmd.ExtraFiles = []*os.File{file}
	return cmd
}

// Secrets are files of the directory that systemd names.
func TestCredentialsOfSystemd(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"hook.yaml": "nodes: [{name: n}]\nserve: {triggers: [{webhook: in, secret: HOOK}]}\n"})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "HOOK"), []byte(hookSecret+"\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	p.env = []string{"CREDENTIALS_DIRECTORY=" + dir}
	s := p.serve()
	if r := s.request("POST", "/hooks/in", "{}", "X-Signature", sign("{}")); r.status != http.StatusAccepted {
		t.Errorf("webhook: %s", r)
	}
	if r := s.request("POST", "/hooks/in", "{}", "X-Signature", sign("{ }")); r.status != http.StatusUnauthorized {
		t.Errorf("webhook with another signature: %s", r)
	}
}

// TestSystemdIsNotified plays systemd: its socket gets the state of the server.
func TestSystemdIsNotified(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "tea") //nolint:usetesting // t.TempDir is too deep for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Skip(err)
	}
	defer socket.Close()
	p := newProject(t, map[string]string{"greet.yaml": greet})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	log := newLogs()
	cmd := p.activated(log, listener)
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+filepath.Join(dir, "notify"), "WATCHDOG_USEC=200000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	buffer := make([]byte, 1000)
	await := func(want string) {
		t.Helper()
		for {
			n, err := socket.Read(buffer)
			if err != nil {
				t.Fatal(err)
			}
			if string(buffer[:n]) == want {
				return
			}
		}
	}
	await("READY=1")
	res, err := http.Get(url + "/readyz")
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("ready: %v, %v\n%s", res, err, log)
	}
	_ = res.Body.Close()
	await("WATCHDOG=1")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	await("STOPPING=1")
	if err := cmd.Wait(); err != nil {
		t.Errorf("exit: %v\n%s", err, log)
	}
}
