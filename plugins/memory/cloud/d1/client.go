package d1

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
	"github.com/the-edge-agent/tea/sdk/x/httpstatus"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/remotesqlite"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// client runs statements by the REST API of a database.
type client struct{ remotesqlite.Client }

var _ remotesqlite.Server = (*client)(nil)

// The messages of the API.
type (
	batch struct {
		Batch []statement `json:"batch"`
	}
	statement struct {
		SQL    string   `json:"sql"`
		Params []string `json:"params,omitempty"`
	}
	// envelope is the response to every request, successful or not.
	envelope struct {
		Success *bool     `json:"success"`
		Errors  []failure `json:"errors"`
		Result  []struct {
			Results struct {
				Rows [][]any `json:"rows"`
			} `json:"results"`
		} `json:"result"`
	}
	failure struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
)

func (c *client) Query(ctx context.Context, s remotesqlite.Statement) (remotesqlite.Result, error) {
	return c.run(ctx, statement{s.SQL, s.Args})
}

// Each runs statements that write. A batch is not a transaction on every server.
func (c *client) Each(ctx context.Context, statements ...remotesqlite.Statement) error {
	var b batch
	for _, s := range statements {
		b.Batch = append(b.Batch, statement{s.SQL, s.Args})
	}
	_, err := c.run(ctx, b)
	return err
}

// maxSQL bounds the statements of a request. D1 allows 100,000 bytes.
const maxSQL = 90_000

// Transaction runs statements in a transaction: D1 runs the statements of one text together, but then without
// parameters. Large parameters become rows of tea_args, sent before the statements if the text becomes too long.
func (c *client) Transaction(ctx context.Context, id string, statements ...remotesqlite.Statement) (remotesqlite.Result, error) {
	sql, large := inline(id, statements)
	var first strings.Builder
	for n, value := range large {
		first.WriteString("INSERT OR IGNORE INTO tea_args (id, n, value) VALUES (" + quote(id) + ", " + strconv.Itoa(n) + ", " + quote(value) + ");\n")
		if first.Len()+len(sql) > maxSQL {
			if err := c.send(ctx, id, large); err != nil {
				return nil, err
			}
			first.Reset()
			break
		}
	}
	return c.run(ctx, statement{SQL: first.String() + sql})
}

// send inserts the large parameters of a transaction.
func (c *client) send(ctx context.Context, id string, large []string) error {
	const maxRequest = 8 << 20
	for from := 0; from < len(large); {
		var some []remotesqlite.Statement
		for size := 0; from < len(large) && (size == 0 || size+len(large[from]) <= maxRequest); from++ {
			size += len(large[from])
			some = append(some, remotesqlite.Statement{SQL: "INSERT OR IGNORE INTO tea_args (id, n, value) VALUES (?1, CAST(?2 AS INTEGER), ?3)", Args: []string{id, strconv.Itoa(from), large[from]}})
		}
		if err := c.Each(ctx, some...); err != nil {
			return err
		}
	}
	return nil
}

// maxLiteral is the maximum size of a parameter that becomes a literal.
const maxLiteral = 256

var parameter = regexp.MustCompile(`\?[0-9]+`)

// inline returns statements with their parameters as one text. Large parameters are read from tea_args.
func inline(id string, statements []remotesqlite.Statement) (sql string, large []string) {
	numbers := map[string]int{}
	var b strings.Builder
	for i, s := range statements {
		if i == len(statements)-1 && len(numbers) > 0 {
			b.WriteString("DELETE FROM tea_args WHERE id = " + quote(id) + ";\n")
		}
		b.WriteString(parameter.ReplaceAllStringFunc(s.SQL, func(name string) string {
			n, _ := strconv.Atoi(name[1:]) // all digits
			value := s.Args[n-1]
			if len(value) <= maxLiteral {
				return quote(value)
			}
			if _, known := numbers[value]; !known {
				numbers[value] = len(large)
				large = append(large, value)
			}
			return "(SELECT value FROM tea_args WHERE id = " + quote(id) + " AND n = " + strconv.Itoa(numbers[value]) + ")"
		}))
		b.WriteString(";\n")
	}
	return b.String(), large
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// run sends a request and returns the result of its last statement.
func (c *client) run(ctx context.Context, body any) (remotesqlite.Result, error) {
	var result remotesqlite.Result
	err := c.Post(ctx, "/raw", body, func(r httpapi.Reply) (err error) {
		raw, err := r.ReadAll()
		if err != nil {
			return err
		}
		result, err = decode(raw, r.Header.Get(statusHeader))
		return err
	})
	return result, err
}

func decode(raw []byte, status string) (remotesqlite.Result, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var e envelope
	if err := decoder.Decode(&e); err != nil {
		return nil, httpapi.NotAnAnswer(raw, "the result of a query", err)
	}
	if e.Success == nil || !*e.Success {
		return nil, e.typed(status)
	}
	if len(e.Result) == 0 {
		return nil, tea.Errorf(tea.ConnectionError, "the server's answer has no result")
	}
	rows := e.Result[len(e.Result)-1].Results.Rows
	for _, row := range rows {
		for i, v := range row {
			if n, ok := v.(json.Number); ok {
				row[i] = toNumber(n)
			}
		}
	}
	return rows, nil
}

// toNumber returns an int64 or a float64. All numbers of the API are JavaScript numbers.
func toNumber(n json.Number) any {
	if i, err := n.Int64(); err == nil {
		return i
	}
	f, err := n.Float64()
	if err != nil {
		return math.NaN()
	}
	return f
}

// typed returns the error of an envelope. D1 reports a failed statement only as a text that ends with the name of
// SQLite's error.
func (e *envelope) typed(status string) error {
	f := failure{Message: "the server reports a failure without a reason"}
	if len(e.Errors) > 0 {
		f = e.Errors[0]
	}
	failed := &tea.Error{Type: tea.QueryError, Message: f.Message, Details: map[string]any{"code": int64(f.Code)}}
	code, _ := strconv.Atoi(status)
	switch {
	case strings.Contains(f.Message, "SQLITE_BUSY"):
		failed.Type, failed.Retryable = tea.ConnectionError, true
	case strings.Contains(f.Message, "SQLITE_FULL"):
		failed.Type = tea.ResourceExhausted
	case strings.Contains(f.Message, "string or blob too big"):
		details := failed.Details
		failed = tea.Errorf(tea.ResourceExhausted, "%w: %s", store.ErrTooLarge, f.Message)
		failed.Details = details
	case strings.Contains(f.Message, "SQLITE_"), code == 0:
	case code == http.StatusBadRequest && f.Code == codeQuery:
	default:
		failed.Type, failed.Retryable = httpstatus.ErrorType(code)
	}
	return failed
}

// codeQuery is Cloudflare's code for a failed statement.
const codeQuery = 7500

// statusHeader has the HTTP status of the server's response.
const statusHeader = "Tea-Status"

// envelopes passes error responses to the client as successes, because their envelopes have the reason. The status
// moves to statusHeader.
type envelopes struct{ http.RoundTripper }

func (t envelopes) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Header.Del(statusHeader)
	if resp.StatusCode < 400 || resp.StatusCode == http.StatusTooManyRequests || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		return resp, nil
	}
	const maxEnvelope = 1 << 20
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxEnvelope))
	if err := resp.Body.Close(); err != nil {
		return nil, err
	}
	var e envelope
	if err == nil && json.Unmarshal(raw, &e) == nil && e.Success != nil {
		resp.Header.Set(statusHeader, strconv.Itoa(resp.StatusCode))
		resp.StatusCode = http.StatusOK
	}
	resp.Body = io.NopCloser(bytes.NewReader(raw))
	return resp, nil
}

func (t envelopes) CloseIdleConnections() {
	if c, ok := t.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// newClient returns the client of a database.
func newClient(base, token string, timeout time.Duration, h *http.Client) *client {
	h.Transport = envelopes{h.Transport}
	return &client{remotesqlite.NewClient(base, token, timeout, h)}
}
