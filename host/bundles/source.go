package bundles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// maxDownload bounds the size of a bundle from a server.
	maxDownload = int64(2) << 30
	// maxSignature bounds the size of a signature from a server.
	maxSignature = 64 << 10
	// downloadTimeout bounds a download.
	downloadTimeout = 30 * time.Minute
)

// SourceError reports a source that cannot contain bundles.
type SourceError struct{ Source, Reason string }

func (e *SourceError) Error() string { return e.Source + ": " + e.Reason }

// isURL reports whether a source is the URL of a bundle, not a path.
func isURL(source string) bool { return strings.Contains(source, "://") }

// withoutQuery returns a URL for messages, without query and password, which
// can be secret.
func withoutQuery(source string) string {
	source, _, _ = strings.Cut(source, "?")
	if u, err := url.Parse(source); err == nil {
		return u.Redacted()
	}
	return source
}

// download stores the bundle of a URL, and its signature if the server has one,
// in a directory, and returns the path of the bundle.
func download(ctx context.Context, client *http.Client, source, dir string) (string, error) {
	u, err := url.Parse(source)
	if err != nil {
		return "", &SourceError{withoutQuery(source), "it is not a valid URL"}
	}
	if u.Scheme != "https" {
		return "", &SourceError{withoutQuery(source), "only https is supported"}
	}
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	c := http.Client{Transport: client.Transport, CheckRedirect: stayOnHTTPS}
	file := filepath.Join(dir, "download"+Suffix)
	if err := get(ctx, &c, u, file, maxDownload); err != nil {
		return "", err
	}
	signature := *u
	signature.Path, signature.RawPath = u.Path+SignatureSuffix, ""
	err = get(ctx, &c, &signature, file+SignatureSuffix, maxSignature)
	var status *statusError
	if errors.As(err, &status) && (status.code == http.StatusNotFound || status.code == http.StatusForbidden || status.code == http.StatusGone) {
		err = nil
	}
	return file, err
}

func stayOnHTTPS(req *http.Request, via []*http.Request) error {
	if req.URL.Scheme != "https" {
		return errors.New("it redirects to an address without https")
	}
	if len(via) >= 10 {
		return errors.New("it redirects more than 10 times")
	}
	return nil
}

type statusError struct {
	url  string
	code int
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s: the server answers %d %s", e.url, e.code, http.StatusText(e.code))
}

// get stores the body of a response.
func get(ctx context.Context, c *http.Client, u *url.URL, file string, limit int64) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return err
	}
	name := withoutQuery(u.String())
	resp, err := c.Do(req)
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return fmt.Errorf("%s: %w", name, failed.Err)
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return &statusError{name, resp.StatusCode}
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(resp.Body, limit+1))
	if err == nil && n > limit {
		err = errors.New("it is too large")
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
