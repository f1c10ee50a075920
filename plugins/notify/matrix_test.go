package notify_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// matrixConfig is the configuration of Dendrite in a directory.
const matrixConfig = `version: 2
global: {server_name: localhost, private_key: DIR/key.pem, disable_federation: true, jetstream: {in_memory: true, storage_path: DIR}}
client_api: {registration_disabled: false, rate_limiting: {enabled: false}}
user_api: {account_database: {connection_string: "file:DIR/user.db"}, bcrypt_cost: 4}
federation_api: {database: {connection_string: "file:DIR/federation.db"}}
key_server: {database: {connection_string: "file:DIR/keys.db"}}
media_api: {database: {connection_string: "file:DIR/media.db"}, base_path: DIR/media}
room_server: {database: {connection_string: "file:DIR/room.db"}}
sync_api: {database: {connection_string: "file:DIR/sync.db"}}
relay_api: {database: {connection_string: "file:DIR/relay.db"}}
mscs: {mscs: [], database: {connection_string: "file:DIR/mscs.db"}}
`

// matrixServer is Dendrite with a user and a room.
type matrixServer struct {
	t                *testing.T
	url, token, room string
}

// newMatrixServer starts Dendrite on a socket, behind its own address.
func newMatrixServer(t *testing.T) *matrixServer {
	t.Helper()
	peertest.Long(t, "it starts Dendrite")
	program := filepath.Join(peertest.Dir(t, "../..", "dendrite"), "dendrite")
	dir := t.TempDir()
	socket, seed := filepath.Join(dir, "s"), make([]byte, 32)
	_, _ = rand.Read(seed)
	for name, text := range map[string]string{
		"key.pem":       "-----BEGIN MATRIX PRIVATE KEY-----\nKey-ID: ed25519:test\n\n" + base64.StdEncoding.EncodeToString(seed) + "\n-----END MATRIX PRIVATE KEY-----\n",
		"dendrite.yaml": strings.ReplaceAll(matrixConfig, "DIR", dir),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "-config", filepath.Join(dir, "dendrite.yaml"), "-really-enable-open-registration", "-unix-socket", socket)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.WaitDelay = &log, &log, dir, 10*time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { stop(); <-ended })
	for ready := false; !ready; {
		conn, err := net.Dial("unix", socket)
		if ready = err == nil; ready {
			_ = conn.Close()
			continue
		}
		select {
		case <-ended:
			t.Fatalf("dendrite: %s", log.String())
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
			t.FailNow()
		}
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "localhost"})
	proxy.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	m := &matrixServer{t: t, url: front.URL}
	m.token = m.request("POST", "register", object{"username": "tea", "password": "a long password", "auth": object{"type": "m.login.dummy"}})["access_token"].(string)
	m.room = m.request("POST", "createRoom", object{"name": "Pumps"})["room_id"].(string)
	return m
}

// request makes a request of the client API.
func (m *matrixServer) request(method, path string, body object) (answer object) {
	m.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		m.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(m.t.Context(), method, m.url+"/_matrix/client/v3/"+path, bytes.NewReader(text))
	if err != nil {
		m.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+m.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		m.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK {
		m.t.Fatalf("%s %s: %s, %v, %v", method, path, resp.Status, answer, err)
	}
	return answer
}

// messages returns the messages in the room, the last one first.
func (m *matrixServer) messages() (bodies []any) {
	m.t.Helper()
	answer := m.request("GET", "rooms/"+url.PathEscape(m.room)+"/messages?dir=b&limit=100", object{})
	for _, e := range answer["chunk"].([]any) {
		if e := e.(object); e["type"] == "m.room.message" {
			bodies = append(bodies, e["content"])
		}
	}
	return bodies
}

func TestMatrixServerTakesEachMessageOnce(t *testing.T) {
	t.Parallel()
	m := newMatrixServer(t)
	settings := func(token, room string) object {
		return to("matrix", object{"url": m.url, "token": token, "room": room})
	}
	message := object{"to": "ops", "title": "Pump 7", "message": "8.7 bar <b>&\nStop it?", "key": "q1", "url": "http://tea.example/run"}
	for range 2 { // each with a new state, as after a crash
		if _, err := send(t, settings(m.token, m.room), message); err != nil {
			t.Fatal(err)
		}
	}
	want := []any{object{
		"msgtype": "m.text", "format": "org.matrix.custom.html", "body": "Pump 7\n\n8.7 bar <b>&\nStop it?\n\nOpen: http://tea.example/run",
		"formatted_body": `<p><b>Pump 7</b></p><p>8.7 bar &lt;b&gt;&amp;<br>Stop it?</p><p><a href="http://tea.example/run">Open</a></p>`,
	}}
	if diff := cmp.Diff(want, m.messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	for kind, s := range map[tea.ErrorType]object{tea.PermissionDenied: settings("syt_wrong", m.room), tea.ValidationError: settings(m.token, "!other:localhost")} {
		_, err := send(t, s, message)
		if e := tea.AsError(err); err == nil || e.Type != kind || e.Details["not_sent"] != true || strings.Contains(fmt.Sprint(err), m.token) {
			t.Errorf("got %v, want %s", err, kind)
		}
	}
	if got := m.messages(); len(got) != 1 {
		t.Errorf("%d messages", len(got))
	}
}
