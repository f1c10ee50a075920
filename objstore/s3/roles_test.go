package s3

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/objstore"
	"github.com/the-edge-agent/tea/objstore/objtest"
)

// amazon is S3, the service of tokens and the metadata service (version 2), as their
// documentation describes them.
type amazon struct {
	tokens   func(w http.ResponseWriter, r *http.Request)
	metadata func(w http.ResponseWriter, r *http.Request)
	asked    atomic.Int64
}

const sessionToken = "metadata-session"

func (a *amazon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.Host, "sts."):
		_ = r.ParseForm()
		a.tokens(w, r)
	case r.Host == "169.254.169.254":
		a.asked.Add(1)
		switch {
		case r.URL.Path == "/latest/api/token" && r.Method == http.MethodPut && r.Header.Get("X-Aws-Ec2-Metadata-Token-Ttl-Seconds") != "":
			_, _ = io.WriteString(w, sessionToken)
		case r.Header.Get("X-Aws-Ec2-Metadata-Token") != sessionToken: // version 1 is off
			w.WriteHeader(http.StatusUnauthorized)
		default:
			a.metadata(w, r)
		}
	default:
		_, _ = io.Copy(io.Discard, r.Body)
		if !strings.Contains(r.Header.Get("Authorization"), "Credential=granted/") || r.Header.Get("X-Amz-Security-Token") != "session" {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "<Error><Code>InvalidAccessKeyId</Code></Error>")
			return
		}
		w.Header().Set("ETag", `"1"`)
	}
}

func granted(w http.ResponseWriter, r *http.Request) {
	if r.PostForm.Get("WebIdentityToken") != "web-token" || r.PostForm.Get("RoleArn") != "arn:aws:iam::1:role/agent" {
		failing(http.StatusBadRequest, "InvalidIdentityToken")(w, r)
		return
	}
	fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>
		<AccessKeyId>granted</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>session</SessionToken><Expiration>%s</Expiration>
		</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
}

func failing(status int, code string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>%s</Code><Message>the token is web-token</Message></Error></ErrorResponse>`, code)
	}
}

// role is a role of a machine.
func role(body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/security-credentials/") {
			_, _ = io.WriteString(w, "agent")
			return
		}
		_, _ = io.WriteString(w, body)
	}
}

func silent(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Web identities and the roles of machines, that AWS accepts and does not.
func TestRoles(t *testing.T) {
	for _, name := range environment() {
		if strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	file := filepath.Join(home, "token")
	if err := os.WriteFile(file, []byte("web-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys := fmt.Sprintf(`{"Code": "Success", "AccessKeyId": "granted", "SecretAccessKey": "s", "Token": "session", "Expiration": %q}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	for name, c := range map[string]struct {
		web      string // the file of the token
		metadata bool
		service  *amazon
		kind     tea.ErrorType
		reason   string
	}{
		"web identity":         {web: file, service: &amazon{tokens: granted}},
		"expired web identity": {web: file, service: &amazon{tokens: failing(http.StatusBadRequest, "ExpiredTokenException")}, kind: tea.PermissionDenied, reason: objstore.ReasonExpired},
		"refused web identity": {web: file, service: &amazon{tokens: failing(http.StatusForbidden, "AccessDenied")}, kind: tea.PermissionDenied, reason: objstore.ReasonCredentials},
		"missing web identity": {web: file + "x", service: &amazon{}, kind: tea.PermissionDenied, reason: objstore.ReasonCredentials},
		"silent web identity":  {web: file, service: &amazon{tokens: silent}, kind: tea.ConnectionError},
		"machine":              {metadata: true, service: &amazon{metadata: role(keys)}},
		"machine without role": {metadata: true, service: &amazon{metadata: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }}, kind: tea.PermissionDenied, reason: objstore.ReasonCredentials},
		"failed role":          {metadata: true, service: &amazon{metadata: role(`{"Code": "Failed", "Message": "x"}`)}, kind: tea.PermissionDenied, reason: objstore.ReasonCredentials},
		"another server":       {metadata: true, service: &amazon{metadata: role("<html>")}, kind: tea.PermissionDenied, reason: objstore.ReasonCredentials},
		"refused keys":         {metadata: true, service: &amazon{metadata: role(strings.Replace(keys, "granted", "wrong", 1))}, kind: tea.PermissionDenied, reason: objstore.ReasonCredentials},
		"silent machine":       {metadata: true, service: &amazon{metadata: silent}, kind: tea.ConnectionError},
		"nothing":              {service: &amazon{metadata: role(keys)}, kind: tea.PermissionDenied, reason: objstore.ReasonCredentials},
	} {
		t.Run(name, func(t *testing.T) {
			if c.web != "" {
				t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", c.web)
				t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/agent")
			}
			b, err := objstore.Open(t.Context(), "s3://bucket", objstore.Settings{Region: "eu-central-1", MetadataServer: c.metadata, StallSeconds: 0.5, Attempts: 1}, objtest.Rerouted(t, Scheme(), c.service))
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			_, err = b.Put(t.Context(), "a", strings.NewReader("content"), objstore.PutOptions{})
			if n := c.service.asked.Load(); !c.metadata && n != 0 {
				t.Errorf("the metadata service was asked %d times", n)
			}
			if c.kind == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			objtest.Refused(t, err, c.kind, c.reason)
			if strings.Contains(fmt.Sprint(err), "web-token") {
				t.Errorf("the error shows the token: %v", err)
			}
		})
	}
}
