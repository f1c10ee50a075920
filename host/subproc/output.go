package subproc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/sdk/value"
)

const (
	// maxLine is the maximum length in bytes of a line that is kept.
	maxLine = 8 << 10
	// linesPerSecond is the maximum number of lines that are logged; the rest is
	// counted.
	linesPerSecond = 500
	// keptLines and keptBytes bound the last output that is kept.
	keptLines, keptBytes = 20, 4 << 10
)

// output turns the output of a process into log records and keeps the end of
// it. It is safe for concurrent use.
type output struct {
	logger *slog.Logger

	mu      sync.Mutex
	last    []string // newest last
	size    int
	fatal   bool  // last begins with the Go runtime's reason for a crash
	skipped bool  // the report is at the stack of the runtime itself
	second  int64 // the second that count belongs to
	count   int
	dropped int
	// begun are incomplete lines that arrive in pieces, by stream.
	begun map[string]string
}

// read reads lines until the stream ends.
func (o *output) read(stream string, r *bufio.Reader) {
	for {
		line, err := readLine(r, maxLine)
		if line != "" {
			o.add(stream, line)
		}
		if err != nil {
			return
		}
	}
}

// readLine reads a line and drops the part beyond limit.
func readLine(r *bufio.Reader, limit int) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part[:min(len(part), limit-len(line))]...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return strings.TrimRight(strings.ToValidUTF8(string(line), "\ufffd"), "\r\n"), err
	}
}

func (o *output) add(stream, line string) {
	record, ok := parseRecord(line)
	if !ok {
		record = logLine{level: slog.LevelInfo, message: line, attrs: []slog.Attr{slog.String("stream", stream)}}
	}
	o.mu.Lock()
	o.remember(record.message)
	dropped, speak := o.meter(time.Now().Unix())
	o.mu.Unlock()
	if dropped > 0 {
		o.logger.Warn(fmt.Sprintf("the plugin wrote too much output: %d lines were dropped", dropped))
	}
	if speak {
		o.logger.LogAttrs(context.Background(), record.level, record.message, record.attrs...)
	}
}

// remember keeps the line as one of the last. A crash report of the Go runtime begins
// with the reason and can be long: its beginning is kept, without the stack and
// registers of the runtime itself. The caller holds the lock.
func (o *output) remember(line string) {
	if isFatal(line) && !o.fatal {
		o.last, o.size, o.fatal = nil, 0, true
	}
	if o.fatal {
		o.skipped = line == "runtime stack:" || o.skipped && !strings.HasPrefix(line, "goroutine ")
		if o.skipped || isRegister(line) || len(o.last) == keptLines || o.size > keptBytes {
			return
		}
	}
	o.last = append(o.last, line)
	o.size += len(line)
	for len(o.last) > keptLines || (o.size > keptBytes && len(o.last) > 1) {
		o.size -= len(o.last[0])
		o.last = o.last[1:]
	}
}

// meter reports whether a line can be logged in this second, and once how many lines
// were dropped before. The caller holds the lock.
func (o *output) meter(second int64) (dropped int, speak bool) {
	if second != o.second {
		dropped, o.dropped = o.dropped, 0
		o.second, o.count = second, 0
	}
	if o.count++; o.count > linesPerSecond {
		o.dropped++
		return dropped, false
	}
	return dropped, true
}

// lastOutput returns the last lines.
func (o *output) lastOutput() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	last := slices.Clone(o.last)
	for _, line := range o.begun {
		last = append(last, line)
	}
	return strings.Join(last, "\n")
}

// logLine is a log record that arrived as a line of JSON.
type logLine struct {
	level   slog.Level
	message string
	attrs   []slog.Attr
}

// parseRecord parses a line in the format of go-hclog and the SDK: JSON with @level and
// @message.
func parseRecord(line string) (logLine, bool) {
	if !strings.HasPrefix(line, "{") || !json.Valid([]byte(line)) {
		return logLine{}, false
	}
	v, err := value.Decode([]byte(line))
	if err != nil {
		return logLine{}, false
	}
	fields := v.(map[string]any)
	level, ok := fields["@level"].(string)
	if !ok {
		return logLine{}, false
	}
	record := logLine{level: toLevel(level)}
	if record.message, ok = fields["@message"].(string); !ok {
		return logLine{}, false
	}
	for key, field := range fields {
		if !strings.HasPrefix(key, "@") {
			record.attrs = append(record.attrs, slog.Any(key, field))
		}
	}
	return record, true
}

func toLevel(name string) slog.Level {
	var level slog.Level
	if level.UnmarshalText([]byte(name)) == nil {
		return level
	}
	if name == "trace" {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// writer receives what go-plugin captures from a plugin's replaced stdout and
// stderr until the SDK restores them. A line can arrive in several pieces.
func (o *output) writer(stream string) io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		for part := range strings.Lines(string(p)) {
			if line, ended := o.extend(stream, part); ended {
				o.add(stream, line)
			}
		}
		return len(p), nil
	})
}

// extend adds a piece to the incomplete line of a stream. It returns the line when the
// piece completes it.
func (o *output) extend(stream, part string) (line string, ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begun == nil {
		o.begun = map[string]string{}
	}
	line = o.begun[stream]
	line += part[:min(len(part), maxLine-len(line))]
	if ended = strings.HasSuffix(part, "\n"); ended {
		delete(o.begun, stream)
		return strings.TrimRight(line, "\r\n"), true
	}
	o.begun[stream] = line
	return "", false
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
