package objstore

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

const connectTimeout = 10 * time.Second

// newHTTP returns the client of a bucket.
func newHTTP(s Settings) (*http.Client, error) {
	client, err := httpapi.NewHTTP(httpapi.Route{CAFile: s.CAFile})
	if err != nil {
		return nil, err
	}
	t := client.Transport.(httpapi.Once)
	stall := s.stall()
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		d := net.Dialer{Timeout: min(connectTimeout, stall), KeepAlive: 15 * time.Second}
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &moving{Conn: conn, stall: stall}, nil
	}
	t.TLSHandshakeTimeout = min(connectTimeout, stall)
	t.DisableCompression = true // an object that is compressed stays so
	client.Transport = encrypted{t}
	return client, nil
}

// moving is a connection that fails if no byte moves for some time, for example because
// its other end is gone.
type moving struct {
	net.Conn
	stall time.Duration
}

func (m *moving) Read(p []byte) (int, error) {
	if err := m.SetReadDeadline(time.Now().Add(m.stall)); err != nil {
		return 0, err
	}
	return m.Conn.Read(p)
}

func (m *moving) Write(p []byte) (int, error) {
	// A server reads a request before it responds, so the wait for its response begins
	// when the request is written.
	if err := m.SetDeadline(time.Now().Add(m.stall)); err != nil {
		return 0, err
	}
	return m.Conn.Write(p)
}

// encrypted refuses requests without TLS to other machines, whether their address comes
// from a setting, a variable or a server.
type encrypted struct{ httpapi.Once }

// metadataHosts are services for the machines of a cloud. They are only reachable from
// there and have no TLS.
var metadataHosts = map[string]bool{"169.254.169.254": true, "169.254.170.2": true, "169.254.170.23": true, "fd00:ec2::254": true, "fd00:ec2::23": true, "metadata.google.internal": true}

func (e encrypted) RoundTrip(r *http.Request) (*http.Response, error) {
	if host := r.URL.Hostname(); r.URL.Scheme != "https" && !onThisMachine(host) && !metadataHosts[host] {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, plaintext(r.URL.Host)
	}
	return e.Once.RoundTrip(r)
}
