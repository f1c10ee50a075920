package d1

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/remotesqlite/remotetest"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/servertest"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/syncsuite"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func opener(t testing.TB) remotetest.Open {
	t.Helper()
	d := newDatabases(t, 10)
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
	d := newDatabases(t, 1)
	remotetest.Migration(t, func(t testing.TB, trips *servertest.Trips) *store.Stores {
		t.Helper()
		return d.openWith(t, time.Now, trips)
	}, func(t *testing.T, statements ...string) {
		t.Helper()
		c := newClient(d.url(t), "", time.Minute, &http.Client{Transport: http.DefaultTransport})
		remotetest.Run(t, c, statements...)
	})
}

func TestSync(t *testing.T) {
	t.Parallel()
	d := newDatabases(t, 10)
	syncsuite.All(t, func(t *testing.T) syncsuite.Remote {
		t.Helper()
		return syncsuite.Remote{Settings: map[string]any{"engine": "d1", "url": d.url(t)}, Option: Option(), TooLarge: 2_500_000}
	})
}

func TestSyncChild(t *testing.T) { syncsuite.Child(t, Option()) }

func TestSyncIsKilled(t *testing.T) {
	t.Parallel()
	syncsuite.Kill(t, syncsuite.Remote{Settings: map[string]any{"engine": "d1", "url": newDatabases(t, 1).url(t)}, Option: Option()})
}

func TestSyncThroughFaults(t *testing.T) {
	t.Parallel()
	at := newDatabases(t, 1).url(t)
	parsed, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	proxy := servertest.StartToxiproxy(t).Proxy(t, parsed.Host)
	direct := syncsuite.Remote{Settings: map[string]any{"engine": "d1", "url": at}, Option: Option()}
	parsed.Host = proxy.Address
	syncsuite.Faults(t, direct, proxy, syncsuite.Remote{Settings: map[string]any{"engine": "d1", "url": parsed.String()}, Option: Option()})
}
