package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority signs the certificates of a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: t.Name()}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert, a.key = a.sign(template, template, nil)
	return a
}

// sign signs a certificate; without a key it signs itself.
func (a *authority) sign(template, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	if by == nil {
		by = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// issue returns a certificate for this machine, as a server and as a client.
func (a *authority) issue(serial int64, units ...string) tls.Certificate {
	a.t.Helper()
	cert, key := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "tea", OrganizationalUnit: units}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, a.key)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
}

// write writes a certificate and its key, and returns the names of the files. It
// replaces each file atomically.
func (a *authority) write(dir string, c tls.Certificate) (certFile, keyFile string) {
	a.t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		a.t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: c.Certificate[0]}, keyFile: {Type: "PRIVATE KEY", Bytes: key}} {
		writePEM(a.t, path, block)
	}
	return certFile, keyFile
}

func writePEM(t *testing.T, path string, block *pem.Block) {
	t.Helper()
	if err := os.WriteFile(path+".new", pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// client returns a client that trusts the authority and has the certificates.
func (a *authority) client(certs ...tls.Certificate) *http.Client {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: certs}, ForceAttemptHTTP2: true}
	a.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestCertificatesHaveRoles(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"ask.yaml": ask})
	ca, other := newAuthority(t), newAuthority(t)
	cert, key := ca.write(p.home, ca.issue(2))
	caFile, tokens := filepath.Join(p.home, "ca.pem"), filepath.Join(p.home, "tokens")
	writePEM(t, caFile, &pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw})
	const token = "0123456789abcdef0123"
	if err := os.WriteFile(tokens, []byte("run "+token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	listen := []string{"--listen", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", caFile}
	only, both := p.serve(listen...), newProject(t, map[string]string{"ask.yaml": ask}).serve(append(listen, "--token-file", tokens)...)
	for _, s := range []*service{only, both} {
		s.url = "https://127.0.0.1:" + s.url[strings.LastIndexByte(s.url, ':')+1:]
	}
	for _, c := range []struct {
		name         string
		s            *service
		certs        []tls.Certificate
		token        string
		method, path string
		status       int
		want         string
	}{
		{"no certificate", only, nil, "", "GET", "/v1/runs", 401, "the request needs a certificate of a client"},
		{"no certificate, health", only, nil, "", "GET", "/healthz", 200, ""},
		{"a token without a token file", only, nil, token, "GET", "/v1/runs", 401, "certificate"},
		{"view", only, []tls.Certificate{ca.issue(3, "view")}, "", "GET", "/v1/runs", 200, ""},
		{"view starts a run", only, []tls.Certificate{ca.issue(4, "view")}, "", "POST", "/v1/workflows/ask/runs", 403, "the client has the role view; this request needs run"},
		{"run among other units", only, []tls.Certificate{ca.issue(5, "plant 7", "run", "none")}, "", "POST", "/v1/workflows/ask/runs", 202, ""},
		{"a unit that is not a role", only, []tls.Certificate{ca.issue(6, "Admin")}, "", "GET", "/v1/runs", 401, "organizational unit"},
		{"no unit", only, []tls.Certificate{ca.issue(7)}, "", "GET", "/v1/runs", 401, "organizational unit"},
		{"no certificate, tokens", both, nil, "", "GET", "/v1/runs", 401, "or a token"},
		{"token", both, nil, token, "POST", "/v1/workflows/ask/runs", 202, ""},
		{"certificate below its token", both, []tls.Certificate{ca.issue(8, "view")}, token, "POST", "/v1/workflows/ask/runs", 202, ""},
		{"certificate above its token", both, []tls.Certificate{ca.issue(9, "admin")}, token, "GET", "/v1/actions", 200, ""},
	} {
		c.s.client, c.s.token = ca.client(c.certs...), c.token
		if r := c.s.request(c.method, c.path, map[string]string{"POST": "{}"}[c.method]); r.status != c.status || !strings.Contains(r.text, c.want) {
			t.Errorf("%s: %s, expected %d with %q", c.name, r, c.status, c.want)
		}
	}
	only.client, only.token = ca.client(other.issue(10, "admin")), ""
	if r, err := only.try("GET", "/v1/runs", ""); err == nil && r.status != http.StatusUnauthorized {
		t.Errorf("a certificate of another authority: %s", r)
	}
	if res, err := http.Get("http" + strings.TrimPrefix(only.url, "https") + "/v1/runs"); err == nil {
		if res.Body.Close(); res.StatusCode != http.StatusBadRequest {
			t.Errorf("without TLS: %s", res.Status)
		}
	}
}

func TestEventsAndWaitsOverTLS(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet})
	ca := newAuthority(t)
	cert, key := ca.write(p.home, ca.issue(2))
	s := p.serve("--tls-cert", cert, "--tls-key", key)
	s.client = ca.client()
	run := s.run("greet", `{"name": "x"}`)
	r := s.request("GET", "/v1/runs/"+run["id"].(string)+"/events", "")
	if !strings.Contains(r.text, `"run_end"`) {
		t.Errorf("events: %s", r)
	}
	if res, err := s.client.Get(s.url + "/healthz"); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("health: %v, %v", res, err)
	} else {
		res.Body.Close()
	}
}

// Releases are built without HTTP/2: a client that chose it would get no answer.
func TestOfferedProtocolIsServed(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet})
	ca := newAuthority(t)
	cert, key := ca.write(p.home, ca.issue(2))
	s := p.serve("--tls-cert", cert, "--tls-key", key)
	config := ca.client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{"h2", "http/1.1"}
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := conn.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("protocol %q", got)
	}
}

func TestChangedCertificateIsServed(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet})
	ca := newAuthority(t)
	cert, key := ca.write(p.home, ca.issue(100))
	s := p.serve("--tls-cert", cert, "--tls-key", key)
	serial := func() int64 {
		t.Helper()
		res, err := ca.client().Get(s.url + "/healthz") // a new connection
		if err != nil {
			t.Fatalf("%v\n%s", err, s.log)
		}
		res.Body.Close()
		return res.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	if n := serial(); n != 100 {
		t.Errorf("first certificate: %d", n)
	}
	ca.write(p.home, ca.issue(1000))
	if n := serial(); n != 1000 {
		t.Errorf("changed certificate: %d", n)
	}
	writePEM(t, cert, &pem.Block{Type: "CERTIFICATE", Bytes: []byte("nonsense")})
	if n := serial(); n != 1000 {
		t.Errorf("broken certificate: %d", n)
	}
	s.log.await(t, "the previous ones stay in use")
	ca.write(p.home, ca.issue(100000))
	if n := serial(); n != 100000 {
		t.Errorf("repaired certificate: %d", n)
	}
}

func TestTLSFilesAreChecked(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"greet.yaml": greet})
	ca := newAuthority(t)
	cert, key := ca.write(p.home, ca.issue(2))
	_, foreign := ca.write(t.TempDir(), ca.issue(3))
	open, text := filepath.Join(p.home, "open.pem"), filepath.Join(p.home, "text")
	content, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{open: 0o644, text: 0o600} {
		if path == text {
			content = []byte("no PEM")
		}
		if err := os.WriteFile(path, content, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--tls-cert", cert}, "--tls-key is missing"},
		{[]string{"--tls-key", key}, "--tls-cert is missing"},
		{[]string{"--tls-client-ca", cert}, "--tls-cert is missing"},
		{[]string{"--tls-cert", cert, "--tls-key", foreign}, "private key does not match public key"},
		{[]string{"--tls-cert", text, "--tls-key", key}, "failed to find any PEM data"},
		{[]string{"--tls-cert", cert, "--tls-key", open}, "can be read by every user"},
		{[]string{"--tls-cert", cert, "--tls-key", filepath.Join(p.home, "gone")}, "gone"},
		{[]string{"--tls-cert", cert, "--tls-key", key, "--tls-client-ca", text}, "has no certificate in PEM form"},
		{[]string{"--tls-cert", cert, "--tls-key", key, "--listen", "unix:" + filepath.Join(p.home, "s")}, "Unix socket"},
		{[]string{"--tls-cert", cert, "--tls-key", key, "--listen", "0.0.0.0:0"}, "other machines can reach this address"},
		{[]string{"--check", "--tls-cert", cert, "--tls-key", foreign}, "private key does not match public key"},
	} {
		log := newLogs()
		cmd := p.command(log, append([]string{"serve", p.dir}, c.args...)...)
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(log.String(), c.want) {
			t.Errorf("%v: %v\n%s", c.args, err, log)
		}
	}
}
