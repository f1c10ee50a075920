package graph_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/graph"
	tea "github.com/the-edge-agent/tea/sdk"
)

func TestSettingsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		settings object
		kind     tea.ErrorType
		text     string
	}{
		{object{"graph": object{"path": "s3://b/g"}}, tea.ValidationError, "settings.graph.path: s3://b/g is an address, and a graph is in a folder of this device; set settings.graph.storage to export to and import from s3://"},
		{object{"graph_path": "gs://b/g"}, tea.ValidationError, "is an address"},
		{object{"graph": object{"path": "~/g"}}, tea.ValidationError, "~/g: ~ is not expanded; write ${HOME} instead"},
		{object{"graph": object{"path": "/work/flow/~/g"}}, tea.ValidationError, "~ is not expanded"},
		{object{"graph_storage": "s3://b/graph/"}, tea.DependencyMissing, "this build of the graph plugin does not include object storage at s3://: install tea-plugin-graph-cloud in its place (scripts/build cloud), or link it into a program with `tea build --with graph[s3]`"},
		{object{"graph": object{"storage": "az://b"}}, tea.DependencyMissing, "graph[azure]"},
		{object{"graph_storage": "ftp://b/graph/"}, tea.ValidationError, "settings.graph.storage: addresses that begin with ftp:// are not supported; use file://, s3://, gs:// or azblob://"},
		{object{"graph_storage": "bucket/graph"}, tea.ValidationError, "settings.graph.storage: an address of object storage looks like s3://bucket/prefix"},
		{object{"graph_backend": "cozo", "graph": object{"backend": "memory"}}, tea.ValidationError, "settings.graph.backend is memory and settings.graph_backend is cozo, which mean the same setting; remove one of them"},
		{object{"graph_backend": "cozo", "graph_backend_type": "kuzu"}, tea.ValidationError, "settings.graph_backend is cozo and settings.graph_backend_type is cypher"},
		{object{"graph_path": "/a", "graph": object{"path": "/b"}}, tea.ValidationError, "settings.graph.path is /b and settings.graph_path is /a"},
		{object{"graph": object{"memory_mb": 99_999_999}}, tea.ValidationError, "memory_mb"},
		{object{"graph_backend": "oracle"}, tea.ValidationError, `unknown backend "oracle"`},
	} {
		raw := tea.Settings{}
		for key, v := range c.settings {
			raw[key] = encode(t, v)
		}
		bundle := graph.Bundle()
		_, err := bundle.NewInstance(t.Context(), raw)
		if err == nil || tea.AsError(err).Type != c.kind || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v: %v", c.settings, err)
		}
	}
}

func TestAliasesThatAgree(t *testing.T) {
	t.Parallel()
	g := openWith(t, object{"graph_backend": "bighorn", "graph_backend_type": "kuzu", "graph": object{"backend": "cypher", "path": t.TempDir()}})
	g.needLibrary()
	same(t, "backend", g.call("stats", object{})["backend"], "cypher")
}

func TestAddressesInABuildWithoutObjectStorage(t *testing.T) {
	t.Parallel()
	g := open(t, object{"backend": "memory", "path": t.TempDir()})
	g.fails("export", object{"path": "s3://b/x.jsonl"}, tea.DependencyMissing, "path s3://b/x.jsonl: this build of the graph plugin does not include object storage at s3://")
	g.fails("import", object{"path": "gs://b/x.jsonl"}, tea.DependencyMissing, "graph[gcs]")
	g.fails("import", object{"path": "ftp://b/x.jsonl"}, tea.ValidationError, "addresses that begin with ftp:// are not supported; use file://, s3://, gs:// or azblob://, or https:// to import")
	g.fails("import", object{"path": "https://b/x.jsonl"}, tea.PermissionDenied, "set it to https://b/")
	g.fails("backup", object{"path": "s3://b/x"}, tea.ValidationError, "a backup is in a folder of this device")
	g.fails("restore", object{"path": "s3://b/x", "confirm": true}, tea.ValidationError, "a backup is in a folder of this device")
}

// Settings of the file actions, such as those that tea serve adds, made every graph
// action fail.
func TestSettingsOfTheFileActionsAreAccepted(t *testing.T) {
	t.Parallel()
	data, own := t.TempDir(), t.TempDir()
	g := openWith(t, object{
		"graph": object{"backend": "memory", "path": t.TempDir()},
		"file":  object{"root": data, "fallback": own, "read": []any{"/sys"}, "write": []any{"/var/log"}},
	})
	g.call("export", object{"path": "all.jsonl"})
	g.call("backup", object{"path": "copy"})
	for _, name := range []string{"all.jsonl", "copy"} {
		if _, err := os.Stat(filepath.Join(data, name)); err != nil {
			t.Error(err)
		}
	}
	// Files next to the workflow are read.
	for _, name := range []string{"all.jsonl", "copy"} {
		if err := os.Rename(filepath.Join(data, name), filepath.Join(own, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"all.jsonl", "al*.jsonl", "file://" + own + "/all.jsonl"} {
		g.call("import", object{"path": name})
	}
	g.call("restore", object{"path": "copy", "confirm": true})
	g.fails("import", object{"path": "none.jsonl"}, tea.NotFound, filepath.Join(data, "none.jsonl"))
	g.fails("import", object{"path": "file://" + own + "/none.jsonl"}, tea.NotFound, filepath.Join(own, "none.jsonl"))
	g.fails("restore", object{"path": "none", "confirm": true}, tea.NotFound, filepath.Join(data, "none"))
	g.fails("import", object{"path": "file:///etc/none.jsonl"}, tea.PermissionDenied, "settings.file.root")
}
