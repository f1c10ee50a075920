package browser

import (
	"context"
	"errors"
	"fmt"
	"syscall/js"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
	"github.com/the-edge-agent/tea/sdk/x/jspromise"

	"github.com/the-edge-agent/tea/plugins/memory/internal/keyed/objects"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// objectsBackend is the engine objects. The page makes its requests, because it has the credentials.
func objectsBackend() store.Backend {
	return store.Backend{Name: objects.Engine, Open: func(_ context.Context, c store.Config) (*store.Stores, error) {
		if c.URL == "" {
			return nil, tea.Errorf(tea.ValidationError, "the engine objects needs a url, such as s3://bucket/prefix")
		}
		if err := c.Decode(new(struct{})); err != nil {
			return nil, err // credentials are not settings here
		}
		return objects.Stores(&bucket{url: c.URL, timeout: c.Timeout}, c), nil
	}}
}

// online is for memory.WithOnline.
func online(wake func()) (stop func()) {
	listener := js.FuncOf(func(js.Value, []js.Value) any {
		wake()
		return nil
	})
	js.Global().Call("addEventListener", "online", listener)
	return func() {
		js.Global().Call("removeEventListener", "online", listener)
		listener.Release()
	}
}

// bucket is a folder of an object storage that the page reaches.
type bucket struct {
	url     string
	timeout time.Duration
}

// tries bounds the attempts of a request that fails temporarily.
const tries = 3

var retries = backoff.Policy{Base: 200 * time.Millisecond, Max: 5 * time.Second, Multiplier: 2, Jitter: 0.5} //nolint:gochecknoglobals // a constant

// request is a request to the page. Conditions are versions; absent requires that the object does not exist.
type request struct {
	method, name       string
	match, ifNoneMatch string
	absent             bool
	body               []byte
}

// answer is the service's response.
type answer struct {
	status  int
	version string
	body    []byte
}

// send makes a request, several times if the service is busy.
func (b *bucket) send(ctx context.Context, r request) (a answer, err error) {
	for try := 1; ; try++ {
		a, err = b.once(ctx, r)
		if err == nil {
			err = b.failure(r, a)
		}
		var typed *tea.Error
		if err == nil || !errors.As(err, &typed) || !typed.Retryable || typed.Details["reason"] == "offline" || try == tries {
			return a, err
		}
		select {
		case <-time.After(max(typed.RetryAfter, retries.Wait(try))):
		case <-ctx.Done():
			return a, err
		}
	}
}

func (b *bucket) once(ctx context.Context, r request) (a answer, err error) {
	send := js.Global().Get("teaObjects")
	if !send.Truthy() {
		return a, tea.Errorf(tea.DependencyMissing, "the page has no access to %s: pass objects to openTea, such as s3({...}) of @tea/browser/sync", b.url)
	}
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	o := map[string]any{"url": b.url, "method": r.method, "name": r.name, "immutable": r.method == "GET" && r.ifNoneMatch == "" && r.name != "head.json"}
	switch {
	case r.absent:
		o["ifNoneMatch"] = "*"
	case r.match != "":
		o["ifMatch"] = r.match
	case r.ifNoneMatch != "":
		o["ifNoneMatch"] = r.ifNoneMatch
	}
	if r.body != nil {
		o["body"] = toJS(r.body)
	}
	v, err := jspromise.Await(ctx, send.Invoke(o))
	var thrown *jspromise.Error
	switch {
	case errors.As(err, &thrown):
		return a, b.thrown(thrown)
	case errors.Is(err, context.DeadlineExceeded):
		failure := tea.Errorf(tea.Timeout, "%s does not answer within %s", b.url, b.timeout)
		failure.Retryable = true
		return a, failure
	case err != nil:
		return a, err
	}
	a.status = v.Get("status").Int()
	if version := v.Get("version"); version.Type() == js.TypeString {
		a.version = version.String()
	}
	if body := v.Get("body"); body.Truthy() {
		a.body = make([]byte, body.Length())
		js.CopyBytesToGo(a.body, body)
	}
	return a, nil
}

// thrown converts an exception of the page, a TeaError or any other.
func (b *bucket) thrown(thrown *jspromise.Error) error {
	failure := tea.Errorf(tea.ConnectionError, "%s: %s", b.url, thrown.Message)
	if thrown.Value.Type() != js.TypeObject {
		return failure
	}
	if kind := thrown.Value.Get("type"); kind.Type() == js.TypeString {
		failure.Type = tea.ErrorType(kind.String())
	}
	failure.Retryable = thrown.Value.Get("retryable").Truthy()
	if reason := thrown.Value.Get("reason"); reason.Type() == js.TypeString {
		failure.Details = map[string]any{"reason": reason.String()}
	}
	return failure
}

func (b *bucket) failure(r request, a answer) error {
	fail := func(kind tea.ErrorType, reason, text string) *tea.Error {
		e := tea.Errorf(kind, "%s %s/%s: %s", r.method, b.url, r.name, text)
		e.Details = map[string]any{"reason": reason, "status": int64(a.status)}
		return e
	}
	said := string(a.body[:min(len(a.body), 300)])
	switch s := a.status; {
	case s == 304:
		return nil
	case s >= 200 && s < 300:
		if a.version == "" && r.method != "DELETE" {
			return fail(tea.ConnectionError, "cors", "the answer has no ETag that the page can read; add ETag to the exposed headers of the bucket's CORS rules")
		}
		return nil
	case s == 404 && r.method == "DELETE":
		return nil
	case s == 404 && r.method == "PUT":
		return fail(tea.NotFound, "bucket_missing", "there is no such bucket: "+said)
	case s == 404:
		e := fail(tea.NotFound, "missing", "the service answers 404: "+said)
		return fmt.Errorf("%w: %w", objects.ErrNotFound, e)
	case s == 412, s == 409:
		return fmt.Errorf("%w: %w", objects.ErrConflict, fail(tea.ConnectionError, "conflict", fmt.Sprint("status ", s)))
	case s == 401, s == 403:
		return fail(tea.PermissionDenied, "credentials", fmt.Sprintf("the service refuses the credentials (status %d): %s", s, said))
	case s == 429:
		e := fail(tea.RateLimited, "busy", "the service is busy")
		e.Retryable = true
		return e
	case s >= 500:
		e := fail(tea.ConnectionError, "service", fmt.Sprintf("the service fails with status %d: %s", s, said))
		e.Retryable = true
		return e
	}
	return fail(tea.ConnectionError, "service", fmt.Sprintf("the service answers with status %d: %s", a.status, said))
}

// Get returns an object.
func (b *bucket) Get(ctx context.Context, name, have string) (data []byte, version string, err error) {
	a, err := b.send(ctx, request{method: "GET", name: name, ifNoneMatch: have})
	if err != nil || a.status == 304 {
		return nil, have, err
	}
	if a.body == nil {
		a.body = []byte{}
	}
	return a.body, a.version, nil
}

// Put writes an object on a condition.
func (b *bucket) Put(ctx context.Context, name string, data []byte, match string) (version string, err error) {
	a, err := b.send(ctx, request{method: "PUT", name: name, match: match, absent: match == "", body: data})
	return a.version, err
}

// Delete removes an object.
func (b *bucket) Delete(ctx context.Context, name string) error {
	_, err := b.send(ctx, request{method: "DELETE", name: name})
	return err
}

func (b *bucket) Close() error { return nil }
