package cloud_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/objstore"
	"github.com/the-edge-agent/tea/objstore/azure"
	"github.com/the-edge-agent/tea/objstore/gcs"
	"github.com/the-edge-agent/tea/objstore/objtest"
	"github.com/the-edge-agent/tea/objstore/s3"
	"github.com/the-edge-agent/tea/plugins/graph"
	"github.com/the-edge-agent/tea/plugins/graph/cloud"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// The bundle with all services passes the suite of bundles.
func TestConformance(t *testing.T) {
	t.Parallel()
	settings := object{"graph": object{"path": t.TempDir(), "backend": "memory"}}
	teatest.Conformance(t, graph.Bundle(cloud.Options()...), teatest.Request{Action: "graph.get_entity", Settings: settings, Params: object{"entity_id": "none"}})
}

type object = map[string]any

// opened is an instance of the bundle with an empty graph.
type opened struct {
	t        *testing.T
	instance teatest.Instance
}

func open(t *testing.T, settings object) *opened {
	t.Helper()
	settings["path"], settings["backend"] = t.TempDir(), "memory"
	raw, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := teatest.Linked(graph.Bundle(cloud.Options()...)).Open(t.Context(), tea.Settings{"graph": raw})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := instance.Close(); err != nil {
			t.Error(err)
		}
	})
	return &opened{t, instance}
}

func (o *opened) try(ctx context.Context, action string, params object) (object, error) {
	response, err := o.instance.Invoke(ctx, &tea.Request{Action: "graph." + action, Params: tea.ValuePayload(params), Host: &teatest.Host{}})
	if err != nil {
		return nil, err
	}
	v, err := response.Result.Value()
	result, _ := v.(object)
	return result, err
}

func (o *opened) call(action string, params object) object {
	o.t.Helper()
	result, err := o.try(o.t.Context(), action, params)
	if err != nil {
		o.t.Fatalf("graph.%s: %v", action, err)
	}
	return result
}

func (o *opened) fails(action string, params object, kind tea.ErrorType, text string) {
	o.t.Helper()
	_, err := o.try(o.t.Context(), action, params)
	if err == nil || tea.AsError(err).Type != kind || !strings.Contains(err.Error(), text) {
		o.t.Errorf("graph.%s(%v) returned %v, not a %s with %q", action, params, err, kind, text)
	}
}

// data is the graph as JSON Lines without the times of writing.
func (o *opened) data() (lines []string) {
	o.t.Helper()
	for line := range strings.Lines(o.call("export", object{})["data"].(string)) {
		var r object
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			o.t.Fatal(err)
		}
		delete(r, "created_at")
		delete(r, "updated_at")
		text, err := json.Marshal(r)
		if err != nil {
			o.t.Fatal(err)
		}
		lines = append(lines, string(text))
	}
	return lines
}

// servers are the real servers, with their drivers.
var servers = map[string]struct {
	start  func(testing.TB) *objtest.Server
	scheme func() objstore.Scheme
}{
	"s3": {objtest.S3, s3.Scheme}, "gcs": {objtest.GCS, gcs.Scheme}, "azure": {objtest.Azure, azure.Scheme},
}

func onEach(t *testing.T, test func(t *testing.T, server *objtest.Server, bucket *objstore.Bucket)) {
	t.Helper()
	t.Parallel()
	for name, s := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := s.start(t)
			test(t, server, server.Open(t, nil, s.scheme()))
		})
	}
}

func names(t *testing.T, b *objstore.Bucket) (all []string) {
	t.Helper()
	for o, err := range b.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o.Name)
	}
	return all
}

func (o *opened) fill(n int) {
	o.t.Helper()
	var entities, relations []any
	for i := range n {
		entities = append(entities, object{"entity_id": fmt.Sprintf("e%04d", i), "text": "Zé & 東京", "properties": object{"n": int64(i), "f": 0.5}})
		relations = append(relations, object{"from_entity": fmt.Sprintf("e%04d", i), "relation_type": "next", "to_entity": fmt.Sprintf("e%04d", (i+1)%n), "weight": 2.5})
	}
	o.call("store_entities", object{"entities": entities})
	o.call("store_relations", object{"relations": relations})
}

func TestGraphsInABucket(t *testing.T) {
	onEach(t, func(t *testing.T, server *objtest.Server, bucket *objstore.Bucket) {
		settings := func() object {
			return object{"storage": server.Address + "/graphs/", "storage_options": server.Settings}
		}
		g := open(t, settings())
		g.fill(300)
		want := g.data()
		var stored []string
		for _, c := range []struct{ format, path string }{{"jsonl", "a/g.jsonl"}, {"graphml", "g.graphml"}, {"csv", "csv"}, {"parquet", "p/q"}} {
			address := server.Address + "/graphs/" + c.path
			r := g.call("export", object{"path": address, "format": c.format})
			for _, f := range r["files"].([]any) {
				stored = append(stored, strings.TrimPrefix(f.(string), server.Address+"/"))
			}
			other := open(t, settings())
			r = other.call("import", object{"path": address, "format": c.format})
			if r["entities"] != int64(300) || r["relations"] != int64(300) {
				t.Errorf("%s: imported %v", c.format, r)
			}
			if got := other.data(); !slices.Equal(got, want) {
				t.Errorf("%s: %s instead of %s", c.format, got[0], want[0])
			}
		}
		other := open(t, settings())
		other.call("import", object{"path": server.Address + "/graphs/p/q/entities.parquet"})
		if r := other.call("import", object{"path": server.Address + "/graphs/p/*/*.parquet"}); r["entities"] != int64(300) || !slices.Equal(other.data(), want) {
			t.Errorf("a pattern: imported %v", r)
		}
		g.fails("import", object{"path": server.Address + "/graphs/p/*.parquet"}, tea.NotFound, "no file matches "+server.Address+"/graphs/p/*.parquet")
		g.fails("import", object{"path": server.Address + "/other/*.parquet"}, tea.PermissionDenied, "is not below settings.graph.storage")
		slices.Sort(stored)
		if got := names(t, bucket); !slices.Equal(got, stored) {
			t.Errorf("the bucket has %v, and %v was reported", got, stored)
		}
		g.fails("import", object{"path": server.Address + "/graphs/none.jsonl"}, tea.NotFound, server.Address+"/graphs/none.jsonl")
		g.fails("import", object{"path": server.Address + "/graphs/a", "format": "csv"}, tea.NotFound, "entities.csv")
		g.fails("export", object{"path": server.Address + "/other/g.jsonl"}, tea.PermissionDenied, "is not below settings.graph.storage, "+server.Address+"/graphs/")
		g.fails("import", object{"path": server.Address + "x/graphs/g.jsonl"}, tea.PermissionDenied, "is not below settings.graph.storage")
		g.fails("export", object{"path": server.Address + "/graphs/../g.jsonl"}, tea.ValidationError, "is not a valid name")
		g.fails("export", object{"path": server.Address + "/graphs/", "format": "jsonl"}, tea.ValidationError, "does not name a file")
		server.Kill()
		g.fails("export", object{"path": server.Address + "/graphs/g.jsonl"}, tea.ConnectionError, server.Address)
		g.fails("import", object{"path": server.Address + "/graphs/a/g.jsonl"}, tea.ConnectionError, server.Address)
	})
}

// An export that fails leaves what was there.
func TestAnExportThatFailsIsNotVisible(t *testing.T) {
	onEach(t, func(t *testing.T, server *objtest.Server, bucket *objstore.Bucket) {
		g := open(t, object{"storage": server.Address, "storage_options": server.Settings})
		g.fill(200)
		address := server.Address + "/g.graphml"
		g.call("export", object{"path": address})
		g.call("export", object{"path": server.Address + "/t", "format": "csv"})
		read := func() (all []string) {
			for _, name := range names(t, bucket) {
				_, r, err := bucket.Get(t.Context(), name, 0, objstore.All)
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(r)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, name, string(text))
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
			}
			return all
		}
		want := read()
		// XML does not have this character.
		g.call("store_entity", object{"entity_id": "z", "text": "\x01"})
		g.fails("export", object{"path": address}, tea.ValidationError, "has a character that XML cannot represent")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.try(ctx, "export", object{"path": server.Address + "/t", "format": "csv"}); err == nil {
			t.Error("an export that was canceled succeeded")
		}
		if got := read(); !slices.Equal(got, want) {
			t.Errorf("the bucket has other contents: %.300q", got)
		}
	})
}

func TestCredentialsThatAreWrong(t *testing.T) {
	t.Parallel()
	server := objtest.S3(t)
	const wrong = "wrong-secret-0123456789"
	server.Settings.SecretAccessKey = wrong
	g := open(t, object{"storage": server.Address, "storage_options": server.Settings})
	g.fill(3)
	for action, format := range map[string]string{"export": "jsonl", "import": "parquet"} {
		_, err := g.try(t.Context(), action, object{"path": server.Address + "/x", "format": format})
		if err == nil || tea.AsError(err).Type != tea.PermissionDenied || strings.Contains(err.Error(), wrong) {
			t.Errorf("graph.%s: %v", action, err)
		}
	}
}

// az:// is another name of azblob://.
func TestBothNamesOfAzure(t *testing.T) {
	t.Parallel()
	server := objtest.Azure(t)
	address := strings.Replace(server.Address, "azblob://", "az://", 1)
	g := open(t, object{"storage": address, "storage_options": server.Settings})
	g.fill(3)
	g.call("export", object{"path": server.Address + "/x.jsonl"})
	g.call("import", object{"path": address + "/x.jsonl"})
}
