package trace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
)

// file appends a line for each ended span, so that ended spans are kept even if the
// process is killed.
type file struct {
	f        *os.File
	resource otlpResource
	log      *slog.Logger
	err      error
}

func openFile(path string, resource otlpResource, log *slog.Logger) (*file, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the trace file: %w", err)
	}
	return &file{f: f, resource: resource, log: log}, nil
}

func (f *file) export(s *span) {
	if f.err != nil {
		return
	}
	line, err := encode(f.resource, s)
	if err == nil {
		_, err = f.f.Write(append(line, '\n'))
	}
	if err != nil {
		f.err = fmt.Errorf("write the trace file: %w", err)
		f.log.Warn("spans are lost from here on", "error", err)
	}
}

func (f *file) close(context.Context) error { return errors.Join(f.err, f.f.Close()) }
