package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/childproc"
)

// Command is a server to start.
type Command struct {
	Path string // a name is looked up in PATH
	Args []string
	Env  map[string]string
	Dir  string
	// Memory is the memory limit in bytes, on Linux; 0 means no limit.
	Memory int64
	// CPU is the number of processors that it and its children may use, on Linux; 0
	// means all.
	CPU int
	// Log is called with each line of standard error and of [Process.Log]. Calls are
	// not concurrent.
	Log func(line string)
}

// Process is a running server. It is safe for concurrent use.
type Process struct {
	// Stdin and Stdout carry the protocol. Closing Stdin ends a server that follows
	// the protocol.
	Stdin  io.WriteCloser
	Stdout io.ReadCloser

	guard  *childproc.Guard
	cmd    *exec.Cmd
	exited chan struct{}

	mu     sync.Mutex
	killed string // why it was killed
	asked  bool   // whether it was asked to end

	log lines
}

const (
	maxLine = 8 << 10
	maxTail = 10
	// maxRate is the number of lines per second that are logged.
	maxRate = 100
	// afterExit bounds how long the output of an ended process is still read: a child
	// that it left behind may hold the pipes open.
	afterExit = 500 * time.Millisecond
)

// Start starts a server.
func (g *Group) Start(c Command) (*Process, error) {
	path := c.Path
	if !strings.ContainsRune(path, filepath.Separator) {
		found, err := exec.LookPath(path)
		if err != nil {
			return nil, err
		}
		path = found
	} else if !filepath.IsAbs(path) && c.Dir != "" {
		path = filepath.Join(c.Dir, path)
	}
	guard, err := g.watch()
	if err != nil {
		return nil, err
	}
	keepDescriptors()
	var opened []io.Closer
	pipe := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			opened = append(opened, r, w)
		}
		return r, w, err
	}
	inR, inW, err1 := pipe()
	outR, outW, err2 := pipe()
	errR, errW, err3 := pipe()
	err = errors.Join(err1, err2, err3)
	p := &Process{Stdin: inW, Stdout: outR, guard: guard, exited: make(chan struct{}), log: lines{log: c.Log}}
	if err == nil {
		p.cmd = &exec.Cmd{
			Path: path, Args: append([]string{c.Path}, c.Args...), Env: g.environ(c.Env), Dir: c.Dir,
			Stdin: inR, Stdout: outW, Stderr: errW,
		}
		childproc.Group(p.cmd)
		err = p.cmd.Start()
	}
	if err != nil {
		for _, f := range opened {
			f.Close()
		}
		return nil, err
	}
	inR.Close()
	outW.Close()
	errW.Close()
	guard.Add(p.Pid())
	limit(p.Pid(), c.Memory)
	if c.CPU > 0 {
		_ = childproc.Pin(p.Pid(), c.CPU) // it may have ended
	}
	p.follow(errR)
	if c.Memory > 0 {
		go p.watchMemory(c.Memory)
	}
	return p, nil
}

// Pid returns the process ID.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// follow reads the standard error and waits for the end of the process.
func (p *Process) follow(stderr *os.File) {
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.read(bufio.NewReaderSize(stderr, maxLine))
	}()
	go func() {
		p.awaitExit()
		_ = childproc.KillGroup(p.cmd.Process) // kill remaining children
		p.guard.Forget(p.Pid())
		_ = p.cmd.Wait() // its state has the exit code
		late := time.AfterFunc(afterExit, func() { stderr.Close() })
		<-read
		late.Stop()
		stderr.Close()
		close(p.exited)
	}()
}

// read passes the lines of standard error to [Process.Log].
func (p *Process) read(r *bufio.Reader) {
	for {
		line, err := r.ReadSlice('\n')
		for long := err; errors.Is(long, bufio.ErrBufferFull); {
			line = append([]byte{}, line...)
			_, long = r.ReadSlice('\n')
			err = long
		}
		p.Log(string(line))
		if err != nil {
			return
		}
	}
}

// Log logs a line that the server printed to standard error or, between messages, to
// standard output, and keeps the last lines for [Process.LastWords]. It truncates long
// lines, and only counts lines beyond the limit per second.
func (p *Process) Log(line string) { p.log.add(line) }

// lines collects the lines that a server prints for people. It is safe for concurrent use.
type lines struct {
	log func(line string)

	mu             sync.Mutex
	tail           []string // the last lines
	second         time.Time
	count, dropped int // in the current second
}

func (l *lines) add(line string) {
	text := clean(line[:min(len(line), maxLine)])
	if text == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tail = append(l.tail, text); len(l.tail) > maxTail {
		l.tail = l.tail[1:]
	}
	if now := time.Now(); now.Sub(l.second) >= time.Second {
		if l.dropped > 0 {
			l.log(fmt.Sprintf("%d lines were dropped: there were more than %d in a second", l.dropped, maxRate))
		}
		l.second, l.count, l.dropped = now, 0, 0
	}
	if l.count++; l.count <= maxRate {
		l.log(text)
	} else {
		l.dropped++
	}
}

// last returns the last lines, joined.
func (l *lines) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.tail, " | ")
}

// clean returns a line as printable text.
func clean(line string) string {
	line = strings.ToValidUTF8(strings.TrimSpace(line), "\ufffd")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '\ufffd'
		}
		return r
	}, line)
}

// Exited returns a channel that is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// LastWords describes how the process ended, with the last lines that it printed; ""
// while it runs.
func (p *Process) LastWords() string {
	select {
	case <-p.exited:
	default:
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var parts []string
	switch {
	case p.killed != "":
		parts = append(parts, p.killed)
	case !p.asked || p.cmd.ProcessState.ExitCode() >= 0: // not by our signal
		parts = append(parts, "the process ended: "+p.cmd.ProcessState.String())
	}
	if text := p.log.last(); text != "" {
		parts = append(parts, "its last output: "+text)
	}
	return strings.Join(parts, "; ")
}

// kill kills the process and its children.
func (p *Process) kill(reason string) {
	p.mu.Lock()
	if p.killed == "" {
		p.killed = reason
	}
	p.mu.Unlock()
	select {
	case <-p.exited:
	default:
		_ = childproc.KillGroup(p.cmd.Process) // it may have ended
	}
}

// Stop ends the process. It closes the standard input, then sends SIGTERM, then
// kills the process group, each after a part of the grace period. It returns when
// the process has ended.
func (p *Process) Stop(grace time.Duration) {
	p.Stdin.Close()
	ask := func() {
		p.mu.Lock()
		p.asked = true
		p.mu.Unlock()
		childproc.EndGroup(p.cmd.Process)
	}
	for _, step := range []func(){ask, func() { p.kill("it was killed: it did not end when asked to") }} {
		timer := time.NewTimer(grace / 2)
		select {
		case <-p.exited:
			timer.Stop()
			p.Stdout.Close()
			return
		case <-timer.C:
			step()
		}
	}
	<-p.exited
	p.Stdout.Close()
}
