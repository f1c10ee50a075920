package s3_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/objstore"
	"github.com/the-edge-agent/tea/objstore/objtest"
	"github.com/the-edge-agent/tea/objstore/s3"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/smalldisktest"
)

func TestSettingsThatTheServerRefuses(t *testing.T) {
	t.Parallel()
	server := objtest.S3(t)
	for name, c := range map[string]struct {
		change func(s *objstore.Settings)
		kind   tea.ErrorType
		reason string
	}{
		"wrong secret": {func(s *objstore.Settings) { s.SecretAccessKey = "not-the-secret-of-it" }, tea.PermissionDenied, objstore.ReasonCredentials},
		"unknown key":  {func(s *objstore.Settings) { s.AccessKeyID = "nobody" }, tea.PermissionDenied, objstore.ReasonCredentials},
		"wrong region": {func(s *objstore.Settings) { s.Region = "eu-north-9" }, tea.ValidationError, objstore.ReasonRegion},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := server.Open(t, c.change, s3.Scheme())
			_, err := b.Put(t.Context(), "a", strings.NewReader("a"), objstore.PutOptions{})
			objtest.Refused(t, err, c.kind, c.reason)
			for _, secret := range []string{objtest.SecretKey, "not-the-secret-of-it"} {
				if strings.Contains(fmt.Sprint(err), secret) {
					t.Errorf("the error shows the secret: %v", err)
				}
			}
		})
	}
}

func TestFullStorage(t *testing.T) {
	t.Parallel()
	server := objtest.S3In(t, smalldisktest.New(t, "1m").Dir)
	b := server.Open(t, nil, s3.Scheme())
	objtest.Put(t, b, "a", "kept")
	_, err := b.Put(t.Context(), "b", strings.NewReader(strings.Repeat("x", 2<<20)), objstore.PutOptions{})
	objtest.Refused(t, err, tea.ResourceExhausted, objstore.ReasonQuota)
	if got := objtest.Content(t, b, "a", 0, objstore.All); got != "kept" {
		t.Errorf("the content is %q", got)
	}
}

// What services say that no server here says.
func TestAnswersOfServices(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		code   string
		kind   tea.ErrorType
		reason string
	}{
		{403, "RequestTimeTooSkewed", tea.PermissionDenied, objstore.ReasonClock},
		{400, "ExpiredToken", tea.PermissionDenied, objstore.ReasonExpired},
		{403, "QuotaExceeded", tea.ResourceExhausted, objstore.ReasonQuota},
		{403, "AccessDenied", tea.PermissionDenied, ""},
		{503, "SlowDown", tea.RateLimited, ""},
		{500, "InternalError", tea.ConnectionError, ""},
	} {
		t.Run(c.code, func(t *testing.T) {
			t.Parallel()
			service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				fmt.Fprintf(w, "<Error><Code>%s</Code><Message>the key is very-secret-key</Message></Error>", c.code)
			}))
			t.Cleanup(service.Close)
			b, err := objstore.Open(t.Context(), "s3://bucket", objstore.Settings{Endpoint: service.URL, AccessKeyID: "k", SecretAccessKey: "very-secret-key", Attempts: 1}, s3.Scheme())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = b.Close() })
			_, _, err = b.Get(t.Context(), "a", 0, objstore.All)
			objtest.Refused(t, err, c.kind, c.reason)
			if strings.Contains(fmt.Sprint(err), "very-secret") {
				t.Errorf("the error shows the secret: %v", err)
			}
		})
	}
}

func TestConnectionsWithoutTLS(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{"http://storage.example", "http://127.0.0.1.example", "ftp://127.0.0.1", "http://user:pw@127.0.0.1", "https://", "127.0.0.1:1"} {
		_, err := objstore.Open(t.Context(), "s3://bucket", objstore.Settings{Endpoint: endpoint, AccessKeyID: "k", SecretAccessKey: "s"}, s3.Scheme())
		objtest.Refused(t, err, tea.ValidationError, "")
		if strings.Contains(fmt.Sprint(err), "pw") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
	for _, address := range []string{"s3:", "s3://", "s3:///a", "s3://a?endpoint=http://b", "s3://user:pw@a", "s3://a/../b", "s3://a//b", "s3://a b", "s3://a:1/b"} {
		_, err := objstore.Open(t.Context(), address, objstore.Settings{}, s3.Scheme())
		objtest.Refused(t, err, tea.ValidationError, "")
	}
	_, err := objstore.Open(t.Context(), "gs://bucket", objstore.Settings{}, s3.Scheme())
	objtest.Refused(t, err, tea.DependencyMissing, "")
}

func TestFaults(t *testing.T) {
	t.Parallel()
	objtest.Faults(t, objtest.S3(t), s3.Scheme())
}

// What was acknowledged is there after the server was killed.
func TestServerIsKilled(t *testing.T) {
	t.Parallel()
	server := objtest.S3(t)
	b := server.Open(t, func(s *objstore.Settings) { s.Attempts = 1 }, s3.Scheme())
	var stored []string
	for i := range 30 {
		name := fmt.Sprintf("a%d", i)
		if i == 10 || i == 20 {
			server.Kill()
		}
		if _, err := b.Put(t.Context(), name, strings.NewReader(name), objstore.PutOptions{}); err == nil {
			stored = append(stored, name)
		}
		if i == 12 || i == 22 {
			server.Restart(t)
		}
	}
	if len(stored) < 20 {
		t.Errorf("only %d were stored", len(stored))
	}
	for _, name := range stored {
		if got := objtest.Content(t, b, name, 0, objstore.All); got != name {
			t.Errorf("%s is %q", name, got)
		}
	}
	if entries, err := os.ReadDir(server.Dir); err != nil || len(entries) == 0 {
		t.Errorf("the server has %v, %v", entries, err)
	}
}

// unseen is a driver that cannot describe objects.
type unseen struct{ objstore.Driver }

func (unseen) Stat(context.Context, string) (objstore.Object, error) {
	return objstore.Object{}, errors.New("cut")
}

// A conditional write whose answer is lost is not a conflict unless it is known that
// another writer was faster.
func TestUnknownOutcomeOfAConditionalWrite(t *testing.T) {
	t.Parallel()
	proxy, behind := objtest.NewProxy(t, objtest.S3(t))
	scheme := s3.Scheme()
	connect := scheme.Connect
	scheme.Connect = func(ctx context.Context, target objstore.Target) (objstore.Driver, error) {
		d, err := connect(ctx, target)
		return unseen{d}, err
	}
	proxy.Cut(1, 1)
	_, err := behind.Open(t, nil, scheme).Put(t.Context(), "a", strings.NewReader("1"), objstore.PutOptions{Match: objstore.Absent})
	objtest.Refused(t, err, tea.ConnectionError, "")
}
