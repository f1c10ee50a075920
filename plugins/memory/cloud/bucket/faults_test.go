package bucket

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/objstore/objtest"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	tea "github.com/the-edge-agent/tea/sdk"
)

// refusing is a server that can refuse all requests with an error of S3.
func refusing(t *testing.T, s *objtest.Server) (behind *objtest.Server, refuse *atomic.Pointer[string]) {
	t.Helper()
	target, err := url.Parse(s.Settings.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	refuse = &atomic.Pointer[string]{}
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // it is signed
	}}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if code := refuse.Load(); code != nil {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>no</Message></Error>`, *code)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	changed := *s
	changed.Settings.Endpoint = proxy.URL
	return &changed, refuse
}

func TestErrorsOfTheService(t *testing.T) {
	t.Parallel()
	s := objtest.S3(t)
	for code, want := range map[string]struct {
		kind   tea.ErrorType
		reason string
	}{
		"ExpiredToken":         {tea.PermissionDenied, "credentials_expired"},
		"RequestTimeTooSkewed": {tea.PermissionDenied, "clock_skew"},
		"QuotaExceeded":        {tea.ResourceExhausted, "quota"},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			behind, refuse := refusing(t, s)
			device := openStores(t, config(t, behind, prefixOf(t), t.TempDir(), map[string]any{"idle_seconds": 60, "attempts": 1}))
			set(t, device, "a", "1")
			refuse.Store(&code)
			_, err := device.LongTerm.Store(t.Context(), store.Entry{Key: "a", Value: json.RawMessage(`"2"`)})
			if e := tea.AsError(err); err == nil || e.Type != want.kind || e.Details["reason"] != want.reason {
				t.Errorf("a write: %v", err)
			}
			refuse.Store(nil)
			set(t, device, "b", "1")
			if got := get(t, device, "a"); got != "1" && got != "2" {
				t.Errorf("a = %q", got)
			}
		})
	}
}

func TestWrongRegionAndBucket(t *testing.T) {
	t.Parallel()
	s := objtest.S3(t)
	for name, c := range map[string]struct {
		change map[string]any
		url    string
		want   tea.ErrorType
	}{
		"key":    {map[string]any{"secret_access_key": "wrong"}, s.Address, tea.PermissionDenied},
		"region": {map[string]any{"region": "eu-central-1"}, s.Address, tea.ValidationError},
		"bucket": {nil, "s3://other", tea.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := config(t, s, "", t.TempDir(), c.change)
			config.URL = c.url
			device := openStores(t, config)
			if _, err := device.LongTerm.Retrieve(t.Context(), "", "a"); err == nil || tea.AsError(err).Type != c.want {
				t.Errorf("%v", err)
			}
		})
	}
}

// A memory of a newer version is refused and not changed, and the lease released.
func TestNewerVersions(t *testing.T) {
	t.Parallel()
	s := objtest.S3(t)
	t.Run("schema", func(t *testing.T) {
		t.Parallel()
		device := openStores(t, config(t, s, prefixOf(t), t.TempDir(), nil))
		err := device.Tables.(tableStore).s.write(t.Context(), func(tn *holder) error {
			return tracked{tn.engine, tn}.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
				_, err := tx.Exec(ctx, "INSERT INTO tea_schema VALUES (999)")
				return err
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := device.Close(); err != nil {
			t.Fatal(err)
		}
		old := openStores(t, config(t, s, prefixOf(t), t.TempDir(), nil))
		for range 2 {
			if _, err := old.LongTerm.Retrieve(t.Context(), "", "a"); err == nil || tea.AsError(err).Type != tea.DependencyMissing {
				t.Errorf("%v", err)
			}
		}
	})
	t.Run("format", func(t *testing.T) {
		t.Parallel()
		device := openStores(t, config(t, s, prefixOf(t), t.TempDir(), nil))
		sh := device.Tables.(tableStore).s
		if _, err := writeHead(t.Context(), sh.bucket, head{Format: format + 1, Store: "x"}, "absent"); err != nil {
			t.Fatal(err)
		}
		if _, err := device.LongTerm.Retrieve(t.Context(), "", "a"); err == nil || tea.AsError(err).Type != tea.DependencyMissing {
			t.Errorf("%v", err)
		}
	})
}

// Connections that break or stop in the middle of an answer lose nothing.
func TestDisturbedConnections(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, s *objtest.Server) {
		proxy, behind := objtest.NewProxy(t, s)
		device := openStores(t, config(t, behind, prefixOf(t), t.TempDir(), map[string]any{"stall_timeout": 1, "lease_seconds": 30}))
		done := map[string]string{}
		for n := range 30 {
			switch n % 3 {
			case 0:
				proxy.Cut(int64(1+n*17%300), 1)
			case 1:
				proxy.Hold(int64(1 + n*29%200))
				time.AfterFunc(300*time.Millisecond, func() { proxy.Hold(0) })
			}
			key, value := fmt.Sprint("k", n%4), fmt.Sprint(n)
			if _, err := device.LongTerm.Store(t.Context(), store.Entry{Key: key, Value: json.RawMessage(`"` + value + `"`)}); err != nil {
				if e := tea.AsError(err); !e.Retryable {
					t.Errorf("%v", err)
				}
				delete(done, key) // it is not known
				continue
			}
			done[key] = value
		}
		proxy.Hold(0)
		if err := device.Close(); err != nil {
			t.Fatal(err)
		}
		other := openStores(t, config(t, s, prefixOf(t), t.TempDir(), map[string]any{"wait_seconds": 600}))
		for key, want := range done {
			if got := get(t, other, key); got != want {
				t.Errorf("%s = %s, want %s", key, got, want)
			}
		}
	})
}

// What is written after a head whose answer was lost is published on top of it.
func TestLostAnswerOfTheHead(t *testing.T) {
	t.Parallel()
	s := objtest.S3(t)
	target, err := url.Parse(s.Settings.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	var lose, refuse atomic.Bool
	pass := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // it is signed
		},
		ModifyResponse: func(resp *http.Response) error {
			if resp.Request.Method == http.MethodPut && strings.HasSuffix(resp.Request.URL.Path, headName) && lose.CompareAndSwap(true, false) {
				refuse.Store(true) // until another change is there
				panic(http.ErrAbortHandler)
			}
			return nil
		},
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuse.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	behind := *s
	behind.Settings.Endpoint = proxy.URL
	device := openStores(t, config(t, &behind, prefixOf(t), t.TempDir(), map[string]any{"idle_seconds": 60, "attempts": 1, "lease_seconds": 600}))
	set(t, device, "a", "1")
	for n := range 10 { // segments are merged, too
		lose.Store(true)
		for _, key := range []string{"lost", "refused"} {
			if _, err := device.LongTerm.Store(t.Context(), store.Entry{Key: fmt.Sprint(key, n), Value: json.RawMessage(`"1"`)}); err == nil || !tea.AsError(err).Retryable {
				t.Errorf("%s: %v", key, err)
			}
		}
		refuse.Store(false)
		set(t, device, fmt.Sprint("done", n), "1")
		reader := config(t, s, prefixOf(t), t.TempDir(), nil)
		reader.ReadOnly = "the test only reads"
		other := openStores(t, reader)
		for _, key := range []string{"lost", "refused", "done"} {
			if got := get(t, other, fmt.Sprint(key, n)); got != "1" {
				t.Errorf("%s%d = %q", key, n, got)
			}
		}
	}
}
