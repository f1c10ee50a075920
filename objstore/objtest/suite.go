package objtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/objstore"
)

// Run runs the suite of a driver on a separate server.
func Run(t *testing.T, s *Server, scheme objstore.Scheme) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, b *objstore.Bucket){
		"objects": objects, "ranges": ranges, "conditions": conditions, "counter": counter, "large": large, "unfinished": unfinished,
		"list": list, "copy": copies, "signed": signed, "canceled": canceled, "names": names,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			below := *s
			below.Address += "/" + name
			test(t, below.Open(t, nil, scheme))
		})
	}
	t.Run("missing bucket", func(t *testing.T) {
		t.Parallel()
		other := *s
		other.Address = strings.Replace(s.Address, bucketName, "tea-missing", 1)
		missingBucket(t, other.Open(t, nil, scheme))
	})
	t.Run("no server", func(t *testing.T) {
		t.Parallel()
		b := s.Open(t, func(o *objstore.Settings) {
			o.Endpoint, o.Attempts = strings.Replace(o.Endpoint, s.listen, "127.0.0.1:1", 1), 2
		}, scheme)
		_, err := b.Stat(t.Context(), "a")
		Refused(t, err, tea.ConnectionError, "")
	})
}

// Refused checks the type of an error and the reason in its details.
func Refused(t testing.TB, err error, kind tea.ErrorType, reason string) {
	t.Helper()
	var typed *tea.Error
	if !errors.As(err, &typed) || typed.Type != kind {
		t.Errorf("got %v, want a %s", err, kind)
		return
	}
	if got, _ := typed.Details["reason"].(string); got != reason {
		t.Errorf("the reason of %v is %q, want %q", err, got, reason)
	}
}

// Put writes an object. It fails the test on an error.
func Put(t testing.TB, b *objstore.Bucket, name, content string) objstore.Object {
	t.Helper()
	o, err := b.Put(t.Context(), name, strings.NewReader(content), objstore.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Content reads a range of an object; "-" if it does not exist.
func Content(t testing.TB, b *objstore.Bucket, name string, offset, length int64) string {
	t.Helper()
	_, r, err := b.Get(t.Context(), name, offset, length)
	if errors.Is(err, objstore.ErrNotFound) {
		return "-"
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func want(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func objects(t *testing.T, b *objstore.Bucket) {
	want(t, "missing", Content(t, b, "a", 0, objstore.All), "-")
	_, err := b.Stat(t.Context(), "a")
	want(t, "a missing object is not found", errors.Is(err, objstore.ErrNotFound), true)
	first := Put(t, b, "a", "one")
	second, err := b.Put(t.Context(), "a", strings.NewReader("two"), objstore.PutOptions{ContentType: "text/x-tea", Metadata: map[string]string{"kind": "test"}})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "the version changes", first.Version != second.Version && second.Version != "", true)
	o, err := b.Stat(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	want(t, "described", []any{o.Name, o.Size, o.Version, o.ContentType, o.Metadata}, []any{"a", int64(3), second.Version, "text/x-tea", map[string]string{"kind": "test"}})
	want(t, "modified", time.Since(o.Modified).Abs() < time.Hour, true)
	want(t, "content", Content(t, b, "a", 0, objstore.All), "two")
	Put(t, b, "empty", "")
	want(t, "empty", Content(t, b, "empty", 0, objstore.All), "")
	for range 2 {
		if err := b.Delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	want(t, "deleted", Content(t, b, "a", 0, objstore.All), "-")
}

func ranges(t *testing.T, b *objstore.Bucket) {
	Put(t, b, "a", "0123456789")
	for _, r := range []struct {
		offset, length int64
		want           string
	}{{0, objstore.All, "0123456789"}, {3, objstore.All, "3456789"}, {0, 1, "0"}, {3, 4, "3456"}, {8, 100, "89"}, {9, 1, "9"}, {10, 5, ""}, {20, objstore.All, ""}, {0, 0, ""}, {5, 0, ""}} {
		want(t, fmt.Sprintf("%d bytes from %d", r.length, r.offset), Content(t, b, "a", r.offset, r.length), r.want)
	}
	o, r, err := b.Get(t.Context(), "a", 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	want(t, "the size is that of the object", o.Size, int64(10))
}

func conditions(t *testing.T, b *objstore.Bucket) {
	put := func(content, match string) (objstore.Object, error) {
		return b.Put(t.Context(), "a", strings.NewReader(content), objstore.PutOptions{Match: match})
	}
	first, err := put("one", objstore.Absent)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "the metadata of the caller", len(first.Metadata), 0)
	_, err = put("two", objstore.Absent)
	want(t, "it exists", errors.Is(err, objstore.ErrConflict), true)
	second, err := put("two", first.Version)
	if err != nil {
		t.Fatal(err)
	}
	_, err = put("three", first.Version)
	want(t, "it has changed", errors.Is(err, objstore.ErrConflict), true)
	if err := b.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	_, err = put("three", second.Version)
	want(t, "it is gone", errors.Is(err, objstore.ErrConflict) || errors.Is(err, objstore.ErrNotFound), true)
	want(t, "nothing was written", Content(t, b, "a", 0, objstore.All), "-")
}

// counter increments an object from several goroutines, each time on the condition that
// it has not changed.
func counter(t *testing.T, b *objstore.Bucket) {
	const writers, each = 8, 5
	Put(t, b, "n", "0")
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for added := 0; added < each; {
				o, r, err := b.Get(t.Context(), "n", 0, objstore.All)
				if err != nil {
					t.Error(err)
					return
				}
				text, err := io.ReadAll(r)
				r.Close()
				if err != nil {
					t.Error(err)
					return
				}
				n, _ := strconv.Atoi(string(text))
				_, err = b.Put(t.Context(), "n", strings.NewReader(strconv.Itoa(n+1)), objstore.PutOptions{Match: o.Version})
				switch {
				case err == nil:
					added++
				case !errors.Is(err, objstore.ErrConflict):
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	want(t, "sum", Content(t, b, "n", 0, objstore.All), strconv.Itoa(writers*each))
}

// pattern generates data in which no two blocks are equal.
type pattern struct{ left, n int64 }

func (p *pattern) Read(buf []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	buf = buf[:min(int64(len(buf)), p.left)]
	for i := range buf {
		buf[i] = byte((p.n >> 3) * 2654435761 >> (8 * (p.n & 7)))
		p.n++
	}
	p.left -= int64(len(buf))
	return len(buf), nil
}

// large writes objects of several parts, with conditions and without.
func large(t *testing.T, b *objstore.Bucket) {
	const size = 21 << 20
	o, err := b.Put(t.Context(), "a", &pattern{left: size}, objstore.PutOptions{Match: objstore.Absent, ContentType: "x/y"})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "size", o.Size, int64(size))
	expected, _ := io.ReadAll(&pattern{left: size})
	for _, r := range [][2]int64{{0, objstore.All}, {16 << 20, objstore.All}, {8<<20 - 1, 3}} {
		end := len(expected)
		if r[1] >= 0 {
			end = int(r[0] + r[1])
		}
		want(t, "content", Content(t, b, "a", r[0], r[1]) == string(expected[r[0]:end]), true)
	}
	parts, err := b.Put(t.Context(), "parts", &pattern{left: size}, objstore.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "size", parts.Size, int64(size))
	want(t, "content of parts", Content(t, b, "parts", 0, objstore.All) == string(expected), true)
	_, err = b.Put(t.Context(), "a", &pattern{left: size}, objstore.PutOptions{Match: objstore.Absent})
	want(t, "it exists", errors.Is(err, objstore.ErrConflict), true)
	_, err = b.Put(t.Context(), "b", &pattern{left: objstore.MaxConditional + 1}, objstore.PutOptions{Match: objstore.Absent})
	Refused(t, err, tea.ValidationError, "")
	replaced, err := b.Put(t.Context(), "a", bytes.NewReader(expected[1:]), objstore.PutOptions{Match: o.Version})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "size", replaced.Size, int64(size-1))
}

func unfinished(t *testing.T, b *objstore.Bucket) {
	broken := errors.New("broken")
	for _, size := range []int64{0, 10, 9 << 20} {
		Put(t, b, "a", "old")
		_, err := b.Put(t.Context(), "a", io.MultiReader(&pattern{left: size}, iotest.ErrReader(broken)), objstore.PutOptions{})
		want(t, "the error of the reader", errors.Is(err, broken), true)
		want(t, "content", Content(t, b, "a", 0, objstore.All), "old")
	}
}

func listed(t testing.TB, b *objstore.Bucket, prefix string) (names []string) {
	t.Helper()
	for o, err := range b.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		want(t, "size", o.Size, int64(len(o.Name)))
		names = append(names, o.Name)
	}
	return names
}

func list(t *testing.T, b *objstore.Bucket) {
	want(t, "none", listed(t, b, ""), []string(nil))
	for _, name := range []string{"b/2", "b/10", "bc", "a", "ü/é x"} {
		Put(t, b, name, name)
	}
	want(t, "all", listed(t, b, ""), []string{"a", "b/10", "b/2", "bc", "ü/é x"})
	want(t, "a prefix", listed(t, b, "b"), []string{"b/10", "b/2", "bc"})
	want(t, "a folder", listed(t, b, "b/"), []string{"b/10", "b/2"})
	want(t, "none", listed(t, b, "c"), []string(nil))
}

func copies(t *testing.T, b *objstore.Bucket) {
	Put(t, b, "from a", "content")
	Put(t, b, "to/b", "old")
	if err := b.Copy(t.Context(), "from a", "to/b"); err != nil {
		t.Fatal(err)
	}
	want(t, "copy", Content(t, b, "to/b", 0, objstore.All), "content")
	want(t, "original", Content(t, b, "from a", 0, objstore.All), "content")
	err := b.Copy(t.Context(), "none", "c")
	want(t, "a missing object is not found", errors.Is(err, objstore.ErrNotFound), true)
}

func signed(t *testing.T, b *objstore.Bucket) {
	do := func(method, name, body string) (int, string) {
		address, err := b.Sign(t.Context(), method, name, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Ms-Blob-Type", "BlockBlob") // Azure requires it for writes
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode / 100, string(answer)
	}
	if status, said := do(http.MethodPut, "a b", "signed"); status != 2 {
		t.Fatalf("write: %s", said)
	}
	want(t, "written", Content(t, b, "a b", 0, objstore.All), "signed")
	status, content := do(http.MethodGet, "a b", "")
	want(t, "read", []any{status, content}, []any{2, "signed"})
	for _, expires := range []time.Duration{0, -time.Second, objstore.MaxSigned + 1} {
		_, err := b.Sign(t.Context(), http.MethodGet, "a", expires)
		Refused(t, err, tea.ValidationError, "")
	}
	_, err := b.Sign(t.Context(), http.MethodDelete, "a", time.Minute)
	Refused(t, err, tea.ValidationError, "")
}

func canceled(t *testing.T, b *objstore.Bucket) {
	Put(t, b, "a", "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, getErr := b.Get(ctx, "a", 0, objstore.All)
	_, statErr := b.Stat(ctx, "a")
	_, putErr := b.Put(ctx, "a", strings.NewReader("b"), objstore.PutOptions{})
	var listErr error
	for _, listErr = range b.List(ctx, "") {
	}
	for what, err := range map[string]error{"Get": getErr, "Stat": statErr, "Put": putErr, "Delete": b.Delete(ctx, "a"), "Copy": b.Copy(ctx, "a", "b"), "List": listErr} {
		want(t, what+" ends with the context's error", errors.Is(err, context.Canceled), true)
	}
	want(t, "content", Content(t, b, "a", 0, objstore.All), "a")
}

func names(t *testing.T, b *objstore.Bucket) {
	for _, name := range []string{"", "/a", "a/", "a//b", "..", "../a", "a/../b", "./a", "a\\b", "a\x00", "a\nb", "\xff", strings.Repeat("a/", 512) + "a", strings.Repeat("a", 1020)} {
		_, err := b.Put(t.Context(), name, strings.NewReader("x"), objstore.PutOptions{})
		Refused(t, err, tea.ValidationError, "")
		_, err = b.Stat(t.Context(), name)
		Refused(t, err, tea.ValidationError, "")
		Refused(t, b.Delete(t.Context(), name), tea.ValidationError, "")
		Refused(t, b.Copy(t.Context(), "a", name), tea.ValidationError, "")
		Refused(t, b.Copy(t.Context(), name, "a"), tea.ValidationError, "")
	}
	for _, name := range []string{"a+b", "a b", "a%20b", "a&b=c", "a?b", "a#b", "a:b", "ä", "日本", "😀", "a'b\"c", "a;b,c@d"} {
		Put(t, b, name, name)
		want(t, "content", Content(t, b, name, 0, objstore.All), name)
	}
	want(t, "all", len(listed(t, b, "")), 12)
}

func missingBucket(t *testing.T, b *objstore.Bucket) {
	_, err := b.Stat(t.Context(), "a")
	Refused(t, err, tea.NotFound, objstore.ReasonBucket)
	_, _, err = b.Get(t.Context(), "a", 0, objstore.All)
	Refused(t, err, tea.NotFound, objstore.ReasonBucket)
	_, err = b.Put(t.Context(), "a", strings.NewReader("a"), objstore.PutOptions{})
	Refused(t, err, tea.NotFound, objstore.ReasonBucket)
	for _, err = range b.List(t.Context(), "") {
	}
	Refused(t, err, tea.NotFound, objstore.ReasonBucket)
}
