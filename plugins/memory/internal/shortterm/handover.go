package shortterm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	tea "github.com/the-edge-agent/tea/sdk"
)

const (
	dirMode = 0o700
	// lockPoll is the time between two attempts to lock.
	lockPoll = 10 * time.Millisecond
	// handoverVersion is the version of the file format.
	handoverVersion = 1

	lockSuffix, fileSuffix = ".lock", ".json"
)

// Handover passes values from one process of a plugin to the process that
// replaces it under the same host, in a file named after the host. The new
// process waits for the lock of the old one.
type Handover struct {
	dir     string
	host    hostName
	timeout time.Duration
	logger  *slog.Logger

	turn  chan struct{} // holds a token; who has it may use what follows
	lock  *flock.Flock
	begun bool
	ended bool
}

// NewHandover creates a handover between processes with the same parent, through
// a folder. timeout bounds the wait for an earlier process.
func NewHandover(dir string, timeout time.Duration, logger *slog.Logger) *Handover {
	return newHandover(dir, parent(), timeout, logger)
}

func newHandover(dir string, host hostName, timeout time.Duration, logger *slog.Logger) *Handover {
	h := &Handover{dir: dir, host: host, timeout: timeout, logger: logger, turn: make(chan struct{}, 1)}
	h.turn <- struct{}{}
	return h
}

// handed is a value in the file.
type handed struct {
	Namespace string          `json:"namespace"`
	Key       string          `json:"key"`
	Value     json.RawMessage `json:"value"`
	// Left is the remaining time to live; 0 = until it is evicted.
	Left time.Duration `json:"left,omitempty"`
}

// header is the first line of the file; a handed is each of the others.
type header struct {
	Version int `json:"version"`
	// At is the time of writing, see uptime.
	At time.Duration `json:"at"`
}

// begin waits once for the previous process and passes its values to adopt. If
// the folder cannot be used, nothing is handed over.
func (h *Handover) begin(ctx context.Context, adopt func([]handed)) error {
	select {
	case <-h.turn:
	case <-ctx.Done():
		return tea.AsError(ctx.Err())
	}
	defer func() { h.turn <- struct{}{} }()
	switch {
	case h.ended:
		return tea.Errorf(tea.ConnectionError, "the memory is closed")
	case h.begun:
		return nil
	}
	locked, err := h.take(ctx)
	switch {
	case ctx.Err() != nil:
		return tea.AsError(ctx.Err())
	case err != nil:
		h.logger.Warn("the short-term memory is not handed over", "error", err.Error())
	case !locked:
		return tea.Errorf(tea.ConnectionError, "another process of this plugin still has the short-term memory; waited %v. It ends with its running calls; settings.memory.lock_timeout is how long to wait", h.timeout)
	default:
		h.sweep()
		values, err := h.read()
		if err != nil {
			h.logger.Warn("the short-term memory of an earlier process is lost", "error", err.Error())
		}
		adopt(values)
	}
	h.begun = true
	return nil
}

func (h *Handover) path(suffix string) string { return filepath.Join(h.dir, string(h.host)+suffix) }

// take locks the handover, waiting for the process that has it.
func (h *Handover) take(ctx context.Context) (bool, error) {
	if err := os.MkdirAll(h.dir, dirMode); err != nil {
		return false, fmt.Errorf("make the folder: %w", err)
	}
	lock := flock.New(h.path(lockSuffix), flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	waiting, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	locked, err := lock.TryLock()
	if err == nil && !locked {
		locked, err = lock.TryLockContext(waiting, lockPoll)
		if errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
	}
	if locked {
		h.lock = lock
	}
	return locked, err
}

// read reads and removes the file of the previous process.
func (h *Handover) read() ([]handed, error) {
	file, err := os.Open(h.path(fileSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	values, err := readHanded(file)
	return values, errors.Join(err, file.Close(), os.Remove(h.path(fileSuffix)))
}

func readHanded(r io.Reader) ([]handed, error) {
	dec := json.NewDecoder(bufio.NewReader(r))
	var head header
	if err := dec.Decode(&head); err != nil {
		return nil, err
	}
	if head.Version != handoverVersion {
		return nil, fmt.Errorf("its file has version %d, not %d", head.Version, handoverVersion)
	}
	passed := max(uptime()-head.At, 0)
	var values []handed
	for {
		var v handed
		switch err := dec.Decode(&v); {
		case errors.Is(err, io.EOF):
			return values, nil
		case err != nil:
			return values, err
		case v.Value == nil, v.Left > 0 && v.Left <= passed:
			continue
		case v.Left > 0:
			v.Left -= passed
		}
		values = append(values, v)
	}
}

// end writes the values for the next process and releases the lock. It writes
// nothing if this process has not begun or the host has ended.
func (h *Handover) end(values []handed) error {
	<-h.turn
	defer func() { h.turn <- struct{}{} }()
	if h.ended = true; h.lock == nil {
		return nil
	}
	var err error
	if len(values) > 0 && parent() == h.host {
		err = h.write(values)
	}
	return errors.Join(err, h.lock.Unlock())
}

// write replaces the file atomically. It is not synced: the values would not
// survive a power cut anyway.
func (h *Handover) write(values []handed) error {
	file, err := os.CreateTemp(h.dir, ".writing-"+string(h.host)+"-*") // mode 0600
	if err != nil {
		return fmt.Errorf("hand the short-term memory over: %w", err)
	}
	buffered := bufio.NewWriter(file)
	enc := json.NewEncoder(buffered)
	enc.SetEscapeHTML(false)
	err = enc.Encode(header{Version: handoverVersion, At: uptime()})
	for i := 0; err == nil && i < len(values); i++ {
		err = enc.Encode(&values[i])
	}
	if err = errors.Join(err, buffered.Flush(), file.Close()); err == nil {
		err = os.Rename(file.Name(), h.path(fileSuffix))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("hand the short-term memory over: %w", err), os.Remove(file.Name()))
	}
	return nil
}

// sweep removes the files of hosts that have ended.
func (h *Handover) sweep() {
	files, err := os.ReadDir(h.dir)
	if err != nil {
		return // it is only about room on the disk
	}
	for _, file := range files {
		name := file.Name()
		host, written := strings.CutPrefix(name, ".writing-")
		if written {
			host = host[:max(strings.LastIndexByte(host, '-'), 0)]
		} else {
			host = strings.TrimSuffix(strings.TrimSuffix(host, lockSuffix), fileSuffix)
		}
		if hostName(host).alive() {
			continue
		}
		if err := os.Remove(filepath.Join(h.dir, name)); err != nil {
			h.logger.Warn("the file of an earlier host cannot be removed", "error", err.Error())
		}
	}
}
