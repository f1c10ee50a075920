package serve_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/internal/pb"
	"github.com/the-edge-agent/tea/sdk/serve"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/proctest"
	"github.com/the-edge-agent/tea/sdk/x/wire"
)

// role says what this binary is when a test has started it again.
const role = "TEA_SERVE_TEST"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "plugin":
		serve.Main(bundle())
	case "host":
		fakeHost()
	}
	os.Exit(m.Run())
}

func bundle() tea.Bundle {
	left := make(chan tea.Host, 1)
	type none struct{}
	return tea.Bundle{Name: "served", Version: "1.2.3", Actions: []tea.Action{
		tea.NewAction("served.pid", "Returns its process id.", func(context.Context, *tea.Request, none) (int, error) { return os.Getpid(), nil }),
		tea.NewAction("served.log", "Logs in every way.", logEverything),
		tea.NewAction("served.stream_log", "Does the same in a stream.", logEverything, tea.Streaming()),
		tea.NewAction("served.split", "Streams single bytes.", split),
		tea.NewAction("served.stream_split", "Does the same in a stream.", split, tea.Streaming()),
		tea.NewAction("served.leave", "Leaves its host to a later call.", func(_ context.Context, req *tea.Request, _ none) (none, error) {
			left <- req.Host
			return none{}, nil
		}),
		tea.NewAction("served.late", "Uses the host of the earlier call.", func(ctx context.Context, _ *tea.Request, _ none) (string, error) {
			_, err := (<-left).Invoke(ctx, "a.b", nil)
			return fmt.Sprint(err), nil
		}),
		tea.NewAction("served.hold", "Lasts as long as a callback.", func(ctx context.Context, req *tea.Request, _ none) (string, error) {
			_, err := req.Host.Invoke(ctx, "a.b", nil)
			return "kept", err
		}),
	}}
}

func logEverything(ctx context.Context, req *tea.Request, _ struct{}) (struct{}, error) {
	slog.With("a", 1).WithGroup("g").InfoContext(ctx, "of the call", "b", "two", slog.Group("h", "c", true), "err", fmt.Errorf("no"))
	slog.DebugContext(ctx, "too small")
	slog.Info("of nobody", "d", 4)
	req.Host.Log(ctx, slog.LevelError, "by hand", map[string]any{"half": "\xc3"})
	return struct{}{}, nil
}

const manyBytes = "a\u00e9\u65e5\u672c\U0001f4a1z\xff!\xe6\x97"

func split(ctx context.Context, req *tea.Request, _ struct{}) (struct{}, error) {
	for i := range len(manyBytes) {
		req.Host.Token(ctx, manyBytes[i:i+1])
	}
	return struct{}{}, nil
}

// start runs this binary as a plugin.
func start(t *testing.T) (*teatest.Process, *strings.Builder) {
	t.Helper()
	var output strings.Builder
	p, err := teatest.Start(t.Context(), again(t, "plugin"), &output)
	if err != nil {
		t.Fatal(err)
	}
	return p, &output
}

func again(t *testing.T, as string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), role+"="+as, "GORACE=atexit_sleep_ms=0") // the race detector delays each exit by 1 s
	return cmd
}

func open(t *testing.T, p *teatest.Process) teatest.Instance {
	t.Helper()
	inst, err := p.Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return inst
}

func call(t *testing.T, inst teatest.Instance, action string, host tea.Host) any {
	t.Helper()
	resp, err := inst.Invoke(t.Context(), &tea.Request{Action: action, Params: tea.RawPayload([]byte(`{}`)), Host: host})
	if err != nil {
		t.Fatal(err)
	}
	v, err := resp.Result.Value()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestLogRecordsOfACallReachItsRun(t *testing.T) {
	t.Parallel()
	want := []teatest.Log{
		{Level: slog.LevelInfo, Message: "of the call", Fields: map[string]any{
			"a": int64(1), "g": map[string]any{"b": "two", "h": map[string]any{"c": true}, "err": "no"},
		}},
		{Level: slog.LevelError, Message: "by hand", Fields: map[string]any{"half": "\ufffd"}},
	}
	p, output := start(t)
	inst := open(t, p)
	for _, action := range []string{"served.log", "served.stream_log"} {
		host := &teatest.Host{}
		call(t, inst, action, host)
		if diff := cmp.Diff(want, host.Recorded().Logs); diff != "" {
			t.Errorf("%s: %s", action, diff)
		}
	}
	p.Close() // its output is complete then
	if !strings.Contains(output.String(), `"@level":"info","@message":"of nobody","d":4`) {
		t.Errorf("the record of no call is not on stderr:\n%s", output)
	}
}

func TestTokenThatEndsInsideACharacterWaitsForTheNext(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	defer p.Close()
	inst := open(t, p)
	want := []string{"a", "\u00e9", "\u65e5", "\u672c", "\U0001f4a1", "z", "\ufffd", "!", "\ufffd"}
	for _, action := range []string{"served.split", "served.stream_split"} {
		host := &teatest.Host{}
		call(t, inst, action, host)
		if diff := cmp.Diff(want, host.Recorded().Tokens); diff != "" {
			t.Errorf("%s: %s", action, diff)
		}
	}
}

func TestHostIsRefusedOnceTheCallIsOver(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	defer p.Close()
	inst := open(t, p)
	call(t, inst, "served.leave", &teatest.Host{})
	if got := call(t, inst, "served.late", &teatest.Host{}); !strings.HasPrefix(got.(string), "canceled: the call has ended") {
		t.Errorf("a late callback gave %q", got)
	}
}

func TestShutdownLetsRunningCallsEnd(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	inst := open(t, p)
	begun, release := make(chan struct{}), make(chan struct{})
	host := &teatest.Host{Actions: map[string]func(context.Context, any) (any, error){
		"a.b": func(context.Context, any) (any, error) {
			close(begun)
			<-release
			return nil, nil
		},
	}}
	ended := make(chan string, 1)
	go func() {
		resp, err := inst.Invoke(t.Context(), &tea.Request{Action: "served.hold", Params: tea.RawPayload([]byte(`{}`)), Host: host})
		if err != nil {
			ended <- err.Error()
			return
		}
		raw, _ := resp.Result.JSON()
		ended <- string(raw)
	}()
	<-begun
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		p.Close()
	}()
	plugin := pb.NewPluginClient(p.Conn())
	for {
		health, err := plugin.Health(t.Context(), &pb.HealthRequest{})
		if err != nil {
			t.Fatalf("the plugin did not wait for its call: %v", err)
		}
		if !health.GetReady() {
			break
		}
	}
	close(release)
	if got := <-ended; got != `"kept"` {
		t.Errorf("the running call gave %s", got)
	}
	<-closed
}

func TestManualStartExplainsThePlugin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, "This is tea-plugin-served 1.2.3"},
		{[]string{"--version"}, 0, "tea-plugin-served 1.2.3\n"},
		{[]string{"--manifest"}, 0, `"name": "served.hold"`},
		{[]string{"--what"}, 2, "not started by hand"},
	} {
		cmd := again(t, "plugin")
		cmd.Args = append(cmd.Args, c.args...)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != c.code || !strings.Contains(string(out), c.want) {
			t.Errorf("%v: exit code %d, output %q, want %d and %q", c.args, cmd.ProcessState.ExitCode(), out, c.code, c.want)
		}
	}
}

// fakeHost starts a plugin with nothing but the cookie, prints its process id
// and exits.
func fakeHost() {
	self, err := os.Executable()
	if err != nil {
		os.Exit(1)
	}
	plugin := exec.Command(self)
	plugin.Env = append(os.Environ(), role+"=plugin", wire.CookieKey+"="+wire.CookieValue)
	stdout, err := plugin.StdoutPipe()
	if err != nil {
		os.Exit(1)
	}
	if err := plugin.Start(); err != nil {
		os.Exit(1)
	}
	bufio.NewReader(stdout).ReadString('\n') // it watches its parent from here on
	fmt.Println(plugin.Process.Pid)
	os.Exit(0)
}

// Both ways to notice the host's end work without the kernel's help.
func TestPluginEndsWithItsHost(t *testing.T) {
	t.Parallel()
	t.Run("pipe", func(t *testing.T) {
		t.Parallel()
		watched, held, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		plugin := again(t, "plugin")
		plugin.Env = append(plugin.Env, wire.CookieKey+"="+wire.CookieValue, wire.ParentFD+"=3")
		plugin.ExtraFiles = []*os.File{watched}
		plugin.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		stdout, err := plugin.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := plugin.Start(); err != nil {
			t.Fatal(err)
		}
		watched.Close()
		bufio.NewReader(stdout).ReadString('\n')
		held.Close()
		wantEnd(t, plugin.Process.Pid)
		_ = plugin.Wait()
	})
	t.Run("parent", func(t *testing.T) {
		t.Parallel()
		out, err := again(t, "host").Output()
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
		if err != nil {
			t.Fatal(err)
		}
		wantEnd(t, pid)
	})
}

// wantEnd fails the test unless a process ends within 2 s, and kills it then.
func wantEnd(t *testing.T, pid int) {
	t.Helper()
	if len(proctest.Await(2*time.Second, pid)) > 0 {
		syscall.Kill(pid, syscall.SIGKILL)
		t.Error("the plugin outlived its host by 2 s")
	}
}
