package libsql

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/remotesqlite"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// client runs statements by the pipeline of a server.
type client struct{ remotesqlite.Client }

var _ remotesqlite.Server = (*client)(nil)

// The messages of the protocol.
type (
	pipeline struct {
		Requests []request `json:"requests"`
	}
	request struct {
		Type  string `json:"type"`
		Batch *batch `json:"batch,omitempty"`
	}
	batch struct {
		Steps []step `json:"steps"`
	}
	step struct {
		Condition *condition `json:"condition,omitempty"`
		Stmt      stmt       `json:"stmt"`
	}
	// condition is "ok" of a step, or "not" of another condition.
	condition struct {
		Type string     `json:"type"`
		Step *int       `json:"step,omitempty"`
		Cond *condition `json:"cond,omitempty"`
	}
	stmt struct {
		SQL      string  `json:"sql"`
		Args     []value `json:"args,omitempty"`
		WantRows bool    `json:"want_rows"`
	}
	value struct {
		Type  string `json:"type"`
		Value any    `json:"value"`
	}
	answer struct {
		Results []struct {
			Error    *failure `json:"error"`
			Response struct {
				Result struct {
					StepResults []*struct {
						Rows [][]value `json:"rows"`
					} `json:"step_results"`
					StepErrors []*failure `json:"step_errors"`
				} `json:"result"`
			} `json:"response"`
		} `json:"results"`
	}
	failure struct {
		Message string `json:"message"`
		Code    string `json:"code"`
	}
)

func ok(n int) *condition { return &condition{Type: "ok", Step: &n} }

// steps are the statements of a transaction: each runs if the one before it succeeded, and the last one rolls a failed
// transaction back.
func steps(begin string, statements []remotesqlite.Statement) []step {
	all := []step{{Stmt: stmt{SQL: begin}}}
	for i, s := range statements {
		one := stmt{SQL: s.SQL, WantRows: i == len(statements)-1}
		for _, arg := range s.Args {
			one.Args = append(one.Args, value{"text", arg})
		}
		all = append(all, step{Condition: ok(i), Stmt: one})
	}
	n := len(statements)
	return append(all,
		step{Condition: ok(n), Stmt: stmt{SQL: "COMMIT"}},
		step{Condition: &condition{Type: "not", Cond: ok(n + 1)}, Stmt: stmt{SQL: "ROLLBACK"}})
}

func (c *client) Query(ctx context.Context, s remotesqlite.Statement) (remotesqlite.Result, error) {
	return c.run(ctx, "BEGIN", s)
}

func (c *client) Each(ctx context.Context, statements ...remotesqlite.Statement) error {
	_, err := c.run(ctx, "BEGIN IMMEDIATE", statements...)
	return err
}

func (c *client) Transaction(ctx context.Context, _ string, statements ...remotesqlite.Statement) (remotesqlite.Result, error) {
	return c.run(ctx, "BEGIN IMMEDIATE", statements...)
}

// run runs the statements in one transaction and one request, and returns the
// result of the last one.
func (c *client) run(ctx context.Context, begin string, statements ...remotesqlite.Statement) (remotesqlite.Result, error) {
	body := pipeline{Requests: []request{{Type: "batch", Batch: &batch{Steps: steps(begin, statements)}}, {Type: "close"}}}
	var result remotesqlite.Result
	err := c.Post(ctx, "/v2/pipeline", body, func(r httpapi.Reply) (err error) {
		var a answer
		if err := r.Decode(&a, "the results of a pipeline"); err != nil {
			return err
		}
		result, err = a.result(len(statements))
		return err
	})
	return result, err
}

// result returns the result of the last of the n statements between BEGIN and
// COMMIT.
func (a *answer) result(n int) (remotesqlite.Result, error) {
	if len(a.Results) == 0 {
		return nil, tea.Errorf(tea.ConnectionError, "the server's answer has no results")
	}
	first := a.Results[0]
	if first.Error != nil {
		return nil, first.Error.typed()
	}
	for _, f := range first.Response.Result.StepErrors {
		if f != nil {
			return nil, f.typed()
		}
	}
	found := first.Response.Result.StepResults
	if len(found) < n+2 || found[n] == nil || found[n+1] == nil {
		return nil, tea.Errorf(tea.ConnectionError, "the server's answer lacks the result of a statement")
	}
	var result remotesqlite.Result
	for _, row := range found[n].Rows {
		values := make([]any, len(row))
		for i, v := range row {
			var err error
			if values[i], err = v.decode(); err != nil {
				return nil, err
			}
		}
		result = append(result, values)
	}
	return result, nil
}

func (v value) decode() (any, error) {
	switch s, isText := v.Value.(string); {
	case v.Type == "null":
		return nil, nil
	case v.Type == "text" && isText:
		return s, nil
	case v.Type == "integer" && isText:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, tea.Errorf(tea.ConnectionError, "the server's answer has the integer %q", s)
		}
		return n, nil
	case v.Type == "float":
		if f, ok := v.Value.(float64); ok {
			return f, nil
		}
	}
	return nil, tea.Errorf(tea.ConnectionError, "the server's answer has a value of the type %q", v.Type)
}

// typed returns the error of a statement or of the pipeline. The codes are SQLite's, with additions of the server.
func (f *failure) typed() error {
	code := f.Code
	e := &tea.Error{Type: tea.QueryError, Message: f.Message}
	switch {
	case strings.HasPrefix(code, "SQLITE_BUSY"), strings.HasPrefix(code, "SQLITE_LOCKED"), strings.HasPrefix(code, "TRANSACTION_"), strings.HasPrefix(code, "STREAM_"):
		e.Type, e.Retryable = tea.ConnectionError, true
	case strings.HasPrefix(code, "SQLITE_FULL"), code == "RESPONSE_TOO_LARGE":
		e.Type = tea.ResourceExhausted
	case strings.HasPrefix(code, "SQLITE_TOOBIG"):
		e = tea.Errorf(tea.ResourceExhausted, "%w: %s", store.ErrTooLarge, f.Message)
	case strings.HasPrefix(code, "SQLITE_READONLY"), strings.HasPrefix(code, "SQLITE_AUTH"), code == "BLOCKED":
		e.Type = tea.PermissionDenied
	case strings.HasPrefix(code, "SQLITE_IOERR"), strings.HasPrefix(code, "SQLITE_CORRUPT"), strings.HasPrefix(code, "SQLITE_NOTADB"):
		e.Type, e.Message = tea.ConnectionError, "the server cannot use its database; look at its disk: "+f.Message
	}
	if code != "" {
		e.Details = map[string]any{"code": code}
	}
	return e
}

// newClient returns the client of a server.
func newClient(base, token string, timeout time.Duration, h *http.Client) *client {
	return &client{remotesqlite.NewClient(base, token, timeout, h)}
}
