package driver

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/objstore/objtest"
	tea "github.com/the-edge-agent/tea/sdk"
)

func TestStoreHasOneIdentity(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var wg sync.WaitGroup
	ids := make([]string, 16)
	for i := range ids {
		wg.Go(func() {
			s, id, err := openStore(t.Context(), dir)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = id
			_ = s.close()
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] || id == "" {
			t.Fatalf("the identities are %q", ids)
		}
	}
	if _, _, err := openStore(t.Context(), write(t, "file", "")); err == nil || !strings.Contains(err.Error(), "open --blobs") {
		t.Errorf("a file as the directory: %v", err)
	}
}

// The clients of a run and its workers have the same values, or the run does not
// begin.
func TestOtherBlobsAreRefused(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	s := newSite(t, h, nil)
	for dir, want := range map[string]string{"": "was started without --blobs", t.TempDir(): "does not store its values in this --blobs"} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			f := s.flags
			f.Blobs = dir
			warned := make(chan string, 100)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o := host.RunOptions{RunID: host.NewRunID()}
			go func() {
				text := <-warned
				if !strings.Contains(text, want) {
					t.Errorf("the warning is %q", text)
				}
				_, err := s.client.WorkflowService().TerminateWorkflowExecution(t.Context(), &workflowservice.TerminateWorkflowExecutionRequest{
					Namespace: s.namespace, WorkflowExecution: executionOf(o.RunID, ""),
				})
				if err != nil {
					t.Error(err)
				}
			}()
			res, err := Engine{}.Run(ctx, f, teacmd.Job{Workflow: s.load(oneCall), Options: o, Warn: func(m string) { warned <- m }})
			if err != nil || res.Status != flow.Stopped {
				t.Errorf("got %v, %v", res, err)
			}
		})
	}
	res := s.run(t.Context(), "nodes:\n  - {name: ask, uses: human.ask, with: {question: \"go?\"}, output: answer}\n", host.RunOptions{})
	if res.Status != flow.Waiting {
		t.Fatalf("got %s, %v", res.Status, res.Err)
	}
	other := s.flags
	other.Blobs = ""
	if _, _, err := (Engine{}).Find(other, h, res.RunID); err == nil || !strings.Contains(err.Error(), "stores values in --blobs; add the --blobs") {
		t.Errorf("got %v", err)
	}
}

func TestValuesInS3(t *testing.T) { // the credentials are in the environment
	bucket := objtest.S3(t)
	t.Setenv("AWS_ENDPOINT_URL", bucket.Settings.Endpoint)
	t.Setenv("AWS_ACCESS_KEY_ID", bucket.Settings.AccessKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", bucket.Settings.SecretAccessKey)
	t.Setenv("AWS_REGION", bucket.Settings.Region)
	storesValues(t, bucket.Address)
}

func TestValuesInGCS(t *testing.T) {
	bucket := objtest.GCS(t)
	t.Setenv("STORAGE_EMULATOR_HOST", bucket.Settings.Endpoint)
	storesValues(t, bucket.Address)
}

func TestValuesInAzure(t *testing.T) {
	c := objtest.Azure(t)
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", fmt.Sprintf("AccountName=%s;AccountKey=%s;BlobEndpoint=%s", c.Settings.Account, c.Settings.AccountKey, c.Settings.Endpoint))
	storesValues(t, c.Address)
}

// storesValues stores the values of a run at an address, and removes them.
func storesValues(t *testing.T, address string) {
	t.Helper()
	h, err := host.New(host.Options{Actions: []tea.Action{host.Func("big.make", "Makes a text.", func(context.Context, map[string]any) (any, error) {
		return map[string]any{"text": strings.Repeat("0123456789abcdef", 1<<16)}, nil
	})}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	s := newClientWith(t, h, nil, teacmd.TemporalFlags{Blobs: address + "/runs"})
	s.start(s.worker)
	res := s.run(t.Context(), "nodes:\n  - {name: make, uses: big.make, output: big}\n", host.RunOptions{})
	big, _ := res.State["big"].(map[string]any)
	if res.Status != flow.Done || len(fmt.Sprint(big["text"])) != 1<<20 {
		t.Fatalf("got %s, %v", res.Status, res.Err)
	}
	if size, _ := s.history(res.RunID); size > 10<<10 {
		t.Errorf("the history has %d bytes", size)
	}
	place := strings.Split(runPlace(s.namespace, res.RunID), "/")
	for _, gone := range []bool{false, true} {
		err := blobs{s.store}.prune(t.Context(), s.namespace, time.Now().Add(time.Hour), func(string) (bool, error) { return gone, nil })
		if err != nil {
			t.Fatal(err)
		}
		entries, err := s.store.below(t.Context(), place[0])
		if _, there := entries[place[1]]; err != nil || there == gone {
			t.Errorf("the values are there: %v after the run was removed: %v, %v", there, gone, err)
		}
	}
}
