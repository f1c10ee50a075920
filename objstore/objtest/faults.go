package objtest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/objstore"
)

// Faults runs the suite of a driver with a failing network and a failing service.
func Faults(t *testing.T, s *Server, scheme objstore.Scheme) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, s *Server, scheme objstore.Scheme){
		"broken downloads": brokenDownloads, "lost answer": lostAnswer, "silent server": silentServer, "torn upload": tornUpload,
		"overload": overload, "damaged upload": damagedUpload, "damaged download": damagedDownload,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			below := *s
			below.Address += "/" + strings.ReplaceAll(name, " ", "-")
			test(t, &below, scheme)
		})
	}
}

// brokenDownloads checks that a download continues where a connection broke.
func brokenDownloads(t *testing.T, s *Server, scheme objstore.Scheme) {
	proxy, behind := NewProxy(t, s)
	b := behind.Open(t, nil, scheme)
	content := strings.Repeat("0123456789abcdef", 1<<16)
	Put(t, b, "a", content)
	proxy.Cut(100_000, 5)
	want(t, "content", Content(t, b, "a", 0, objstore.All) == content, true)
	want(t, "cuts", proxy.Cuts(), 5)
	// A download does not continue if the object was replaced meanwhile.
	_, r, err := b.Get(t.Context(), "a", 0, objstore.All)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	Put(t, s.Open(t, nil, scheme), "a", strings.ToUpper(content))
	proxy.Cut(1, 1000)
	rest, err := io.ReadAll(r)
	switch {
	case err == nil: // it was already on its way
		want(t, "the rest", string(rest) == content[10:], true)
	case !errors.Is(err, objstore.ErrConflict) && tea.AsError(err).Type != tea.ConnectionError:
		t.Errorf("got %v", err)
	}
}

// lostAnswer checks that a write whose response is lost is done and reported once.
func lostAnswer(t *testing.T, s *Server, scheme objstore.Scheme) {
	proxy, behind := NewProxy(t, s)
	b := behind.Open(t, nil, scheme)
	version := objstore.Absent
	for _, content := range []string{"1", "22"} {
		before := proxy.Cuts()
		proxy.Cut(1, 1)
		o, err := b.Put(t.Context(), "a", strings.NewReader(content), objstore.PutOptions{Match: version})
		if err != nil {
			t.Fatal(err)
		}
		want(t, "cuts", proxy.Cuts(), before+1)
		version = o.Version
	}
	if _, err := b.Put(t.Context(), "a", strings.NewReader("333"), objstore.PutOptions{Match: version}); err != nil {
		t.Errorf("the version of the repeated write is not that of the object: %v", err)
	}
	_, err := b.Put(t.Context(), "a", strings.NewReader("4444"), objstore.PutOptions{Match: version})
	want(t, "an old version is a conflict", errors.Is(err, objstore.ErrConflict), true)
	once := behind.Open(t, func(o *objstore.Settings) { o.Attempts = 1 }, scheme)
	before := proxy.Cuts()
	proxy.Cut(1, 1)
	_, err = once.Put(t.Context(), "a", strings.NewReader("55555"), objstore.PutOptions{Match: objstore.Absent})
	want(t, "it exists", errors.Is(err, objstore.ErrConflict), true)
	want(t, "cuts", proxy.Cuts(), before+1)
}

// silentServer checks that requests end if a server stops without closing the connection.
func silentServer(t *testing.T, s *Server, scheme objstore.Scheme) {
	proxy, behind := NewProxy(t, s)
	b := behind.Open(t, func(o *objstore.Settings) { o.StallSeconds, o.Attempts = 0.5, 2 }, scheme)
	Put(t, s.Open(t, nil, scheme), "a", strings.Repeat("x", 1<<20))
	proxy.Hold(1000)
	_, r, err := b.Get(t.Context(), "a", 0, objstore.All)
	if err == nil {
		_, err = io.ReadAll(r)
		r.Close()
	}
	Refused(t, err, tea.Timeout, "")
	if e := tea.AsError(err); e == nil || !e.Retryable {
		t.Errorf("%v is not retryable", err)
	}
}

// tornUpload checks that an incomplete multipart upload leaves the object unchanged.
func tornUpload(t *testing.T, s *Server, scheme objstore.Scheme) {
	proxy, behind := NewProxy(t, s)
	Put(t, s.Open(t, nil, scheme), "a", "old")
	b := behind.Open(t, func(o *objstore.Settings) { o.Attempts = 2 }, scheme)
	torn := &tearReader{r: &pattern{left: 20 << 20}, after: 12 << 20, tear: func() { proxy.Cut(1, 1<<30) }}
	if _, err := b.Put(t.Context(), "a", torn, objstore.PutOptions{}); err == nil || tea.AsError(err).Type != tea.ConnectionError {
		t.Errorf("got %v, want a connection_error", err)
	}
	want(t, "content", Content(t, s.Open(t, nil, scheme), "a", 0, objstore.All), "old")
	proxy.Cut(0, 0)
	if _, err := b.Put(t.Context(), "a", &pattern{left: 20 << 20}, objstore.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	expected, _ := io.ReadAll(&pattern{left: 20 << 20})
	want(t, "content", Content(t, b, "a", 0, objstore.All) == string(expected), true)
}

// tearReader calls tear after a number of bytes was read.
type tearReader struct {
	r     io.Reader
	after int
	tear  func()
}

func (r *tearReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if before := r.after; before > 0 {
		if r.after -= n; r.after <= 0 {
			r.tear()
		}
	}
	return n, err
}

// overload checks that requests to an overloaded service are retried, up to the number of
// attempts in the settings.
func overload(t *testing.T, s *Server, scheme objstore.Scheme) {
	service, behind := newService(t, s)
	b := behind.Open(t, func(o *objstore.Settings) { o.Attempts = 3 }, scheme)
	calls := map[string]func() error{
		"Put": func() error {
			_, err := b.Put(t.Context(), "a", strings.NewReader("content"), objstore.PutOptions{})
			return err
		},
		"Stat":   func() error { _, err := b.Stat(t.Context(), "a"); return err },
		"Copy":   func() error { return b.Copy(t.Context(), "a", "b") },
		"Delete": func() error { return b.Delete(t.Context(), "b") },
		"Get": func() error {
			_, r, err := b.Get(t.Context(), "a", 0, objstore.All)
			if err == nil {
				err = r.Close()
			}
			return err
		},
	}
	for _, name := range []string{"Put", "Stat", "Get", "Copy", "Delete"} {
		service.overloaded.Store(2)
		if err := calls[name](); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		service.overloaded.Store(1000)
		err := calls[name]()
		if e := tea.AsError(err); e == nil || e.Type != tea.ConnectionError && e.Type != tea.RateLimited || !e.Retryable {
			t.Errorf("%s: got %v, want a retryable error", name, err)
		}
		if asked := 1000 - service.overloaded.Load(); asked < 3 || asked > 6 { // a client may check the bucket, too
			t.Errorf("%s: the service was asked %d times, want 3", name, asked)
		}
		service.overloaded.Store(0)
	}
}

const (
	intact  = "the content of an object, INTACT as it was sent"
	damaged = "the content of an object, iNTACT as it was sent"
)

// damagedUpload checks that an upload damaged in transit fails.
func damagedUpload(t *testing.T, s *Server, scheme objstore.Scheme) {
	service, behind := newService(t, s)
	b := behind.Open(t, func(o *objstore.Settings) { o.Attempts = 2 }, scheme)
	service.damageUploads.Store(true)
	if o, err := b.Put(t.Context(), "a", strings.NewReader(intact), objstore.PutOptions{}); err == nil {
		t.Errorf("a damaged object was stored as %+v", o)
	}
	service.damageUploads.Store(false)
	Put(t, b, "a", intact)
	want(t, "content", Content(t, b, "a", 0, objstore.All), intact)
}

func damagedDownload(t *testing.T, s *Server, scheme objstore.Scheme) {
	service, behind := newService(t, s)
	b := behind.Open(t, nil, scheme)
	Put(t, b, "a", intact)
	service.damageDownloads.Store(true)
	_, r, err := b.Get(t.Context(), "a", 0, objstore.All)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	Refused(t, err, tea.InternalError, "")
	want(t, "content", string(content), damaged)
}

// service is a failing service in front of a server.
type service struct {
	overloaded                     atomic.Int64 // number of requests to answer with status 503
	damageUploads, damageDownloads atomic.Bool
}

func newService(t testing.TB, s *Server) (*service, *Server) {
	t.Helper()
	f := &service{}
	target := &url.URL{Scheme: "http", Host: s.listen}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if strings.HasPrefix(s.Address, "s3:") {
				r.Out.Host = r.In.Host // it is signed
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			if f.damageDownloads.Load() {
				return change(&resp.Body)
			}
			return nil
		},
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.overloaded.Add(-1) >= 0 {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		f.overloaded.Store(0)
		if f.damageUploads.Load() {
			if err := change(&r.Body); err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	behind := *s
	behind.Settings.Endpoint = strings.Replace(s.Settings.Endpoint, s.listen, strings.TrimPrefix(front.URL, "http://"), 1)
	return f, &behind
}

// change changes one byte of intact content.
func change(body *io.ReadCloser) error {
	data, err := io.ReadAll(*body)
	if err = errors.Join(err, (*body).Close()); err != nil {
		return err
	}
	*body = io.NopCloser(bytes.NewReader(bytes.ReplaceAll(data, []byte(intact), []byte(damaged))))
	return nil
}
