package conform

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/wire"
)

// processRunner starts a plugin for go-plugin and records why that fails, because
// go-plugin's error is for the authors of hosts.
type processRunner struct {
	cmd            *exec.Cmd
	stdout, stderr io.ReadCloser
	exited         chan struct{}

	mu sync.Mutex
	// first is the beginning of stdout, at most the first line; ended is the end
	// of stdout.
	first []byte
	ended bool
	// failure is the reason why the process could not be started.
	failure error
}

func newRunner(cmd *exec.Cmd) *processRunner {
	return &processRunner{cmd: cmd, exited: make(chan struct{})}
}

// Start starts the process.
func (r *processRunner) Start(context.Context) (err error) {
	if r.stdout, err = r.cmd.StdoutPipe(); err != nil {
		return err
	}
	if r.stderr, err = r.cmd.StderrPipe(); err != nil {
		return err
	}
	if err := r.cmd.Start(); err != nil {
		r.failure = wire.CannotExecute(err)
		return r.failure
	}
	return nil
}

// reason returns why there is no connection to the plugin; err is go-plugin's error.
func (r *processRunner) reason(err error) error {
	if r.failure != nil {
		return r.failure
	}
	r.mu.Lock()
	first, ended := strings.TrimSpace(string(r.first)), r.ended
	r.mu.Unlock()
	if first != "" {
		if bad := wire.CheckHandshake(first); bad != nil {
			return bad
		}
		text, _, _ := strings.Cut(err.Error(), "\n")
		return fmt.Errorf("its handshake %.200q is not valid: %s", first, text)
	}
	if !ended {
		return fmt.Errorf("no handshake within %s", startTimeout)
	}
	select {
	case <-r.exited:
		if state := r.cmd.ProcessState; state.Exited() {
			return fmt.Errorf("it ended without a handshake (%s)", state)
		}
	case <-time.After(time.Second):
	}
	return errors.New("its stdout ended without a handshake")
}

// Read reads stdout.
func (r *processRunner) Read(p []byte) (int, error) {
	n, err := r.stdout.Read(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = r.ended || err != nil
	if len(r.first) < wire.MaxHandshake && !bytes.ContainsRune(r.first, '\n') {
		line, _, complete := bytes.Cut(p[:n], []byte("\n"))
		r.first = append(r.first, line[:min(len(line), wire.MaxHandshake-len(r.first))]...)
		if complete {
			r.first = append(r.first, '\n')
		}
	}
	return n, err
}

// Close closes stdout.
func (r *processRunner) Close() error { return r.stdout.Close() }

// Stdout returns stdout.
func (r *processRunner) Stdout() io.ReadCloser { return r }

// Stderr returns stderr.
func (r *processRunner) Stderr() io.ReadCloser { return r.stderr }

// Name returns the path of the binary.
func (r *processRunner) Name() string { return r.cmd.Path }

// ID returns the process id, "" without a process.
func (r *processRunner) ID() string {
	if r.cmd.Process == nil {
		return ""
	}
	return strconv.Itoa(r.cmd.Process.Pid)
}

// Wait waits until the process has ended and its output was read.
func (r *processRunner) Wait(context.Context) error {
	defer close(r.exited)
	return r.cmd.Wait()
}

// Kill kills the process.
func (r *processRunner) Kill(context.Context) error {
	if r.cmd.Process == nil {
		return nil
	}
	if err := r.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Diagnose returns nothing: reason explains failures.
func (r *processRunner) Diagnose(context.Context) string { return "" }

// PluginToHost returns the address unchanged: both are on this machine.
func (r *processRunner) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin returns the address unchanged.
func (r *processRunner) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
