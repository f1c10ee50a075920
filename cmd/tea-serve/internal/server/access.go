package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/cmd/internal/webguard"
)

// role is what a client is allowed to do. Each role includes those before it.
type role int

const (
	roleNone role = iota
	// roleView reads, roleAnswer resumes runs with answers, roleRun starts and
	// stops them, roleAdmin changes the server.
	roleView
	roleAnswer
	roleRun
	roleAdmin
)

var roleNames = []string{"none", "view", "answer", "run", "admin"}

const (
	// maxFailures is how many wrong tokens an address may send per failureWindow.
	maxFailures   = 10
	failureWindow = time.Minute
	// maxAddresses is how many addresses are remembered.
	maxAddresses = 1024
	// minToken is the minimum length of a token.
	minToken = 16
)

// access decides what clients can do.
type access struct {
	// tokens are the digests of the tokens. Without tokens and certificates, a client
	// is roleAdmin on a Unix socket, which only the user of the server can open, and
	// roleRun on a loopback address, which every local user can reach.
	tokens *tokens
	// loopback reports whether only this machine can reach the address, and shared
	// whether other local users can.
	loopback, shared bool
	// tls is the encryption, or nil. certificates reports whether client certificates
	// have roles.
	tls          *transport
	certificates bool

	mu       sync.Mutex
	failures map[string]*failures
}

// failures counts the wrong tokens of an address.
type failures struct {
	n     int
	since time.Time
}

// access reads the tokens and the TLS files. Remote clients need a token or a
// certificate. l is the socket that systemd opened, or nil.
func (c *serveCmd) access(log *slog.Logger, l net.Listener) (_ *access, err error) {
	a := &access{failures: map[string]*failures{}}
	at, address, isSocket := "--listen "+c.Listen, c.Listen, strings.HasPrefix(c.Listen, "unix:")
	if l != nil {
		at, address, isSocket = "the socket of systemd at "+l.Addr().String(), l.Addr().String(), l.Addr().Network() == "unix"
	}
	if _, _, err := net.SplitHostPort(address); err != nil && !isSocket {
		return nil, teacmd.UsageErrorf("%s: expected HOST:PORT or unix:PATH: %w", at, err)
	}
	a.loopback = !isSocket && webguard.Loopback(address)
	a.shared = a.loopback || l != nil && isSocket && public(l.Addr().String())
	if a.tls, err = c.transport(log, isSocket); err != nil {
		return nil, err
	}
	a.certificates = c.TLSClientCA != ""
	if c.TokenFile != "" {
		a.tokens, err = openTokens(c.TokenFile, log)
		return a, err
	}
	if !isSocket && !a.loopback && !a.certificates {
		return nil, teacmd.UsageErrorf("%s: other machines can reach this address; pass --token-file FILE with the tokens that clients need, or --tls-client-ca FILE with the authority of their certificates, or use localhost", at)
	}
	return a, nil
}

// public reports whether other users can connect to a Unix socket. systemd allows
// them unless the unit has a SocketMode.
func public(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.Mode().Perm()&0o022 != 0
}

// require serves only clients that have the role.
func (a *access) require(needed role, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.tokens == nil && !a.certificates {
			if needed == roleAdmin && a.shared {
				refuse(w, "this request needs the role admin, and without tokens all users of this machine can make it; start the server with --token-file FILE, or at a Unix socket that only its user can open", http.StatusForbidden)
				return
			}
			next(w, r)
			return
		}
		address, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			address = r.RemoteAddr
		}
		switch has, given := a.roleOf(r); {
		case has == roleNone:
			if wait := a.blocked(address); given && wait > 0 {
				w.Header().Set("Retry-After", fmt.Sprint(int(wait.Seconds())+1))
				refuse(w, "too many wrong tokens came from this address", http.StatusTooManyRequests)
				return
			}
			if given {
				a.failed(address)
			}
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, a.missing(r), http.StatusUnauthorized)
		case has < needed:
			refuse(w, lacking(has, needed), http.StatusForbidden)
		default:
			r, release := a.tokens.hold(r)
			defer release()
			next(w, r)
		}
	})
}

// allowed returns an error if the client of a request that passed require lacks a role.
func (a *access) allowed(r *http.Request, needed role) error {
	if has := a.servedRole(r); has < needed {
		return &statusError{http.StatusForbidden, errors.New(lacking(has, needed))}
	}
	return nil
}

func lacking(has, needed role) string {
	return fmt.Sprintf("the client has the role %s; this request needs %s", roleNames[has], roleNames[needed])
}

// missing describes what a request lacks for a role.
func (a *access) missing(r *http.Request) string {
	const token = "a token of the server: Authorization: Bearer TOKEN"
	switch _, given := roleOfCertificate(r.TLS); {
	case given:
		return "the certificate of the client has no role: its organizational unit (OU) must be view, answer, run or admin, and it must not have expired"
	case a.certificates && a.tokens == nil:
		return "the request needs a certificate of a client"
	case a.certificates:
		return "the request needs a certificate of a client, or " + token
	}
	return "the request needs " + token
}

// roleOf returns the higher role of a request's token and certificate, and reports
// whether it has a token.
func (a *access) roleOf(r *http.Request) (has role, given bool) {
	if a.certificates {
		has, _ = roleOfCertificate(r.TLS)
	}
	byToken, given := a.tokens.grantOf(r)
	return max(has, byToken.role), given
}

// owner identifies who subscribed a browser. The zero value is anyone who can reach a
// server that has neither tokens nor certificates.
type owner struct {
	Owner string `json:"owner,omitempty"`
	// Name is shown to people. Until is when the certificate expires.
	Name  string    `json:"name,omitempty"`
	Until time.Time `json:"until,omitzero"`
}

// ownerOf returns the owner that sent a request for which roleAnswer is required.
func (a *access) ownerOf(r *http.Request) owner {
	if g, _ := a.tokens.grantOf(r); g.role >= roleAnswer {
		return owner{Owner: g.owner(), Name: g.name}
	}
	if has, _ := roleOfCertificate(r.TLS); a.certificates && has >= roleAnswer {
		leaf := r.TLS.PeerCertificates[0]
		return owner{Owner: certificateOwner + leaf.Subject.CommonName, Name: leaf.Subject.CommonName, Until: leaf.NotAfter}
	}
	return owner{}
}

// certificateOwner is the prefix of owners with a certificate. Token names have no spaces.
const certificateOwner = "certificate "

// mayAnswer reports whether an owner may answer questions now.
func (a *access) mayAnswer(o owner) bool {
	switch {
	case a.tokens == nil && !a.certificates:
		return o.Owner == ""
	case strings.HasPrefix(o.Owner, certificateOwner):
		return a.certificates && time.Now().Before(o.Until)
	}
	return a.tokens.mayAnswer(o.Owner)
}

// blocked returns how long an address has to wait.
func (a *access) blocked(address string) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.failures[address]
	if f == nil || f.n < maxFailures {
		return 0
	}
	return failureWindow - time.Since(f.since)
}

// failed counts a wrong token.
func (a *access) failed(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if len(a.failures) >= maxAddresses {
		for other, f := range a.failures {
			if now.Sub(f.since) > failureWindow || len(a.failures) >= maxAddresses {
				delete(a.failures, other)
			}
		}
	}
	f := a.failures[address]
	if f == nil || now.Sub(f.since) > failureWindow {
		f = &failures{since: now}
		a.failures[address] = f
	}
	f.n++
}

// servedRole returns the role of the client of a request that passed require.
func (a *access) servedRole(r *http.Request) role {
	if a.tokens == nil && !a.certificates {
		if a.shared {
			return roleRun
		}
		return roleAdmin
	}
	has, _ := a.roleOf(r)
	return has
}
