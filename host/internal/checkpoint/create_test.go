package checkpoint

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/flow"
)

// A kill between the creation of the file and its first record would leave a
// run whose input is unknown.
func TestFileAppearsWithItsFirstRecord(t *testing.T) {
	t.Parallel()
	for _, d := range []flow.Durability{flow.DurabilitySync, flow.DurabilityAsync} {
		s := testStore(t)
		j, err := s.Create(testHeader(), d)
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Sync(); err != nil {
			t.Fatal(err)
		}
		if names := dirNames(t, s.Dir()); len(names) > 0 {
			t.Errorf("%s: files before the first record: %q", d, names)
		}
		if err := j.Append(testRecords()[0]); err != nil {
			t.Fatal(err)
		}
		wantRecords(t, mustRead(t, j.Path()).Records, testRecords()[:1])
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"run.tea"}, dirNames(t, s.Dir())); diff != "" {
			t.Errorf("%s: files (-want +got):\n%s", d, diff)
		}
	}
}

func TestJournalWithoutStartIsRefused(t *testing.T) {
	t.Parallel()
	for name, records := range map[string][]Record{
		"header only":        nil,
		"header, torn start": nil,
		"other first record": {{Kind: "finish"}, testRecords()[0]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testStore(t)
			path := s.journalPath("run")
			if records == nil {
				createEmpty(t, s, testHeader())
			} else {
				createRun(t, s, testHeader(), records...)
			}
			if name == "header, torn start" {
				appendBytes(t, path, []byte("torn"))
			}
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var noStart *NoStartError
			if _, _, err := s.Open("run", flow.DurabilitySync); !errors.As(err, &noStart) || noStart.Path != path {
				t.Errorf("Open: %v, want a NoStartError", err)
			}
			if _, _, err := s.Fork(mustRead(t, path), 1, "fork", flow.DurabilitySync); !errors.As(err, new(*NoStartError)) {
				t.Errorf("Fork: %v, want a NoStartError", err)
			}
			if records == nil {
				if info, err := s.Info("run"); !errors.As(err, new(*NoStartError)) || info.Problem == "" {
					t.Errorf("Info: %+v, %v, want a NoStartError", info, err)
				}
			}
			after, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(before, after) {
				t.Error("the refused file was changed")
			}
		})
	}
}

// A run with its own id must be able to start after a kill during its
// creation.
func TestCreationThatCrashedIsRepeated(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	temp := tempPath(s.journalPath("run"))
	if err := os.WriteFile(temp, bytes.Repeat([]byte("x"), 10_000), 0o600); err != nil {
		t.Fatal(err)
	}
	path := createRun(t, s, testHeader(), testRecords()...)
	wantRecords(t, mustRead(t, path).Records, testRecords())
	if _, err := os.Lstat(temp); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the temporary file: %v, want that it is gone", err)
	}
}

func TestCreationInProgressIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	temp := tempPath(s.journalPath("run"))
	f, err := os.Create(temp)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := lockFile(f, temp); err != nil {
		t.Fatal(err)
	}
	j, err := s.Create(testHeader(), flow.DurabilitySync)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Append(testRecords()[0]); !errors.As(err, new(*InUseError)) {
		t.Errorf("Append: %v, want an InUseError", err)
	}
	if diff := cmp.Diff([]string{".run.tea.tmp"}, dirNames(t, s.Dir())); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// The file is written under another name before it appears.
func TestErrorNamesTheFileThatIsThere(t *testing.T) {
	t.Parallel()
	s := testStore(t)
	j, err := s.Create(testHeader(), flow.DurabilitySync)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append(testRecords()[0]); err != nil {
		t.Fatal(err)
	}
	if err := j.w.f.(journalFile).File.Close(); err != nil {
		t.Fatal(err)
	}
	err = j.Append(testRecords()[1])
	if err == nil || !strings.Contains(err.Error(), " "+j.Path()+":") {
		t.Errorf("got %v, want the path %s", err, j.Path())
	}
}
