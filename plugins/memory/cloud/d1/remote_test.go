package d1

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/remotesqlite"
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

func TestRowsWithOlderStemsAreFoundAsBefore(t *testing.T) {
	t.Parallel()
	d := newDatabases(t, 1)
	remotetest.OlderStems(t, d.openWith(t, time.Now, &servertest.Trips{}), func() {
		c := newClient(d.url(t), "", time.Minute, &http.Client{Transport: http.DefaultTransport})
		remotetest.Run(t, c, remotetest.OlderStemsSQL)
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

// TestSyncWithAnOlderCopy copies the tables of a database, and puts the copies back
// without its triggers. The full-text index stays as it is.
func TestSyncWithAnOlderCopy(t *testing.T) {
	t.Parallel()
	address := newDatabases(t, 1).url(t)
	c := newClient(address, "", time.Minute, &http.Client{Transport: http.DefaultTransport})
	query := func(sql string) remotesqlite.Result {
		t.Helper()
		found, err := c.Query(t.Context(), remotesqlite.Statement{SQL: sql})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	run := func(format string, with remotesqlite.Result) {
		t.Helper()
		for _, row := range with {
			statement := fmt.Sprintf(format, row[0])
			if err := c.Each(t.Context(), remotesqlite.Statement{SQL: statement}); err != nil {
				t.Fatal(statement, err)
			}
		}
	}
	r := syncsuite.Remote{Settings: map[string]any{"engine": "d1", "url": address}, Option: Option()}
	syncsuite.Restored(t, r, func() func() {
		tables := query("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'ltm_text%' AND name NOT LIKE 'sqlite%' AND name NOT LIKE '_cf%'")
		run("CREATE TABLE copied_%[1]s AS SELECT * FROM %[1]s", tables)
		return func() {
			triggers := query("SELECT name FROM sqlite_master WHERE type = 'trigger'")
			definitions := query("SELECT sql FROM sqlite_master WHERE type = 'trigger'")
			run("DROP TRIGGER %s", triggers)
			run("DELETE FROM %s", tables)
			run("INSERT INTO %[1]s SELECT * FROM copied_%[1]s", tables)
			run("%s", definitions)
		}
	})
}
