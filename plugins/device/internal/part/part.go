package part

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/plugins/device/internal/guard"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Part is a namespace of actions.
type Part struct {
	// Key is the namespace, and the top-level key of its settings.
	Key      string
	Settings *schema.Schema
	// Open returns the client that the actions are methods of. It does not connect. A
	// client that is an io.Closer is closed at the end.
	Open    func(s tea.Settings, guards *guard.Guards) (any, error)
	Actions []tea.Action
}

// New returns a part with the settings S, which can have a method Check for what the schema
// cannot express. client returns the client for settings without
// mistakes.
func New[S any](key string, client func(settings S, guards *guard.Guards) any, actions ...tea.Action) Part {
	return Part{Key: key, Settings: schema.Of[S](), Actions: actions, Open: func(s tea.Settings, guards *guard.Guards) (any, error) {
		var settings S
		if err := s.Decode(key, &settings); err != nil {
			return nil, err
		}
		if s, ok := any(settings).(interface{ Check() error }); ok {
			if err := s.Check(); err != nil {
				return nil, err
			}
		}
		return client(settings, guards), nil
	}}
}

// Clients are the clients of the parts by their keys.
type Clients map[string]any

// Open opens the parts.
func Open(parts []Part, s tea.Settings, guards *guard.Guards) (Clients, error) {
	clients := Clients{}
	for _, p := range parts {
		c, err := p.Open(s, guards)
		if err != nil {
			return nil, errors.Join(err, clients.Close())
		}
		clients[p.Key] = c
	}
	return clients, nil
}

// Close closes the clients.
func (c Clients) Close() error {
	var errs []error
	for _, client := range c {
		if closer, ok := client.(io.Closer); ok {
			errs = append(errs, closer.Close())
		}
	}
	return errors.Join(errs...)
}

// Action returns the action KEY.VERB, which calls a method of the part's client.
func Action[C, P, R any](key, verb, summary string, method func(client C, ctx context.Context, req *tea.Request, params P) (R, error), options ...tea.Option) tea.Action {
	return tea.NewAction(key+"."+verb, summary, func(ctx context.Context, req *tea.Request, params P) (R, error) {
		return method(req.Instance.(Clients)[key].(C), ctx, req, params)
	}, options...)
}

// Connection is a connection to a server, which is opened when it is needed.
type Connection interface{ Close() }

// Servers are the connections of a client.
type Servers[C Connection] struct {
	// path is the path of the servers in the settings.
	path   string
	byName map[string]C
}

// Connect returns a connection for each server in the settings at a path.
func Connect[V any, C Connection](path string, servers map[string]V, connection func(name string, config V) C) Servers[C] {
	s := Servers[C]{path, map[string]C{}}
	for name, config := range servers {
		s.byName[name] = connection(name, config)
	}
	return s
}

// Server returns the connection to a server. The name can be left out if there is only
// one.
func (s Servers[C]) Server(name string) (C, error) {
	name, err := Name(s.path, "server", s.byName, name)
	return s.byName[name], err
}

// Close closes the connections.
func (s Servers[C]) Close() error {
	for _, c := range s.byName {
		c.Close()
	}
	return nil
}

// Name returns the name of an entry of the settings at a path, such as a server. It can
// be left out if there is only one.
func Name[V any](path, kind string, entries map[string]V, given string) (string, error) {
	if given != "" {
		_, err := Entry(path, kind, entries, given)
		return given, err
	}
	names := slices.Sorted(maps.Keys(entries))
	if len(names) != 1 {
		return "", tea.Errorf(tea.ValidationError, "%s has %d %ss: name one with %s", path, len(names), kind, kind)
	}
	return names[0], nil
}

// Entry returns an entry of the settings at a path, such as a point.
func Entry[V any](path, kind string, entries map[string]V, name string) (V, error) {
	entry, ok := entries[name]
	if !ok {
		return entry, tea.Errorf(tea.NotFound, "%s has no %s %q%s", path, kind, name, diag.Ending(name, slices.Sorted(maps.Keys(entries))))
	}
	return entry, nil
}

// How calls wait for a serial port that another call or program has.
const (
	PortTimeout = 5 * time.Second
	PortPoll    = 50 * time.Millisecond
)

// ErrPortBusy means that another call or program has the serial port.
var ErrPortBusy = errors.New("another call or program uses it")

// Check checks the entries of the settings at a path in the order of their names. The error
// names the entry, unless it is a *tea.Error.
func Check[V any](path string, entries map[string]V, check func(path string, entry V) error) error {
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		at := diag.Key(path, name)
		err := check(at, entries[name])
		if own := (*tea.Error)(nil); err != nil && !errors.As(err, &own) {
			return tea.Errorf(tea.ValidationError, "%s: %w", at, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Address parses the address of a server, SCHEME://HOST or SCHEME://HOST:PORT. ports are the
// default ports by scheme. The schema of the settings excludes other mistakes.
func Address(text, example string, ports map[string]string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || ports[u.Scheme] == "" {
		return nil, fmt.Errorf("expected an address such as %s", example)
	}
	u.Host = net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), ports[u.Scheme]))
	return u, nil
}

// Seconds returns a number of seconds as a duration.
func Seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// Bytes returns the bytes of a parameter that is given as text or in Base64, as
// NAME_base64.
func Bytes(name, text, encoded string) ([]byte, error) {
	if text != "" && encoded != "" {
		return nil, tea.Errorf(tea.ValidationError, "%s and %s_base64 exclude each other", name, name)
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "%s_base64: %w", name, err)
	}
	return append(data, text...), nil
}

// maxShown is the number of bytes that are shown in messages.
const maxShown = 200

// Shown returns bytes as a message has them: a short text in a format, otherwise the size.
func Shown(format string, data []byte) string {
	if len(data) <= maxShown && utf8.Valid(data) {
		return fmt.Sprintf(format, data)
	}
	return fmt.Sprintf("%d bytes", len(data))
}

// Text returns bytes as text, or in Base64 if they are not valid UTF-8.
func Text(data []byte) (text *string, encoded string) {
	if !utf8.Valid(data) {
		return nil, base64.StdEncoding.EncodeToString(data)
	}
	s := string(data)
	return &s, ""
}

// Emit passes on a value that was watched: a token with its JSON.
func Emit(ctx context.Context, req *tea.Request, watched any) error {
	v, err := value.From(watched)
	if err != nil {
		return err
	}
	text, err := value.Encode(v)
	if err == nil {
		req.Host.Token(ctx, string(text))
	}
	return err
}

// Float returns a float as a value of the model: nil if it is not finite. One of 32 bits
// gets its shortest decimal form: 0.1, not 0.10000000149011612.
func Float(f float64, bits int) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	if bits == 32 {
		f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'g', -1, bits), 64)
	}
	return f
}
