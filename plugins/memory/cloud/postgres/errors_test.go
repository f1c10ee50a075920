package postgres

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// administer runs statements as the server's administrator.
func administer(t *testing.T, url string, statements ...string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range statements {
		if _, err := c.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestErrorsOfAWriteHaveTypesAndRemedies lets a trigger fail.
func TestErrorsOfAWriteHaveTypesAndRemedies(t *testing.T) {
	t.Parallel()
	config := configOf(t, time.Now)
	config.Timeout = 5 * time.Second
	schema := server.Schema(t)
	stores, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	entry := store.Entry{Key: "a", Value: json.RawMessage("1")}
	if _, err := stores.LongTerm.Store(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		code      string
		want      tea.ErrorType
		retryable bool
		remedy    string
	}{
		{"53100", tea.ResourceExhausted, false, "free space"},
		{"53200", tea.ResourceExhausted, false, ""},
		{"53300", tea.ResourceExhausted, true, "settings.memory.connections"},
		{"42501", tea.PermissionDenied, false, "grant"},
		{"3F000", tea.PermissionDenied, false, "settings.memory.options.schema"},
		{"54000", tea.ResourceExhausted, false, "larger than the store accepts"},
		{"25006", tea.PermissionDenied, false, "target_session_attrs"},
		{"57014", tea.Timeout, true, "settings.memory.timeout"},
		{"57P01", tea.ConnectionError, true, ""},
		{"57P04", tea.NotFound, false, "create the database"},
		{"40001", tea.QueryError, true, ""},
		{"08P01", tea.QueryError, false, ""},
		{"22012", tea.QueryError, false, ""},
	} {
		administer(t, config.URL, "SET search_path = "+schema, `CREATE OR REPLACE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN RAISE EXCEPTION 'as the test says' USING ERRCODE = '`+test.code+`'; END $$`,
			"CREATE OR REPLACE TRIGGER fails BEFORE INSERT ON ltm EXECUTE FUNCTION fails()")
		_, err := stores.LongTerm.Store(t.Context(), store.Entry{Key: "a", Value: json.RawMessage("2")})
		if e := tea.AsError(err); e == nil || e.Type != test.want || e.Retryable != test.retryable || !strings.Contains(e.Message, test.remedy) || !strings.Contains(e.Message, test.code) {
			t.Errorf("%s: %v, want a %s with %q", test.code, err, test.want, test.remedy)
		}
	}
	administer(t, config.URL, "DROP TRIGGER fails ON "+schema+".ltm")
	if _, err := stores.LongTerm.Store(t.Context(), entry); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if err := (&backend[any]{nil, stores}).Close(); err != nil {
		t.Error(err)
	}
}

// TestCallsSurviveTerminatedSessions ends the sessions of the store while it
// writes, as a failover does.
func TestCallsSurviveTerminatedSessions(t *testing.T) {
	t.Parallel()
	config := configOf(t, time.Now)
	admin, role := config.URL, "role_"+server.Schema(t)
	administer(t, admin, "CREATE ROLE "+role+" LOGIN SUPERUSER")
	config.URL += "&user=" + role
	stores, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	const writers, each = 4, 25
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				id := fmt.Sprintf("%d/%d", w, i)
				if err := stores.Metadata.Apply(t.Context(), store.Change{Kind: "k", ID: id, Body: json.RawMessage(`{}`), If: store.New}); err != nil {
					t.Errorf("%s: %v", id, err)
				}
				if i%5 == 0 {
					administer(t, admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '"+role+"'")
				}
			}
		})
	}
	group.Wait()
	if n, err := stores.Metadata.Count(t.Context(), store.DocumentQuery{Kind: "k"}); err != nil || n != writers*each {
		t.Errorf("%d documents, %v", n, err)
	}
	if err := (&backend[any]{nil, stores}).Close(); err != nil {
		t.Error(err)
	}
}

// TestAnExpiredPasswordIsDenied has a server that checks passwords.
func TestAnExpiredPasswordIsDenied(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it starts a PostgreSQL server")
	own, err := startServer(t.Context())
	requireServer(t, err)
	defer func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	}()
	administer(t, own.URL(),
		"CREATE ROLE expired LOGIN PASSWORD 'hunter2' VALID UNTIL '2000-01-01'", "CREATE ROLE valid LOGIN SUPERUSER PASSWORD 'hunter2'",
		`DO $$ BEGIN EXECUTE format('COPY (SELECT unnest(ARRAY[''local all postgres trust'', ''local all all scram-sha-256''])) TO %L', current_setting('hba_file')); END $$`)
	if err := own.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := own.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		user, password string
		denied         bool
	}{{"expired", "hunter2", true}, {"valid", "hunter3", true}, {"valid", "hunter2", false}} {
		config := configFor(own.URL()+"&user="+test.user, "tea", time.Now)
		config.Token = test.password
		stores, err := Open(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		_, err = stores.LongTerm.Retrieve(t.Context(), "", "a")
		e := tea.AsError(err)
		if test.denied != (e.Type == tea.PermissionDenied && strings.Contains(e.Message, "settings.memory.token")) || strings.Contains(e.Message, test.password) {
			t.Errorf("%s: %v", test.user, err)
		}
		if !test.denied && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", test.user, err)
		}
		if err := (&backend[any]{nil, stores}).Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestARefusedCertificateIsNotRetried has a server whose certificate has
// expired, or is not yet valid by this device's clock.
func TestARefusedCertificateIsNotRetried(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for name, from := range map[string]time.Time{"expired": now.AddDate(-2, 0, 0), "not yet valid": now.AddDate(1, 0, 0)} {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: from.AddDate(1, 0, 0), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		root := filepath.Join(t.TempDir(), "root.pem")
		if err := os.WriteFile(root, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var connections atomic.Int64
		var group sync.WaitGroup
		group.Go(func() {
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				connections.Add(1)
				_, _ = io.ReadFull(c, make([]byte, 8)) // the request for TLS
				_, _ = c.Write([]byte{'S'})
				_ = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}).Handshake()
				_ = c.Close() // the client has refused it
			}
		})
		stores, err := Open(t.Context(), configFor("postgres://user@"+listener.Addr().String()+"/db?sslmode=verify-full&sslrootcert="+root, "tea", time.Now))
		if err != nil {
			t.Fatal(err)
		}
		_, err = stores.LongTerm.Retrieve(t.Context(), "", "a")
		if e := tea.AsError(err); e == nil || e.Type != tea.PermissionDenied || !strings.Contains(e.Message, "clock") {
			t.Errorf("%s: %v", name, err)
		}
		if err := errors.Join((&backend[any]{nil, stores}).Close(), listener.Close()); err != nil {
			t.Error(err)
		}
		if group.Wait(); connections.Load() != 1 {
			t.Errorf("%s: %d connections", name, connections.Load())
		}
	}
}

// What no second try can mend is returned at once.
func TestPermanentConnectionErrorsAreNotRetried(t *testing.T) {
	t.Parallel()
	address := newProxy(t).listener.Addr().String()
	for name, test := range map[string]struct {
		url  string
		want tea.ErrorType
		says string
	}{
		"a server without TLS":            {"postgres://postgres@" + address + "/postgres?sslmode=require", tea.ConnectionError, "sslmode"},
		"an unknown database":             {"postgres://postgres@" + address + "/nowhere?sslmode=disable", tea.NotFound, "create the database"},
		"an unknown user":                 {"postgres://nobody-" + rand.Text() + "@" + address + "/postgres?sslmode=disable", tea.PermissionDenied, "check the user"},
		"no password where one is needed": {"postgres://postgres@" + address + "/postgres?sslmode=disable&require_auth=scram-sha-256", tea.ConnectionError, "require_auth"},
		"a host that cannot exist":        {"postgres://postgres@db..example:5432/postgres?sslmode=require", tea.ConnectionError, "check the host"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tries tries
			config := configFor(test.url, "tea", time.Now)
			config.Timeout, config.Logger = 10*time.Minute, slog.New(&tries)
			stores, err := Open(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			_, err = stores.LongTerm.Retrieve(t.Context(), "", "a")
			if e := tea.AsError(err); e.Type != test.want || e.Retryable || !strings.Contains(e.Message, test.says) {
				t.Errorf("%v (retryable: %v), want a %s with %q", err, e.Retryable, test.want, test.says)
			}
			if n := tries.Load(); n > 0 {
				t.Errorf("it was tried again %d times", n)
			}
			if err := (&backend[any]{nil, stores}).Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// tries counts the messages of repeated statements.
type tries struct{ atomic.Int64 }

func (*tries) Enabled(context.Context, slog.Level) bool { return true }
func (c *tries) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "repeated") {
		c.Add(1)
	}
	return nil
}
func (c *tries) WithAttrs([]slog.Attr) slog.Handler { return c }
func (c *tries) WithGroup(string) slog.Handler      { return c }
