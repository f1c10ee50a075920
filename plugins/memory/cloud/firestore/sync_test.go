package firestore

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/servertest"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/syncsuite"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func TestSync(t *testing.T) {
	t.Parallel()
	d := newDatabases(t)
	syncsuite.All(t, func(t *testing.T) syncsuite.Remote { return d.remote(t, d.server.Address) })
}

// remote is the memory of a test, at an address.
func (d *databases) remote(t *testing.T, address string) syncsuite.Remote {
	t.Helper()
	return syncsuite.Remote{
		Settings: map[string]any{"engine": "firestore", "url": d.url(t), "blobs": t.TempDir(), "options": map[string]any{"endpoint": "http://" + address}},
		Option:   Option(), NoFullText: true, TooLarge: 1_100_000,
	}
}

func TestSyncChild(t *testing.T) { syncsuite.Child(t, Option()) }

func TestSyncIsKilled(t *testing.T) {
	t.Parallel()
	d := newDatabases(t)
	syncsuite.Kill(t, d.remote(t, d.server.Address))
}

func TestSyncThroughFaults(t *testing.T) {
	t.Parallel()
	d := newDatabases(t)
	proxy := servertest.StartToxiproxy(t).Proxy(t, d.server.Address)
	syncsuite.Faults(t, d.remote(t, d.server.Address), proxy, d.remote(t, proxy.Address))
}

// feed returns the changes of all feeds after numbers, which it updates, by name.
func feed(t *testing.T, r store.Replica, after map[store.Feed]int64) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, f := range store.Feeds() {
		for more := true; more; {
			page, err := r.Changes(t.Context(), store.ChangeQuery{Feed: f, After: after[f], Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range page.Records {
				all[one.Space+"/"+one.Key] = string(one.Body)
			}
			after[f], more = page.Last, page.More
		}
	}
	return all
}

// Actions of a device that never synchronises are in the feeds.
func TestFeedsHaveTheChangesOfAllWriters(t *testing.T) {
	t.Parallel()
	d := newDatabases(t)
	writer, reader := d.open(t, nil), d.open(t, nil)
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	entry := func(key, value string, ttl time.Duration) {
		t.Helper()
		_, err := writer.LongTerm.Store(t.Context(), store.Entry{Namespace: "n", Key: key, Value: []byte(value), TTL: ttl})
		do(err)
	}
	vector := func(collection, id string) {
		t.Helper()
		do(writer.Vectors.Store(t.Context(), collection, store.VectorItem{ID: id, Embedding: []float32{1}}))
	}
	document := func(id, body string) {
		t.Helper()
		do(writer.Metadata.Apply(t.Context(), store.Change{Kind: "note", ID: id, Body: []byte(body)}))
	}
	check := func(what string, after map[store.Feed]int64, want map[string]string) {
		t.Helper()
		if diff := cmp.Diff(want, feed(t, reader.Replica, after)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	const one = `{"text":"","embedding":[1]}`
	entry("a/1", "1", 0) // before the first reader
	vector("c ä", "v/1")
	document("d", `{"x":1}`)
	after := map[store.Feed]int64{}
	check("the first reading", after, map[string]string{"n/a/1": `{"value":1}`, "c ä/v/1": one, "note/d": `{"x":1}`})
	check("nothing since", after, map[string]string{})

	entry("a/2", "2", 0)
	entry("a/1", "3", 0)
	entry("b", "4", 0)
	vector("c ä", "v/2")
	vector("other", "w")
	document("d", `{"x":2}`)
	document("e", `{}`)
	check("changed", after, map[string]string{"n/a/1": `{"value":3}`, "n/a/2": `{"value":2}`, "n/b": `{"value":4}`, "c ä/v/2": one, "other/w": one, "note/d": `{"x":2}`, "note/e": `{}`})

	_, err := writer.LongTerm.DeletePrefix(t.Context(), "n", "a/")
	do(err)
	_, err = writer.LongTerm.Delete(t.Context(), "n", "b")
	do(err)
	_, err = writer.Vectors.Delete(t.Context(), "other", "w")
	do(err)
	_, _, err = writer.Vectors.Drop(t.Context(), "c ä")
	do(err)
	vector("c ä", "v/2") // in another collection of this name
	do(writer.Metadata.Apply(t.Context(), store.Change{Kind: "note", ID: "d"}))
	gone := feed(t, reader.Replica, after)
	want := map[string]string{"n/a/1": "", "n/a/2": "", "n/b": "", "c ä/v/1": "", "c ä/v/2": one, "other/w": "", "note/d": ""}
	if diff := cmp.Diff(want, gone); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}

	// A device whose clock is wrong sweeps what has not expired for others.
	entry("brief", "5", time.Hour)
	check("expires", after, map[string]string{"n/brief": `{"value":5}`})
	_, err = writer.LongTerm.Sweep(t.Context(), time.Now().AddDate(1, 0, 0))
	do(err)
	check("swept", after, map[string]string{})
	// One that begins again sees what is there, also what another program has written,
	// and what was deleted.
	root, err := database(d.url(t))
	do(err)
	other, err := http.Post("http://"+d.server.Address+"/v1/"+root+"/agent_memory?documentId=foreign", "application/json", strings.NewReader(`{"fields": {"x": {"stringValue": "y"}}}`))
	do(err)
	do(other.Body.Close())
	want["agent_memory/foreign"] = `{"x":"y"}`
	all := feed(t, reader.Replica, map[store.Feed]int64{})
	want["note/e"] = `{}`
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("from the beginning (-want +got):\n%s", diff)
	}
	removal, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://"+d.server.Address+"/v1/"+root+"/agent_memory/foreign", nil)
	do(err)
	other, err = http.DefaultClient.Do(removal)
	do(err)
	do(other.Body.Close())
	want["agent_memory/foreign"] = ""
	if diff := cmp.Diff(want, feed(t, reader.Replica, map[store.Feed]int64{})); diff != "" {
		t.Errorf("from the beginning again (-want +got):\n%s", diff)
	}
}
