package trace

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/internal/settings"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Exporter is a destination of spans.
type Exporter string

// The exporters.
const (
	// Console prints a tree when a run ends.
	Console Exporter = "console"
	// File appends each span to a file when it ends.
	File Exporter = "file"
	// OTLP sends spans to a collector.
	OTLP Exporter = "otlp"
)

// Options determine how spans are exported. The zero value exports none.
type Options struct {
	// Exporter is the destination; "" is File if File is set, else none.
	Exporter Exporter
	// File is the file to which spans are appended as lines of OTLP JSON. It can
	// be set with any exporter.
	File string
	// Endpoint is the collector's address; "" is http://localhost:4318. The path
	// v1/traces is added if it has none.
	Endpoint string
	// Headers are sent with each request to the collector.
	Headers map[string]string
	// Collector receives the spans of the exporter OTLP, instead of a new one with
	// Endpoint and Headers.
	Collector *Collector
	// Contents adds the inputs and outputs of models and actions.
	Contents bool
	// Mask applies to the data of [Tracer.Invoke]. Events are already masked.
	Mask host.Mask
	// Console receives the tree; nil is os.Stderr.
	Console io.Writer
	// Version is the program's version, for the spans' resource.
	Version string
	// Logger logs spans that cannot be exported; nil discards the messages.
	Logger *slog.Logger
}

// Read adds settings.trace of a workflow. Fields that are already set, by flags, take
// precedence. The error names the invalid key.
func (o *Options) Read(given map[string]any) error {
	if given[settings.TraceKey] == nil {
		return nil
	}
	raw, err := tea.ValuePayload(given[settings.TraceKey]).JSON()
	if err != nil {
		return tea.Errorf(tea.ValidationError, "settings.trace: %w", err)
	}
	var t settings.Trace
	if err := (tea.Settings{settings.TraceKey: raw}).Decode(settings.TraceKey, &t); err != nil {
		return err
	}
	o.Exporter = cmp.Or(o.Exporter, Exporter(t.Exporter))
	o.Endpoint = cmp.Or(o.Endpoint, t.Endpoint)
	o.File = cmp.Or(o.File, t.File)
	if o.Headers == nil {
		o.Headers = t.Headers
	}
	o.Contents = o.Contents || t.Contents
	return nil
}

// baseURL returns the address of a collector without the path of a signal.
func baseURL(endpoint string) (*url.URL, error) {
	u, err := url.Parse(cmp.Or(endpoint, "http://localhost:4318"))
	if err != nil {
		return nil, fmt.Errorf("the collector's endpoint is not a valid URL: %w", withoutURL(err))
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the collector's endpoint %q is not an http or https URL", plainURL(u))
	}
	for _, path := range []*string{&u.Path, &u.RawPath} {
		*path = strings.TrimSuffix(strings.TrimSuffix(*path, "/"), "/v1/traces")
	}
	return u, nil
}

// plainURL returns the URL without user and query, which can contain a key.
func plainURL(u *url.URL) string {
	plain := *u
	plain.User, plain.RawQuery = nil, ""
	return plain.String()
}

// withoutURL returns the cause of an error whose text contains a whole URL.
func withoutURL(err error) error {
	if outer := (*url.Error)(nil); errors.As(err, &outer) {
		return outer.Err
	}
	return err
}
