package safenet

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

const (
	dialTimeout    = 15 * time.Second
	maxHeaderBytes = 1 << 20
)

// Guard decides which addresses may be connected to. It is safe for concurrent
// use.
type Guard struct {
	// AllowPrivate allows addresses that are not public.
	AllowPrivate bool
	// Remedy ends the message of a refusal: it says how a user allows such addresses.
	Remedy string
	// Resolver replaces the system's resolver in tests.
	Resolver *net.Resolver
}

// refusal returns the error for an address. It is not retryable.
func (g *Guard) refusal(a netip.Addr, host string) *tea.Error {
	e := tea.Errorf(tea.PermissionDenied, "%s is not a public address; %s", a, g.Remedy)
	if host != "" && host != a.String() {
		e = tea.Errorf(tea.PermissionDenied, "%s has the address %s, which is not public; %s", host, a, g.Remedy)
	}
	e.Source = host
	e.Details = map[string]any{"address": a.String()}
	return e
}

// CheckHost refuses a host that is a non-public address. Names are checked when they
// are resolved.
func (g *Guard) CheckHost(host string) error {
	if a, err := netip.ParseAddr(host); err == nil && !g.AllowPrivate && !IsPublic(a) {
		return g.refusal(a, host)
	}
	return nil
}

// Dial connects to an address of the form host:port. It checks the address
// after name resolution, immediately before it connects. A refusal is a
// permission_denied error.
func (g *Guard) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	// A name may have public and other addresses; each is checked.
	dialer := &net.Dialer{Timeout: dialTimeout, Resolver: g.Resolver, ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
		return g.check(network, address, host)
	}}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		var refused *tea.Error
		if errors.As(err, &refused) {
			return nil, refused
		}
		return nil, err
	}
	return conn, nil
}

func (g *Guard) check(network, address, host string) error {
	switch network {
	case "tcp", "tcp4", "tcp6":
	default:
		return tea.Errorf(tea.PermissionDenied, "connections of the kind %s are not allowed", network)
	}
	if g.AllowPrivate {
		return nil
	}
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return tea.Errorf(tea.PermissionDenied, "%s is not an IP address", address)
	}
	if !IsPublic(a.Addr()) {
		return g.refusal(a.Addr(), host)
	}
	return nil
}

// Transport returns a transport that connects only through Dial: it ignores proxies of
// the environment, whose connections could not be checked. It does not decompress
// bodies. The caller closes idle connections.
func (g *Guard) Transport() *http.Transport {
	return &http.Transport{
		DialContext:            g.Dial,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        60 * time.Second,
		TLSHandshakeTimeout:    15 * time.Second,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}
