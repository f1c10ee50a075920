package fulltext

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// put adds texts, the first one with ID 1; a bar separates fields.
func put(t testing.TB, x *Index, texts ...string) {
	t.Helper()
	for i, text := range texts {
		var fields []Field
		for _, f := range strings.Split(text, "|") {
			fields = append(fields, Field{Text: f})
		}
		if err := x.Put(Document{ID: int64(i + 1), Seq: x.Stats().Seq + 1, Fields: fields}); err != nil {
			t.Fatal(err)
		}
	}
}

func found(t testing.TB, x *Index, query string) []int64 {
	t.Helper()
	r, err := x.Search(context.Background(), query, SearchOptions{})
	if err != nil {
		t.Fatalf("Search(%q): %v", query, err)
	}
	var ids []int64
	for hit := range r.All() {
		ids = append(ids, hit.ID)
	}
	return ids
}

func TestQueries(t *testing.T) {
	t.Parallel()
	texts := []string{
		"The temperatures of the boiler were running high",       // 1
		"A runner runs past the café in the Straße",              // 2
		"state of the art | pumps and valves",                    // 3
		"the art of the state; a pump-valve",                     // 4
		"東京都に住む犬 | iPhone手機",                                     // 5
		"Temper, temper! It's the engineer's 2nd esp32 v1.25",    // 6
		strings.Repeat("x", 100) + " " + strings.Repeat("ß", 50), // 7
	}
	for _, c := range []struct {
		query string
		want  []int64
	}{
		{"temperature", []int64{1}},
		{"temperature*", []int64{1}},
		{"temper*", []int64{6, 1}},
		{"runn*", []int64{1, 2}},
		{"run", []int64{1, 2}},
		{"RUNS", []int64{1, 2}},
		{"cafe", []int64{2}},
		{"CAFÉ strasse", []int64{2}},
		{`"state of the art"`, []int64{3}},
		{`"art of the state"`, []int64{4}},
		{`"state art"`, nil},
		{`"art pumps"`, nil}, // of two fields
		{`"pump valve"`, []int64{4}},
		{`"pump valve" state`, []int64{4}},
		{`“the state”`, []int64{3, 4}},
		{`"state`, []int64{3, 4}},
		{`"pump" "art of"`, []int64{3, 4}},
		{"東京", []int64{5}},
		{"都", []int64{5}},
		{"犬", []int64{5}},
		{"京都に", []int64{5}},
		{`"東京都"`, []int64{5}},
		{`"東都"`, nil},
		{"手", []int64{5}},
		{"iphone", []int64{5}},
		{"engineer", []int64{6}},
		{"2ND", []int64{6}},
		{`"1 25"`, nil},
		{`"v1.25"`, []int64{6}},
		{"esp*", []int64{6}},
		{strings.Repeat("X", 70), []int64{7}},
		{strings.Repeat("s", 99), []int64{7}},
		{"the", nil},
		{`"of the"`, nil},
		{"", nil},
		{" * ** \"\" \" ? ", nil},
		{"absent", nil},
		{"absent*", nil},
	} {
		t.Run(c.query, func(t *testing.T) {
			t.Parallel()
			x := mustOpen(t, t.TempDir(), "english")
			defer x.Close()
			put(t, x, texts...)
			for _, where := range []string{"in memory", "on disk"} {
				if diff := cmp.Diff(c.want, found(t, x, c.query)); diff != "" {
					t.Errorf("Search(%q) %s (-want +got):\n%s", c.query, where, diff)
				}
				if err := x.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestChangesShowAtOnce(t *testing.T) {
	t.Parallel()
	x := mustOpen(t, t.TempDir(), "")
	defer x.Close()
	put(t, x, "alpha", "beta")
	if err := x.Flush(); err != nil {
		t.Fatal(err)
	}
	put(t, x, "gamma")
	if got := found(t, x, "alpha"); got != nil {
		t.Errorf("a replaced document is found: %v", got)
	}
	if got := found(t, x, "gamma beta"); len(got) != 2 {
		t.Errorf("found %v, want both", got)
	}
	if err := x.Delete(2, 4); err != nil {
		t.Fatal(err)
	}
	if err := x.Delete(77, 5); err != nil {
		t.Errorf("Delete of nothing: %v", err)
	}
	if got := found(t, x, "beta"); got != nil || x.Len() != 1 {
		t.Errorf("a deleted document is found: %v of %d", got, x.Len())
	}
	if err := x.Put(Document{ID: 3, Seq: 5}); !errors.Is(err, ErrSeq) {
		t.Errorf("Put of an old change: %v", err)
	}
	if got := x.Watermark(); got != 2 {
		t.Errorf("Watermark() = %d, want 2", got)
	}
	if err := x.Flush(); err != nil || x.Watermark() != 5 {
		t.Errorf("Watermark() = %d after Flush, want 5: %v", x.Watermark(), err)
	}
}

func TestLanguages(t *testing.T) {
	t.Parallel()
	_, err := Open(t.TempDir(), Options{Language: "klingon"})
	if err == nil || !strings.Contains(err.Error(), `"klingon" is not supported; use one of arabic, danish,`) {
		t.Errorf("Open: %v", err)
	}
	for language, c := range map[string]struct{ text, query, stop string }{
		"german":  {"Die Häuser der Städte", "haus*", "die der"},
		"french":  {"les chevaux et les fenêtres", "fenetre", "les et"},
		"russian": {"Русский язык и ёлки", "русская ёлка", "и"},
		"turkish": {"Işıkları söndürdüm", "ışıklar", "için"},
		"arabic":  {"الكِتَابُ على الطاولة", "كتاب", "على"},
		"tamil":   {"தமிழ் மொழி", "தமிழ்", "ஒரு"},
		"none":    {"the pumps", "the", ""},
	} {
		x := mustOpen(t, t.TempDir(), language)
		put(t, x, c.text)
		if got := found(t, x, c.query); len(got) != 1 {
			t.Errorf("%s: %q does not find %q", language, c.query, c.text)
		}
		if got := found(t, x, c.stop); got != nil {
			t.Errorf("%s: the stop word %q finds something", language, c.stop)
		}
		x.Close()
	}
}

func TestRankedReturnsEverythingInOrder(t *testing.T) {
	t.Parallel()
	x := mustOpen(t, t.TempDir(), "")
	defer x.Close()
	var texts []string
	for i := range 3000 {
		texts = append(texts, "valve"+strings.Repeat(" pump", i%7))
	}
	put(t, x, texts...)
	r, err := x.Search(context.Background(), "valve", SearchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []int64{8, 22, 36, 50, 64}
	var got []int64
	for hit := range r.All() {
		if hit.ID%2 == 0 {
			got = append(got, hit.ID)
		}
		if len(got) == len(want) {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || r.Len() != 3000 || len(r.done) > 20 {
		t.Errorf("sorted %d of %d (-want +got):\n%s", len(r.done), r.Len(), diff)
	}
	r, _ = x.Search(context.Background(), "valve", SearchOptions{})
	all := r.Top(5000)
	if len(all) != 3000 {
		t.Fatalf("Top gave %d", len(all))
	}
	for i := range all[1:] {
		if !all[i].before(all[i+1]) {
			t.Fatalf("hits %d: %v", i, all[i:i+2])
		}
	}
	if got := r.Top(2); got[0] != all[0] || got[1] != all[1] {
		t.Errorf("Top(2) after Top(5000) = %v", got)
	}
}

// TestHostileQueriesAreBounded also sees that the part that counts is used.
func TestHostileQueriesAreBounded(t *testing.T) {
	t.Parallel()
	x := mustOpen(t, t.TempDir(), "")
	defer x.Close()
	var texts []string
	for i := range 3000 {
		texts = append(texts, fmt.Sprintf("valve w%d a%d", i, i))
	}
	put(t, x, texts...)
	var manyWords, manyPrefixes strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&manyWords, "w%d ", i)
		fmt.Fprintf(&manyPrefixes, "w%d* ", i)
	}
	for name, c := range map[string]struct {
		query string
		hits  int
	}{
		"words":       {manyWords.String(), maxTerms},
		"prefixes":    {manyPrefixes.String(), -1},
		"one prefix":  {"a*", maxForms},
		"long":        {"valve " + strings.Repeat("z", 100<<10), 3000},
		"long phrase": {`"` + strings.Repeat("valve ", 1000) + `"`, 0},
		"quotes":      {strings.Repeat(`"valve" `, 1000), 3000},
		"stars":       {"valve " + strings.Repeat("* ", 50<<10), 3000},
		"accents":     {"valve" + strings.Repeat("\u0301", 50<<10), 3000},
	} {
		r, err := x.Search(context.Background(), c.query, SearchOptions{})
		if err != nil || !r.Cut() || c.hits >= 0 && r.Len() != c.hits {
			t.Errorf("%s: %d hits, want %d; cut %v: %v", name, r.Len(), c.hits, r.Cut(), err)
		}
	}
}

func TestACanceledSearchStops(t *testing.T) {
	t.Parallel()
	x := mustOpen(t, t.TempDir(), "")
	put(t, x, "valve")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := x.Search(ctx, "valve", SearchOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Search: %v", err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
	_, err := x.Search(context.Background(), "valve", SearchOptions{})
	for _, err := range []error{err, x.Put(Document{ID: 1, Seq: 9}), x.Flush(), x.Reset(), x.Delete(1, 9)} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
}

// Stats describes an index at one moment.
type Stats struct {
	Documents, Dead int
	Words           int64
	Segments        int
	DiskBytes       int64
	Seq, Watermark  int64
}

func (x *Index) Stats() Stats {
	x.mu.RLock()
	defer x.mu.RUnlock()
	st := Stats{Segments: len(x.segments), Seq: x.seq, Watermark: x.watermark}
	for _, p := range x.parts() {
		st.Documents += len(p.ids) - p.gone
		st.Dead += p.gone
		st.Words += p.live
	}
	for _, s := range x.segments {
		st.DiskBytes += s.size
	}
	return st
}

// Len returns the number of documents.
func (x *Index) Len() int { return x.Stats().Documents }

// quiet merges what there is to merge and returns when it is done.
func (x *Index) quiet() error { return x.mergeAll() }
