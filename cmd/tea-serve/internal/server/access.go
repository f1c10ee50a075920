package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/cmd/internal/webguard"
	"github.com/the-edge-agent/tea/sdk/x/confine"
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
	// maxFailures is how many wrong tokens an address can try per failureWindow.
	maxFailures   = 10
	failureWindow = time.Minute
	// maxAddresses is how many addresses are remembered.
	maxAddresses = 1024
	// minToken is the length of a token.
	minToken = 16
)

// access decides what clients can do.
type access struct {
	// tokens are the digests of the tokens. Without any and without certificates,
	// each client is roleAdmin on a Unix socket, which only the user of the server
	// can open, and roleRun on a loopback address, which each user can reach.
	tokens []grant
	// loopback reports that only this machine can reach the address, and shared that
	// other users of it can.
	loopback, shared bool
	// tls is the encryption, or nil. certificates reports that certificates of
	// clients have roles.
	tls          *transport
	certificates bool

	mu       sync.Mutex
	failures map[string]*failures
}

type grant struct {
	digest [sha256.Size]byte
	role   role
}

// failures counts the wrong tokens of an address.
type failures struct {
	n     int
	since time.Time
}

// access reads the tokens and the TLS files. Other machines need a token or a
// certificate. l is the socket that systemd has opened, or nil.
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
		return a, a.readTokens(c.TokenFile)
	}
	if !isSocket && !a.loopback && !a.certificates {
		return nil, teacmd.UsageErrorf("%s: other machines can reach this address; pass --token-file FILE with the tokens that clients need, or --tls-client-ca FILE with the authority of their certificates, or use localhost", at)
	}
	return a, nil
}

// public reports whether other users can connect to a Unix socket. systemd makes them
// so unless its unit has a SocketMode.
func public(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.Mode().Perm()&0o022 != 0
}

// readTokens reads the file of --token-file.
func (a *access) readTokens(path string) error {
	const most = 64 << 10
	text, err := confine.ReadRegular(path, most)
	if err != nil {
		return teacmd.UsageErrorf("--token-file: %w; it has a line ROLE TOKEN for each token", err)
	}
	if err := private(path); err != nil {
		return teacmd.UsageErrorf("--token-file: %w", err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		r := role(slices.Index(roleNames, words[0]))
		if len(words) != 2 || r < roleView || len(words[1]) < minToken {
			return teacmd.UsageErrorf("--token-file: %s:%d: expected view, answer, run or admin, and a token of at least %d characters; `openssl rand -hex 32` makes one", path, n, minToken)
		}
		g := grant{sha256.Sum256([]byte(words[1])), r}
		if slices.ContainsFunc(a.tokens, func(other grant) bool { return other.digest == g.digest }) {
			return teacmd.UsageErrorf("--token-file: %s:%d: the token appears twice; remove one of the lines", path, n)
		}
		a.tokens = append(a.tokens, g)
	}
	if len(a.tokens) == 0 {
		return teacmd.UsageErrorf("--token-file: %s has no token", path)
	}
	return nil
}

// require serves requests of clients that have the role.
func (a *access) require(needed role, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(a.tokens) == 0 && !a.certificates {
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
			refuse(w, fmt.Sprintf("the client has the role %s; this request needs %s", roleNames[has], roleNames[needed]), http.StatusForbidden)
		default:
			next(w, r)
		}
	})
}

// missing describes what a request without a role needs.
func (a *access) missing(r *http.Request) string {
	const token = "a token of the server: Authorization: Bearer TOKEN"
	switch _, given := roleOfCertificate(r.TLS); {
	case given:
		return "the certificate of the client has no role: its organizational unit (OU) must be view, answer, run or admin, and it must not have expired"
	case a.certificates && len(a.tokens) == 0:
		return "the request needs a certificate of a client"
	case a.certificates:
		return "the request needs a certificate of a client, or " + token
	}
	return "the request needs " + token
}

// roleOf returns the higher role of the token and the certificate of a request, and
// reports whether it has a token. Each token is compared, in constant time.
func (a *access) roleOf(r *http.Request) (has role, given bool) {
	if a.certificates {
		has, _ = roleOfCertificate(r.TLS)
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	digest := sha256.Sum256([]byte(token))
	bearer := strings.EqualFold(scheme, "Bearer")
	for _, g := range a.tokens {
		if subtle.ConstantTimeCompare(digest[:], g.digest[:]) == 1 && bearer {
			has = max(has, g.role)
		}
	}
	return has, token != ""
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
