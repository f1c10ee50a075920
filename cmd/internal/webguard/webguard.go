// Package webguard has the checks that every HTTP server of tea makes before it
// serves a request; start with [Guard].
package webguard

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"
)

// readBodyTimeout is how long a client has to send the body of a request.
const readBodyTimeout = 30 * time.Second

// Guard wraps handlers in checks. It is called to answer a request that fails
// one.
type Guard func(w http.ResponseWriter, text string, status int)

// Loopback reports whether only this machine can reach an address.
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && loopbackName(host)
}

func loopbackName(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Bounded refuses requests while most requests are being served.
func (g Guard) Bounded(next http.Handler, most int) http.Handler {
	slots := make(chan struct{}, most)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			next.ServeHTTP(w, r)
		default:
			g(w, "too many requests are being served", http.StatusServiceUnavailable)
		}
	})
}

// Read reads the body of a request within readBodyTimeout. The deadline of the
// connection would also end streams.
func (g Guard) Read(next http.Handler, most int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(readBodyTimeout)) // HTTP/1 supports it
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			g(w, fmt.Sprintf("the request has more than %d bytes", most), http.StatusRequestEntityTooLarge)
			return
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			g(w, fmt.Sprintf("the body was not sent within %s", readBodyTimeout), http.StatusRequestTimeout)
			return
		}
		if err != nil {
			g(w, "the request cannot be read", http.StatusBadRequest)
			return
		}
		_ = control.SetReadDeadline(time.Time{})
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// SameOrigin refuses requests from pages of another origin, whatever the method.
func (g Guard) SameOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if origin != "" && origin != "http://"+r.Host && origin != "https://"+r.Host {
			g(w, "requests from the pages of other origins are refused", http.StatusForbidden)
			return
		}
		site := r.Header.Get("Sec-Fetch-Site") // a link may lead here
		if (site == "cross-site" || site == "same-site") && r.Method != http.MethodGet && r.Method != http.MethodHead {
			g(w, "requests from the pages of other origins are refused", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// LocalHost refuses requests whose Host is neither this machine nor allowed: a page of an
// attacker may have a name that resolves to a loopback address.
func (g Guard) LocalHost(next http.Handler, allowed ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if !loopbackName(strings.Trim(host, "[]")) && !slices.ContainsFunc(allowed, func(name string) bool { return strings.EqualFold(name, host) }) {
			g(w, fmt.Sprintf("the Host of the request is %.100q, which is not this machine; start the server with the names under which it is reached, or use localhost", host), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
