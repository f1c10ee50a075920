package remotesqlite

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Server is a database behind an API. It retries transient failures. A failed statement is a query_error, an
// unreachable server a connection_error; the context's error is returned unchanged. It is safe for concurrent use.
type Server interface {
	// Query runs a statement that reads.
	Query(ctx context.Context, s Statement) (Result, error)
	// Each runs statements that write, each on its own, in one request. They are idempotent.
	Each(ctx context.Context, statements ...Statement) error
	// Transaction runs statements in a transaction and returns the result of the last
	// one. id is unique to the transaction, and the statements are idempotent.
	// The parameters need not be sent in the same request as the statements.
	Transaction(ctx context.Context, id string, statements ...Statement) (Result, error)
	Close() error
}

// Client sends requests to a Server.
type Client struct {
	server  httpapi.Server
	timeout time.Duration
}

// NewClient returns a client of the server at base. timeout bounds each request.
func NewClient(base, token string, timeout time.Duration, h *http.Client) Client {
	c := Client{timeout: timeout, server: httpapi.Server{HTTP: h, Base: base, MaxRetries: 4, MaxRetryAfter: 30 * time.Second, Header: http.Header{}}}
	if token != "" {
		c.server.Header.Set("Authorization", "Bearer "+token)
		c.server.Secrets = []string{token}
	}
	c.server.Secrets = append(c.server.Secrets, httpapi.SecretsOfAddress(base)...)
	return c
}

// Close closes idle connections.
func (c Client) Close() error { c.server.HTTP.CloseIdleConnections(); return nil }

// Post sends a request and passes the reply to use. If the server refuses the token, the error says how to fix it.
func (c Client) Post(ctx context.Context, path string, body any, use func(httpapi.Reply) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	limited, cancel := httpapi.Expire(ctx, c.timeout)
	defer cancel()
	err := c.server.Do(limited, httpapi.Request{Path: path, Body: body}, use)
	if ended := ctx.Err(); ended != nil && err != nil {
		return ended
	}
	if e := new(tea.Error); errors.As(err, &e) && e.Type == tea.PermissionDenied {
		e.Message += "; check settings.memory.token: it may have expired, or lack the right to write"
	}
	return err
}

// Statement is a statement with the parameters ?1, ?2 and so on.
type Statement struct {
	SQL  string
	Args []string
}

// Result has the rows of a statement, with values of the types nil, int64,
// float64 and string.
type Result [][]any

// text returns a column that is a string; NULL is "".
func text(row []any, column int) string {
	s, _ := row[column].(string)
	return s
}

// number returns a column that is an integer; NULL is 0.
func number(row []any, column int) int64 {
	switch v := row[column].(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	}
	return 0
}

// maxChunk bounds a parameter with a list. D1 allows strings of 2 MB.
const maxChunk = 1 << 20

// chunks returns rows as JSON lists of at most about maxChunk bytes, with at least one row each.
func chunks(rows [][]any) ([]string, error) {
	var all []string
	var b strings.Builder
	for _, row := range rows {
		raw, err := json.Marshal(row)
		if err != nil {
			return nil, err
		}
		if b.Len() > 0 && b.Len()+len(raw) > maxChunk {
			all = append(all, b.String()+"]")
			b.Reset()
		}
		if b.Len() == 0 {
			b.WriteByte('[')
		} else {
			b.WriteByte(',')
		}
		b.Write(raw)
	}
	if b.Len() > 0 {
		all = append(all, b.String()+"]")
	}
	return all, nil
}

// list returns strings or numbers as a JSON list.
func list[T any](values []T) string {
	raw, _ := json.Marshal(values) // strings and numbers
	if values == nil {
		return "[]"
	}
	return string(raw)
}

// escaper removes NUL, at which SQLite's JSON functions end a string. It keeps the order of bytes and the relation of
// prefixes.
var escaper, unescaper = strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02"), strings.NewReplacer("\x01\x01", "\x00", "\x01\x02", "\x01")

func escape(s string) string { return escaper.Replace(s) }

func unescape(s string) string { return unescaper.Replace(s) }

// orNull returns nil for the zero value.
func orNull[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

func integer(n int64) string { return strconv.FormatInt(n, 10) }

// options are settings.memory.options.
type options struct {
	CAFile string `json:"ca_file,omitempty" format:"path" doc:"file of certificates in PEM that are trusted in addition to the system's"`
}

// NewHTTP returns the HTTP client for a server.
func NewHTTP(c store.Config) (*http.Client, error) {
	var o options
	if err := c.Decode(&o); err != nil {
		return nil, err
	}
	return httpapi.NewHTTP(httpapi.Route{CAFile: o.CAFile})
}
