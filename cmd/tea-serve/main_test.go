package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
	"github.com/the-edge-agent/tea/test/teaproc"
)

// asTea makes the test binary tea-serve.
const asTea = "TEA_SERVE_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" {
		servePlugin()
		return
	}
	if os.Getenv(asTea) != "" {
		main()
		return
	}
	code := m.Run()
	_ = os.RemoveAll(pluginsDir()) // only of this process
	os.Exit(code)
}

// project is a directory with workflows, and a home for the runs.
type project struct {
	t    testing.TB
	dir  string
	home string
	// program is tea-serve, if it is neither TEA_SERVE_PROGRAM nor the test binary.
	program string
	// env is added to the environment of the program.
	env []string
}

func newProject(t testing.TB, files map[string]string) *project {
	t.Helper()
	p := &project{t: t, dir: t.TempDir(), home: t.TempDir()}
	for name, text := range files {
		p.write(name, text)
	}
	return p
}

// write replaces a file atomically.
func (p *project) write(name, text string) {
	p.t.Helper()
	file := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		p.t.Fatal(err)
	}
	temporary := filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".new")
	if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(temporary, file); err != nil {
		p.t.Fatal(err)
	}
}

// command returns a call of tea-serve whose stderr goes to log.
func (p *project) command(log *logs, args ...string) *exec.Cmd {
	p.t.Helper()
	peertest.Long(p.t, "it starts a server")
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), cmp.Or(p.program, os.Getenv("TEA_SERVE_PROGRAM"), self), args...)
	cmd.Dir = p.home
	cmd.Env = append(os.Environ(), asTea+"=1", "HOME="+p.home, "XDG_STATE_HOME="+p.home, "XDG_CONFIG_HOME="+p.home, "XDG_DATA_HOME="+p.home, "XDG_CACHE_HOME="+p.home, "TEA_PLUGINS=")
	cmd.Env = append(cmd.Env, p.env...)
	cmd.Stderr = log
	cmd.WaitDelay = 10 * time.Second // a child can keep stderr open
	return cmd
}

// logs is what a program prints to stderr.
type logs struct{ *teaproc.Log }

func newLogs() *logs { return &logs{teaproc.NewLog()} }

func (l *logs) await(t testing.TB, text string) {
	t.Helper()
	l.Await(t, text)
}

// service is a running tea serve.
type service struct {
	t   testing.TB
	url string
	cmd *exec.Cmd
	log *logs
	// done gets the error of the process.
	done chan error
	// token is sent with each request, unless it is empty.
	token string
	// client sends the requests; nil is the default client.
	client *http.Client
}

// serve starts a server for the project.
func (p *project) serve(args ...string) *service {
	p.t.Helper()
	s := &service{t: p.t, log: newLogs(), done: make(chan error, 1)}
	if !slices.Contains(args, "--listen") {
		args = append([]string{"--listen", "127.0.0.1:0"}, args...)
	}
	s.cmd = p.command(s.log, append([]string{"serve", p.dir, "-v"}, args...)...)
	if err := s.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() { s.done <- s.cmd.Wait() }()
	p.t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	address := regexp.MustCompile(`serving at (\S+)\n`)
	for {
		if m := address.FindStringSubmatch(s.log.String()); m != nil {
			s.url = m[1]
			return s
		}
		select {
		case <-s.log.More():
		case err := <-s.done:
			p.t.Fatalf("the server ended: %v\n%s", err, s.log)
		}
	}
}

// kill kills the server.
func (s *service) kill() {
	s.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	<-s.done
}

// interrupt stops the server and waits for its end.
func (s *service) interrupt() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		s.t.Fatal(err)
	}
	if err := <-s.done; err != nil {
		s.t.Errorf("the server ended: %v\n%s", err, s.log)
	}
}

// response is an answer of the server.
type response struct {
	status int
	header http.Header
	text   string
	body   map[string]any
}

func (r response) String() string { return fmt.Sprintf("%d %s", r.status, r.text) }

// request sends a request; header has names and values in turns.
func (s *service) request(method, path, body string, header ...string) response {
	s.t.Helper()
	r, err := s.try(method, path, body, header...)
	if err != nil {
		s.t.Fatalf("%s %s: %v\n%s", method, path, err, s.log)
	}
	s.described(method, path, r)
	return r
}

func (s *service) try(method, path, body string, header ...string) (response, error) {
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		return response{}, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	res, err := cmp.Or(s.client, http.DefaultClient).Do(req)
	if err != nil {
		return response{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return response{}, err
	}
	out := response{status: res.StatusCode, header: res.Header, text: string(text)}
	_ = json.Unmarshal(text, &out.body) // not every body is an object
	return out, nil
}

// run starts a run and waits for its end.
func (s *service) run(workflow, input string) map[string]any {
	s.t.Helper()
	r := s.request("POST", "/v1/workflows/"+workflow+"/runs?wait=600", `{"input": `+input+`}`)
	if r.status != http.StatusOK {
		s.t.Fatalf("run %s: %s\n%s", workflow, r, s.log)
	}
	return r.body
}

// event is a server-sent event.
type event struct {
	id   string
	data map[string]any
}

// events calls fn with the events of a run until fn returns false or the stream
// ends, and returns the status.
func (s *service) events(run, last string, fn func(event) bool) int {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/runs/"+run+"/events", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	var e event
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "id: "):
			e.id = line[4:]
		case strings.HasPrefix(line, "data: "):
			if err := json.Unmarshal([]byte(line[6:]), &e.data); err != nil {
				s.t.Fatal(err)
			}
		case line == "" && e.data != nil:
			if !fn(e) {
				return res.StatusCode
			}
			e = event{}
		}
	}
	return res.StatusCode
}
