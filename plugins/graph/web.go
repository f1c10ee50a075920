package graph

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"

	"github.com/the-edge-agent/tea/plugins/graph/internal/transfer"
)

// headerTimeout limits the wait for the headers of a response.
const headerTimeout = 60 * time.Second

// web reads the files of imports from web addresses below storage.
type web struct{ storage string }

// isWeb reports whether an address is a web address.
func isWeb(address string) bool {
	return strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://")
}

// webAddress parses a web address. It refuses a user, a fragment, and a path that is
// not clean.
func webAddress(given string) (*url.URL, error) {
	u, err := url.Parse(given)
	switch {
	case err != nil || u.Host == "":
		return nil, tea.Errorf(tea.ValidationError, "%s is not a URL", given)
	case u.User != nil:
		return nil, tea.Errorf(tea.ValidationError, "a URL with a user is not supported: %s", u.Redacted())
	case u.Fragment != "" || strings.Contains(u.Path, "\\") || u.Path != "" && path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/") && u.Path != "/":
		return nil, tea.Errorf(tea.ValidationError, "%s: a URL to import cannot have a fragment, a backslash, or .. or // in its path", given)
	}
	return u, nil
}

// contains reports whether u is below root.
func contains(root, u *url.URL) bool {
	return root.Scheme == u.Scheme && strings.EqualFold(root.Host, u.Host) && strings.HasPrefix(u.Path+"/", strings.TrimSuffix(root.Path, "/")+"/")
}

func (w web) write(context.Context, string, transfer.Format, func([]io.Writer) error) ([]string, error) {
	return nil, tea.Errorf(tea.ValidationError, "an export cannot be written to a web server; use a path, file:// or object storage")
}

func (w web) open(ctx context.Context, given string, format transfer.Format) (*inputs, error) {
	u, err := webAddress(given)
	if err != nil {
		return nil, err
	}
	if w.storage == "" {
		return nil, tea.Errorf(tea.PermissionDenied, "%s is not below settings.graph.storage, which is not set; set it to %s://%s/ to allow the addresses of this server", given, u.Scheme, u.Host)
	}
	root, err := webAddress(w.storage)
	if err != nil || !isWeb(w.storage) || !contains(root, u) {
		return nil, tea.Errorf(tea.PermissionDenied, "%s is not below settings.graph.storage, %s", given, w.storage)
	}
	if isPattern(u.Path) {
		return nil, tea.Errorf(tea.ValidationError, "%s: a web server does not list its files; name one of them", given)
	}
	client, err := httpapi.NewHTTP(httpapi.Route{})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	in := &inputs{}
	in.closing(func() error { client.CloseIdleConnections(); cancel(nil); return nil })
	names := []string{""}
	if folder := format.Files(); folder != nil && !isTable(u.Path, format) {
		names = folder
	}
	for _, name := range names {
		file := *u
		if name != "" {
			file = *u.JoinPath(name)
		}
		late := time.AfterFunc(headerTimeout, func() {
			cancel(tea.Errorf(tea.Timeout, "import %s: the server did not answer for %v", &file, headerTimeout))
		})
		body, err := get(ctx, client, file.String())
		late.Stop()
		if err == nil {
			err = in.addStream(given, file.Path, format, body, body.Close)
		}
		if err != nil {
			in.close()
			return nil, err
		}
	}
	return in, nil
}

// get returns the body of a file. The caller must close it.
func get(ctx context.Context, client *http.Client, address string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "import %s: %w", address, err)
	}
	resp, err := client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		e := tea.Errorf(tea.ConnectionError, "import %s: %w", address, err)
		e.Retryable = true
		return nil, e
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	switch location := resp.Header.Get("Location"); {
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone:
		return nil, tea.Errorf(tea.NotFound, "the file %s does not exist (status %d)", address, resp.StatusCode)
	case resp.StatusCode/100 == 3 && location != "":
		return nil, tea.Errorf(tea.ValidationError, "%s redirects to %s, which is not followed; import that address, if settings.graph.storage allows it", address, location)
	}
	e := tea.Errorf(tea.ConnectionError, "import %s: the server answered with status %d", address, resp.StatusCode)
	e.Retryable = resp.StatusCode >= http.StatusInternalServerError || resp.StatusCode == http.StatusTooManyRequests
	return nil, e
}
