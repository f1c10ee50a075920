package servertest

import (
	"bytes"
	"context"
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/childproc"
)

// Root is the root of the repository, relative to a package of cloud.
const Root = "../../../.."

// Process is a running server.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// startTries is the number of tries to find free ports.
const startTries = 10

// Start starts a server and waits until it accepts connections at its addresses. If the server ends, Start calls
// command again, because another process may have taken a port. The caller stops the server; it also ends with the test
// program.
func Start(t testing.TB, name string, command func() (cmd *exec.Cmd, addresses []string)) *Process {
	t.Helper()
	for range startTries {
		cmd, addresses := command()
		var output bytes.Buffer
		cmd.Stdout, cmd.Stderr = &output, &output
		childproc.EndWithParent(cmd)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		p := &Process{cmd, make(chan struct{})}
		go func() { defer close(p.ended); _ = cmd.Wait() }() // it returns the result of Kill
		if p.answers(addresses) {
			return p
		}
		p.Stop()
		t.Logf("start %s again: %s", name, output.String())
	}
	t.Fatalf("%s does not start", name)
	return nil
}

// Kill kills the server.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() } // it may have ended already

// Stop kills the server and waits until it has ended.
func (p *Process) Stop() {
	p.Kill()
	<-p.ended
}

// answers waits until the server accepts connections, and reports whether it did before it ended.
func (p *Process) answers(addresses []string) bool {
	var d net.Dialer
	for _, address := range addresses {
		for {
			if conn, err := d.DialContext(context.Background(), "tcp", address); err == nil {
				_ = conn.Close()
				break
			}
			select {
			case <-p.ended:
				return false
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return true
}

// FreeAddress returns an address of the loopback interface at which nothing listens.
func FreeAddress(t testing.TB) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}
