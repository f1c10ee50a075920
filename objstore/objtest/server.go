package objtest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/the-edge-agent/tea/sdk/x/childproc"
	"github.com/the-edge-agent/tea/sdk/x/peertest"

	"github.com/the-edge-agent/tea/objstore"
)

// Server is an object storage with one empty bucket. It stops at the end of the
// test.
type Server struct {
	// Address is the address of the bucket, such as s3://bucket.
	Address  string
	Settings objstore.Settings
	// Dir is the server's data directory; "" = in memory.
	Dir string

	listen  string // host:port
	command func(listen string) *exec.Cmd
	running *exec.Cmd
	log     string
	ended   chan struct{}
}

const (
	// startTimeout allows for a machine that is busy with other tests.
	startTimeout = time.Minute
	startTries   = 5
)

// start starts the server and waits until it accepts connections. It tries several
// ports, because another process may take a free one first.
func (s *Server) start(t testing.TB) {
	t.Helper()
	for range startTries {
		if s.listen == "" {
			s.listen = freePort(t)
		}
		if s.run(t) {
			return
		}
		s.listen = ""
	}
	said, _ := os.ReadFile(s.log)
	t.Fatalf("%s does not start:\n%s", s.command("").Path, said)
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// run starts the process and reports whether it accepts connections.
func (s *Server) run(t testing.TB) bool {
	t.Helper()
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := s.command(s.listen)
	cmd.Stdout, cmd.Stderr = log, log
	childproc.EndWithParent(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	s.running, s.ended = cmd, ended
	for begin := time.Now(); time.Since(begin) < startTimeout; {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", s.listen)
		if err == nil {
			conn.Close()
			select {
			case <-ended: // another process has the port
				return false
			default:
				return true
			}
		}
		select {
		case <-ended:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	s.Kill()
	return false
}

// Kill ends the server immediately, like a crash.
func (s *Server) Kill() {
	_ = s.running.Process.Signal(syscall.SIGKILL)
	<-s.ended
}

// Restart starts the server again, on the same port and with the same data.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	for range 50 { // a closed connection may occupy the port
		if s.run(t) {
			return
		}
	}
	said, _ := os.ReadFile(s.log)
	t.Fatalf("the server does not start again:\n%s", said)
}

// Listen returns the server's host and port, for a proxy.
func (s *Server) Listen() string { return s.listen }

// Open opens the bucket of the server with changed settings.
func (s *Server) Open(t testing.TB, change func(*objstore.Settings), schemes ...objstore.Scheme) *objstore.Bucket {
	t.Helper()
	settings := s.Settings
	if change != nil {
		change(&settings)
	}
	b, err := objstore.Open(t.Context(), s.Address, settings, schemes...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// repository is the root of the repository.
func repository(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "scripts", "object-stores")); err == nil {
			return dir
		}
	}
	t.Fatal("the repository with scripts/object-stores is not around the working directory")
	return ""
}

func installed(t testing.TB) string {
	t.Helper()
	return peertest.Dir(t, repository(t), "object-stores")
}

const (
	bucketName = "tea-test"
	// AccessKey is the access key of the S3 server.
	AccessKey = "tea-access"
	// SecretKey is its secret key.
	SecretKey = "tea-secret-0123456789"
)

// S3 starts versitygw, whose bucket is a folder.
func S3(t testing.TB) *Server {
	t.Helper()
	return S3In(t, t.TempDir())
}

// S3In is S3 with its data in dir.
func S3In(t testing.TB, dir string) *Server {
	t.Helper()
	bin := installed(t)
	if err := os.MkdirAll(filepath.Join(dir, bucketName), 0o700); err != nil {
		t.Fatal(err)
	}
	s := &Server{
		Address: "s3://" + bucketName, Dir: dir, log: filepath.Join(t.TempDir(), "log"),
		Settings: objstore.Settings{Region: "us-east-1", AccessKeyID: AccessKey, SecretAccessKey: SecretKey},
		command: func(listen string) *exec.Cmd {
			return quiet(filepath.Join(bin, "versitygw"), "--port", listen, "--access", AccessKey, "--secret", SecretKey, "--quiet", "posix", dir)
		},
	}
	s.start(t)
	t.Cleanup(s.Kill)
	s.Settings.Endpoint = "http://" + s.listen
	return s
}

// GCS starts fake-gcs-server with its data in memory.
func GCS(t testing.TB) *Server {
	t.Helper()
	bin := installed(t)
	s := &Server{
		Address: "gs://" + bucketName, log: filepath.Join(t.TempDir(), "log"),
		command: func(listen string) *exec.Cmd {
			host, port, _ := net.SplitHostPort(listen)
			return quiet(filepath.Join(bin, "fake-gcs-server"), "-scheme", "http", "-host", host, "-port", port, "-backend", "memory", "-public-host", listen, "-external-url", "http://"+listen, "-log-level", "error")
		},
	}
	s.start(t)
	t.Cleanup(s.Kill)
	s.Settings.Endpoint = "http://" + s.listen
	post(t, s.Settings.Endpoint+"/storage/v1/b?project=tea", fmt.Sprintf(`{"name": %q}`, bucketName))
	return s
}

// The account of azurite.
const (
	azureAccount = "devstoreaccount1"
	azureKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// Azure starts azurite with a container.
func Azure(t testing.TB) *Server {
	t.Helper()
	bin := installed(t)
	dir := t.TempDir()
	s := &Server{
		Address: "azblob://" + bucketName, Dir: dir, log: filepath.Join(t.TempDir(), "log"),
		Settings: objstore.Settings{Account: azureAccount, AccountKey: azureKey},
		command: func(listen string) *exec.Cmd {
			host, port, _ := net.SplitHostPort(listen)
			return quiet("node", filepath.Join(bin, "node_modules", "azurite", "dist", "src", "blob", "main.js"), "--silent", "--blobHost", host, "--blobPort", port, "--location", dir, "--skipApiVersionCheck", "--disableTelemetry")
		},
	}
	s.start(t)
	t.Cleanup(s.Kill)
	s.Settings.Endpoint = "http://" + s.listen + "/" + azureAccount
	credential, err := container.NewSharedKeyCredential(azureAccount, azureKey)
	if err != nil {
		t.Fatal(err)
	}
	client, err := container.NewClientWithSharedKeyCredential(s.Settings.Endpoint+"/"+bucketName, credential, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return s
}

func post(t testing.TB, address, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("create the bucket: %s", resp.Status)
	}
}

// quiet returns a command with few variables.
func quiet(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), name, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.TempDir()}
	return cmd
}
