package replay

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/internal/execpath"
)

// journalOf numbers records, a second apart.
func journalOf(records ...checkpoint.Record) []checkpoint.Record {
	for i := range records {
		records[i].Seq = uint64(i + 1)
		records[i].Time = time.Unix(int64(i), 0)
	}
	return records
}

func rec(kind, path, body string) checkpoint.Record {
	return checkpoint.Record{Kind: kind, Path: path, Body: []byte(body)}
}

// view is what a table compares of a replay.
type view struct {
	Done   bool
	Used   flow.Usage
	Nodes  []execpath.Path // that count at the top
	Failed []execpath.Path // branches whose outcome counts
	Begun  []execpath.Path
	Worked time.Duration
}

func viewOf(p *Replay) view {
	v := view{Done: p.Done, Used: p.Used, Begun: slices.Sorted(maps.Keys(p.begun)), Worked: p.Worked}
	for _, path := range slices.Sorted(maps.Keys(p.nodes)) {
		if p.Node(path, 0) != nil {
			v.Nodes = append(v.Nodes, path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(p.branches)) {
		if p.Branch(path, 0) != nil {
			v.Failed = append(v.Failed, path)
		}
	}
	return v
}

func TestReplay(t *testing.T) {
	t.Parallel()
	const failed = `{"err": {"error": "no", "error_type": "timeout"}, "timeout": false, "ms": 1, "retries": 0, "circuit": ""}`
	start := rec("start", "", `{"input": {"x": 1}}`)
	mapOfTwo := []checkpoint.Record{
		start, rec("node", "a", `{"to": "each"}`), rec("node", "each[0]", `{"r": 1}`), rec("branch", "each[1]", failed),
		rec("node", "each", `{"to": "j"}`), rec("node", "j", `{"to": "__end__"}`),
	}
	tests := []struct {
		name    string
		records []checkpoint.Record
		retry   bool
		want    view
	}{
		{"the start alone", []checkpoint.Record{start}, false, view{}},
		{
			"nodes and where they lead",
			[]checkpoint.Record{start, rec("node", "__start__", `{"to": "a"}`), rec("node", "a", `{"r": {"y": 2}, "to": "__end__"}`)},
			false,
			view{Used: flow.Usage{Steps: 1}, Nodes: []execpath.Path{"__start__", "a"}, Worked: 2 * time.Second},
		},
		{
			"a status that counts",
			[]checkpoint.Record{start, rec("node", "a", `{"use": {"tokens": 5}}`), rec("status", "", `{"status": "done", "usage": {"tokens": 7, "seconds": 3}}`)},
			false,
			view{Done: true, Used: flow.Usage{Steps: 1, Tokens: 7}, Nodes: []execpath.Path{"a"}, Worked: 3 * time.Second},
		},
		{
			"done, and continued since",
			[]checkpoint.Record{start, rec("status", "", `{"status": "done"}`), rec("node", "a", `{}`)},
			false,
			view{Used: flow.Usage{Steps: 1}, Nodes: []execpath.Path{"a"}, Worked: 2 * time.Second},
		},
		{
			"containers that have begun",
			[]checkpoint.Record{start, rec("node", "l[0]/m[2]/x", `{}`), rec("node", "a>b/y", `{}`)},
			false,
			view{Used: flow.Usage{Steps: 2}, Nodes: []execpath.Path{"a>b/y", "l[0]/m[2]/x"}, Begun: []execpath.Path{"a", "a>b", "l", "l[0]", "l[0]/m", "l[0]/m[2]"}, Worked: 2 * time.Second},
		},
		{
			"a session after a pause",
			[]checkpoint.Record{start, rec("node", "a", `{}`), rec("session", "", `{}`), rec("node", "b", `{}`)},
			false,
			view{Used: flow.Usage{Steps: 2}, Nodes: []execpath.Path{"a", "b"}, Worked: 2 * time.Second},
		},
		{
			"usage of a node that was killed",
			[]checkpoint.Record{start, rec("usage", "a", `{"tokens": 400}`), rec("usage", "a", `{"tokens": 500, "usd": 0.5}`)},
			false,
			view{Used: flow.Usage{Tokens: 900, USD: 0.5}, Worked: 2 * time.Second},
		},
		{
			"usage that the node's record holds",
			[]checkpoint.Record{start, rec("usage", "a", `{"tokens": 400}`), rec("node", "a", `{"use": {"tokens": 450}}`)},
			false,
			view{Used: flow.Usage{Steps: 1, Tokens: 450}, Nodes: []execpath.Path{"a"}, Worked: 2 * time.Second},
		},
		{
			"usage that a status holds",
			[]checkpoint.Record{start, rec("usage", "a", `{"tokens": 400}`), rec("status", "", `{"status": "failed", "usage": {"tokens": 400}}`), rec("usage", "a", `{"tokens": 100}`), rec("node", "a", `{"use": {"tokens": 100}}`)},
			false,
			view{Used: flow.Usage{Steps: 1, Tokens: 500}, Nodes: []execpath.Path{"a"}, Worked: 2 * time.Second},
		},
		{
			"a kind that is not known",
			[]checkpoint.Record{start, rec("later", "a/b", `{"x": 1}`), rec("node", "a", `{}`)},
			false,
			view{Used: flow.Usage{Steps: 1}, Nodes: []execpath.Path{"a"}, Worked: 2 * time.Second},
		},
		{
			"a failed item", mapOfTwo, false,
			view{Used: flow.Usage{Steps: 4}, Nodes: []execpath.Path{"a", "each", "each[0]", "j"}, Failed: []execpath.Path{"each[1]"}, Begun: []execpath.Path{"each"}, Worked: 5 * time.Second},
		},
		{
			"a failed item to run again", mapOfTwo, true,
			view{Used: flow.Usage{Steps: 4}, Nodes: []execpath.Path{"a", "each[0]", "j"}, Begun: []execpath.Path{"each"}, Worked: 5 * time.Second},
		},
		{
			"a failed item that runs again", append(slices.Clone(mapOfTwo), rec("retry", "", `{"paths": ["each[1]"]}`)), false,
			view{Used: flow.Usage{Steps: 4}, Nodes: []execpath.Path{"a", "each[0]", "j"}, Begun: []execpath.Path{"each"}, Worked: 6 * time.Second},
		},
		{
			"a failed item that has failed again", append(slices.Clone(mapOfTwo), rec("retry", "", `{"paths": ["each[1]"]}`), rec("branch", "each[1]", failed), rec("node", "each", `{"to": "j"}`)), false,
			view{Used: flow.Usage{Steps: 5}, Nodes: []execpath.Path{"a", "each", "each[0]", "j"}, Failed: []execpath.Path{"each[1]"}, Begun: []execpath.Path{"each"}, Worked: 8 * time.Second},
		},
		{
			"a map that has begun",
			[]checkpoint.Record{start, rec("node", "a>b/c", `{}`), rec("begin", "a>b/each~2", `{"value": null}`)},
			false,
			view{Used: flow.Usage{Steps: 1}, Nodes: []execpath.Path{"a>b/c"}, Begun: []execpath.Path{"a", "a>b", "a>b/each", "a>b/each~2"}, Worked: 2 * time.Second},
		},
		{
			"an inner branch to run again",
			[]checkpoint.Record{start, rec("node", "x", `{}`), rec("node", "x>y/a", `{}`), rec("branch", "x>y/a>b", failed), rec("node", "x>y/s/t", `{}`), rec("node", "x>y/s", `{}`)},
			true,
			view{Used: flow.Usage{Steps: 4}, Nodes: []execpath.Path{"x", "x>y/a", "x>y/s", "x>y/s/t"}, Begun: []execpath.Path{"x", "x>y", "x>y/a", "x>y/s"}, Worked: 5 * time.Second},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			records := journalOf(slices.Clone(test.records)...)
			p, err := New(records, nil, test.retry)
			if err != nil {
				t.Fatal(err)
			}
			if test.retry {
				p.Retry(records[len(records)-1].Seq)
			}
			if diff := cmp.Diff(test.want, viewOf(p)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got := p.Start.Input["x"]; got != int64(1) {
				t.Errorf("the input's x is %v", got)
			}
		})
	}
}

// A retry takes back what follows in the frames around, where they ask.
func TestRecordsRevokedByARetryAreIgnored(t *testing.T) {
	t.Parallel()
	p, err := New(journalOf(
		rec("start", "", `{}`), rec("node", "a", `{}`), rec("branch", "a>b", `{}`), rec("node", "j", `{}`),
		rec("answer", "j", `{"id": "j:before", "value": null}`),
		rec("begin", "a>b/m", `{"value": [1]}`), rec("begin", "m", `{"value": [1]}`), rec("retry", "", `{"paths": ["a>b"]}`), rec("node", "k", `{}`),
	), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	void := p.Redone("a>b")
	for path, counts := range map[execpath.Path]bool{"a": false, "j": false, "k": true} {
		if got := p.Node(path, void) != nil; got != counts {
			t.Errorf("the record of %s counts: %v", path, got)
		}
	}
	if _, counts := p.Answer("j:before", void); counts {
		t.Error("the answer of before the retry counts")
	}
	if p.Begin("a>b/m", 0) == nil {
		t.Error("the items inside the branch are taken back")
	}
	if p.Begin("m", void) != nil {
		t.Error("the items of before the retry count")
	}
	if p.Node("a", 0) == nil {
		t.Error("the node in front of the branches is taken back")
	}
}

func TestPendingOmitsRevokedInterrupts(t *testing.T) {
	t.Parallel()
	wait := func(path string) checkpoint.Record {
		return rec("interrupt", path, `{"id": "`+path+`:before", "kind": "before", "node": "n"}`)
	}
	for name, test := range map[string]struct {
		records []checkpoint.Record
		want    []string
	}{
		"node ended":          {[]checkpoint.Record{wait("n"), rec("node", "n", `{}`)}, nil},
		"branch failed":       {[]checkpoint.Record{wait("a>b/n"), wait("a>c/n"), rec("branch", "a>b", `{}`)}, []string{"a>c/n:before"}},
		"map tried again":     {[]checkpoint.Record{wait("m[1]/n"), rec("attempt", "m", `{"n": 2}`), wait("m~2[1]/n")}, []string{"m~2[1]/n:before"}},
		"item tried again":    {[]checkpoint.Record{wait("m[1]/n"), wait("m[2]/n"), rec("attempt", "m[1]", `{"n": 2}`)}, []string{"m[2]/n:before"}},
		"behind a branch":     {[]checkpoint.Record{wait("n"), rec("retry", "", `{"paths": ["a>b"]}`)}, nil},
		"behind an item":      {[]checkpoint.Record{wait("n"), rec("retry", "", `{"paths": ["m[1]"]}`)}, nil},
		"behind, in a frame":  {[]checkpoint.Record{wait("s/n"), rec("retry", "", `{"paths": ["s/m[1]"]}`)}, nil},
		"behind, around":      {[]checkpoint.Record{wait("n"), rec("retry", "", `{"paths": ["s/m[1]"]}`)}, nil},
		"next to a branch":    {[]checkpoint.Record{wait("a>c/n"), rec("retry", "", `{"paths": ["a>b"]}`)}, []string{"a>c/n:before"}},
		"next to an item":     {[]checkpoint.Record{wait("m[2]/n"), rec("retry", "", `{"paths": ["m[1]"]}`)}, []string{"m[2]/n:before"}},
		"next to, around":     {[]checkpoint.Record{wait("m[2]/n"), rec("retry", "", `{"paths": ["m[1]/a>b"]}`)}, []string{"m[2]/n:before"}},
		"behind, next around": {[]checkpoint.Record{wait("m[1]/n"), rec("retry", "", `{"paths": ["m[1]/a>b"]}`)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pending, err := Pending(journalOf(append([]checkpoint.Record{rec("start", "", `{}`)}, test.records...)...), nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, i := range pending {
				got = append(got, i.ID)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
