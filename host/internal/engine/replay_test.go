package engine

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
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
	Nodes  []string // that count at the top
	Failed []string // branches whose outcome counts
	Begun  []string
	Worked time.Duration
}

func viewOf(p *replay) view {
	v := view{Done: p.done, Used: p.used, Begun: slices.Sorted(maps.Keys(p.begun)), Worked: p.worked}
	for _, path := range slices.Sorted(maps.Keys(p.nodes)) {
		if p.node(path, 0) != nil {
			v.Nodes = append(v.Nodes, path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(p.branches)) {
		if _, counts := p.branch(path, 0); counts {
			v.Failed = append(v.Failed, path)
		}
	}
	return v
}

func TestReplay(t *testing.T) {
	t.Parallel()
	const failed = `{"err": {"error": "no", "error_type": "timeout"}, "timeout": false, "ms": 1, "retries": 0, "circuit": ""}`
	start := rec(kindStart, "", `{"input": {"x": 1}}`)
	mapOfTwo := []checkpoint.Record{
		start, rec(kindNode, "a", `{"to": "each"}`), rec(kindNode, "each[0]", `{"r": 1}`), rec(kindBranch, "each[1]", failed),
		rec(kindNode, "each", `{"to": "j"}`), rec(kindNode, "j", `{"to": "__end__"}`),
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
			[]checkpoint.Record{start, rec(kindNode, "__start__", `{"to": "a"}`), rec(kindNode, "a", `{"r": {"y": 2}, "to": "__end__"}`)},
			false,
			view{Used: flow.Usage{Steps: 1}, Nodes: []string{"__start__", "a"}, Worked: 2 * time.Second},
		},
		{
			"a status that counts",
			[]checkpoint.Record{start, rec(kindNode, "a", `{"use": {"tokens": 5}}`), rec(kindStatus, "", `{"status": "done", "usage": {"tokens": 7, "seconds": 3}}`)},
			false,
			view{Done: true, Used: flow.Usage{Steps: 1, Tokens: 7}, Nodes: []string{"a"}, Worked: 3 * time.Second},
		},
		{
			"done, and continued since",
			[]checkpoint.Record{start, rec(kindStatus, "", `{"status": "done"}`), rec(kindNode, "a", `{}`)},
			false,
			view{Used: flow.Usage{Steps: 1}, Nodes: []string{"a"}, Worked: 2 * time.Second},
		},
		{
			"containers that have begun",
			[]checkpoint.Record{start, rec(kindNode, "l[0]/m[2]/x", `{}`), rec(kindNode, "a>b/y", `{}`)},
			false,
			view{Used: flow.Usage{Steps: 2}, Nodes: []string{"a>b/y", "l[0]/m[2]/x"}, Begun: []string{"a", "a>b", "l", "l[0]", "l[0]/m", "l[0]/m[2]"}, Worked: 2 * time.Second},
		},
		{
			"a session after a pause",
			[]checkpoint.Record{start, rec(kindNode, "a", `{}`), rec(kindSession, "", `{}`), rec(kindNode, "b", `{}`)},
			false,
			view{Used: flow.Usage{Steps: 2}, Nodes: []string{"a", "b"}, Worked: 2 * time.Second},
		},
		{
			"usage of a node that was killed",
			[]checkpoint.Record{start, rec(kindUsage, "a", `{"tokens": 400}`), rec(kindUsage, "a", `{"tokens": 500, "usd": 0.5}`)},
			false,
			view{Used: flow.Usage{Tokens: 900, USD: 0.5}, Worked: 2 * time.Second},
		},
		{
			"usage that the node's record holds",
			[]checkpoint.Record{start, rec(kindUsage, "a", `{"tokens": 400}`), rec(kindNode, "a", `{"use": {"tokens": 450}}`)},
			false,
			view{Used: flow.Usage{Steps: 1, Tokens: 450}, Nodes: []string{"a"}, Worked: 2 * time.Second},
		},
		{
			"usage that a status holds",
			[]checkpoint.Record{start, rec(kindUsage, "a", `{"tokens": 400}`), rec(kindStatus, "", `{"status": "failed", "usage": {"tokens": 400}}`), rec(kindUsage, "a", `{"tokens": 100}`), rec(kindNode, "a", `{"use": {"tokens": 100}}`)},
			false,
			view{Used: flow.Usage{Steps: 1, Tokens: 500}, Nodes: []string{"a"}, Worked: 2 * time.Second},
		},
		{
			"a kind that is not known",
			[]checkpoint.Record{start, rec("later", "a/b", `{"x": 1}`), rec(kindNode, "a", `{}`)},
			false,
			view{Used: flow.Usage{Steps: 1}, Nodes: []string{"a"}, Worked: 2 * time.Second},
		},
		{
			"a failed item", mapOfTwo, false,
			view{Used: flow.Usage{Steps: 4}, Nodes: []string{"a", "each", "each[0]", "j"}, Failed: []string{"each[1]"}, Begun: []string{"each"}, Worked: 5 * time.Second},
		},
		{
			"a failed item to run again", mapOfTwo, true,
			view{Used: flow.Usage{Steps: 4}, Nodes: []string{"a", "each[0]", "j"}, Begun: []string{"each"}, Worked: 5 * time.Second},
		},
		{
			"a failed item that runs again", append(slices.Clone(mapOfTwo), rec(kindRetry, "", `{"paths": ["each[1]"]}`)), false,
			view{Used: flow.Usage{Steps: 4}, Nodes: []string{"a", "each[0]", "j"}, Begun: []string{"each"}, Worked: 6 * time.Second},
		},
		{
			"a failed item that has failed again", append(slices.Clone(mapOfTwo), rec(kindRetry, "", `{"paths": ["each[1]"]}`), rec(kindBranch, "each[1]", failed), rec(kindNode, "each", `{"to": "j"}`)), false,
			view{Used: flow.Usage{Steps: 5}, Nodes: []string{"a", "each", "each[0]", "j"}, Failed: []string{"each[1]"}, Begun: []string{"each"}, Worked: 8 * time.Second},
		},
		{
			"an inner branch to run again",
			[]checkpoint.Record{start, rec(kindNode, "x", `{}`), rec(kindNode, "x>y/a", `{}`), rec(kindBranch, "x>y/a>b", failed), rec(kindNode, "x>y/s/t", `{}`), rec(kindNode, "x>y/s", `{}`)},
			true,
			view{Used: flow.Usage{Steps: 4}, Nodes: []string{"x", "x>y/a", "x>y/s", "x>y/s/t"}, Begun: []string{"x", "x>y", "x>y/a", "x>y/s"}, Worked: 5 * time.Second},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			records := journalOf(slices.Clone(test.records)...)
			p, err := newReplay(records, nil, test.retry)
			if err != nil {
				t.Fatal(err)
			}
			if test.retry {
				p.retryFailed(records[len(records)-1].Seq)
			}
			if diff := cmp.Diff(test.want, viewOf(p)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got := p.start["x"]; got != int64(1) {
				t.Errorf("the input's x is %v", got)
			}
		})
	}
}

// A retry takes back what follows in the frames around, where they ask.
func TestRecordsBehindARetryAreVoid(t *testing.T) {
	t.Parallel()
	p, err := newReplay(journalOf(
		rec(kindStart, "", `{}`), rec(kindNode, "a", `{}`), rec(kindBranch, "a>b", `{}`), rec(kindNode, "j", `{}`),
		rec(kindAnswer, "j", `{"id": "j:before", "value": null}`), rec(kindRetry, "", `{"paths": ["a>b"]}`), rec(kindNode, "k", `{}`),
	), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	void := p.redone["a>b"]
	for path, counts := range map[string]bool{"a": false, "j": false, "k": true} {
		if got := p.node(path, void) != nil; got != counts {
			t.Errorf("the record of %s counts: %v", path, got)
		}
	}
	if !p.isStale(kindAnswer, "j:before", void) {
		t.Error("the answer of before the retry counts")
	}
	if p.node("a", 0) == nil {
		t.Error("the node in front of the branches is taken back")
	}
}
