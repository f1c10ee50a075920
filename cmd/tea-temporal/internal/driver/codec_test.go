package driver

import (
	"encoding/base64"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/proto"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
)

// keyLine returns a line of a file of keys.
func keyLine(name string, b byte) string {
	return name + " " + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(b), 32))) + "\n"
}

// show is `temporal workflow show -o json`.
func (s *site) show(run string, args ...string) string {
	s.t.Helper()
	args = append([]string{"workflow", "show", "-w", run, "-o", "json", "--address", s.address, "--namespace", s.namespace}, args...)
	out, err := exec.CommandContext(s.t.Context(), program(s.t), args...).Output() //nolint:gosec // of the tests
	if err != nil {
		s.t.Fatal(err)
	}
	return string(out)
}

func TestEncryptedHistory(t *testing.T) {
	t.Parallel()
	const secret, input, large = "sk-hidden-4711", "open-4712", "large-4713 "
	h, _ := newHost(t)
	secrets := map[string]any{"key": secret}
	s := newEncrypted(t, h, secrets, keyLine("a", 'a'))
	var events []string
	res := s.run(t.Context(), `
nodes:
  - {name: call, uses: probe.call, with: {value: "{{ state.given }} {{ secrets.key }}"}, output: got}
  - {name: large, run: 'return {large = string.rep("`+large+`", 10000)}'}
  - {name: again, uses: probe.call, with: {value: "{{ state.large }}"}, output: again}
  - {name: fail, uses: probe.call, with: {failures: 9, type: not_found, value: "`+input+`"}}
`, host.RunOptions{Secrets: secrets, Input: map[string]any{"given": input}, Events: func(e flow.Event) { events = append(events, string(e.Type)) }})
	if res.Status != flow.Failed || len(events) == 0 {
		t.Fatalf("got %s, %v", res.Status, res.Err)
	}
	s.replayAll(res.RunID)
	hidden := func(text string) string {
		var decoded strings.Builder
		if err := payloads(&decoded, text); err != nil {
			t.Fatal(err)
		}
		return text + decoded.String()
	}
	plain := hidden(s.show(res.RunID))
	for _, text := range []string{secret, input, strings.TrimSpace(large)} {
		if strings.Contains(plain, text) {
			t.Errorf("the history contains %s", text)
		}
	}
	if !strings.Contains(plain, base64.StdEncoding.EncodeToString([]byte(encrypted))) || !strings.Contains(plain, "Encoded failure") {
		t.Error("the history is not encrypted")
	}
	err := walkFiles(s.flags.Blobs, func(content string) {
		if strings.Contains(content, strings.TrimSpace(large)) {
			t.Error("a stored value is not encrypted")
		}
	})
	if err != nil {
		t.Fatal(err)
	}

	// Temporal's own command line shows them with the codec server, except the secret.
	handler, err := codecHandler(s.flags.Keys, s.store, uiOrigins)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	readable := hidden(s.show(res.RunID, "--codec-endpoint", server.URL))
	if !strings.Contains(readable, input) || strings.Contains(readable, secret) {
		t.Errorf("with the codec server the history has the input: %v, the secret: %v", strings.Contains(readable, input), strings.Contains(readable, secret))
	}
	for origin, want := range map[string]int{uiOrigins[0]: http.StatusOK, "https://evil.example": http.StatusForbidden} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/decode", strings.NewReader(`{"payloads":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", origin)
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want || (want == http.StatusOK) != (answer.Header.Get("Access-Control-Allow-Origin") == origin) {
			t.Errorf("the page of %s gets %d with %v", origin, answer.StatusCode, answer.Header)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "has none", "a b c\n": ":1: expected a name", "# none\na x\n": ":2: the key a is not 32 bytes",
		keyLine("a", 'a') + keyLine("a", 'b'): ":2: expected a name that is not used twice",
	} {
		if _, err := newCodec(write(t, "keys", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", text, err)
		}
	}
	old, err := newCodec(write(t, "keys", keyLine("old", 'o')))
	if err != nil {
		t.Fatal(err)
	}
	both, err := newCodec(write(t, "keys", keyLine("new", 'n')+keyLine("old", 'o')))
	if err != nil {
		t.Fatal(err)
	}
	plain := []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(`"x"`)}}
	sealed, err := old.Encode(plain)
	if err != nil {
		t.Fatal(err)
	}
	again, err := old.Encode(plain)
	if err != nil || !proto.Equal(sealed[0], again[0]) {
		t.Errorf("equal values differ: %v", err)
	}
	opened, err := both.Decode(sealed)
	if err != nil || !proto.Equal(opened[0], plain[0]) {
		t.Errorf("got %v, %v", opened, err)
	}
	if sealed, err = both.Encode(plain); err != nil {
		t.Fatal(err)
	}
	if _, err := old.Decode(sealed); err == nil || !strings.Contains(err.Error(), `does not contain the key "new"`) {
		t.Errorf("got %v", err)
	}
	none, err := newCodec("")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := none.Decode(sealed); err == nil || !strings.Contains(err.Error(), `encrypted with the key "new"; pass the file that has it with --keys`) {
		t.Errorf("without keys: %v", err)
	}
	if same, err := none.Encode(plain); err != nil || !proto.Equal(same[0], plain[0]) {
		t.Errorf("without keys: %v, %v", same, err)
	}
	if sealed, err = old.Encode(plain); err != nil {
		t.Fatal(err)
	}
	sealed[0].Data[len(sealed[0].Data)-1] ^= 1
	if _, err := both.Decode(sealed); err == nil {
		t.Error("a damaged value was decrypted")
	}
}

// walkFiles calls found with the content of each file.
func walkFiles(dir string, found func(content string)) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		found(string(text))
		return err
	})
}

// newEncrypted is newSite with keys.
func newEncrypted(t testing.TB, h *host.Host, secrets map[string]any, keys string) *site {
	t.Helper()
	s := newClientWith(t, h, secrets, teacmd.TemporalFlags{Keys: write(t, "keys", keys)})
	s.start(s.worker)
	return s
}
