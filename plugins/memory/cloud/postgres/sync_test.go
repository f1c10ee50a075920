package postgres

import (
	"maps"
	"testing"

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
