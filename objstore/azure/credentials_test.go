package azure

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/objstore"
	"github.com/the-edge-agent/tea/objstore/objtest"
)

// withoutCredentials removes the credentials of this machine from the environment.
func withoutCredentials(t *testing.T) {
	t.Helper()
	for _, name := range environment() {
		if strings.HasPrefix(name, "AZURE_") || strings.HasPrefix(name, "IDENTITY_") || strings.HasPrefix(name, "MSI_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("PATH", "") // without az
}

// stored writes an object and returns the error.
func stored(t *testing.T, address string, settings objstore.Settings, scheme objstore.Scheme) error {
	t.Helper()
	settings.Attempts = 2
	b, err := objstore.Open(t.Context(), address, settings, scheme)
	if err != nil {
		return err
	}
	defer b.Close()
	_, err = b.Put(t.Context(), "a", strings.NewReader("content"), objstore.PutOptions{})
	return err
}

// token returns a shared access signature of a container that expires at a time.
func token(t *testing.T, s *objtest.Server, expires time.Time) string {
	t.Helper()
	credential, err := container.NewSharedKeyCredential(s.Settings.Account, s.Settings.AccountKey)
	if err != nil {
		t.Fatal(err)
	}
	client, err := container.NewClientWithSharedKeyCredential(s.Settings.Endpoint+"/"+strings.TrimPrefix(s.Address, "azblob://"), credential, nil)
	if err != nil {
		t.Fatal(err)
	}
	start := expires.Add(-2 * time.Hour)
	signed, err := client.GetSASURL(sas.ContainerPermissions{Read: true, Write: true, Create: true}, expires, &container.GetSASURLOptions{StartTime: &start})
	if err != nil {
		t.Fatal(err)
	}
	_, query, _ := strings.Cut(signed, "?")
	return query
}

// Keys and signatures, from the settings and the environment, against the emulator,
// which calls a wrong key AuthorizationFailure. Azure calls it AuthenticationFailed.
func TestKeysAndSignatures(t *testing.T) {
	s := objtest.Azure(t)
	withoutCredentials(t)
	own := s.Settings
	wrong := "d3Jvbmcta2V5LXdyb25nLWtleQ=="
	connection := fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%%s;BlobEndpoint=%s;", own.Account, own.Endpoint)
	for name, c := range map[string]struct {
		settings objstore.Settings
		env      map[string]string
		kind     tea.ErrorType
		reason   string
	}{
		"key":                      {settings: own},
		"wrong key":                {settings: objstore.Settings{Endpoint: own.Endpoint, Account: own.Account, AccountKey: wrong}, kind: tea.PermissionDenied},
		"key that is not Base64":   {settings: objstore.Settings{Endpoint: own.Endpoint, Account: own.Account, AccountKey: "not-base-64!"}, kind: tea.ValidationError},
		"signature":                {settings: objstore.Settings{Endpoint: own.Endpoint, Account: own.Account, SASToken: token(t, s, time.Now().Add(time.Hour))}},
		"signature with ?":         {settings: objstore.Settings{Endpoint: own.Endpoint, SASToken: "?" + token(t, s, time.Now().Add(time.Hour))}},
		"expired signature":        {settings: objstore.Settings{Endpoint: own.Endpoint, SASToken: token(t, s, time.Now().Add(-time.Hour))}, kind: tea.PermissionDenied, reason: objstore.ReasonExpired},
		"changed signature":        {settings: objstore.Settings{Endpoint: own.Endpoint, SASToken: token(t, s, time.Now().Add(time.Hour)) + "x"}, kind: tea.PermissionDenied},
		"connection string":        {env: map[string]string{"AZURE_STORAGE_CONNECTION_STRING": fmt.Sprintf(connection, own.AccountKey)}},
		"wrong connection string":  {env: map[string]string{"AZURE_STORAGE_CONNECTION_STRING": fmt.Sprintf(connection, wrong)}, kind: tea.PermissionDenied},
		"key of the environment":   {settings: objstore.Settings{Endpoint: own.Endpoint}, env: map[string]string{"AZURE_STORAGE_ACCOUNT": own.Account, "AZURE_STORAGE_KEY": own.AccountKey}},
		"signature of the same":    {settings: objstore.Settings{Endpoint: own.Endpoint}, env: map[string]string{"AZURE_STORAGE_ACCOUNT": own.Account, "AZURE_STORAGE_SAS_TOKEN": token(t, s, time.Now().Add(time.Hour))}},
		"no account":               {kind: tea.ValidationError},
		"a connection string of x": {env: map[string]string{"AZURE_STORAGE_CONNECTION_STRING": "x"}, kind: tea.ValidationError},
	} {
		t.Run(name, func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			err := stored(t, s.Address, c.settings, Scheme())
			if c.kind == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			objtest.Refused(t, err, c.kind, c.reason)
			for _, secret := range []string{wrong, own.AccountKey, "sig="} {
				if strings.Contains(fmt.Sprint(err), secret) {
					t.Errorf("the error shows a secret: %v", err)
				}
			}
		})
	}
}

// cloud is the storage, the login and the metadata service of a machine of Azure, as
// their documentation describes them.
type cloud struct {
	metadata func(w http.ResponseWriter, r *http.Request)
	login    func(w http.ResponseWriter, r *http.Request)
	asked    atomic.Int64 // the metadata service
	used     atomic.Value // the header Authorization at the storage
}

const (
	metadataService = "169.254.169.254"
	loginService    = "login.microsoftonline.com"
)

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.Host {
	case metadataService:
		c.asked.Add(1)
		if r.Header.Get("Metadata") != "true" || r.URL.Query().Get("api-version") == "" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"invalid_request","error_description":"Required metadata header not specified"}`)
			return
		}
		c.metadata(w, r)
	case loginService:
		base := "https://" + loginService + "/tenant"
		switch {
		case strings.HasSuffix(r.URL.Path, "/discovery/instance"):
			fmt.Fprintf(w, `{"tenant_discovery_endpoint": "%s/v2.0/.well-known/openid-configuration", "metadata": [{"preferred_network": %q, "preferred_cache": %q, "aliases": [%q]}]}`, base, loginService, loginService, loginService)
		case strings.HasSuffix(r.URL.Path, "/openid-configuration"):
			fmt.Fprintf(w, `{"authorization_endpoint": "%s/oauth2/v2.0/authorize", "token_endpoint": "%s/oauth2/v2.0/token", "issuer": "%s/v2.0"}`, base, base, base)
		default:
			c.login(w, r)
		}
	case "account.blob.core.windows.net":
		c.used.Store(r.Header.Get("Authorization"))
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Header.Get("Authorization") == "Bearer old" {
			w.Header().Set("X-Ms-Error-Code", "InvalidAuthenticationInfo")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("ETag", `"1"`)
		w.WriteHeader(http.StatusCreated)
	default:
		w.WriteHeader(http.StatusTeapot)
	}
}

func answer(status int, body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func tokenOf(text string) string {
	return fmt.Sprintf(`{"access_token": %q, "token_type": "Bearer", "expires_in": "3600", "ext_expires_in": "3600", "expires_on": "%d", "resource": "https://storage.azure.com"}`, text, time.Now().Add(time.Hour).Unix())
}

// silent does not answer until the client is gone.
func silent(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func TestIdentityOfTheMachine(t *testing.T) {
	withoutCredentials(t)
	for name, c := range map[string]struct {
		metadata func(http.ResponseWriter, *http.Request)
		kind     tea.ErrorType
		reason   string
	}{
		"identity":       {metadata: answer(http.StatusOK, tokenOf("machine"))},
		"refused token":  {metadata: answer(http.StatusOK, tokenOf("old")), kind: tea.PermissionDenied, reason: objstore.ReasonCredentials},
		"no identity":    {metadata: answer(http.StatusBadRequest, `{"error":"invalid_request","error_description":"Identity not found"}`), kind: tea.PermissionDenied, reason: objstore.ReasonCredentials},
		"another server": {metadata: answer(http.StatusOK, `<html>`), kind: tea.PermissionDenied, reason: objstore.ReasonCredentials},
		"no answer":      {metadata: silent, kind: tea.ConnectionError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AZURE_CLIENT_ID", rand.Text()) // the client has a cache for each identity
			service := &cloud{metadata: c.metadata}
			err := stored(t, "azblob://bucket", objstore.Settings{Account: "account", MetadataServer: true, StallSeconds: 2}, objtest.Rerouted(t, Scheme(), service))
			if service.asked.Load() == 0 {
				t.Error("the metadata service was not asked")
			}
			if c.kind != "" {
				objtest.Refused(t, err, c.kind, c.reason)
				return
			}
			if got := service.used.Load(); err != nil || got != "Bearer machine" {
				t.Errorf("got %v with %v", err, got)
			}
		})
	}
}

// Without credentials the error names the settings, and the metadata service is not
// asked.
func TestNoCredentials(t *testing.T) { //nolint:paralleltest // withoutCredentials sets the environment
	withoutCredentials(t)
	service := &cloud{metadata: answer(http.StatusOK, tokenOf("machine"))}
	err := stored(t, "azblob://bucket", objstore.Settings{Account: "account"}, objtest.Rerouted(t, Scheme(), service))
	objtest.Refused(t, err, tea.PermissionDenied, objstore.ReasonCredentials)
	for _, remedy := range []string{"account_key", "sas_token", "metadata_server"} {
		if !strings.Contains(fmt.Sprint(err), remedy) {
			t.Errorf("%v does not name %s", err, remedy)
		}
	}
	if n := service.asked.Load(); n != 0 {
		t.Errorf("the metadata service was asked %d times", n)
	}
}

func TestServicePrincipal(t *testing.T) {
	withoutCredentials(t)
	t.Setenv("AZURE_TENANT_ID", "tenant")
	t.Setenv("AZURE_CLIENT_ID", "client")
	t.Setenv("AZURE_CLIENT_SECRET", "very-secret")
	for name, c := range map[string]struct { //nolint:paralleltest // the test sets the environment
		login  func(http.ResponseWriter, *http.Request)
		kind   tea.ErrorType
		reason string
	}{
		"secret": {login: func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			form, _ := url.ParseQuery(string(body))
			if form.Get("client_secret") != "very-secret" || form.Get("grant_type") != "client_credentials" {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			_, _ = io.WriteString(w, `{"access_token": "principal", "token_type": "Bearer", "expires_in": 3600, "ext_expires_in": 3600}`)
		}},
		"wrong secret": {
			login: answer(http.StatusUnauthorized, `{"error":"invalid_client","error_description":"AADSTS7000215: Invalid client secret provided: very-secret","error_codes":[7000215]}`), kind: tea.PermissionDenied, reason: objstore.ReasonCredentials,
		},
		"expired secret": {
			login: answer(http.StatusUnauthorized, `{"error":"invalid_client","error_description":"AADSTS7000222: The provided client secret keys are expired.","error_codes":[7000222]}`), kind: tea.PermissionDenied, reason: objstore.ReasonCredentials,
		},
	} {
		t.Run(name, func(t *testing.T) {
			service := &cloud{login: c.login}
			err := stored(t, "azblob://bucket", objstore.Settings{Account: "account", StallSeconds: 2}, objtest.Rerouted(t, Scheme(), service))
			if c.kind != "" {
				objtest.Refused(t, err, c.kind, c.reason)
				if strings.Contains(fmt.Sprint(err), "very-secret") {
					t.Errorf("the error shows the secret: %v", err)
				}
				return
			}
			if got := service.used.Load(); err != nil || got != "Bearer principal" {
				t.Errorf("got %v with %v", err, got)
			}
		})
	}
}
