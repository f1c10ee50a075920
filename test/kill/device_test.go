package kill

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
	"github.com/the-edge-agent/tea/test/teaproc"
)

// machine is a server that reports each effect with the name of its target.
type machine struct {
	// settings has a verb for the address of the server and one for the target.
	settings, node, verify string
	address                string
	stop                   func()

	mu      sync.Mutex
	effects map[string]int
}

func (m *machine) count(target string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.effects[target]
}

// start starts the server. read returns the target of an effect in a line of its output,
// or the address where it listens, and is called until the server ends.
func (m *machine) start(t *testing.T, cmd *exec.Cmd, read func(line string) (address, target string)) {
	t.Helper()
	m.effects = map[string]int{}
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.StdoutPipe()
	if err == nil {
		cmd.Stderr = cmd.Stdout
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			address, target := read(lines.Text())
			if address != "" {
				ready <- address
			}
			if target != "" {
				m.mu.Lock()
				m.effects[target]++
				m.mu.Unlock()
			}
		}
	}()
	m.stop = sync.OnceFunc(func() { _ = cmd.Process.Kill(); <-ended; _ = cmd.Wait() })
	t.Cleanup(m.stop)
	select {
	case m.address = <-ready:
	case <-ended:
		t.Fatalf("%q ended", cmd.Args)
	}
}

// plc is a pymodbus whose registers are the targets.
func plc(t *testing.T) *machine {
	t.Helper()
	m := &machine{
		settings: "modbus: {servers: {plc: {url: 'tcp://%s', timeout_seconds: 20}}, points: {p: {address: %s, write: {}}}}",
		node:     "uses: modbus.write, with: {point: p, value: 7}",
		verify:   "{uses: modbus.read, with: {point: p}, if: result.value == 7}",
	}
	python := filepath.Join(peertest.Dir(t, "../..", "pymodbus"), "python", "bin", "python")
	m.start(t, exec.Command(python, "../pymodbus/server.py", "count"), func(line string) (address, target string) {
		var said struct{ Port, Write json.Number }
		_ = json.Unmarshal([]byte(line), &said) // others are warnings
		if said.Port != "" {
			address = "127.0.0.1:" + said.Port.String()
		}
		return address, said.Write.String()
	})
	return m
}

// broker is a mosquitto whose topics are the targets.
func broker(t *testing.T) *machine {
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
	m := &machine{
		settings: "mqtt: {servers: {site: {url: 'mqtt://%s', publish: [{topics: ['%s']}]}}}",
		node:     "uses: mqtt.publish, with: {topic: '%s', payload: 7, retain: true}, effects: once",
		verify:   "{uses: mqtt.last, with: {topic: '%s', wait_seconds: 0.2}, if: result.found}",
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	config := filepath.Join(t.TempDir(), "mosquitto.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, "listener %s 127.0.0.1\nallow_anonymous true\n", strings.TrimPrefix(address, "127.0.0.1:")), 0o600); err != nil {
		t.Fatal(err)
	}
	published := regexp.MustCompile(`Received PUBLISH from .* '([0-9]+)'`)
	m.start(t, exec.Command(path, "-c", config, "-v"), func(line string) (at, target string) {
		if strings.Contains(line, " running") {
			at = address
		}
		if found := published.FindStringSubmatch(line); found != nil {
			target = found[1]
		}
		return at, target
	})
	return m
}

// TestWritesToMachinesHappenAtMostOnce kills tea and its plugin at each system call that
// changes the disk or uses the network. A machine gets the write once or, if nobody knows
// whether it did, at most once; looking at the machine then settles it.
func TestWritesToMachinesHappenAtMostOnce(t *testing.T) {
	t.Parallel()
	strace := needStrace(t)
	for name, start := range map[string]func(*testing.T) *machine{
		"modbus": plc, "mqtt": broker,
		"plan": func(t *testing.T) *machine {
			m := plc(t)
			m.node = "uses: plan.execute, with: {plan: {goal: g, subtasks: [{id: a, description: b}]}, subtask_executor: {action: modbus.write, with: {point: p, value: 7}}}"
			return m
		},
		"lua": func(t *testing.T) *machine {
			m := plc(t)
			m.node = "run: 'tea.action(\"modbus.write\", {point = \"p\", value = 7})'"
			return m
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := start(t)
			var last, unknown atomic.Int64
			t.Run("kills", func(t *testing.T) {
				for victim, calls := range map[string][]string{"host": {"write", "fsync"}, "plugin": {"write", "read", "connect"}} {
					for _, call := range calls {
						t.Run(victim+" "+call, func(t *testing.T) {
							t.Parallel()
							for n, survived := 1, 0; survived < 3; n++ {
								// A process can survive one number and not the next: threads count on their own.
								if survived++; n > 60 {
									t.Fatal("the run is killed at each number")
								}
								if !m.attack(t, strace, victim, fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n), fmt.Sprint(last.Add(1)), &unknown) {
									survived = 0
								}
							}
						})
					}
				}
			})
			m.stop() // all of its output was read
			for target, n := range m.effects {
				if n > 1 {
					t.Errorf("%d effects on %s", n, target)
				}
			}
			t.Logf("%d runs, %d effects, %d unknown outcomes", last.Load(), len(m.effects), unknown.Load())
		})
	}
}

// attack runs a workflow that is killed, continues it, and reports whether it needed to be.
func (m *machine) attack(t *testing.T, strace, victim, inject, target string, unknown *atomic.Int64) (survived bool) {
	t.Helper()
	d := newDevice(t)
	write := func(file, policy string) {
		text := fmt.Sprintf("settings: {%s}\nnodes: [{name: start, %s, output: {}%s}]\n",
			fmt.Sprintf(m.settings, m.address, target), strings.ReplaceAll(m.node, "%s", target), strings.ReplaceAll(policy, "%s", target))
		if err := os.WriteFile(filepath.Join(d.dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("fail.yaml", "")
	write("verify.yaml", ", on_unknown: verify, verify: "+m.verify)
	trace := []string{"-f", "-qq", "-o", "/dev/null", "-e", "trace=" + inject[len("inject="):strings.IndexByte(inject, ':')], "-e", inject}
	plugins, words := filepath.Dir(tea), []string{tea, "run", "fail.yaml", "-c", "runs", "--plugins"}
	if victim == "host" {
		words = slices.Concat([]string{strace}, trace, words)
	} else {
		script := fmt.Sprintf("#!/bin/sh\nexec '%s' -D '%s' '%s/tea-plugin-device' \"$@\"\n", strace, strings.Join(trace, "' '"), plugins)
		if err := os.WriteFile(filepath.Join(d.dir, "tea-plugin-device"), []byte(script), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
		plugins = d.dir
		if err := os.Symlink(filepath.Join(filepath.Dir(tea), "tea-plugin-plan"), filepath.Join(plugins, "tea-plugin-plan")); err != nil {
			t.Fatal(err)
		}
	}
	code, out := d.run(d.command(words[0], append(words[1:], plugins)...))
	runs := d.runs()
	if code != 0 && len(runs) == 0 {
		return false
	}
	survived = code == 0
	if !survived {
		code, out = d.run(d.command(tea, "resume", runs[0], "-c", "runs", "--plugins", filepath.Dir(tea)))
	}
	if code == 1 && strings.Contains(out, "unknown_outcome") {
		unknown.Add(1)
		code, out = d.run(d.command(tea, "resume", runs[0], "-c", "runs", "--workflow", "verify.yaml", "--migrate", "--plugins", filepath.Dir(tea)))
	}
	if code != 0 {
		t.Fatalf("%s, %s: exit code %d\n%s", victim, inject, code, out)
	}
	teaproc.Poll(t, func() (bool, any) { n := m.count(target); return n > 0, n })
	return survived
}
