// Command bare-plugin is the smallest plugin of go-plugin, and with an argument
// the smallest host of it: the peer of tea run with one plugin call. The host
// makes one call; with "idle" it prints the number of the plugin's process then,
// and waits for the end of its input.
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
