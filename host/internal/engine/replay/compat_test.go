package replay

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/host/internal/secret"
	"github.com/the-edge-agent/tea/internal/execpath"
)

// everyKind are the records of a run that tea 0.1 has written: resumed with
// input, answered, its failed branch retried.
func everyKind(t *testing.T) ([]checkpoint.Record, *secret.Set) {
	t.Helper()
	return released(t, "every-kind.tea")
}

// released are the records of a released file of format v1.
func released(t *testing.T, name string) ([]checkpoint.Record, *secret.Set) {
	t.Helper()
	contents, err := checkpoint.Read(filepath.Join("..", "..", "..", "..", "test", "compat", "v1", name))
	if err != nil {
		t.Fatal(err)
	}
	return contents.Records, secret.New(map[string]any{"token": "tops3cret"}, nil)
}

// A failure means that the records of a user's run are read differently than
// they were meant, or written in another way.
func TestRecordsOfFormatV1AreWrittenAsTheyWereRead(t *testing.T) {
	t.Parallel()
	records, secrets := everyKind(t)
	begin, _ := released(t, "begin.tea")
	for _, rec := range slices.Concat(records, begin) {
		body := newRecord(rec.Kind)
		if body == nil {
			t.Fatalf("record %d has the unknown kind %q", rec.Seq, rec.Kind)
		}
		if err := decode(rec, body, secrets.Unseal); err != nil {
			t.Fatal(err)
		}
		got, err := Encode(execpath.Path(rec.Path), body, secrets)
		if err != nil {
			t.Fatal(err)
		}
		got.Seq, got.Time = rec.Seq, rec.Time
		if diff := cmp.Diff(rec, got); diff != "" {
			t.Errorf("record %d (-want +got):\n%s", rec.Seq, diff)
		}
	}
}

func TestReplayOfFormatV1(t *testing.T) {
	t.Parallel()
	records, secrets := everyKind(t)
	p, err := New(records, secrets, false)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]any{"x": int64(9007199254740993), "tok": "tops3cret"}; !cmp.Equal(p.Start.Input, want) {
		t.Errorf("the input: %s", cmp.Diff(want, p.Start.Input))
	}
	begin := p.Node("begin", 0)
	want := &Node{
		Result: map[string]any{"n": int64(1), "big": int64(9007199254740992), "text": "a\x00b"},
		Route:  Route{To: "fan"},
	}
	if diff := cmp.Diff(want, begin); diff != "" {
		t.Errorf("the node begin (-want +got):\n%s", diff)
	}
	if got := p.Inputs("begin:resume"); len(got) != 1 || !cmp.Equal(got[0].Values, map[string]any{"given": []any{int64(1), 2.0}}) {
		t.Errorf("the input of the resume: %v", got)
	}
	ask, ok := p.Interrupt("asking:ask", 0)
	if !ok || ask.Question != "go on, tops3cret?" || ask.OnTimeout != "default" || ask.Deadline.Sub(ask.AskedAt) != 24*time.Hour {
		t.Errorf("the question: %+v", ask)
	}
	if p.Done || p.Redone("fan>right") == 0 || p.Attempt("fan>right") != 2 {
		t.Errorf("the retry is not seen: done %v, void up to %d, attempt %d", p.Done, p.Redone("fan>right"), p.Attempt("fan>right"))
	}
	pending, err := Pending(records, secrets)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(pending, func(i flow.Interrupt) bool { return i.ID == "asking:ask" }) {
		t.Errorf("pending: %v", pending)
	}
}

func TestBeginOfFormatV1(t *testing.T) {
	t.Parallel()
	records, secrets := released(t, "begin.tea")
	p, err := New(records, secrets, false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&Begin{Value: []any{"old1", "old2", "tops3cret"}}, p.Begin("m", 0)); diff != "" {
		t.Errorf("the items of the map (-want +got):\n%s", diff)
	}
	if got, want := p.Node("m", 0).Update, map[string]any{"at": "there"}; !cmp.Equal(got, want) {
		t.Errorf("the output of the map: %s", cmp.Diff(want, got))
	}
}

func TestRecordThatDoesNotFit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ body, want string }{
		"not an object":        {`[]`, "record 1 (node a): the body is array, not an object"},
		"update not an object": {`{"u": 1}`, "record 1 (node a): u: not an object"},
		"wrong type":           {`{"to": 1}`, "record 1 (node a): to: cannot store integer in a Go string"},
		"a secret is missing":  {`{"r": "\u0000sgone\u0000"}`, "record 1 (node a): " + (&secret.MissingError{Name: "gone"}).Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New(journalOf(rec(KindNode, "a", test.body)), nil, false)
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}
