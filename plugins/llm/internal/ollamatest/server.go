package ollamatest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Version is the release of Ollama that scripts/ollama installs.
const Version = "v0.6.5"

// ErrNotInstalled is returned when the server's program cannot be found.
var ErrNotInstalled = errors.New("ollama is not installed: run scripts/ollama install, or set TEA_OLLAMA to its path")

// Find returns the path of the server's program: TEA_OLLAMA, or where scripts/ollama
// installs it.
func Find() (string, error) {
	path := os.Getenv("TEA_OLLAMA")
	if path == "" {
		cache := os.Getenv("XDG_CACHE_HOME")
		if cache == "" {
			cache = filepath.Join(os.Getenv("HOME"), ".cache")
		}
		path = filepath.Join(cache, "tea", "tools", "ollama-"+Version, "ollama")
	}
	if _, err := os.Stat(path); err != nil {
		return "", ErrNotInstalled
	}
	return path, nil
}

// Server is a running Ollama.
type Server struct {
	// URL is its address, without a path.
	URL string

	cmd     *exec.Cmd
	printed io.Closer     // what it prints
	ended   chan struct{} // closed when the process has ended
	output  *output
}

// Start runs the server below dir, which must be empty and belong to the caller, on a
// free port of the loopback interface, and creates the models of [Models]. ctx limits
// only the start; the caller must call Stop.
func Start(ctx context.Context, program, dir string) (s *Server, err error) {
	out := &output{}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start ollama: %w", err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, "serve")
	cmd.Env = environment(dir, "127.0.0.1:0")
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = writer, writer
	err = cmd.Start()
	writer.Close()
	if err != nil {
		reader.Close()
		return nil, fmt.Errorf("start ollama: %w", err)
	}
	s = &Server{cmd: cmd, printed: reader, ended: make(chan struct{}), output: out}
	address := make(chan string, 1)
	go s.watch(reader, address)
	defer func() {
		if err != nil {
			s.Stop()
			err = fmt.Errorf("%w\n%s", err, out)
		}
	}()
	select {
	case a := <-address:
		s.URL = "http://" + a
	case <-s.ended:
		return nil, errors.New("ollama exited during its start")
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for ollama: %w", ctx.Err())
	}
	for _, m := range Models() {
		if err := m.create(ctx, program, dir, strings.TrimPrefix(s.URL, "http://")); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Stop ends the server and waits until it has ended. It kills the server after a few
// seconds.
func (s *Server) Stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // an error means that it has ended
	select {
	case <-s.ended:
	case <-time.After(5 * time.Second):
		_ = s.cmd.Process.Kill() // as above
		_ = s.printed.Close()    // a model runner may keep it open
		<-s.ended
	}
}

// Output returns the server's output so far, for the log of a failed test.
func (s *Server) Output() string { return s.output.String() }

var listening = regexp.MustCompile(`Listening on (127\.0\.0\.1:\d+)`)

// watch reads the server's output until it ends.
func (s *Server) watch(r io.ReadCloser, address chan<- string) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		s.output.add(lines.Text())
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			select {
			case address <- m[1]:
			default:
			}
		}
	}
	r.Close()
	_ = s.cmd.Wait() // its result does not matter
	close(s.ended)
}

// environment is the complete environment of the programs, without the user's variables.
func environment(dir, host string) []string {
	return []string{
		"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir,
		"OLLAMA_HOST=" + host, "OLLAMA_MODELS=" + filepath.Join(dir, "models"),
		"OLLAMA_NOPRUNE=1", "OLLAMA_NOHISTORY=1",
	}
}

// output keeps the last lines of a process.
type output struct {
	mu    sync.Mutex
	lines []string
}

func (o *output) add(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.lines) == 200 {
		o.lines = o.lines[1:]
	}
	o.lines = append(o.lines, line)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.lines, "\n")
}
