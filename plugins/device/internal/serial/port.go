package serial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	lib "go.bug.st/serial"

	"github.com/the-edge-agent/tea/plugins/device/internal/part"
	tea "github.com/the-edge-agent/tea/sdk"
)

// maxRead is the maximum number of bytes of an answer or a line.
const maxRead = 64 << 10

// line is an open port.
type line struct {
	lib.Port
	name string
	// lock is another open file of the port, which does not block; nil if there is none.
	lock *os.File
	// pending are bytes that were read beyond a terminator.
	pending []byte
}

// openLine opens and locks a port. It waits until limit while another call has it.
func openLine(ctx context.Context, name string, p Port, limit time.Duration) (*line, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	held, err := part.LockPort(ctx, p.Path)
	if err != nil {
		return nil, openError(name, p, err)
	}
	mode := &lib.Mode{BaudRate: p.Baud, DataBits: p.DataBits}
	if p.StopBits == 2 {
		mode.StopBits = lib.TwoStopBits
	}
	mode.Parity = map[string]lib.Parity{"even": lib.EvenParity, "odd": lib.OddParity, "mark": lib.MarkParity, "space": lib.SpaceParity}[p.Parity]
	port, err := lib.Open(p.Path, mode)
	if err != nil {
		_ = held.Close()
		return nil, openError(name, p, err)
	}
	return &line{Port: port, name: fmt.Sprintf("%q (%s)", name, p.Path), lock: held}, nil
}

func openError(name string, p Port, err error) error {
	kind := tea.ConnectionError
	var known *lib.PortError
	switch {
	case errors.Is(err, fs.ErrPermission) || errors.As(err, &known) && known.Code() == lib.PermissionDenied:
		kind, err = tea.PermissionDenied, fmt.Errorf("%w; add the user to the group of the port, such as dialout", err)
	case errors.As(err, &known) && known.Code() != lib.PortBusy:
		kind = tea.ValidationError // not a port, or a mode that it does not have
	}
	return tea.Errorf(kind, "cannot open the serial port %q (%s): %w", name, p.Path, err)
}

// close closes the port and releases its lock.
func (l *line) close() {
	_ = l.Close()
	_ = l.lock.Close()
}

// send writes data, and returns the number of bytes that the system has taken.
func (l *line) send(ctx context.Context, data []byte, limit time.Duration) (int, error) {
	if l.lock == nil {
		return l.Write(data)
	}
	// The library's write cannot be ended.
	_ = l.lock.SetWriteDeadline(time.Now().Add(limit))
	stop := context.AfterFunc(ctx, func() { _ = l.lock.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	n, err := l.lock.Write(data)
	if err != nil {
		_ = l.ResetOutputBuffer() // what is left must not leave later
	}
	if ctx.Err() != nil && err != nil {
		err = ctx.Err()
	}
	return n, err
}

var errTimeout = errors.New("it did not answer in time")

// next returns the bytes before a terminator, or a number of bytes. Without both, it
// returns what has come until the deadline. With errTimeout, it returns the bytes that
// have come. A deadline of zero is none.
func (l *line) next(ctx context.Context, deadline time.Time, until []byte, count int) ([]byte, error) {
	buffer := make([]byte, 4096)
	for {
		if i := bytes.Index(l.pending, until); len(until) > 0 && i >= 0 && (count == 0 || i+len(until) <= count) {
			return l.take(i, len(until)), nil
		}
		if count > 0 && len(l.pending) >= count {
			return l.take(count, 0), nil
		}
		if len(l.pending) > maxRead {
			return nil, tea.Errorf(tea.ResourceExhausted, "the serial port %s has sent more than %d bytes without the terminator", l.name, maxRead)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		// The library can close a port during a read, but another file may then have its
		// descriptor.
		wait := part.PortPoll
		if !deadline.IsZero() {
			if wait = min(wait, time.Until(deadline)); wait <= 0 {
				if len(until) == 0 && count == 0 {
					return l.take(len(l.pending), 0), nil
				}
				return l.pending, errTimeout
			}
		}
		_ = l.SetReadTimeout(wait) // fails only if wait is negative
		n, err := l.Read(buffer)   // 0, nil after the time-out
		if err != nil {
			return nil, tea.Errorf(tea.ConnectionError, "the serial port %s was disconnected: %w", l.name, err)
		}
		l.pending = append(l.pending, buffer[:n]...)
	}
}

// take removes n bytes and a terminator of the pending ones.
func (l *line) take(n, terminator int) []byte {
	taken := bytes.Clone(l.pending[:n])
	l.pending = l.pending[n+terminator:]
	return taken
}
