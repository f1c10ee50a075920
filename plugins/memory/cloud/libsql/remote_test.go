package libsql

import (
	"net/http"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/remotesqlite/remotetest"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/servertest"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/syncsuite"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func opener(t testing.TB) remotetest.Open {
	t.Helper()
	d := newDatabases(t)
	return func(t testing.TB, trips *servertest.Trips) *store.Stores {
		t.Helper()
		return d.openWith(t, time.Now, trips)
	}
}

func TestEachCallHasFewRoundTrips(t *testing.T) {
	t.Parallel()
	remotetest.RoundTrips(t, opener(t))
}

func TestLostAnswersChangeNothing(t *testing.T) {
	t.Parallel()
	remotetest.LostAnswers(t, opener(t))
}

func TestDevicesSeeOneHistory(t *testing.T) {
	t.Parallel()
	remotetest.Histories(t, opener(t))
}

func BenchmarkCalls(b *testing.B) { remotetest.Benchmark(b, opener(b)) }

func TestADatabaseOfTheFirstVersion(t *testing.T) {
	t.Parallel()
	d := newDatabases(t)
	remotetest.Migration(t, func(t testing.TB, trips *servertest.Trips) *store.Stores {
		t.Helper()
		return d.openWith(t, time.Now, trips)
	}, func(t *testing.T, statements ...string) {
		t.Helper()
		trips := &servertest.Trips{Around: d.server.around(d.name(t))} //nolint:bodyclose // no response yet
		c := newClient("http://"+d.server.address, "", time.Minute, trips.Wrap(&http.Client{Transport: http.DefaultTransport}))
		remotetest.Run(t, c, statements...)
	})
}

func TestRowsWithOlderStemsAreFoundAsBefore(t *testing.T) {
	t.Parallel()
	d := newDatabases(t)
	remotetest.OlderStems(t, d.openWith(t, time.Now, &servertest.Trips{}), func() {
		trips := &servertest.Trips{Around: d.server.around(d.name(t))} //nolint:bodyclose // no response yet
		c := newClient("http://"+d.server.address, "", time.Minute, trips.Wrap(&http.Client{Transport: http.DefaultTransport}))
		remotetest.Run(t, c, remotetest.OlderStemsSQL)
	})
}

func TestSync(t *testing.T) {
	t.Parallel()
	syncsuite.All(t, remote)
}

func remote(t *testing.T) syncsuite.Remote {
	t.Helper()
	return syncsuite.Remote{Settings: map[string]any{"engine": "libsql", "url": startServer(t, t.TempDir()).defaultURL(t)}, Option: Option()}
}

func TestSyncChild(t *testing.T) { syncsuite.Child(t, Option()) }

func TestSyncIsKilled(t *testing.T) {
	t.Parallel()
	syncsuite.Kill(t, remote(t))
}

func TestSyncThroughFaults(t *testing.T) {
	t.Parallel()
	server := startServer(t, t.TempDir())
	direct := syncsuite.Remote{Settings: map[string]any{"engine": "libsql", "url": server.defaultURL(t)}, Option: Option()}
	proxy := servertest.StartToxiproxy(t).Proxy(t, server.address)
	syncsuite.Faults(t, direct, proxy, syncsuite.Remote{Settings: map[string]any{"engine": "libsql", "url": "http://" + proxy.Address}, Option: Option()})
}

func TestSyncWithAnOlderCopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := startServer(t, dir)
	r := syncsuite.Remote{Settings: map[string]any{"engine": "libsql", "url": server.defaultURL(t)}, Option: Option()}
	// server.Stop would be the method of the process before the first restart.
	syncsuite.Restored(t, r, syncsuite.FolderCopies(t, dir, func() { server.Stop() }, func() { server.start(t) }))
}
