package graph_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

// write writes files below a folder.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// tables are files whose columns tell what they have. A relation comes before its ends.
var tables = map[string]string{
	"data/a-links.csv":  "from,type,to,id\nana,knows,bob,1\n",
	"data/b-people.csv": "id,type,city,updated_at\nana,person,Porto,2020-01-01T00:00:00Z\n",
	"data/c-people.csv": "id,type,city\nbob,person,Faro\n",
	"data/note.txt":     "no table",
}

func hasTables(t *testing.T, g *opened) {
	t.Helper()
	same(t, "ana", g.propertiesOf("ana"), object{"city": "Porto"})
	same(t, "bob", g.propertiesOf("bob"), object{"city": "Faro"})
	same(t, "relations", short(g.call("get_relations", object{"entity_id": "ana"})["relations"]), "ana-knows-bob")
	same(t, "property of a relation", field(g.call("get_relations", object{"entity_id": "ana"})["relations"], "properties"), []any{object{"id": "1"}})
}

func TestFilesOfAPatternAreImported(t *testing.T) {
	t.Parallel()
	g, root := inRoot(t, "memory")
	write(t, root, tables)
	write(t, root, map[string]string{"lines/1.jsonl": `{"from":"x","type":"feeds","to":"y"}` + "\n", "lines/2.jsonl": `{"id":"x","type":"pump","updated_at":"2020-01-01T00:00:00Z"}` + "\n", "odd/[1].csv": "id\nodd\n", "empty/x.csv": "name\nx\n"})
	r := g.call("import", object{"path": "data/*.csv"})
	same(t, "imported", []any{r["entities"], r["relations"], r["newer"]}, []any{int64(2), int64(1), nil})
	hasTables(t, g)
	r = g.call("import", object{"path": "lines/?.jsonl"})
	same(t, "an entity after its relation", []any{g.call("get_entity", object{"entity_id": "x"})["entity"].(object)["type"], r["newer"]}, []any{"pump", nil})
	g.call("import", object{"path": "odd/[1].csv"})
	g.propertiesOf("odd")
	same(t, "one table", g.call("import", object{"path": "data/c-people.csv"})["entities"], int64(1))

	g.fails("import", object{"path": "none/*.csv"}, tea.NotFound, "no file matches none/*.csv")
	g.fails("import", object{"path": "../*.csv"}, tea.PermissionDenied, "")
	g.fails("import", object{"path": "data/none.csv"}, tea.NotFound, "none.csv does not exist")
	g.fails("import", object{"path": "empty/*.csv"}, tea.ValidationError, `x.csv: line 1: a table of entities has the column id, and one of relations the columns from, type and to; the columns are ["name"]`)
	g.fails("import", object{"path": "data/*", "format": "graphml"}, tea.ValidationError, "import GraphML files one by one")
}

// Each format is exported to and imported from a file:// URL as from a path.
func TestFileURLs(t *testing.T) {
	t.Parallel()
	g, root := inRoot(t, "memory")
	g.sample()
	want := g.contents()
	url := func(name string) string { return "file://" + filepath.ToSlash(root) + "/" + name }
	for format, name := range map[string]string{"jsonl": "a%20b.jsonl", "csv": "csv", "parquet": "parquet"} {
		r := g.call("export", object{"path": url(name), "format": format})
		for _, file := range r["files"].([]any) {
			if _, err := os.Stat(file.(string)); err != nil {
				t.Error(err)
			}
		}
		other := openWith(t, object{"graph": object{"backend": "memory", "path": t.TempDir()}, "file": object{"root": root}})
		other.call("import", object{"path": url(name), "format": format})
		same(t, format, other.contents(), want)
	}
	if _, err := os.Stat(filepath.Join(root, "a b.jsonl")); err != nil {
		t.Error(err)
	}
	other := openWith(t, object{"graph": object{"backend": "memory", "path": t.TempDir()}, "file": object{"root": root}})
	other.call("import", object{"path": url("parquet/*.parquet")})
	same(t, "a pattern", other.contents(), want)
	g.call("backup", object{"path": url("copy")})
	g.call("restore", object{"path": url("copy"), "confirm": true})
	same(t, "after the restore", g.contents(), want)
	for _, path := range []string{"file:///etc/passwd.csv", url("../x.csv"), url("%2e%2e/x.csv")} {
		g.fails("import", object{"path": path}, tea.PermissionDenied, "settings.file.root")
		g.fails("export", object{"path": path, "format": "jsonl"}, tea.PermissionDenied, "settings.file.root")
	}
	for _, path := range []string{"file://x.csv", "file://host/x.csv", "file:///x.csv?a=b"} {
		g.fails("import", object{"path": path, "format": "csv"}, tea.ValidationError, "is not the URL of a file on this device")
	}
}

func TestFilesOfAWebServerAreImported(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, tables)
	source := openWith(t, object{"graph": object{"backend": "memory", "path": t.TempDir()}, "file": object{"root": root}})
	source.sample()
	want := source.contents()
	for format, name := range map[string]string{"jsonl": "data/g.jsonl", "csv": "data/csv", "parquet": "data/parquet"} {
		source.call("export", object{"path": name, "format": format})
	}
	write(t, root, map[string]string{"secret.jsonl": `{"id":"secret"}`})
	files := http.FileServerFS(os.DirFS(root))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/data/moved.jsonl":
			http.Redirect(w, r, "/secret.jsonl", http.StatusFound)
		case "/data/broken.jsonl":
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			files.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	settings := func(storage string) object {
		return object{"graph": object{"backend": "memory", "path": t.TempDir(), "storage": storage}, "file": object{"root": root}}
	}
	for format, name := range map[string]string{"jsonl": "g.jsonl", "csv": "csv", "parquet": "parquet"} {
		g := openWith(t, settings(server.URL+"/data/"))
		g.call("import", object{"path": server.URL + "/data/" + name, "format": format})
		same(t, format, g.contents(), want)
	}
	g := openWith(t, settings(server.URL+"/data"))
	for _, name := range []string{"b-people.csv", "c-people.csv", "a-links.csv"} {
		g.call("import", object{"path": server.URL + "/data/" + name})
	}
	hasTables(t, g)
	for path, c := range map[string]struct {
		kind tea.ErrorType
		want string
	}{
		"/data/none.jsonl":           {tea.NotFound, "does not exist (status 404)"},
		"/data/moved.jsonl":          {tea.ValidationError, "redirects to /secret.jsonl, which is not followed"},
		"/data/broken.jsonl":         {tea.ConnectionError, "status 503"},
		"/data/*.csv":                {tea.ValidationError, "a web server does not list its files"},
		"/secret.jsonl":              {tea.PermissionDenied, "is not below settings.graph.storage"},
		"/data/../secret.jsonl":      {tea.ValidationError, ".."},
		"/data/%2e%2e/secret.jsonl":  {tea.ValidationError, ".."},
		"/database/secret.jsonl":     {tea.PermissionDenied, "is not below settings.graph.storage"},
		"/data/..%2f..%2fsecret.csv": {tea.ValidationError, ".."},
	} {
		g.fails("import", object{"path": server.URL + path}, c.kind, c.want)
	}
	g.fails("export", object{"path": server.URL + "/data/x.jsonl"}, tea.ValidationError, "cannot be written to a web server")
	open(t, object{"backend": "memory", "path": t.TempDir()}).fails("import", object{"path": server.URL + "/data/g.jsonl"}, tea.PermissionDenied, "set it to "+server.URL+"/ to allow")
	if _, err := g.try("get_entity", object{"entity_id": "secret"}); err == nil || !strings.Contains(err.Error(), "secret") {
		t.Errorf("what is not below storage was imported: %v", err)
	}
}
