package subproc

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/the-edge-agent/tea/bench/bare"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/serve"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// fakes are what the test binary can be, by its name.
var fakes = map[string]func(){
	"tea-plugin-greeter":   greeter,
	"tea-plugin-probe":     func() { serve.Main(teatest.Probe()) },
	"tea-plugin-crash":     func() { serve.Main(crashBundle("crash")) },
	"tea-plugin-slowstart": fakeSlowStart,
	"tea-plugin-abc":       func() { serve.Main(conflictingBundle("abc")) },
	"tea-plugin-twin":      func() { serve.Main(conflictingBundle("twin")) },
	"tea-plugin-misnamed":  func() { serve.Main(crashBundle("another")) },
	"tea-plugin-exits":     fakeExits,
	"tea-plugin-rubbish":   func() { fmt.Println("Hello, world!"); block() },
	"tea-plugin-mute":      func() { fmt.Fprintln(os.Stderr, "pondering"); block() },
	"tea-plugin-deaf":      fakeDeaf,
	"tea-plugin-panics":    func() { panic("at the start") },
	"tea-plugin-stops":     func() { syscall.Kill(os.Getpid(), syscall.SIGSTOP); block() },
	"tea-plugin-floods":    func() { flood(os.Stdout, bytes.Repeat([]byte("x"), 1<<16)) },
	"tea-plugin-spills":    func() { flood(os.Stderr, bytes.Repeat([]byte("x"), 1<<16)) },
	"tea-plugin-newer":     func() { fmt.Println("1|2|unix|/nowhere|grpc|"); block() },
	"tea-plugin-netrpc":    func() { fmt.Println("1|1|unix|/nowhere|netrpc|"); block() },
	"tea-plugin-echo":      serveEcho,
	"tea-plugin-swap":      func() { serve.Main(swapBundle()) },
	"tea-plugin-numb":      func() { serve.Main(refusingBundle()) },
	"bare-echo":            bare.Serve,
	"fake-host":            fakeHost,
	"fake-swap-host":       fakeSwapHost,
}

// block waits for the end that others bring.
func block() { <-time.After(24 * time.Hour) } // without cgo, an empty select is a deadlock

// useMemory uses memory: 400 MiB a second, which a busy host has time to notice.
func useMemory(n int) {
	var eaten [][]byte
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range n >> 23 {
		eaten = append(eaten, bytes.Repeat([]byte("x"), 8<<20))
		<-tick.C
	}
	runtime.KeepAlive(eaten)
}

func flood(f *os.File, data []byte) {
	for {
		if _, err := f.Write(data); err != nil {
			return
		}
	}
}

func fakeExits() {
	fmt.Fprintln(os.Stderr, "the licence has run out")
	os.Exit(3)
}

// fakeDeaf says the right words and never listens.
func fakeDeaf() {
	l, err := net.Listen("unix", filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "deaf"))
	if err != nil {
		os.Exit(1)
	}
	fmt.Printf("1|1|unix|%s|grpc|\n", l.Addr())
	block()
}

// startsFile is where fakeSlowStart notes each start, next to its binary.
const startsFile = "starts"

// fakeSlowStart takes its time.
func fakeSlowStart() {
	f, err := os.OpenFile(filepath.Join(filepath.Dir(os.Args[0]), startsFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		os.Exit(1)
	}
	fmt.Fprintln(f, os.Getpid())
	f.Close()
	<-time.After(200 * time.Millisecond)
	serve.Main(slowBundle())
}

type floodParams struct {
	Bytes int `json:"bytes"`
}

// conflictingBundle has its own action and some that others have too.
func conflictingBundle(name string) tea.Bundle {
	b := tea.Bundle{Name: name, Version: "1.0.0"}
	for _, action := range []string{name + ".own", "crash.not", "shared.x"} {
		b.Actions = append(b.Actions, tea.Action{Name: action, Handle: func(context.Context, *tea.Request) (*tea.Response, error) {
			return tea.Respond(map[string]any{"by": name}), nil
		}})
	}
	return b
}

// refusingBundle never accepts its settings.
func refusingBundle() tea.Bundle {
	b := crashBundle("numb")
	b.Open = func(context.Context, tea.Settings) (any, error) {
		block()
		return nil, nil
	}
	return b
}

// slowBundle has crash.child and so on as slowstart.child.
func slowBundle() tea.Bundle {
	b := crashBundle("slowstart")
	for i, a := range b.Actions {
		b.Actions[i].Name = strings.Replace(a.Name, "crash.", "slowstart.", 1)
	}
	return b
}

// crashBundle has an action for each way to misbehave.
func crashBundle(name string) tea.Bundle {
	type none struct{}
	return tea.Bundle{Name: name, Version: "1.0.0", Actions: []tea.Action{
		tea.NewAction("crash.not", "Does not crash.", func(context.Context, *tea.Request, none) (map[string]any, error) {
			return map[string]any{"pid": os.Getpid()}, nil
		}, tea.Idempotent()),
		tea.NewAction("crash.exit", "Exits.", func(context.Context, *tea.Request, none) (none, error) {
			fmt.Fprintln(os.Stderr, "out of cheese")
			os.Exit(7)
			return none{}, nil
		}),
		tea.NewAction("crash.kill", "Is killed.", func(context.Context, *tea.Request, none) (none, error) {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			block()
			return none{}, nil
		}),
		tea.NewAction("crash.panic", "Panics where nothing recovers it.", func(context.Context, *tea.Request, none) (none, error) {
			go panic("deep inside")
			block()
			return none{}, nil
		}),
		{Name: "crash.echo", Handle: func(_ context.Context, req *tea.Request) (*tea.Response, error) {
			return &tea.Response{Result: req.Params}, nil
		}},
		tea.NewAction("crash.flood", "Writes much to stdout and stderr.", func(_ context.Context, _ *tea.Request, p floodParams) (none, error) {
			line := append(bytes.Repeat([]byte("y"), 100_000), '\n')
			for n := 0; n < p.Bytes; n += len(line) {
				os.Stdout.Write(line)
				os.Stderr.Write(line)
			}
			return none{}, nil
		}),
		tea.NewAction("crash.stubborn", "Emits a token and never ends.", func(ctx context.Context, req *tea.Request, _ none) (none, error) {
			req.Host.Token(ctx, "here")
			block()
			return none{}, nil
		}),
		tea.NewAction("crash.child", "Starts a child that outlives it.", func(context.Context, *tea.Request, none) (map[string]any, error) {
			child := exec.Command("sleep", "1000")
			err := child.Start()
			if err != nil {
				return nil, err
			}
			return map[string]any{"pid": child.Process.Pid}, nil
		}),
		tea.NewAction("crash.patient", "Emits two tokens.", func(ctx context.Context, req *tea.Request, _ none) (none, error) {
			req.Host.Token(ctx, "one")
			req.Host.Token(ctx, "two")
			return none{}, nil
		}),
		tea.NewAction("crash.obey", "Ends with its context.", func(ctx context.Context, _ *tea.Request, _ none) (none, error) {
			<-ctx.Done()
			return none{}, ctx.Err()
		}),
		tea.NewAction("crash.stop", "Stops its process.", func(context.Context, *tea.Request, none) (none, error) {
			syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			block()
			return none{}, nil
		}),
		tea.NewAction("crash.goexit", "Ends its goroutine.", func(context.Context, *tea.Request, none) (none, error) {
			runtime.Goexit()
			return none{}, nil
		}),
		tea.NewAction("crash.oops", "Panics.", func(context.Context, *tea.Request, none) (none, error) {
			panic("oops")
		}),
		tea.NewAction("crash.nil", "Follows a nil pointer where nothing recovers it.", func(context.Context, *tea.Request, none) (none, error) {
			var nothing *exec.Cmd
			go func() { nothing.Args = nil }()
			block()
			return none{}, nil
		}),
		tea.NewAction("crash.eat", "Uses memory.", func(_ context.Context, _ *tea.Request, p floodParams) (none, error) {
			useMemory(p.Bytes)
			return none{}, nil
		}),
		{Name: "crash.big", Handle: func(_ context.Context, req *tea.Request) (*tea.Response, error) {
			var p floodParams
			err := req.Params.Decode(&p)
			return tea.Respond(strings.Repeat("x", p.Bytes)), err
		}},
		tea.NewAction("crash.late", "Answers after its deadline.", func(ctx context.Context, _ *tea.Request, _ none) (none, error) {
			<-ctx.Done()
			<-time.After(200 * time.Millisecond)
			return none{}, nil
		}),
		tea.NewAction("crash.gush", "Writes much to stdout and stderr without line breaks.", func(_ context.Context, _ *tea.Request, p floodParams) (none, error) {
			data := bytes.Repeat([]byte("z"), 100_000)
			for n := 0; n < p.Bytes; n += len(data) {
				os.Stdout.Write(data)
				os.Stderr.Write(data)
			}
			return none{}, nil
		}),
		tea.NewAction("crash.restless", "Ignores the shutdown.", func(context.Context, *tea.Request, none) (none, error) {
			signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			return none{}, nil
		}),
		tea.NewAction("crash.limits", "Returns the limits that it sees.", func(context.Context, *tea.Request, none) (map[string]any, error) {
			var files syscall.Rlimit
			err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files)
			status, _ := os.ReadFile("/proc/self/status")
			_, processors, _ := strings.Cut(string(status), "Cpus_allowed_list:\t")
			processors, _, _ = strings.Cut(processors, "\n")
			return map[string]any{
				"files": int64(files.Cur), "one processor": !strings.ContainsAny(processors, "-,"), "GOMAXPROCS": runtime.GOMAXPROCS(0), "GOMEMLIMIT": os.Getenv("GOMEMLIMIT"),
			}, err
		}),
		tea.NewAction("crash.daemon", "Starts a child with its own session.", func(context.Context, *tea.Request, none) (map[string]any, error) {
			child := exec.Command("sleep", "1000")
			child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			err := child.Start()
			if err != nil {
				return nil, err
			}
			return map[string]any{"pid": child.Process.Pid}, nil
		}),
		tea.NewAction("crash.ghost", "Starts a child without a trace.", func(context.Context, *tea.Request, none) (map[string]any, error) {
			child := exec.Command("sleep", "1000")
			child.Env, child.SysProcAttr = []string{"NOTHING=else"}, &syscall.SysProcAttr{Setsid: true}
			err := child.Start()
			if err != nil {
				return nil, err
			}
			return map[string]any{"pid": child.Process.Pid}, nil
		}),
		tea.NewAction("crash.env", "Returns its environment.", func(context.Context, *tea.Request, none) (map[string]any, error) {
			n, err := os.Stdin.Read(make([]byte, 1))
			return map[string]any{"env": os.Environ(), "stdin": fmt.Sprint(n, " ", err)}, nil
		}),
	}}
}

type greeting struct {
	Name string `json:"name" doc:"who is greeted"`
}

func greet(_ context.Context, _ *tea.Request, p greeting) (map[string]string, error) {
	return map[string]string{"text": "Hello " + p.Name}, nil
}

// greeter is the plugin of the example; as a separate program it is the complete main.
func greeter() {
	serve.Main(tea.Bundle{Name: "greeter", Version: "1.0.0", Actions: []tea.Action{
		tea.NewAction("greeter.greet", "Greets somebody.", greet, tea.Idempotent()),
	}})
}
