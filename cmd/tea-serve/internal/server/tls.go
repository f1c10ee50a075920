package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/sdk/x/confine"
)

// protocols are the protocols that the server offers. Releases do not link HTTP/2, see
// scripts/build.
var protocols = []string{"http/1.1"}

// maxPEM is the size of a file with certificates or a key.
const maxPEM = 1 << 20

// transport is the TLS configuration of the server. It is reloaded when one of its
// files changes; if the new files are invalid, the old configuration stays in use.
type transport struct {
	cert, key, clientCA string
	log                 *slog.Logger

	mu     sync.Mutex
	config *tls.Config
	// stamps identify the versions of the files that were read last.
	stamps [3]string
}

// transport reads the files of --tls-cert, --tls-key and --tls-client-ca. It returns
// nil if TLS is not configured.
func (c *serveCmd) transport(log *slog.Logger, isSocket bool) (*transport, error) {
	switch {
	case c.TLSCert == "" && c.TLSKey == "" && c.TLSClientCA == "":
		return nil, nil
	case c.TLSCert == "":
		return nil, teacmd.UsageErrorf("--tls-cert is missing: TLS needs a certificate and its key")
	case c.TLSKey == "":
		return nil, teacmd.UsageErrorf("--tls-key is missing: TLS needs a certificate and its key")
	case isSocket:
		return nil, teacmd.UsageErrorf("--tls-cert has no effect with a Unix socket; listen at HOST:PORT or remove it")
	}
	t := &transport{cert: c.TLSCert, key: c.TLSKey, clientCA: c.TLSClientCA, log: log}
	t.stamps = t.stat()
	var err error
	if t.config, err = t.load(); err != nil {
		return nil, teacmd.UsageErrorf("%w", err)
	}
	return t, nil
}

// serving returns the configuration of a listener.
func (t *transport) serving() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols, GetConfigForClient: t.forClient}
}

// forClient returns the configuration of a connection. It checks the files here
// instead of on a timer, so that an idle server does not wake up.
func (t *transport) forClient(*tls.ClientHelloInfo) (*tls.Config, error) {
	stamps := t.stat() // without the lock: a file system may hang
	t.mu.Lock()
	defer t.mu.Unlock()
	if stamps == t.stamps {
		return t.config, nil
	}
	t.stamps = stamps
	config, err := t.load()
	if err != nil {
		t.log.Warn("the TLS files have changed and are not valid; the previous ones stay in use", "error", err)
		return t.config, nil
	}
	t.log.Info("the TLS files were loaded again")
	t.config = config
	return config, nil
}

// stat identifies the current versions of the files.
func (t *transport) stat() (stamps [3]string) {
	for i, path := range []string{t.cert, t.key, t.clientCA} {
		if info, err := os.Stat(path); err == nil {
			stamps[i] = fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
		}
	}
	return stamps
}

// load reads the files.
func (t *transport) load() (*tls.Config, error) {
	certPEM, err := confine.ReadRegular(t.cert, maxPEM)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert: %w", err)
	}
	keyPEM, err := confine.ReadRegular(t.key, maxPEM)
	if err != nil {
		return nil, fmt.Errorf("--tls-key: %w", err)
	}
	if err := private(t.key); err != nil {
		return nil, fmt.Errorf("--tls-key: %w", err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert %s and --tls-key %s: %w", t.cert, t.key, err)
	}
	if time.Now().After(pair.Leaf.NotAfter) { // a device's clock may be wrong, so it is not an error
		t.log.Warn(fmt.Sprintf("the certificate %s expired on %s; clients refuse it", t.cert, pair.Leaf.NotAfter.UTC().Format(time.DateTime)))
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols, Certificates: []tls.Certificate{pair}}
	if t.clientCA == "" {
		return config, nil
	}
	caPEM, err := confine.ReadRegular(t.clientCA, maxPEM)
	if err != nil {
		return nil, fmt.Errorf("--tls-client-ca: %w", err)
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(caPEM) {
		return nil, fmt.Errorf("--tls-client-ca: %s has no certificate in PEM form", t.clientCA)
	}
	config.ClientAuth = tls.VerifyClientCertIfGiven // tokens, webhooks and /healthz work without one
	config.SessionTicketsDisabled = true            // check each connection against the current authority
	return config, nil
}

// private returns an error if every user can read a file.
func private(path string) error {
	if info, err := os.Stat(path); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o007 != 0 {
		return fmt.Errorf("%s can be read by every user; run `chmod 600 %s`", path, path)
	}
	return nil
}

// roleOfCertificate returns the role of a client certificate: the organizational units
// of its subject that are names of roles.
func roleOfCertificate(state *tls.ConnectionState) (has role, given bool) {
	if state == nil || len(state.VerifiedChains) == 0 {
		return roleNone, false
	}
	leaf := state.PeerCertificates[0]
	if time.Now().After(leaf.NotAfter) { // a connection may outlive it
		return roleNone, true
	}
	for _, unit := range leaf.Subject.OrganizationalUnit {
		has = max(has, role(slices.Index(roleNames, unit)))
	}
	return has, true
}
