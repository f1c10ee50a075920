package memory_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
	"github.com/the-edge-agent/tea/sdk/x/smalldisktest"
)

func TestAFullDiskLosesNothingAndCanBeRead(t *testing.T) {
	if !devicetest.OwnMounts(t) {
		return
	}
	eachEngine(t, func(t *testing.T, engine string) {
		disk := smalldisktest.New(t, "24m")
		settings := map[string]any{"path": disk.Dir + "/memory", "engine": engine}
		o := mustOpen(t, settings)
		kept := map[string]bool{}
		store := func(key string, size int) error {
			_, err := o.call("ltm.store", map[string]any{"key": key, "value": "pump " + strings.Repeat(key+" ", size/(len(key)+1))})
			if err == nil {
				kept[key] = true
			}
			return err
		}
		for i := range 20 {
			if err := store(fmt.Sprint("before", i), 100+i%2*2000); err != nil {
				t.Fatal(err)
			}
		}
		look := func(when string) {
			t.Helper()
			for key := range kept {
				r := o.must("ltm.retrieve", map[string]any{"key": key})
				if value, _ := r["value"].(string); !strings.HasPrefix(value, "pump "+key) {
					t.Errorf("%s: %s is %.20q", when, key, value)
				}
			}
			if n := o.must("ltm.list", map[string]any{"limit": 1000})["count"]; n != int64(len(kept)) {
				t.Errorf("%s: %v entries are listed, %d were stored", when, n, len(kept))
			}
			if n := o.must("ltm.search", map[string]any{"query": "pump", "limit": 1000})["count"]; n != int64(len(kept)) {
				t.Errorf("%s: %v entries are found, %d were stored", when, n, len(kept))
			}
		}
		look("before")
		disk.Fill(t, 0)
		failed := 0
		for i := range 40 {
			if err := store(fmt.Sprint("full", i), 100+i%2*2000); err != nil {
				failed++
				if typeOf(err) != tea.ResourceExhausted {
					t.Errorf("a full disk gives %v", err)
				}
				if failed == 1 {
					t.Log(err)
				}
			}
		}
		if failed == 0 {
			t.Error("a full disk takes everything")
		}
		look("while it is full")
		o.close()
		o = mustOpen(t, settings)
		look("started on a full disk")
		for _, key := range []string{"before3", "before4"} {
			if deleted := o.must("ltm.delete", map[string]any{"key": key})["deleted"]; deleted != true {
				t.Errorf("on a full disk %s is deleted: %v", key, deleted)
			}
			delete(kept, key)
		}
		look("deleted from on a full disk")
		disk.Free(t)
		if err := store("after", 3000); err != nil {
			t.Errorf("after there is room again: %v", err)
		}
		look("after there is room again")
		o.close()
		o = mustOpen(t, settings)
		defer o.close()
		look("started again")
	})
}

func TestDeletedValuesMakeRoomOnAFullDisk(t *testing.T) {
	peertest.Long(t, "it fills disks")
	if !devicetest.OwnMounts(t) {
		return
	}
	eachEngine(t, func(t *testing.T, engine string) {
		if engine == "sqlite" {
			withoutRaceDetector(t)
		}
		disk := smalldisktest.New(t, "24m")
		o := mustOpen(t, map[string]any{"path": disk.Dir + "/memory", "engine": engine})
		defer o.close()
		long := " " + strings.Repeat("word", 15)
		fill := func(action, name, content, prefix string) (stored int64) {
			for i, failed := 0, 0; failed < 2; i++ {
				_, err := o.call(action, map[string]any{name: fmt.Sprint(prefix, i), content: fmt.Sprint(prefix, i) + strings.Repeat(long, 16_000)})
				if err == nil {
					stored++
					continue
				}
				if failed++; typeOf(err) != tea.ResourceExhausted {
					t.Errorf("a full disk returns %v", err)
				}
			}
			return stored
		}
		first := fill("ltm.store", "key", "value", "first/")
		if deleted := o.must("ltm.delete", map[string]any{"prefix": "first/"})["count"]; deleted != first {
			t.Fatalf("%v entries were deleted, %d were stored", deleted, first)
		}
		second := fill("memory.file_store", "path", "content", "second/")
		if second < first-3 {
			t.Errorf("%d files were stored in the place of %d deleted values", second, first)
		}
		for i := range second {
			if deleted := o.must("memory.file_delete", map[string]any{"path": fmt.Sprint("second/", i)})["deleted"]; deleted != true {
				t.Errorf("on a full disk file %d is deleted: %v", i, deleted)
			}
		}
		if third := fill("ltm.store", "key", "value", "third/"); third < second-3 {
			t.Errorf("%d values were stored in the place of %d deleted files", third, second)
		}
	})
}

func TestAFolderThatCannotBeWrittenSaysSo(t *testing.T) {
	if !devicetest.OwnMounts(t) {
		return
	}
	eachEngine(t, func(t *testing.T, engine string) {
		disk := smalldisktest.New(t, "24m")
		settings := map[string]any{"path": disk.Dir + "/memory", "engine": engine}
		for _, when := range []string{"empty", "with a memory"} {
			disk.Protect(t, true)
			o, err := openBundle(t, settings)
			if err == nil {
				_, err = o.call("ltm.store", map[string]any{"key": "b", "value": 1})
				o.close()
			}
			if typeOf(err) != tea.PermissionDenied || !strings.Contains(err.Error(), disk.Dir) {
				t.Errorf("%s: %v; want permission_denied and the folder's name", when, err)
			}
			disk.Protect(t, false)
			o = mustOpen(t, settings)
			o.must("ltm.store", map[string]any{"key": "a", "value": 1})
			o.close()
		}
	})
}
