package teacmd

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/serve"
)

// bad is a plugin with an action for each way to misbehave.
func bad() {
	type params struct {
		Say string `json:"say,omitempty"`
	}
	action := func(name string, run func(ctx context.Context, req *tea.Request), options ...tea.Option) tea.Action {
		return tea.NewAction("bad."+name, "Misbehaves.", func(ctx context.Context, req *tea.Request, p params) (params, error) {
			fmt.Fprint(os.Stderr, p.Say)
			run(ctx, req)
			return p, ctx.Err()
		}, options...)
	}
	serve.Main(tea.Bundle{Name: "bad", Version: "1.0.0", Actions: []tea.Action{
		action("good", func(context.Context, *tea.Request) {}),
		action("exit", func(context.Context, *tea.Request) { os.Exit(3) }),
		action("panic", func(context.Context, *tea.Request) { panic("at the disco") }),
		action("goexit", func(context.Context, *tea.Request) { runtime.Goexit() }),
		action("throw", func(context.Context, *tea.Request) {
			go panic("off the record")
			select {}
		}),
		action("hang", func(context.Context, *tea.Request) { select {} }),
		action("wait", func(ctx context.Context, _ *tea.Request) { <-ctx.Done() }),
		action("stop", func(context.Context, *tea.Request) {
			syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			select {}
		}),
		action("eat", func(ctx context.Context, _ *tea.Request) {
			var eaten [][]byte
			for range 1 << 10 {
				eaten = append(eaten, bytes.Repeat([]byte("x"), 1<<20))
			}
			<-ctx.Done() // the memory is in use until the host looks
			runtime.KeepAlive(eaten)
		}),
		action("twice", func(_ context.Context, req *tea.Request) {
			if req.Attempt == 1 {
				os.Exit(3)
			}
		}, tea.Idempotent()),
		action("daemon", func(_ context.Context, req *tea.Request) {
			child := exec.Command("sleep", "1000")
			child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := child.Start(); err != nil {
				panic(err)
			}
			fmt.Fprintln(os.Stderr, "daemon", child.Process.Pid)
			os.Exit(3)
		}),
	}})
}
