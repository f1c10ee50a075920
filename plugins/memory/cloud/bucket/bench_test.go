package bucket

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/objstore/objtest"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// counting is a server whose requests and bytes are counted.
func counting(b *testing.B, s *objtest.Server) (behind *objtest.Server, requests, up *atomic.Int64) {
	b.Helper()
	target, err := url.Parse(s.Settings.Endpoint)
	if err != nil {
		b.Fatal(err)
	}
	requests, up = &atomic.Int64{}, &atomic.Int64{}
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		up.Add(max(r.ContentLength, 0))
		pass.ServeHTTP(w, r)
	}))
	b.Cleanup(proxy.Close)
	changed := *s
	changed.Settings.Endpoint = proxy.URL
	return &changed, requests, up
}

// BenchmarkSmallWrite stores small entries in a memory of 100 MB, and opens it on a
// device without a copy and on one with an old copy.
func BenchmarkSmallWrite(b *testing.B) {
	s, requests, up := counting(b, objtest.S3(b))
	dir := b.TempDir()
	settings := map[string]any{"idle_seconds": 600}
	device := openStores(b, config(b, s, "bench", dir, settings))
	const documents, perCall, size = 26_000, 500, 2000 // as hex, which compresses to a half
	for n := 0; n < documents; n += perCall {
		changes := make([]store.Change, perCall)
		for i := range changes {
			raw := make([]byte, size)
			_, _ = rand.Read(raw)
			changes[i] = store.Change{Kind: "k", ID: fmt.Sprint(n + i), Body: json.RawMessage(`{"x": "` + hex.EncodeToString(raw) + `"}`)}
		}
		if err := device.Metadata.Apply(b.Context(), changes...); err != nil {
			b.Fatal(err)
		}
	}
	old := b.TempDir()
	if err := device.Close(); err != nil {
		b.Fatal(err)
	}
	var figures []func()
	measure := func(name, dir string) *store.Stores {
		r, began := requests.Load(), time.Now()
		opened := openStores(b, config(b, s, "bench", dir, settings))
		if _, err := opened.LongTerm.Retrieve(b.Context(), "", "a"); err != nil && opened == nil {
			b.Fatal(err)
		}
		took, asked := time.Since(began), requests.Load()-r
		figures = append(figures, func() { // the loop forgets earlier ones
			b.ReportMetric(float64(took.Milliseconds()), name+"-ms")
			b.ReportMetric(float64(asked), name+"-requests")
		})
		return opened
	}
	first := measure("first-open", old)
	if err := first.Close(); err != nil {
		b.Fatal(err)
	}
	device = measure("reopen", dir)
	r, u := requests.Load(), up.Load()
	n := 0
	for b.Loop() {
		n++
		if _, err := device.LongTerm.Store(b.Context(), store.Entry{Key: fmt.Sprint("key", n), Value: json.RawMessage(`"a small value"`)}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(up.Load()-u)/float64(n), "uploaded-B/op")
	b.ReportMetric(float64(requests.Load()-r)/float64(n), "requests/op")
	if err := device.Close(); err != nil {
		b.Fatal(err)
	}
	last := measure("old-copy", old)
	if err := last.Close(); err != nil {
		b.Fatal(err)
	}
	for _, report := range figures {
		report()
	}
}
