package trace

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/diag"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Exporter says where spans go.
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

// Options say what becomes of the spans. The zero value makes none.
type Options struct {
	// Exporter is where spans go; "" is File where a file is named, else nowhere.
	Exporter Exporter
	// File is what the spans are appended to, one line of OTLP's JSON each. It
	// may be named along with any exporter.
	File string
	// Endpoint is the collector's address; "" is http://localhost:4318. The
	// path v1/traces is added where it has none.
	Endpoint string
	// Headers go with each request to the collector.
	Headers map[string]string
	// Contents adds what is said to models and actions, and what they answer.
	Contents bool
	// Secrets are masked in what [Tracer.Invoke] sees. Events are masked already.
	Secrets map[string]any
	// Console gets the tree; nil is os.Stderr.
	Console io.Writer
	// Version is the program's, for the spans' resource.
	Version string
	// Logger is told of spans that cannot be exported; nil drops that.
	Logger *slog.Logger
}

// Read adds what a workflow's settings say under trace. Fields that are set
// already win: they come from flags. The error names the wrong key.
func (o *Options) Read(settings map[string]any) error {
	given, ok := settings["trace"]
	if !ok || given == nil {
		return nil
	}
	object, ok := given.(map[string]any)
	if !ok {
		return tea.Errorf(tea.ValidationError, "settings.trace must be an object, got %s", value.TypeName(given))
	}
	for key, v := range object {
		if err := o.set(key, v); err != nil {
			return tea.Errorf(tea.ValidationError, "settings.trace.%s: %w", key, err)
		}
	}
	return nil
}

func (o *Options) set(key string, v any) error {
	if key == "headers" {
		return o.setHeaders(v)
	}
	if key == "contents" {
		on, ok := v.(bool)
		if !ok {
			return fmt.Errorf("must be true or false, got %s", value.TypeName(v))
		}
		o.Contents = o.Contents || on
		return nil
	}
	keys := []string{"exporter", "endpoint", "file", "headers", "contents"}
	if !slices.Contains(keys, key) {
		return fmt.Errorf("there is no such setting; %s", cmp.Or(diag.Suggest(key, keys), "there are "+strings.Join(keys, ", ")))
	}
	text, ok := v.(string)
	if !ok {
		return fmt.Errorf("must be a string, got %s", value.TypeName(v))
	}
	switch {
	case key == "exporter" && o.Exporter == "":
		o.Exporter = Exporter(text)
	case key == "endpoint" && o.Endpoint == "":
		o.Endpoint = text
	case key == "file" && o.File == "":
		o.File = text
	}
	return nil
}

func (o *Options) setHeaders(v any) error {
	object, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("must be an object, got %s", value.TypeName(v))
	}
	if o.Headers != nil {
		return nil
	}
	o.Headers = make(map[string]string, len(object))
	for name, v := range object {
		text, ok := v.(string)
		if !ok {
			return fmt.Errorf("%s must be a string, got %s", name, value.TypeName(v))
		}
		o.Headers[name] = text
	}
	return nil
}

// tracesURL is the address that spans are posted to.
func tracesURL(endpoint string) (string, error) {
	if endpoint == "" {
		endpoint = "http://localhost:4318"
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", fmt.Errorf("the collector's endpoint: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("the collector's endpoint %q is no http or https URL", endpoint)
	}
	if !strings.HasSuffix(u.Path, "/v1/traces") {
		u = u.JoinPath("v1", "traces")
	}
	return u.String(), nil
}
