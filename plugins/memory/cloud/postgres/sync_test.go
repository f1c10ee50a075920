package postgres

import (
	"fmt"
	"maps"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/servertest"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/syncsuite"
)

func TestSync(t *testing.T) {
	t.Parallel()
	syncsuite.All(t, remote)
}

func remote(t *testing.T) syncsuite.Remote {
	t.Helper()
	return syncsuite.Remote{Settings: map[string]any{"engine": "postgres", "url": server.URL(t), "options": map[string]any{"schema": server.Schema(t)}}, Option: Option()}
}

func TestSyncChild(t *testing.T) { syncsuite.Child(t, Option()) }

func TestSyncIsKilled(t *testing.T) {
	t.Parallel()
	syncsuite.Kill(t, remote(t))
}

func TestSyncThroughFaults(t *testing.T) {
	t.Parallel()
	direct := remote(t)
	socket := newProxy(t) // toxiproxy connects to no socket
	proxy := servertest.StartToxiproxy(t).Proxy(t, socket.listener.Addr().String())
	behind := syncsuite.Remote{Settings: maps.Clone(direct.Settings), Option: Option()}
	behind.Settings["url"] = "postgres://postgres@" + proxy.Address + "/postgres?sslmode=disable"
	syncsuite.Faults(t, direct, proxy, behind)
}

func TestSyncWithAnOlderCopy(t *testing.T) {
	t.Parallel()
	address, err := url.Parse(server.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	run := func(statements ...string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), address.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		for _, statement := range statements {
			if _, err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatal(statement, err)
			}
		}
	}
	copyTo := func(to, from string) {
		t.Helper()
		run(fmt.Sprintf("DROP DATABASE IF EXISTS %s WITH (FORCE)", to), fmt.Sprintf("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '%s'", from), fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", to, from))
	}
	run("CREATE DATABASE restored")
	database := *address
	database.Path = "/restored"
	r := syncsuite.Remote{Settings: map[string]any{"engine": "postgres", "url": database.String()}, Option: Option()}
	syncsuite.Restored(t, r, func() func() {
		copyTo("copied", "restored")
		return func() { copyTo("restored", "copied") }
	})
}
