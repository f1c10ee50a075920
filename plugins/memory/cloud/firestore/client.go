package firestore

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

const (
	// maxCommit is the maximum size of a commit, less what is added to it.
	maxCommit = 10<<20 - 64<<10
	// pageBytes and pageDocuments bound the response to a query.
	pageBytes     = 8 << 20
	pageDocuments = 2000
	// batch is the number of writes in a request that is not atomic.
	batch = 300
)

// client sends requests to a database.
type client struct {
	server  httpapi.Server
	timeout time.Duration
	// root is the name of the database's documents, as projects/P/databases/D/documents.
	root string
	// prefix begins the names of the collections.
	prefix string
}

func (c *client) Close() error { c.server.HTTP.CloseIdleConnections(); return nil }

func (c *client) name(collection, id string) string {
	return c.root + "/" + c.prefix + collection + "/" + id
}

// The messages of the API.
type (
	document struct {
		Name       string           `json:"name"`
		Fields     map[string]value `json:"fields,omitempty"`
		UpdateTime string           `json:"updateTime,omitempty"`
	}
	precondition struct {
		Exists     *bool  `json:"exists,omitempty"`
		UpdateTime string `json:"updateTime,omitempty"`
	}
	write struct {
		Update          *document     `json:"update,omitempty"`
		Delete          string        `json:"delete,omitempty"`
		Verify          string        `json:"verify,omitempty"`
		UpdateMask      *mask         `json:"updateMask,omitempty"`
		CurrentDocument *precondition `json:"currentDocument,omitempty"`
	}
	mask struct {
		FieldPaths []string `json:"fieldPaths"`
	}
	field struct {
		FieldPath string `json:"fieldPath"`
	}
	fieldFilter struct {
		Field field  `json:"field"`
		Op    string `json:"op"`
		Value value  `json:"value"`
	}
	filterOf struct {
		FieldFilter *fieldFilter     `json:"fieldFilter,omitempty"`
		Composite   *compositeFilter `json:"compositeFilter,omitempty"`
	}
	compositeFilter struct {
		Op      string     `json:"op"`
		Filters []filterOf `json:"filters"`
	}
	order struct {
		Field field `json:"field"`
	}
	cursor struct {
		Values []value `json:"values"`
		Before bool    `json:"before"`
	}
	structured struct {
		From    []from    `json:"from"`
		Where   *filterOf `json:"where,omitempty"`
		OrderBy []order   `json:"orderBy,omitempty"`
		Select  *fields   `json:"select,omitempty"`
		StartAt *cursor   `json:"startAt,omitempty"`
		Limit   int       `json:"limit,omitempty"`
	}
	from struct {
		CollectionID string `json:"collectionId"`
	}
	fields struct {
		Fields []field `json:"fields"`
	}
)

// The preconditions that a document must not exist, and that it must exist.
func absent() *precondition { no := false; return &precondition{Exists: &no} }

func present() *precondition { yes := true; return &precondition{Exists: &yes} }

func unchanged(updateTime string) *precondition {
	if updateTime == "" {
		return absent()
	}
	return &precondition{UpdateTime: updateTime}
}

// nameField selects the name of a document in conditions and orders.
const nameField = "__name__"

// post calls a method of the document parent, "" for a method of the database.
func (c *client) post(ctx context.Context, parent, method string, body any, consume func(httpapi.Reply) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	limited, cancel := httpapi.Expire(ctx, c.timeout)
	defer cancel()
	path := "documents"
	for part := range strings.SplitSeq(strings.TrimPrefix(parent, c.root), "/") {
		if part != "" {
			path += "/" + url.PathEscape(part)
		}
	}
	err := c.server.Do(limited, httpapi.Request{Path: path + ":" + method, Body: body}, consume)
	if ended := ctx.Err(); ended != nil && err != nil {
		return ended
	}
	return err
}

// each decodes the elements of a list as they arrive, until use returns false. An error after the first results is an
// element too.
func each[T any](r httpapi.Reply, use func(T) bool) error {
	decoder := json.NewDecoder(io.LimitReader(r.Body, httpapi.MaxBody))
	if _, err := decoder.Token(); err != nil {
		return notAList(err)
	}
	for decoder.More() {
		var raw json.RawMessage
		var failed failure
		var element T
		if err := decoder.Decode(&raw); err != nil {
			return notAList(err)
		}
		if json.Unmarshal(raw, &failed) == nil && failed.Error.Status != "" {
			return failed.typed(r.Header)
		}
		if err := json.Unmarshal(raw, &element); err != nil {
			return notAList(err)
		}
		if !use(element) {
			return nil
		}
	}
	if _, err := decoder.Token(); err != nil {
		return notAList(err)
	}
	return nil
}

func notAList(err error) error {
	return tea.Errorf(tea.ConnectionError, "the server did not send a complete list: %w", err)
}

// get returns the existing documents with these names; fieldPaths restricts their fields. All are from one snapshot.
func (c *client) get(ctx context.Context, fieldPaths []string, names ...string) (map[string]document, error) {
	found, _, err := c.getAt(ctx, fieldPaths, names...)
	return found, err
}

// getAt is get, and returns the server's time in microseconds.
func (c *client) getAt(ctx context.Context, fieldPaths []string, names ...string) (found map[string]document, now int64, err error) {
	body := map[string]any{"documents": names}
	if fieldPaths != nil {
		body["mask"] = mask{fieldPaths}
	}
	err = c.post(ctx, "", "batchGet", body, func(r httpapi.Reply) error {
		found = map[string]document{}
		return each(r, func(one struct {
			Found    *document `json:"found"`
			ReadTime string    `json:"readTime"`
		},
		) bool {
			now = micros(one.ReadTime)
			if one.Found != nil {
				found[one.Found.Name] = *one.Found
			}
			return true
		})
	})
	return found, now, err
}

// page is the response to a query.
type page struct {
	documents []document
	// more reports whether the query may have further results.
	more bool
	// transaction identifies the snapshot of the page.
	transaction string
}

// query returns the first results of a query in a collection of the document parent, "" for a top-level collection.
// transaction selects the snapshot of an earlier page; "" = the latest snapshot.
func (c *client) query(ctx context.Context, parent string, q structured, transaction string) (p page, err error) {
	if q.Limit == 0 || q.Limit > pageDocuments {
		q.Limit = pageDocuments
	}
	body := map[string]any{"structuredQuery": q}
	if transaction == "" {
		body["newTransaction"] = map[string]any{"readOnly": struct{}{}}
	} else {
		body["transaction"] = transaction
	}
	err = c.post(ctx, parent, "runQuery", body, func(r httpapi.Reply) error {
		p = page{transaction: transaction}
		bytes := 0
		return each(r, func(raw json.RawMessage) bool {
			var one struct {
				Document    *document `json:"document"`
				Transaction string    `json:"transaction"`
			}
			if json.Unmarshal(raw, &one) != nil {
				return true // each reports JSON of another form
			}
			if one.Transaction != "" {
				p.transaction = one.Transaction
			}
			if one.Document == nil {
				return true
			}
			p.documents = append(p.documents, *one.Document)
			bytes += len(raw)
			p.more = len(p.documents) == q.Limit || bytes > pageBytes
			return bytes <= pageBytes
		})
	})
	return p, err
}

// all calls use with the results of a query in the order of their names, until it returns false. They are from one
// snapshot.
func (c *client) all(ctx context.Context, parent string, q structured, use func(document) bool) error {
	return c.pages(ctx, parent, q, func(p page) bool {
		return !slices.ContainsFunc(p.documents, func(one document) bool { return !use(one) })
	})
}

// pages is all for the documents of each response together.
func (c *client) pages(ctx context.Context, parent string, q structured, use func(page) bool) error {
	q.OrderBy = []order{{field{nameField}}}
	for transaction := ""; ; {
		p, err := c.query(ctx, parent, q, transaction)
		if err != nil || !use(p) || !p.more {
			return err
		}
		transaction = p.transaction
		q.StartAt = &cursor{Values: []value{{Reference: &p.documents[len(p.documents)-1].Name}}}
	}
}

// count returns the number of results of a query.
func (c *client) count(ctx context.Context, parent string, q structured) (n int64, err error) {
	type answer struct {
		Result struct {
			Fields map[string]value `json:"aggregateFields"`
		} `json:"result"`
	}
	body := map[string]any{"structuredAggregationQuery": map[string]any{
		"structuredQuery": q, "aggregations": []any{map[string]any{"alias": "n", "count": struct{}{}}},
	}}
	err = c.post(ctx, parent, "runAggregationQuery", body, func(r httpapi.Reply) error {
		return each(r, func(one answer) bool {
			if v, ok := one.Result.Fields["n"]; ok {
				n = v.int()
			}
			return true
		})
	})
	return n, err
}

// commit applies all writes or none. conflicts is true for the error of a failed precondition.
func (c *client) commit(ctx context.Context, writes []write) error {
	body, err := json.Marshal(map[string]any{"writes": writes})
	if err != nil {
		return err
	}
	if len(body) > maxCommit {
		return tea.Errorf(tea.ResourceExhausted, "the changes have %d bytes in total; Firestore commits at most %d at once: write fewer or smaller entries in a call", len(body), maxCommit)
	}
	return c.post(ctx, "", "commit", json.RawMessage(body), func(r httpapi.Reply) error {
		_, err := r.ReadAll()
		return err
	})
}

// refusals are the codes of writes whose preconditions failed; others are codes of errors.
var (
	refusals = []int{5, 6, 9} // NOT_FOUND, ALREADY_EXISTS, FAILED_PRECONDITION
	others   = map[int]string{
		1: "CANCELLED", 3: "INVALID_ARGUMENT", 4: "DEADLINE_EXCEEDED", 7: "PERMISSION_DENIED", 8: "RESOURCE_EXHAUSTED", 10: "ABORTED", 13: "INTERNAL", 14: "UNAVAILABLE", 16: "UNAUTHENTICATED",
	}
)

// eachWrite applies writes that need not be atomic, and reports which were applied. A failed precondition is not an
// error.
func (c *client) eachWrite(ctx context.Context, writes []write) (done []bool, err error) {
	var answer struct {
		Status []struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"status"`
	}
	err = c.post(ctx, "", "batchWrite", map[string]any{"writes": writes}, func(r httpapi.Reply) error {
		return r.Decode(&answer, "the results of writes")
	})
	if err != nil {
		return nil, err
	}
	if len(answer.Status) < len(writes) {
		return nil, tea.Errorf(tea.ConnectionError, "the server's answer has the results of %d writes, not of %d", len(answer.Status), len(writes))
	}
	done = make([]bool, len(writes))
	for i := range writes {
		s := answer.Status[i]
		if done[i] = s.Code == 0; !done[i] && !slices.Contains(refusals, s.Code) {
			var f failure
			f.Error.Message, f.Error.Status = s.Message, cmp.Or(others[s.Code], "UNKNOWN")
			err = f.typed(nil)
		}
	}
	return done, err
}

// reason is the member of the error details with Google's name of the error.
const reason = "reason"

// conflicts reports whether a commit failed because of a precondition or a concurrent transaction.
func conflicts(err error) bool {
	e := tea.AsError(err)
	if e == nil {
		return false
	}
	switch e.Details[reason] {
	case "ABORTED", "ALREADY_EXISTS", "FAILED_PRECONDITION", "NOT_FOUND":
		return true
	}
	return false
}

// transport adds the credentials to requests, and returns typed errors for error responses.
type transport struct {
	next  http.RoundTripper
	token func(ctx context.Context) (string, error)
}

// maxErrorBody bounds the part of an error response that is read.
const maxErrorBody = 64 << 10

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := t.token(r.Context())
	if err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := t.next.RoundTrip(r)
	if err != nil || resp.StatusCode < http.StatusBadRequest {
		return resp, err
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a part of it is still a message
	var answer failure
	text := strings.TrimSpace(string(body))
	if strings.HasPrefix(text, "[") { // a stream returns a list
		text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	}
	if json.Unmarshal([]byte(text), &answer) != nil || answer.Error.Status == "" {
		resp.Body = io.NopCloser(strings.NewReader(string(body))) // not from Firestore, but from a proxy for example
		return resp, nil
	}
	return nil, answer.typed(resp.Header)
}

// failure is an error of Google's APIs.
type failure struct {
	Error struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Status  string `json:"status"`
	} `json:"error"`
}

func (f failure) typed(header http.Header) error {
	status, message := f.Error.Status, f.Error.Message
	e := tea.Errorf(tea.QueryError, "Firestore: %s", message)
	switch status {
	case "UNAUTHENTICATED":
		e = tea.Errorf(tea.PermissionDenied, "Firestore does not accept the credentials; check settings.memory.token or GOOGLE_APPLICATION_CREDENTIALS, and the clock of this device: %s", message)
	case "PERMISSION_DENIED":
		e = tea.Errorf(tea.PermissionDenied, "Firestore: %s; the account needs the role Cloud Datastore User (roles/datastore.user)", message)
	case "NOT_FOUND":
		e = tea.Errorf(tea.NotFound, "Firestore: %s; check the project and the database of settings.memory.url", message)
	case "RESOURCE_EXHAUSTED":
		e.Type, e.Retryable = tea.ResourceExhausted, true
	case "UNAVAILABLE", "INTERNAL", "UNKNOWN", "CANCELLED":
		e.Type, e.Retryable = tea.ConnectionError, true
	case "DEADLINE_EXCEEDED":
		e.Type, e.Retryable = tea.Timeout, true
	case "ABORTED":
		e.Type = tea.ConnectionError // the caller retries the commit
	}
	e.Details = map[string]any{reason: status, "status": int64(f.Error.Code)}
	if after, err := strconv.Atoi(header.Get("Retry-After")); err == nil {
		e.RetryAfter = time.Duration(after) * time.Second
	}
	return e
}
