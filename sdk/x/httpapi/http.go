package httpapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
)

// maxHeader bounds the size of a response's headers.
const maxHeader = 1 << 20

// Route determines how a server is reached, in addition to its address. The zero value is the
// default.
type Route struct {
	// CAFile is a file of certificates in PEM that are trusted in addition to the
	// system's.
	CAFile string
	// Socket is the path of a Unix socket to connect to, whatever the address.
	Socket string
}

// NewHTTP returns the HTTP client for a [Server], with a [Once] as its transport. It does not
// follow redirects, which could send keys to another server. The client owns its connections:
// close them with CloseIdleConnections.
func NewHTTP(route Route) (*http.Client, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 16
	t.MaxResponseHeaderBytes = maxHeader
	if route.CAFile != "" {
		pool, err := Certificates(route.CAFile)
		if err != nil {
			return nil, err
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		t.ForceAttemptHTTP2 = true
	}
	if route.Socket != "" {
		t.Proxy = nil
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", route.Socket)
		}
	}
	return &http.Client{
		Transport:     Once{t},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// Certificates returns the certificates of the system and of a file in PEM, as for
// [Route.CAFile].
func Certificates(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		absolute, _ := filepath.Abs(path)
		return nil, tea.Errorf(tea.NotFound, "ca_file %s not found", absolute)
	}
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "read ca_file: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, tea.Errorf(tea.ValidationError, "ca_file %s contains no certificate in PEM format", path)
	}
	return pool, nil
}

// SplitSocket splits the address unix:/path/to.sock:/v1 of a server at a Unix socket into the
// socket and an address for HTTP. It returns other addresses unchanged.
func SplitSocket(base string) (address, socket string, err error) {
	rest, ok := strings.CutPrefix(base, "unix:")
	if !ok {
		return base, "", nil
	}
	rest = strings.TrimPrefix(rest, "//")
	socket, path, _ := strings.Cut(rest, ":")
	if !filepath.IsAbs(socket) || path != "" && !strings.HasPrefix(path, "/") {
		return "", "", tea.Errorf(tea.ValidationError, "api_base %q is not the address of a Unix socket; use unix:/path/to.sock or unix:/path/to.sock:/v1", base)
	}
	return "http://localhost" + path, socket, nil
}
