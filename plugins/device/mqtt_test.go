package device_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"
	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// broker is a mosquitto.
type broker struct {
	port int
	stop func()
	// lines has what mosquitto says.
	lines chan string
}

// mosquitto starts a broker at a free port. config are further lines.
func mosquitto(t testing.TB, config string) *broker {
	t.Helper()
	peertest.Long(t, "it starts mosquitto")
	path, err := exec.LookPath("mosquitto")
	if err != nil {
		path = "/usr/sbin/mosquitto"
	}
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("mosquitto is missing; run scripts/mosquitto install")
		}
		t.Skip("mosquitto is missing; run scripts/mosquitto install")
	}
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		if b := startMosquitto(t, path, port, config); b != nil { // else another process has the port now
			return b
		}
	}
}

func startMosquitto(t testing.TB, path string, port int, config string) *broker {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mosquitto.conf")
	text := fmt.Sprintf("listener %d 127.0.0.1\n%s\n", port, config)
	if !strings.Contains(config, "allow_anonymous") {
		text += "allow_anonymous true\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, "-c", file, "-v")
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func() { cancel(); _ = cmd.Wait() }
	t.Cleanup(stop)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "running") {
			b := &broker{port: port, stop: stop, lines: make(chan string, 1000)}
			go func() {
				for lines.Scan() {
					select {
					case b.lines <- lines.Text():
					default:
					}
				}
			}()
			return b
		}
	}
	return nil
}

// await waits until mosquitto says something.
func (b *broker) await(t *testing.T, text string) {
	t.Helper()
	for {
		select {
		case line := <-b.lines:
			if strings.Contains(line, text) {
				return
			}
		case <-t.Context().Done():
			t.Fatalf("mosquitto did not say %q", text)
		case <-time.After(time.Minute):
			t.Fatalf("mosquitto did not say %q", text)
		}
	}
}

// onBroker are the settings for a broker. rules are the rules for publishing.
func onBroker(port int, protocol string, rules ...object) object {
	return object{"mqtt": object{"servers": object{"site": object{"url": fmt.Sprintf("mqtt://127.0.0.1:%d", port), "protocol": protocol, "publish": rules}}}}
}

var anything = object{"topics": []any{"#"}}

var protocols = []string{"5", "3.1.1"}

func TestPublishesAndFindsRetainedMessages(t *testing.T) {
	t.Parallel()
	b := mosquitto(t, "")
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			p := newPlant(t, onBroker(b.port, protocol, anything))
			topic := "plant/" + protocol + "/level"
			if got := p.must("mqtt.last", object{"topic": topic, "wait_seconds": 0.2}); got["found"] != false || got["value"] != nil {
				t.Errorf("before: %v", got)
			}
			for qos := range 3 {
				payload := object{"bar": 8.7, "qos": qos, "text": "Füllstand"}
				got := p.must("mqtt.publish", object{"topic": topic, "payload": payload, "qos": qos, "retain": true})
				if qos == 1 && got["unheard"] != (protocol == "5") {
					t.Errorf("QoS 1 without subscribers: %v", got)
				}
				// With QoS 0, nothing says when the broker has it; the next message does.
				p.must("mqtt.publish", object{"topic": topic + "/after"})
				got = p.must("mqtt.last", object{"topic": topic, "wait_seconds": 30})
				want := object{"bar": 8.7, "qos": int64(qos), "text": "Füllstand"}
				if diff := cmp.Diff(any(want), got["value"]); diff != "" || got["found"] != true {
					t.Errorf("QoS %d: %s", qos, diff)
				}
			}
			for _, text := range []string{"5e1", "007", "1.50", " 7\n", `"7"`, "null"} { // as it is, though it looks like another value
				p.must("mqtt.publish", object{"topic": topic, "payload": text, "retain": true})
				if got := p.must("mqtt.last", object{"topic": topic, "wait_seconds": 30}); got["text"] != text {
					t.Errorf("published %q: got %v", text, got)
				}
			}
			p.must("mqtt.publish", object{"topic": topic, "payload_base64": "/wA=", "retain": true})
			if got := p.must("mqtt.last", object{"topic": topic, "wait_seconds": 30}); got["base64"] != "/wA=" || got["text"] != nil {
				t.Errorf("bytes: %v", got)
			}
			p.must("mqtt.publish", object{"topic": topic, "retain": true}) // removes it
			if got := p.must("mqtt.last", object{"topic": topic, "wait_seconds": 0.2}); got["found"] != false {
				t.Errorf("removed: %v", got)
			}
		})
	}
}

func TestRequestsGetTheirOwnResponses(t *testing.T) {
	t.Parallel()
	b := mosquitto(t, "")
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			echo(t, b.port, "ask/"+protocol)
			p := newPlant(t, onBroker(b.port, protocol, anything))
			params := object{"topic": "ask/" + protocol, "payload": object{"n": 1}, "timeout_seconds": 60}
			if protocol == "3.1.1" {
				p.fails("mqtt.request", params, tea.ValidationError, "none")
				params["response_topic"] = "answer/3.1.1"
			}
			for range 3 {
				if got := p.must("mqtt.request", params); !cmp.Equal(got["value"], any(object{"n": int64(1)})) {
					t.Errorf("got %v", got)
				}
			}
			silent := object{"topic": "nobody/" + protocol, "payload": 1, "response_topic": "answer/none", "timeout_seconds": 0.1}
			if e := p.fails("mqtt.request", silent, tea.Timeout, "unknown"); e.Retryable {
				t.Error(e)
			}
		})
	}
}

// values is a host that gets what a watch passes on.
type values struct {
	teatest.Host
	got chan string
}

func (v *values) Token(_ context.Context, text string) { v.got <- text }

func TestWatchPassesMessagesOnInTheirOrder(t *testing.T) {
	t.Parallel()
	b := mosquitto(t, "")
	for _, protocol := range []string{"5", "3.1.1"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			p := newPlant(t, onBroker(b.port, protocol, object{"topics": []any{"#"}}))
			room := "watch" + strings.ReplaceAll(protocol, ".", "")
			p.must("mqtt.publish", object{"topic": room + "/a", "payload": object{"n": 0}, "retain": true})
			ctx, cancel := context.WithCancel(t.Context())
			host, ended := &values{got: make(chan string)}, make(chan error, 1) // the host is slow
			go func() {
				_, err := p.instance.Invoke(ctx, &tea.Request{Action: "mqtt.watch", Params: tea.ValuePayload(object{"topic": room + "/#"}), Host: host})
				ended <- err
			}()
			if got, want := <-host.got, `{"body":{"n":0},"retained":true,"topic":"`+room+`/a"}`; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			for i := range 300 { // more than wait in the plugin
				p.must("mqtt.publish", object{"topic": room, "payload": i, "qos": 1})
			}
			p.must("mqtt.publish", object{"topic": room, "payload_base64": "/w=="})
			for i := range 300 {
				if got, want := <-host.got, fmt.Sprintf(`{"body":%d,"retained":false,"topic":"%s"}`, i, room); got != want {
					t.Fatalf("got %s, want %s", got, want)
				}
			}
			if got, want := <-host.got, `{"body":"/w==","encoding":"base64","retained":false,"topic":"`+room+`"}`; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}

func TestWatchEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	b := mosquitto(t, "")
	p := newPlant(t, onBroker(b.port, "5", object{"topics": []any{"#"}}))
	p.fails("mqtt.watch", object{"topic": "a/#/b"}, tea.ValidationError, nil)
	p.must("mqtt.last", object{"topic": "a", "wait_seconds": 0.01})
	ended := make(chan error, 1)
	host := &values{got: make(chan string, 1)}
	go func() {
		_, err := p.instance.Invoke(t.Context(), &tea.Request{Action: "mqtt.watch", Params: tea.ValuePayload(object{"topic": "$share/g/a/+"}), Host: host})
		ended <- err
	}()
	b.await(t, "$share/g/a/+")
	p.must("mqtt.publish", object{"topic": "a/b", "payload": 1})
	<-host.got
	b.stop()
	if err := <-ended; tea.AsError(err).Type != tea.ConnectionError || !strings.Contains(err.Error(), "the connection to the MQTT broker") {
		t.Error(err)
	}
}

func TestRulesLimitTopicsAndNumbers(t *testing.T) {
	t.Parallel()
	b := mosquitto(t, "")
	p := newPlant(t, onBroker(b.port, "5",
		object{"topics": []any{"pump/+/speed"}, "min": 0, "max": 50, "max_step": 20},
		object{"topics": []any{"log/#"}, "per_minute": 2}, object{"topics": []any{"#"}, "dry_run": true}))
	for _, payload := range []any{51, -1, "51", "fast", "", nil, object{"speed": 7}, []any{7}, "0x10", " 60 "} {
		p.fails("mqtt.publish", object{"topic": "pump/1/speed", "payload": payload}, tea.PermissionDenied, "none")
	}
	p.fails("mqtt.publish", object{"topic": "pump/1/speed", "payload_base64": "OTk="}, tea.PermissionDenied, "none")
	for _, payload := range []any{10, "30", 50} {
		p.must("mqtt.publish", object{"topic": "pump/1/speed", "payload": payload})
	}
	p.close()
	p.fails("mqtt.publish", object{"topic": "pump/1/speed", "payload": 0}, tea.PermissionDenied, "none")
	p.must("mqtt.publish", object{"topic": "pump/2/speed", "payload": 0})
	p.must("mqtt.publish", object{"topic": "log/a", "payload": "x"})
	p.must("mqtt.publish", object{"topic": "log", "payload": "x"})
	p.fails("mqtt.publish", object{"topic": "log/b/c", "payload": "x"}, tea.RateLimited, "none")
	if got := p.must("mqtt.publish", object{"topic": "pump/1", "payload": "x", "retain": true}); got["dry_run"] != true {
		t.Errorf("dry run: %v", got)
	}
	p.fails("mqtt.publish", object{"topic": "$SYS/x", "payload": 1}, tea.PermissionDenied, "none")
	p.fails("mqtt.publish", object{"topic": "pump/+/speed", "payload": 1}, tea.ValidationError, nil)
	if got := p.must("mqtt.last", object{"topic": "pump/1", "wait_seconds": 0.2}); got["found"] != false {
		t.Errorf("a dry run was sent: %v", got)
	}
}

func TestRefusesMistakesInTheSettingsOfBrokers(t *testing.T) {
	t.Parallel()
	for want, server := range map[string]object{
		"mqtt://HOST:PORT":                 {"url": "tcp://broker"},
		"username and password":            {"url": "mqtt://ada:secret@broker"},
		`"key_file" is required`:           {"url": "mqtts://broker", "cert_file": "a.pem"},
		"publish[0].topics[0]: must match": {"url": "mqtt://broker", "publish": []any{object{"topics": []any{"a/#/b"}}}},
		"publish[0].min: must be at most":  {"url": "mqtt://broker", "publish": []any{object{"topics": []any{"a"}, "min": 2, "max": 1}}},
		"will.topic: must match":           {"url": "mqtt://broker", "will": object{"topic": "a/#"}},
		`did you mean "password"`:          {"url": "mqtt://broker", "pasword": "x"},
		"publish[0].topics":                {"url": "mqtt://broker", "publish": []any{object{"topics": []any{}}}},
		"protocol":                         {"url": "mqtt://broker", "protocol": "3.1"},
	} {
		p := newPlant(t, object{"mqtt": object{"servers": object{"site": server}}})
		if e := p.fails("mqtt.last", object{"topic": "a"}, tea.ValidationError, nil); !strings.Contains(e.Message, want) || strings.Contains(e.Message, "secret@") {
			t.Errorf("got %v, want %q", e, want)
		}
	}
}

func TestBrokerRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	access, users := filepath.Join(dir, "acl"), filepath.Join(dir, "users")
	if err := os.WriteFile(access, []byte("user ada\ntopic read in/#\ntopic write out/#\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "mosquitto_passwd", "-b", "-c", users, "ada", "s3cret").CombinedOutput(); err != nil {
		t.Skipf("mosquitto_passwd: %v\n%s", err, out)
	}
	if err := os.Chmod(users, 0o600); err != nil {
		t.Fatal(err)
	}
	user := ""
	if os.Getuid() == 0 {
		user = "\nuser root"
	}
	b := mosquitto(t, "allow_anonymous false\npassword_file "+users+"\nacl_file "+access+user)
	for _, protocol := range protocols {
		settings := onBroker(b.port, protocol, anything)
		server := settings["mqtt"].(object)["servers"].(object)["site"].(object)
		server["username"], server["password"] = "ada", "wrong"
		p := newPlant(t, settings)
		e := p.fails("mqtt.publish", object{"topic": "out/a", "payload": 1}, tea.PermissionDenied, "none")
		if strings.Contains(e.Message, "wrong") {
			t.Errorf("the message has the password: %v", e)
		}
		p.close()
		server["password"] = "s3cret"
		p.must("mqtt.publish", object{"topic": "out/a", "payload": 1})
		if protocol == "5" { // 3.1.1 has no error code for messages
			p.fails("mqtt.publish", object{"topic": "in/a", "payload": 1}, tea.PermissionDenied, "refused")
			p.fails("mqtt.publish", object{"topic": "in/a", "payload": 1, "qos": 2}, tea.PermissionDenied, "refused")
		}
	}
}

func TestBrokerThatDiesIsFoundAgain(t *testing.T) {
	t.Parallel()
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			b := mosquitto(t, "")
			p := newPlant(t, onBroker(b.port, protocol, anything))
			p.must("mqtt.publish", object{"topic": "a", "payload": 1})
			// It ends while a request waits for its response.
			lost := make(chan error, 1)
			go func() {
				_, err := p.callIn(t.Context(), "mqtt.request", object{"topic": "a", "payload": 1, "response_topic": "b", "timeout_seconds": 600})
				lost <- err
			}()
			b.await(t, "Sending SUBACK")
			b.await(t, "Sending PUBACK")
			b.stop()
			if e := tea.AsError(<-lost); e.Details["effect"] != "unknown" || e.Retryable {
				t.Errorf("while it waited: %v, %v", e, e.Details)
			}
			if e := p.fails("mqtt.publish", object{"topic": "a", "payload": 1}, tea.ConnectionError, "none"); !e.Retryable {
				t.Errorf("while it is away: %v", e)
			}
			var again *broker
			for again == nil {
				path, _ := exec.LookPath("mosquitto")
				if path == "" {
					path = "/usr/sbin/mosquitto"
				}
				again = startMosquitto(t, path, b.port, "")
			}
			p.must("mqtt.publish", object{"topic": "a", "payload": 1})
		})
	}
}

// A broker that reads a message and dies, at each byte of the acknowledgement.
func TestSaysWhatABrokenPublishDid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		protocol  string
		connected []byte
		answer    []byte
	}{
		{"5", []byte{0x20, 3, 0, 0, 0}, []byte{0x40, 4, 0, 1, 0, 0}},
		{"3.1.1", []byte{0x20, 2, 0, 0}, []byte{0x40, 2, 0, 1}},
	} {
		for n := range len(c.answer) {
			port, published := deadBroker(t, c.connected, c.answer[:n])
			p := newPlant(t, onBroker(port, c.protocol, anything))
			if e := p.fails("mqtt.publish", object{"topic": "a", "payload": 1}, tea.ConnectionError, "unknown"); e.Retryable {
				t.Errorf("%s after %d bytes: %v", c.protocol, n, e)
			}
			if got := published.Load(); got != 1 {
				t.Errorf("%s after %d bytes: %d messages", c.protocol, n, got)
			}
		}
	}
}

// deadBroker accepts a connection and dies while it acknowledges a message.
func deadBroker(t *testing.T, connected, answer []byte) (int, *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	published := new(atomic.Int32)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			packet := func() byte {
				head := make([]byte, 2)
				if _, err := io.ReadFull(c, head); err != nil {
					return 0
				}
				_, _ = io.CopyN(io.Discard, c, int64(head[1]))
				return head[0] >> 4
			}
			packet()
			_, _ = c.Write(connected)
			kind := packet()
			for kind == 12 { // a ping, which the library may send first
				_, _ = c.Write([]byte{0xd0, 0})
				kind = packet()
			}
			if kind == 3 {
				published.Add(1)
				_, _ = c.Write(answer)
			}
			_ = c.Close()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port, published
}

func TestTLSAndWill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certificate(t, dir, "broker")
	user := ""
	if os.Getuid() == 0 {
		user = "user root\n"
	}
	b := mosquitto(t, fmt.Sprintf("%scafile %s/broker.pem\ncertfile %s/broker.pem\nkeyfile %s/broker.key\nrequire_certificate true", user, dir, dir, dir))
	for _, protocol := range protocols {
		settings := onBroker(b.port, protocol, anything)
		server := settings["mqtt"].(object)["servers"].(object)["site"].(object)
		server["url"] = strings.Replace(server["url"].(string), "mqtt:", "mqtts:", 1)
		p := newPlant(t, settings)
		if e := p.fails("mqtt.publish", object{"topic": "a", "payload": 1}, tea.ConnectionError, "none"); !strings.Contains(e.Message, "certificate") {
			t.Errorf("an unknown authority: %v", e)
		}
		p.close()
		server["ca_file"], server["cert_file"], server["key_file"] = dir+"/broker.pem", dir+"/broker.pem", dir+"/broker.key"
		server["will"] = object{"topic": "gone/" + protocol, "payload": "offline", "retain": true, "qos": 1}
		p.must("mqtt.publish", object{"topic": "a", "payload": 1})
		server["client_id"] = "gateway"
		first, second := newPlant(t, settings), newPlant(t, settings)
		first.must("mqtt.publish", object{"topic": "a", "payload": 1})
		second.must("mqtt.publish", object{"topic": "a", "payload": 1}) // ends the first connection
		if got := second.must("mqtt.last", object{"topic": "gone/" + protocol, "wait_seconds": 30}); got["value"] != "offline" {
			t.Errorf("the will: %v", got)
		}
	}
}

// certificate writes a certificate for 127.0.0.1 that signs itself.
func certificate(t *testing.T, dir, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// echo answers requests with their payload: at their response topic, or at answer/3.1.1
// for version 3.1.1.
func echo(t *testing.T, port int, topic string) {
	t.Helper()
	nc, err := new(net.Dialer).DialContext(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	var client *paho.Client
	client = paho.NewClient(paho.ClientConfig{Conn: nc, OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(r paho.PublishReceived) (bool, error) {
		answer := &paho.Publish{Topic: "answer/3.1.1", QoS: 1, Payload: r.Packet.Payload, Properties: &paho.PublishProperties{}}
		if response := r.Packet.Properties.ResponseTopic; response != "" {
			answer.Topic = response
			// Somebody else's response comes first.
			answer.Properties.CorrelationData = []byte("another")
			answer.Payload = []byte("not yours")
			_, _ = client.PublishWithOptions(t.Context(), answer, paho.PublishOptions{Method: paho.PublishMethod_AsyncSend})
			answer.Properties.CorrelationData, answer.Payload = r.Packet.Properties.CorrelationData, r.Packet.Payload
		}
		_, _ = client.PublishWithOptions(t.Context(), answer, paho.PublishOptions{Method: paho.PublishMethod_AsyncSend})
		return true, nil
	}}})
	if _, err := client.Connect(t.Context(), &paho.Connect{ClientID: "echo-" + strings.ReplaceAll(topic, "/", "-"), CleanStart: true, KeepAlive: 30}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(&paho.Disconnect{}) })
	if _, err := client.Subscribe(t.Context(), &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: topic, QoS: 1}}}); err != nil {
		t.Fatal(err)
	}
}
