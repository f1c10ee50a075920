package servertest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// Toxiproxy is a running proxy that disturbs connections.
type Toxiproxy struct{ api string }

// StartToxiproxy starts the proxy that scripts/tool builds. The test ends it.
func StartToxiproxy(t testing.TB) *Toxiproxy {
	t.Helper()
	peertest.Long(t, "it starts a proxy")
	program := toxiproxyProgram(t)
	var address string
	p := Start(t, "toxiproxy", func() (*exec.Cmd, []string) {
		address = FreeAddress(t)
		host, port, _ := strings.Cut(address, ":")
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "-host", host, "-port", port)
		cmd.Env = append(os.Environ(), "LOG_LEVEL=error")
		return cmd, []string{address}
	})
	t.Cleanup(p.Stop)
	return &Toxiproxy{api: "http://" + address}
}

// toxiproxyProgram returns the path of the proxy. If it was not built, the test is skipped, except in CI, where it
// fails.
func toxiproxyProgram(t testing.TB) string {
	t.Helper()
	const name = "toxiproxy-server"
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	found, _ := filepath.Glob(filepath.Join(cache, "tea", "tools", name+"-*", name)) // the pattern is valid
	switch {
	case len(found) > 0:
		return found[len(found)-1]
	case os.Getenv("CI") == "true":
		t.Fatalf("toxiproxy is not installed; run `scripts/tool %s`", name)
	}
	t.Skipf("toxiproxy is not installed; run `scripts/tool %s`", name)
	return ""
}

// Proxy forwards connections to an address and returns the address to connect to.
func (p *Toxiproxy) Proxy(t testing.TB, upstream string) *Proxied {
	t.Helper()
	var created struct {
		Listen string `json:"listen"`
	}
	name := rand.Text() // there can be several proxies of one server
	p.send(t, http.MethodPost, "/proxies", map[string]any{"name": name, "listen": "127.0.0.1:0", "upstream": upstream, "enabled": true}, &created)
	return &Proxied{Address: created.Listen, p: p, name: name}
}

// Proxied is a server behind a proxy.
type Proxied struct {
	// Address is the address of the proxy.
	Address string

	p    *Toxiproxy
	name string
}

// Toxic is a fault: a type of toxiproxy with its attributes.
type Toxic struct {
	Type       string
	Stream     string // "upstream" or "downstream"; "" = downstream
	Attributes map[string]any
}

// Add adds a fault and returns a function that removes it.
func (s *Proxied) Add(t testing.TB, toxic Toxic) (remove func()) {
	t.Helper()
	path, stream := "/proxies/"+s.name+"/toxics", cmp.Or(toxic.Stream, "downstream")
	name := toxic.Type + "-" + stream
	s.p.send(t, http.MethodPost, path, map[string]any{"name": name, "type": toxic.Type, "stream": stream, "attributes": toxic.Attributes}, nil)
	return func() { t.Helper(); s.p.send(t, http.MethodDelete, path+"/"+name, nil, nil) }
}

// Enable accepts or refuses connections.
func (s *Proxied) Enable(t testing.TB, on bool) {
	t.Helper()
	s.p.send(t, http.MethodPost, "/proxies/"+s.name, map[string]any{"enabled": on}, nil)
}

func (p *Toxiproxy) send(t testing.TB, method, path string, body, into any) {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, p.api+path, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= http.StatusMultipleChoices {
		t.Fatal(fmt.Errorf("toxiproxy: %s: %s %w", resp.Status, answer, err))
	}
	if into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			t.Fatal(err)
		}
	}
}
