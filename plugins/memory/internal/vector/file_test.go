package vector

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// smallOptions make a graph of few vectors.
var smallOptions = Options{Dimension: 5, Exact: -1, M: 3, Owner: "rows"}

// smallFile returns a companion file with everything in it: a graph,
// tombstones and duplicates.
func smallFile(t testing.TB) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "vectors")
	ix, err := Open(path, smallOptions)
	if err != nil {
		t.Fatal(err)
	}
	vecs := newSource(5, 4, 0.5).many(151)
	vecs[100] = vecs[0]
	for i, vec := range vecs {
		put(t, ix, int64(i), int64(i+1), vec...)
	}
	settle(t, ix)
	for i := range int64(20) {
		remove(t, ix, i*7, 200+i)
	}
	if err := errors.Join(ix.SetMark(-7, 300), ix.Flush(), ix.Close()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// reopened writes the bytes to a file and opens it.
func reopened(t testing.TB, b []byte, o Options) *Index {
	t.Helper()
	path := filepath.Join(t.TempDir(), "vectors")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return open(t, path, o)
}

func TestReopenedIndexIsTheSame(t *testing.T) {
	t.Parallel()
	from := newSource(16, 20, 0.65)
	path := filepath.Join(t.TempDir(), "vectors")
	a := open(t, path, graphOptions)
	for i, vec := range from.many(1200) {
		put(t, a, int64(i)-600, int64(i+1), vec...)
	}
	for i := range int64(100) {
		remove(t, a, i*3, 2000+i)
	}
	settle(t, a)
	if err := a.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := a.Stats(); got.Flushed != got.Watermark {
		t.Errorf("%+v", got)
	}
	b := open(t, path, graphOptions)
	if b.Discarded() != nil || b.Watermark() != 2099 {
		t.Fatalf("watermark %d: %v", b.Watermark(), b.Discarded())
	}
	if diff := cmp.Diff(a.Stats(), b.Stats()); diff != "" {
		t.Error(diff)
	}
	for _, query := range from.many(20) {
		for _, o := range []SearchOptions{{}, {Exact: true}} {
			if diff := cmp.Diff(search(t, a, query, 10, o), search(t, b, query, 10, o)); diff != "" {
				t.Error(diff)
			}
		}
	}
	// Another M: the vectors stay, the graph is rebuilt.
	other := graphOptions
	other.M = 5
	c := open(t, path, other)
	settle(t, c)
	if got := c.Stats(); got.Vectors != a.Stats().Vectors || got.Graphed == 0 || c.Discarded() != nil {
		t.Errorf("%+v, %v", got, c.Discarded())
	}
}

func TestUnusableFileOpensAsAnEmptyIndex(t *testing.T) {
	t.Parallel()
	good := smallFile(t)
	// edit changes the header and makes its checksum right.
	edit := func(at int, value uint32) []byte {
		b := bytes.Clone(good)
		binary.LittleEndian.PutUint32(b[at:], value)
		binary.LittleEndian.PutUint32(b[headerSize-4:], crc32.Checksum(b[:headerSize-4], castagnoli()))
		return b
	}
	dimension, owner := smallOptions, smallOptions
	dimension.Dimension, owner.Owner = 6, "other rows"
	for name, c := range map[string]struct {
		file    []byte
		options Options
	}{
		"empty":           {nil, smallOptions},
		"other file":      {bytes.Repeat([]byte("text "), 200), smallOptions},
		"only a header":   {good[:headerSize], smallOptions},
		"truncated":       {good[:len(good)-1], smallOptions},
		"longer":          {append(bytes.Clone(good), 0), smallOptions},
		"newer":           {edit(8, formatVersion+1), smallOptions},
		"older":           {edit(8, formatVersion-1), smallOptions},
		"other dimension": {good, dimension},
		"other owner":     {good, owner},
		"huge":            {edit(20, 1<<32-1), smallOptions},
		"huge graph":      {edit(24, 1<<32-1), smallOptions},
		"huge layers":     {edit(44, 1<<32-1), smallOptions},
		"wide graph":      {edit(16, 1<<31), smallOptions},
		"entry outside":   {edit(36, 1<<31), smallOptions},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ix := reopened(t, c.file, c.options)
			if ix.Discarded() == nil {
				t.Error("the file was used")
			}
			if diff := cmp.Diff(Stats{}, ix.Stats()); diff != "" {
				t.Error(diff)
			}
			// And works.
			put(t, ix, 1, 1, ones(c.options.Dimension)...)
			if err := ix.Flush(); err != nil {
				t.Fatal(err)
			}
			if again := open(t, ix.path, c.options); again.Discarded() != nil || again.Watermark() != 1 {
				t.Errorf("watermark %d: %v", again.Watermark(), again.Discarded())
			}
		})
	}
	missing := fresh(t, smallOptions)
	if !errors.Is(missing.Discarded(), fs.ErrNotExist) {
		t.Errorf("missing: %v", missing.Discarded())
	}
	if ix := open(t, t.TempDir(), smallOptions); ix.Discarded() == nil {
		t.Errorf("directory: %v", ix.Discarded())
	}
}

// ones returns a vector of ones.
func ones(dimension int) []float32 {
	vec := make([]float32, dimension)
	for i := range vec {
		vec[i] = 1
	}
	return vec
}

func TestFlippedBitIsNoticed(t *testing.T) {
	t.Parallel()
	good := smallFile(t)
	// use reads all of the file, as searches do.
	use := func(b []byte) error {
		g, _, err := read(inMemory{bytes.NewReader(b)}, int64(len(b)), mustDefaults(t))
		if err != nil {
			return err
		}
		v, buf := g.viewAt(1000), []float32(nil)
		for slot := range v.count {
			v.block(slot)
			v.row(slot, &buf)
		}
		return g.damaged()
	}
	if err := use(good); err != nil {
		t.Fatal(err)
	}
	// Every byte of the header, and one in five of the rest.
	for i := 0; i < len(good); i++ {
		if i >= headerSize {
			i += 4
		}
		if i >= len(good) {
			break
		}
		b := bytes.Clone(good)
		b[i] ^= 1 << (i % 8)
		if use(b) == nil {
			t.Errorf("byte %d of %d: not noticed", i, len(good))
		}
	}
}

// The owner repeats the changes after the watermark, so an index that starts empty
// must not have the watermark of the file.
func TestDamagedFileHidesNoChange(t *testing.T) {
	t.Parallel()
	good := smallFile(t)
	path := filepath.Join(t.TempDir(), "vectors")
	query := SearchOptions{Exact: true}
	want := search(t, reopened(t, good, smallOptions), ones(5), 1000, query)
	check := func(name string, at int, b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		ix, err := Open(path, smallOptions)
		if err != nil {
			t.Fatal(err)
		}
		defer ix.Close()
		if ix.Discarded() != nil {
			if ix.Watermark() != 0 || ix.Mark() != 0 || ix.Stats().Vectors != 0 {
				t.Errorf("%s %d: an empty index has watermark %d, mark %d: %v", name, at, ix.Watermark(), ix.Mark(), ix.Discarded())
			}
			return
		}
		hits, err := ix.Search(t.Context(), ones(5), 1000, query)
		if !errors.Is(err, ErrDamaged) && (err != nil || !cmp.Equal(want, hits)) {
			t.Errorf("%s %d: %d hits, %v", name, at, len(hits), err)
		}
	}
	for i := 0; i < len(good); i += 23 {
		check("cut to", i, good[:i])
		b := bytes.Clone(good)
		b[i] ^= 1 << (i % 8)
		check("changed byte", i, b)
	}
}

// Blocks and vectors are read when they are used: a search must not return what
// damage has made of them.
func TestDamageThatASearchFindsIsReported(t *testing.T) {
	t.Parallel()
	good := smallFile(t)
	var h header
	if _, err := binary.Decode(good, binary.LittleEndian, &h); err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]int64{"a block": headerSize + h.frontSize() + 600, "a vector": h.rowsAt() + 5*h.rowSize() + 2} {
		b := bytes.Clone(good)
		for i := range b[at:][:16] {
			b[at+int64(i)] = 0
		}
		ix := reopened(t, b, smallOptions)
		if ix.Discarded() != nil {
			t.Fatal(ix.Discarded())
		}
		query := newSource(5, 4, 0.5).many(6)[5] // the vector itself
		if _, err := ix.Search(t.Context(), query, 5, SearchOptions{Exact: true}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if err := ix.WaitBuilt(t.Context()); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: wait: %v", name, err)
		}
		if err := ix.Flush(); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: flush: %v", name, err)
		}
		// The owner repeats everything.
		if err := ix.Reset(); err != nil {
			t.Fatal(err)
		}
		put(t, ix, 1, 1, query...)
		if hits := search(t, ix, query, 1, SearchOptions{}); len(hits) != 1 || hits[0].ID != 1 {
			t.Errorf("%s: %v", name, hits)
		}
	}
}

func mustDefaults(t testing.TB) Options {
	t.Helper()
	o, err := smallOptions.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestFailedFlushLeavesTheOldFile(t *testing.T) {
	t.Parallel()
	ix := fresh(t, smallOptions)
	put(t, ix, 1, 1, 1, 0, 0, 0, 0)
	if err := ix.Flush(); err != nil {
		t.Fatal(err)
	}
	put(t, ix, 2, 2, 0, 1, 0, 0, 0)
	// A directory where the temporary file would be.
	if err := os.Mkdir(ix.path+".tmp", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := ix.Flush(); err == nil {
		t.Fatal("flushed into a directory")
	}
	if got := ix.Stats().Flushed; got != 1 {
		t.Errorf("flushed up to %d", got)
	}
	if again := open(t, ix.path, smallOptions); again.Watermark() != 1 {
		t.Errorf("watermark %d: %v", again.Watermark(), again.Discarded())
	}
	if err := os.Remove(ix.path + ".tmp"); err != nil {
		t.Fatal(err)
	}
	if err := ix.Flush(); err != nil {
		t.Fatal(err)
	}
}

// flusherEnv makes the test binary a process that flushes until it is killed.
const flusherEnv = "TEA_TEST_VECTOR_FLUSHER"

// flushForever writes the sequence number to stdout after each flush.
func flushForever(path string) {
	ix, err := Open(path, smallOptions)
	if err != nil {
		os.Exit(1)
	}
	runtime.LockOSThread() // strace counts the calls of each thread
	from := newSource(5, 0, 0)
	for seq := ix.Watermark() + 1; ; seq++ {
		if ix.Put(seq, seq, from.next()) != nil || ix.Flush() != nil {
			os.Exit(1)
		}
		_, _ = os.Stdout.Write([]byte{'.'})
	}
}

func TestKilledFlushLeavesACompleteFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "vectors")
	before := int64(0)
	for round := range 10 {
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), flusherEnv+"="+path)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		acknowledged, buf := int64(0), make([]byte, 64)
		for acknowledged < int64(3+round) {
			n, err := out.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			acknowledged += int64(n)
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait()
		ix := open(t, path, smallOptions)
		got := ix.Stats()
		if ix.Discarded() != nil || got.Watermark < before+acknowledged || int64(got.Vectors) != got.Watermark {
			t.Fatalf("%+v, want at least %d: %v", got, before+acknowledged, ix.Discarded())
		}
		before = got.Watermark
	}
}
