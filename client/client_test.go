package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/client"
)

func newClient(t *testing.T, address string, o client.Options) *client.Client {
	t.Helper()
	c, err := client.New(address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"http://localhost:8311":       "",
		"https://device.example/tea/": "",
		"unix:/run/tea.sock":          "",
		"localhost:8311":              "expected http://HOST:PORT",
		"":                            "expected http://HOST:PORT",
		"http://":                     "expected http://HOST:PORT",
		"http://h?token=secret":       "expected http://HOST:PORT",
		"https://me:secret@h":         "put the token into a file",
		"http://me:secret\x00@h":      "not a valid URL",
	} {
		_, err := client.New(address, client.Options{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, expected %q", address, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "me:secret") {
			t.Errorf("the error has the password: %v", err)
		}
	}
}

// The events continue after the last one that was seen, and end when the run does.
func TestEventsContinueWhenTheConnectionIsLost(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Last-Event-ID"))
		w.Header().Set("Content-Type", "text/event-stream")
		event := func(seq int, kind string) {
			fmt.Fprintf(w, "id: %d\ndata: {\"seq\":%d,\"event\":%q,\"run_id\":\"r\"}\n\n:\n\n", seq, seq, kind)
		}
		switch requests.Add(1) {
		case 1:
			event(1, "run_start")
			event(2, "run_end") // of an earlier part of the run
			event(3, "run_start")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 3:
			event(3, "run_start") // again
			event(4, "node_end")  // and the server stops
		default:
			event(5, "run_end")
		}
	}))
	defer server.Close()
	var got []int64
	for e, err := range newClient(t, server.URL, client.Options{}).Events(t.Context(), "r", 0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Seq)
	}
	if diff := cmp.Diff([]int64{1, 2, 3, 4, 5}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"", "3", "3", "4"}, asked); diff != "" {
		t.Errorf("Last-Event-ID (-want +got):\n%s", diff)
	}
}

// More runs than a request can have are sent in several.
func TestManyRunsAreChanged(t *testing.T) {
	t.Parallel()
	var sizes []int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			IDs []string `json:"ids"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		if sizes = append(sizes, len(body.IDs)); len(sizes) == 3 {
			http.Error(w, "no", http.StatusTeapot)
			return
		}
		fmt.Fprintf(w, `{"runs": [{"id": %q, "status": "stopped"}]}`, body.IDs[0])
	}))
	defer server.Close()
	ids := make([]string, 1001)
	for i := range ids {
		ids[i] = fmt.Sprint("r", i)
	}
	list, err := newClient(t, server.URL, client.Options{}).CancelAll(t.Context(), ids)
	if refused := (*client.Error)(nil); !errors.As(err, &refused) || refused.Status != http.StatusTeapot {
		t.Errorf("error: %v", err)
	}
	if diff := cmp.Diff([]client.Outcome{{ID: "r0", Status: client.Stopped}, {ID: "r500", Status: client.Stopped}}, list); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{500, 500, 1}, sizes); diff != "" {
		t.Errorf("sizes (-want +got):\n%s", diff)
	}
}

func TestEventsEndWithErrorsThatDoNotPass(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   http.HandlerFunc
		want string
	}{
		"unknown run": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"title": "Not Found", "status": 404, "detail": "there is no such run"}`)
		}, "there is no such run"},
		"another server": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<h1>It works</h1>") }, "is not a stream of events"},
		"another stream": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: <html>\n\n")
		}, "read the events of the run"},
		"unknown error": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) }, "status 418"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(c.do)
			defer server.Close()
			n := 0
			for _, err := range newClient(t, server.URL, client.Options{}).Events(t.Context(), "r", 0) {
				if n++; err == nil || !strings.Contains(err.Error(), c.want) || n > 1 {
					t.Errorf("error %d: %v, expected %q", n, err, c.want)
				}
			}
			if n == 0 {
				t.Error("no error")
			}
		})
	}
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	for _, err := range newClient(t, server.URL, client.Options{}).Events(t.Context(), "r", 0) {
		if err == nil {
			t.Error("no error of a server that is not there")
		}
	}
}

func TestWaitSurvivesAnswersOfAProxy(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/events"):
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"seq\":1,\"event\":\"run_end\"}\n\n")
		case requests.Add(1) == 1:
			w.WriteHeader(http.StatusBadGateway)
		case requests.Load() == 2:
			panic(http.ErrAbortHandler)
		default:
			fmt.Fprint(w, `{"id": "r", "status": "done"}`)
		}
	}))
	defer server.Close()
	run, err := newClient(t, server.URL, client.Options{}).Wait(t.Context(), "r")
	if err != nil || run.Status != "done" {
		t.Errorf("%+v, %v", run, err)
	}
}

func TestEventsEndWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"seq\":1,\"event\":\"run_start\"}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	var last error
	for _, err := range newClient(t, server.URL, client.Options{}).Events(ctx, "r", 0) {
		last = err
		cancel()
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("error: %v", last)
	}
}

// The token is read for each request, and is not sent to another server.
func TestTokens(t *testing.T) {
	t.Parallel()
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other server got a request with %q", r.Header.Get("Authorization"))
	}))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		if len(got) == 3 {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
			return
		}
		fmt.Fprint(w, `{"workflows": []}`)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "token")
	c := newClient(t, server.URL, client.Options{TokenFile: file})
	for _, token := range []string{"first", "second", "third"} {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := c.Workflows(t.Context())
		if refused := (*client.Error)(nil); token == "third" && (!errors.As(err, &refused) || refused.Status != http.StatusTemporaryRedirect) || token != "third" && err != nil {
			t.Errorf("%s: %v", token, err)
		}
	}
	if diff := cmp.Diff([]string{"Bearer first", "Bearer second", "Bearer third"}, got); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Workflows(t.Context()); !errors.Is(err, os.ErrNotExist) || len(got) != 3 {
		t.Errorf("without its token file: %v", err)
	}
}

func TestErrorsSayWhenToTryAgain(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "5")
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"title": "Too Many Requests", "status": 429, "detail": "the queue is full"}`)
	}))
	defer server.Close()
	_, err := newClient(t, server.URL, client.Options{}).Start(t.Context(), "w", client.Start{})
	refused := (*client.Error)(nil)
	if !errors.As(err, &refused) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&client.Error{Status: 429, Title: "Too Many Requests", Detail: "the queue is full", RetryAfter: 5 * time.Second}, refused); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

// A server that reads the request and closes a connection that was used before got
// the request again.
func TestStartReachesAServerTwice(t *testing.T) {
	t.Parallel()
	var starts atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if starts.Add(1); r.Header.Get("Idempotency-Key") != "k" {
				t.Errorf("the headers are %v", r.Header)
			}
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, "{}")
	}))
	t.Cleanup(server.Close)
	c := newClient(t, server.URL, client.Options{})
	if _, err := c.Run(t.Context(), "r", false); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Start(t.Context(), "w", client.Start{Key: "k"}); err == nil || starts.Load() != 1 {
		t.Errorf("%d requests, %v", starts.Load(), err)
	}
}
