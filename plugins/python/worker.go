package python

import (
	"bufio"
	"context"
	"crypto/rand"
	_ "embed" // worker.py
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/childproc"
)

//go:embed worker.py
var program string

const (
	// maxMessage bounds a message from a worker, and so a result.
	maxMessage = 64 << 20
	// startTimeout bounds the start of an interpreter.
	startTimeout = 30 * time.Second
	// waitDelay bounds the wait for the outputs of a worker that has ended.
	waitDelay = 2 * time.Second
	// lastWords is how much of the standard error an error message has.
	lastWords = 2000
	markName  = "TEA_PYTHON_WORKERS"
)

// worker is a process that runs one job at a time.
type worker struct {
	cmd    *exec.Cmd
	jobs   io.WriteCloser
	answer *bufio.Reader
	limit  int64

	log     atomic.Pointer[func(line string)]
	printed atomic.Int64
	exited  chan struct{}
	mu      sync.Mutex
	words   string
}

// message is what a worker sends.
type message struct {
	Version []int    `json:"version"`
	Missing []string `json:"missing"`

	Log    *string         `json:"log"`
	Call   string          `json:"call"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`

	Type      tea.ErrorType `json:"type"`
	Error     string        `json:"error"`
	Exception string        `json:"exception"`
	Line      int           `json:"line"`
	Traceback string        `json:"traceback"`
}

// errOutput reports that a job printed too much.
var errOutput = errors.New("the code prints more than settings.python.max_output_bytes")

// start starts a worker. The caller kills it.
func (c *Client) start(ctx context.Context) (*worker, error) {
	interpreter, err := c.interpreter(ctx)
	if err != nil {
		return nil, err
	}
	guard, err := c.watch()
	if err != nil {
		return nil, err
	}
	options, err := json.Marshal(map[string]any{"path": []string{c.settings.Path, c.packages}, "memory_mb": c.settings.MemoryMB, "requirements": append([]string{}, c.settings.Requirements...)})
	if err != nil {
		return nil, err
	}
	w := &worker{limit: int64(c.settings.MaxOutputBytes), exited: make(chan struct{})}
	w.cmd = exec.Command(interpreter, "-X", "utf8", "-c", program, string(options)) //nolint:noctx // it outlives the call
	w.cmd.Dir, w.cmd.Env, w.cmd.WaitDelay = c.dir(), c.environ(), waitDelay
	childproc.Group(w.cmd)
	w.cmd.Stderr = (*stderr)(w)
	out, err1 := w.cmd.StdoutPipe()
	w.jobs, err = w.cmd.StdinPipe()
	if err = errors.Join(err1, err); err == nil {
		err = w.cmd.Start()
	}
	if err != nil {
		return nil, tea.Errorf(tea.DependencyMissing, "start %s: %w", interpreter, err)
	}
	guard.Add(w.cmd.Process.Pid)
	w.answer = bufio.NewReaderSize(out, 64<<10)
	go func() {
		defer close(w.exited)
		_, _ = w.cmd.Process.Wait()
		_ = childproc.KillGroup(w.cmd.Process) // what it has started
		guard.Forget(w.cmd.Process.Pid)
	}()
	ready, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	stop := context.AfterFunc(ready, w.kill)
	m, err := w.read()
	if !stop() || err != nil {
		w.close()
		return nil, tea.Errorf(tea.DependencyMissing, "%s does not start as an interpreter of Python: %s", interpreter, w.last(err))
	}
	if err := c.accept(interpreter, m); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// accept checks the version and the packages of an interpreter.
func (c *Client) accept(interpreter string, m message) error {
	var major, minor int
	if c.settings.Version != "" && len(m.Version) == 3 {
		_, _ = fmt.Sscanf(c.settings.Version, "%d.%d", &major, &minor) // the schema has the pattern
		if m.Version[0] < major || m.Version[0] == major && m.Version[1] < minor {
			return tea.Errorf(tea.DependencyMissing, "%s is Python %d.%d.%d, and settings.python.version requires %s or later; name another interpreter in settings.python.interpreter",
				interpreter, m.Version[0], m.Version[1], m.Version[2], c.settings.Version)
		}
	}
	if len(m.Missing) > 0 {
		return tea.Errorf(tea.DependencyMissing, "%s lacks the requirements %s; set settings.python.install: true, or install them", interpreter, strings.Join(m.Missing, ", "))
	}
	return nil
}

// kill kills the process and what it has started.
func (w *worker) kill() {
	select {
	case <-w.exited: // its number can be that of another process
	default:
		_ = childproc.KillGroup(w.cmd.Process)
	}
}

// close kills the worker and waits for its end.
func (w *worker) close() {
	w.kill()
	w.jobs.Close()
	<-w.exited
	_ = w.cmd.Wait() // of the goroutine that reads its outputs
}

// stderr is the standard error of a worker, where programs write that the code starts.
type stderr worker

func (s *stderr) Write(p []byte) (int, error) {
	w := (*worker)(s)
	w.mu.Lock()
	w.words += string(p)
	w.words = w.words[max(0, len(w.words)-lastWords):]
	w.mu.Unlock()
	w.print(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// print logs what the code prints. It kills the worker if that is too much.
func (w *worker) print(text string) {
	if w.printed.Add(int64(len(text))+1) > w.limit {
		w.kill()
		return
	}
	if log := w.log.Load(); log != nil {
		(*log)(text)
	}
}

// last returns the last words of a worker that has ended.
func (w *worker) last(err error) string {
	select {
	case <-w.exited:
	case <-time.After(waitDelay):
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if text := strings.TrimSpace(w.words); text != "" {
		return text[strings.LastIndexByte(text, '\n')+1:]
	}
	if err == nil || errors.Is(err, io.EOF) {
		return "it ended without an answer"
	}
	return err.Error()
}

// read reads a message.
func (w *worker) read() (m message, err error) {
	var line []byte
	for {
		part, err := w.answer.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return m, err
		}
		if len(line) > maxMessage {
			return m, tea.Errorf(tea.ResourceExhausted, "the result is larger than %d MiB", maxMessage>>20)
		}
	}
	return m, json.Unmarshal(line, &m)
}

// run runs one job. healthy reports whether the worker can run another one.
func (w *worker) run(ctx context.Context, req *tea.Request, job []byte) (result any, healthy bool, err error) {
	log := func(line string) { req.Host.Log(ctx, slog.LevelInfo, line, nil) }
	w.printed.Store(0)
	w.log.Store(&log)
	defer w.log.Store(nil)
	stop := context.AfterFunc(ctx, w.kill)
	result, err = w.converse(ctx, req, job)
	healthy = stop() && w.printed.Load() <= w.limit
	var failure *tea.Error
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case w.printed.Load() > w.limit:
		err = tea.Errorf(tea.ResourceExhausted, "%w", errOutput)
	case errors.As(err, &failure):
		healthy = healthy && failure.Type != tea.ResourceExhausted
	case err != nil:
		healthy = false
		err = &tea.Error{Type: tea.PluginCrashed, Message: "the Python process ended during the call: " + w.last(err)}
	}
	return result, healthy, err
}

func (w *worker) converse(ctx context.Context, req *tea.Request, job []byte) (any, error) {
	if _, err := w.jobs.Write(append(job, '\n')); err != nil {
		return nil, err
	}
	for {
		m, err := w.read()
		switch {
		case err != nil:
			return nil, err
		case m.Log != nil:
			w.print(*m.Log)
		case m.Call != "":
			reply, err := w.invoke(ctx, req, m)
			if err == nil {
				_, err = w.jobs.Write(append(reply, '\n'))
			}
			if err != nil {
				return nil, err
			}
		case m.Error != "":
			return nil, m.failure(req)
		default:
			return value.Decode(m.Result)
		}
	}
}

// invoke calls another action for the code.
func (w *worker) invoke(ctx context.Context, req *tea.Request, m message) ([]byte, error) {
	params, err := value.Decode(m.Params)
	if err != nil {
		return nil, err
	}
	res, err := req.Host.Invoke(ctx, m.Call, params)
	if err != nil {
		failure := tea.AsError(err)
		return value.Encode(map[string]any{"error": failure.Message, "type": string(failure.Type)})
	}
	result, err := res.Result.Value()
	if err != nil {
		return nil, err
	}
	return value.Encode(map[string]any{"result": result})
}

// failure returns the error for an exception.
func (m message) failure(req *tea.Request) *tea.Error {
	e := &tea.Error{Type: m.Type, Message: m.Error, Details: map[string]any{}}
	if m.Exception != "" {
		e.Details["exception"] = m.Exception
	}
	if m.Traceback != "" {
		e.Details["traceback"] = m.Traceback
	}
	if m.Line > 0 && req.Action == "python.run" {
		e = e.At("code", m.Line)
	}
	return e
}

// watch returns the guard, which ends the workers with this process. It is started on
// first use.
func (c *Client) watch() (_ *childproc.Guard, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.guard == nil && childproc.HasGroups {
		c.mark = markName + "=" + rand.Text()
		c.guard, err = childproc.StartGuard(childproc.GuardOptions{Name: "tea-python-guard", Mark: c.mark, Always: true})
	}
	return c.guard, err
}

// environ returns the environment of a worker. The mark comes first, where the guard
// finds it.
func (c *Client) environ() []string {
	env := []string{c.mark}
	for _, name := range passed {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for name, v := range c.settings.Env {
		env = append(env, name+"="+v) // the last one counts
	}
	return env
}
