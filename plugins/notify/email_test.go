package notify_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
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

// certificate writes a certificate for 127.0.0.1 and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// mailServer starts test/aiosmtpd/server.py.
func mailServer(t *testing.T, args ...string) (address string, next func() object) {
	t.Helper()
	python := filepath.Join(peertest.Dir(t, "../..", "aiosmtpd"), "python/bin/python")
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, python, append([]string{"../../test/aiosmtpd/server.py"}, args...)...)
	cmd.Stderr, cmd.WaitDelay = os.Stderr, 10*time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); _ = cmd.Wait() })
	lines := bufio.NewReader(out)
	next = func() (line object) {
		t.Helper()
		text, err := lines.ReadString('\n')
		if err == nil {
			err = json.Unmarshal([]byte(text), &line)
		}
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	return fmt.Sprintf("127.0.0.1:%v", next()["port"]), next
}

// decoder decodes headers.
var decoder = new(mime.WordDecoder)

// quoted returns the body of a message, which is quoted-printable.
func quoted(msg *mail.Message) io.Reader { return quotedprintable.NewReader(msg.Body) }

// email returns settings for a mail server.
func email(server string, more object) object {
	settings := object{"server": server, "tls": "none", "from": "Pump 7 <pump7@example.com>", "to": []any{"ann@example.com", "bob@example.com"}}
	for k, v := range more {
		settings[k] = v
	}
	return to("email", settings)
}

func TestEmail(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	for _, mode := range []string{"none", "starttls", "tls"} {
		server, next := mailServer(t, mode, cert, key)
		more := object{"tls": mode}
		if mode != "none" {
			more["username"], more["password"] = "pump", "open-sesame"
		}
		settings := email(server, more)
		target := settings["targets"].(object)["ops"].(object)
		if mode != "none" {
			if _, err := send(t, settings, object{}); err == nil || tea.AsError(err).Details["not_sent"] != true || tea.AsError(err).Retryable {
				t.Errorf("%s: an unknown certificate: %v", mode, err)
			}
			target["ca_file"] = cert
		}
		const long = "Größe 9 bar 🚨 \n.\n.. a line that begins with dots\nFrom here\n"
		if _, err := send(t, settings, object{"title": hostile + " Größe", "message": long + strings.Repeat("x", 3000), "priority": "high", "actions": []any{object{"label": "yes", "url": "http://tea.example/a?b=1"}}}); err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		got := next()
		msg, err := mail.ReadMessage(strings.NewReader(got["text"].(string)))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(quoted(msg))
		if err != nil {
			t.Fatal(err)
		}
		header := map[string]string{}
		for _, name := range []string{"Subject", "From", "To", "Bcc", "Auto-Submitted", "Importance"} {
			if header[name], err = decoder.DecodeHeader(msg.Header.Get(name)); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(map[string]string{
			"Subject": "Pump 7 Bcc: eve@example.com <b>*bold*</b> & _x_ [a](http://b)[31m Größe", "From": `"Pump 7" <pump7@example.com>`,
			"To": "<ann@example.com>, <bob@example.com>", "Bcc": "", "Auto-Submitted": "auto-generated", "Importance": "high",
		}, header); diff != "" {
			t.Errorf("%s: header (-want +got):\n%s", mode, diff)
		}
		if want := long + strings.Repeat("x", 3000) + "\n\nyes: http://tea.example/a?b=1"; strings.TrimRight(strings.ReplaceAll(string(body), "\r\n", "\n"), "\n") != want {
			t.Errorf("%s: body %q", mode, body[:100])
		}
		if diff := cmp.Diff([]any{"ann@example.com", "bob@example.com"}, got["to"]); diff != "" || got["tls"] != (mode == "starttls") {
			t.Errorf("%s: envelope %v %v", mode, got["to"], got["tls"])
		}
		if id := msg.Header.Get("Message-Id"); !strings.HasSuffix(id, "@example.com>") {
			t.Errorf("%s: Message-ID %q", mode, id)
		}
		if mode == "none" {
			continue
		}
		target["email"].(object)["password"] = "wrong-password"
		if _, err := send(t, settings, object{}); err == nil || tea.AsError(err).Type != tea.PermissionDenied || tea.AsError(err).Details["not_sent"] != true || strings.Contains(err.Error(), "wrong-password") {
			t.Errorf("%s: a wrong password: %v", mode, err)
		}
	}
}

// If one recipient is refused, nobody gets the message.
func TestEmailWithARefusedRecipient(t *testing.T) {
	t.Parallel()
	server, next := mailServer(t, "none")
	for name, want := range map[string]tea.ErrorType{"nobody@example.com": tea.ValidationError, "later@example.com": tea.ConnectionError} {
		_, err := send(t, email(server, object{"to": []any{"ann@example.com", name}}), object{})
		if e := tea.AsError(err); e == nil || e.Type != want || e.Details["not_sent"] != true || e.Retryable != (want == tea.ConnectionError) || !strings.Contains(e.Message, name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := send(t, email(server, nil), object{"title": "the first"}); err != nil {
		t.Fatal(err)
	}
	if text := next()["text"].(string); !strings.Contains(text, "Subject: the first") {
		t.Errorf("first message: %s", text)
	}
}

// The connection is cut at each line of the dialogue. Only after the end of the message
// the outcome is unknown.
func TestEmailOverACutConnection(t *testing.T) {
	t.Parallel()
	answers := []string{"220 ready", "250 hello", "250 sender", "250 recipient", "250 recipient", "354 go on", "250 taken", "221 bye"}
	for n := range len(answers) + 1 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer l.Close()
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			in := bufio.NewReader(c)
			for i, answer := range answers[:n] {
				if _, err := io.WriteString(c, answer+"\r\n"); err != nil {
					return
				}
				for i < len(answers)-1 {
					if line, err := in.ReadString('\n'); err != nil || i != 5 || line == ".\r\n" {
						break
					}
				}
			}
		}()
		_, err = send(t, email(l.Addr().String(), nil), object{})
		e := tea.AsError(err)
		switch {
		case n >= 7 && err == nil: // taken, whatever follows
		case n == 6 && e != nil && e.Details["not_sent"] == false:
		case n < 6 && e != nil && e.Details["not_sent"] == true:
		default:
			t.Errorf("cut after %d answers: %v", n, err)
		}
	}
}
