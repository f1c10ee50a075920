// Command tiny-ollama runs the test server of package ollamatest until it is
// interrupted. It prints its address to stdout when it is ready.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/the-edge-agent/tea/plugins/llm/internal/ollamatest"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "tiny-ollama:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	program, err := ollamatest.Find()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tiny-ollama")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	starting, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	server, err := ollamatest.Start(starting, program, dir)
	if err != nil {
		return err
	}
	defer server.Stop()
	fmt.Println(server.URL)
	<-ctx.Done()
	return nil
}
