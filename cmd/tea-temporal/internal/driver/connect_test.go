package driver

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// behindTLS is a proxy that demands certificates of clients, as a server of a fleet
// does. It returns its address and its certificate and key, which clients can use,
// and counts the requests by their header authorization.
func behindTLS(t *testing.T, address string) (at, certificate, key string, keys func() map[string]int) {
	t.Helper()
	var mu sync.Mutex
	seen := map[string]int{}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
	proxy.ErrorLog = log.New(io.Discard, "", 0) // of clients that go
	proxy.Transport, proxy.FlushInterval = &http.Transport{Protocols: protocols}, -1
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.Header.Get("Authorization")]++
		mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = proxy.ErrorLog // of clients that are refused
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections() // polls take a minute
		server.Close()
	})
	pair := server.TLS.Certificates[0]
	encoded, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate = write(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	key = write(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})))
	return server.Listener.Addr().String(), certificate, key, func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

func TestTLSAndKeyOfTheAPI(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newClient(t, h, nil)
	at, certificate, key, keys := behindTLS(t, s.flags.Temporal)
	s.flags.Temporal = at
	env := []string{
		"TEMPORAL_API_KEY=sk-fleet", "TEMPORAL_TLS=true", "TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + certificate,
		"TEMPORAL_TLS_CLIENT_CERT_PATH=" + certificate, "TEMPORAL_TLS_CLIENT_KEY_PATH=" + key,
	}
	s.startWorker("-", env...)
	file := write(t, "flow.yaml", "nodes:\n  - {name: wait, uses: time.sleep, with: {seconds: 0.01}}\n  - {name: last, run: 'return {n = 42}'}\n")
	run := func(env []string) (string, string, error) {
		cmd := s.tea("-", "run", file, "--engine", "temporal")
		var stderr strings.Builder
		cmd.Stderr, cmd.Env = &stderr, append(cmd.Env, env...)
		out, err := cmd.Output()
		return string(out), stderr.String(), err
	}
	if out, stderr, err := run(env); err != nil || !strings.Contains(out, `"n": 42`) {
		t.Errorf("tea run: %v, %s\n%s", err, out, stderr)
	}
	if got := keys(); len(got) != 1 || got["Bearer sk-fleet"] == 0 {
		t.Errorf("the requests have the keys %v", got)
	}
	if _, stderr, err := run(env[:3]); err == nil || !strings.Contains(stderr, "connect to the Temporal server at "+at) {
		t.Errorf("without a certificate of the client: %v\n%s", err, stderr)
	}
}

// A run reads the environment of its start.
func TestRunKeepsTheEnvironmentOfItsStart(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newClient(t, h, nil)
	s.startWorker("-", "TEA_TEST_PLACE=worker")
	cmd := s.tea("-", "run", write(t, "flow.yaml", `
settings: {mark: {at: "${TEA_TEST_PLACE}"}}
nodes:
  - {name: env, uses: json.parse, with: {text: '"{{ env.TEA_TEST_PLACE }}"'}, output: env}
  - {name: settings, uses: json.parse, with: {text: '"{{ settings.mark.at }}"'}, output: settings}
`), "--engine", "temporal")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.Env = append(cmd.Env, "TEA_TEST_PLACE=client")
	out, err := cmd.Output()
	if err != nil || strings.Count(string(out), "client") != 2 || strings.Contains(string(out), "worker") {
		t.Errorf("%v, %s\n%s", err, out, stderr.String())
	}
}
