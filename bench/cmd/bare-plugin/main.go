// Command bare-plugin is a minimal go-plugin plugin and, with an argument, its
// minimal host, for comparison with a tea run with one plugin call. The host makes
// one call. With "idle" it then prints the plugin's process ID and waits for the end
// of its input.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/the-edge-agent/tea/bench/bare"
)

func main() {
	if len(os.Args) == 1 {
		bare.Serve()
		return
	}
	if err := host(context.Background(), os.Args[1] == "idle"); err != nil {
		fmt.Fprintln(os.Stderr, "bare-plugin:", err)
		os.Exit(1)
	}
}

func host(ctx context.Context, idle bool) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self)
	h, err := bare.Start(cmd)
	if err != nil {
		return err
	}
	defer h.Close()
	if _, err := h.Echo(ctx, map[string]any{"text": "hello"}); err != nil || !idle {
		return err
	}
	fmt.Println(cmd.Process.Pid)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
