package device_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// uaServer is a server of test/asyncua with its certificate and the one of a client.
type uaServer struct {
	url, dir string
	stop     func()
}

func asyncua(t *testing.T) uaServer {
	t.Helper()
	peertest.Long(t, "it starts asyncua")
	python := filepath.Join(peertest.Dir(t, "../..", "asyncua"), "python", "bin", "python")
	s := uaServer{dir: t.TempDir()}
	for _, name := range []string{"server", "client", "other", "user"} {
		uaCertificate(t, filepath.Join(s.dir, name))
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, python, "../../test/asyncua/server.py", filepath.Join(s.dir, "server.pem"), filepath.Join(s.dir, "server.key.pem"))
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.stop = func() { stop(); _ = cmd.Wait() }
	t.Cleanup(s.stop)
	var ready struct{ Port int }
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&ready); err != nil {
		t.Fatalf("asyncua: %v", err)
	}
	s.url = fmt.Sprintf("opc.tcp://127.0.0.1:%d/tea", ready.Port)
	return s
}

// uaCertificate makes a certificate and its key, as OPC UA needs them.
func uaCertificate(t *testing.T, path string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: filepath.Base(path)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageContentCommitment | x509.KeyUsageKeyEncipherment | x509.KeyUsageDataEncipherment | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
		URIs: []*url.URL{{Scheme: "urn", Opaque: "tea:" + filepath.Base(path)}}, DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{path + ".pem": {Type: "CERTIFICATE", Bytes: der}, path + ".key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// with are the settings for the server at an address, with more of its settings.
func (s uaServer) with(t *testing.T, address string, more, nodes, methods object) *plant {
	t.Helper()
	server := object{"url": address, "timeout_seconds": 60}
	for key, v := range more {
		server[key] = v
	}
	return newPlant(t, object{"opcua": object{"servers": object{"plc": server}, "nodes": nodes, "methods": methods}})
}

// secure are the settings for a security policy.
func (s uaServer) secure(policy, mode string) object {
	return object{
		"security_policy": policy, "security_mode": mode, "username": "tea", "password": "secret",
		"cert_file": filepath.Join(s.dir, "client.pem"), "key_file": filepath.Join(s.dir, "client.key.pem"), "server_cert_file": filepath.Join(s.dir, "server.pem"),
	}
}

func node(name string, more object) object {
	n := object{"id": "nsu=urn:tea:test;s=" + name}
	for key, v := range more {
		n[key] = v
	}
	return n
}

func method(name string, more object) object {
	m := object{"object": "ns=2;s=machine", "method": "ns=2;s=" + name}
	for key, v := range more {
		m[key] = v
	}
	return m
}

func TestOPCUA(t *testing.T) {
	t.Parallel()
	s := asyncua(t)
	for name, test := range map[string]func(t *testing.T, s uaServer){
		"reads and writes each type":              readsAndWritesEachType,
		"refuses values of another type":          refusesOtherTypes,
		"guards writes and calls":                 guardsWritesAndCalls,
		"calls methods once":                      callsOnce,
		"browses":                                 browses,
		"proves who it talks to":                  provesIdentity,
		"says what a broken call did":             brokenCalls,
		"watches changes until the session ends":  watches,
		"explains what the server does not allow": explains,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, s) })
	}
}

// uaLimits are what the server has at first, and another value for each type.
var uaLimits = map[string][2]any{
	"Boolean": {true, false}, "SByte": {int64(-128), int64(127)}, "Byte": {int64(255), int64(0)}, "Int16": {int64(-32768), int64(32767)}, "UInt16": {int64(65535), int64(0)},
	"Int32": {int64(math.MinInt32), int64(math.MaxInt32)}, "UInt32": {int64(math.MaxUint32), int64(0)}, "Int64": {int64(math.MinInt64), int64(math.MaxInt64)},
	"UInt64": {json.Number("18446744073709551615"), int64(math.MaxInt64)}, "Float": {3.4028235e38, 0.1}, "Double": {-1.7976931348623157e308, 5e-324}, "String": {"größer", "5e1"},
	"DateTime": {"2026-11-28T05:00:00.123456Z", "1999-12-31T23:59:59.999999Z"}, "Guid": {"12345678-9abc-def0-1234-56789abcdef0", "ffffffff-ffff-ffff-ffff-ffffffffffff"},
	"ByteString": {"AP8=", "/wA="}, "LocalizedText": {"offen", "zu"},
}

func readsAndWritesEachType(t *testing.T, s uaServer) {
	nodes := object{"fixed": node("fixed", object{"write": object{}}), "any": node("any", object{"write": object{}})}
	for name := range uaLimits {
		nodes[name], nodes[name+"-list"] = node(name, object{"write": object{}}), node(name+"-list", object{"write": object{}})
	}
	p := s.with(t, s.url, nil, nodes, nil)
	for name, values := range uaLimits {
		read := func(node string) any { return p.must("opcua.read", object{"node": node})["value"] }
		if got := read(name); !strings.EqualFold(fmt.Sprint(got), fmt.Sprint(values[0])) {
			t.Errorf("%s: %v, want %v", name, got, values[0])
		}
		p.must("opcua.write", object{"node": name, "value": values[1]})
		if got := read(name); !strings.EqualFold(fmt.Sprint(got), fmt.Sprint(values[1])) {
			t.Errorf("%s: %v, want %v", name, got, values[1])
		}
		if name == "ByteString" { // the library would send an empty list
			p.fails("opcua.write", object{"node": name + "-list", "value": []any{values[1]}}, tea.ValidationError, "none")
			continue
		}
		for _, list := range [][]any{{values[1], values[0], values[1]}, {values[0]}, {}} {
			p.must("opcua.write", object{"node": name + "-list", "value": list})
			if got := read(name + "-list"); !strings.EqualFold(fmt.Sprint(got), fmt.Sprint(list)) {
				t.Errorf("%s-list: %v, want %v", name, got, list)
			}
		}
	}
	got := p.must("opcua.read", object{"id": "ns=2;s=nan"})
	if got["value"] != nil || got["type"] != "double" || got["status"] != "Good" || got["source_time"] == nil {
		t.Errorf("NaN: %v", got)
	}
	p.must("opcua.write", object{"node": "any", "value": 8})
	if got := p.must("opcua.read", object{"node": "any"}); got["value"] != int64(8) || got["type"] != "int16" {
		t.Errorf("any: %v", got)
	}
	if e := p.fails("opcua.write", object{"node": "fixed", "value": 2}, tea.PermissionDenied, "refused"); e.Details["outcome_known"] != true || e.Retryable {
		t.Errorf("a variable that cannot be written: %v, %v", e, e.Details)
	}
}

func refusesOtherTypes(t *testing.T, s uaServer) {
	nodes := object{"short": node("short", object{"write": object{}})}
	bad := map[string][]any{
		"Boolean": {1, "true", nil}, "SByte": {128, -129, 1.5, "1"}, "Byte": {256, -1, true}, "Int16": {32768, -32769}, "UInt16": {65536, -1}, "Int32": {int64(1) << 31, 1e10},
		"UInt32": {int64(1) << 32, -1}, "Int64": {json.Number("9223372036854775808"), 1e19, "x"}, "UInt64": {json.Number("18446744073709551616"), -1}, "Float": {3.5e38, "1", nil, true},
		"Double": {"nan", nil, object{}}, "String": {1, nil, object{}}, "DateTime": {"yesterday", 0, "9999-01-01T00:00:00Z"}, "Guid": {"x", 1}, "ByteString": {"?", 1}, "LocalizedText": {1, nil},
	}
	for name := range bad {
		nodes[name], nodes[name+"-list"] = node(name, object{"write": object{}}), node(name+"-list", object{"write": object{}})
	}
	p := s.with(t, s.url, nil, nodes, nil)
	for _, year := range []string{"1601", "9999"} { // the library counts nanoseconds in 64 bits
		if got, want := p.must("opcua.read", object{"id": "ns=2;s=year" + year})["value"], year+"-12-31T23:59:58.123456Z"; got != want {
			t.Errorf("year %s: %v", year, got)
		}
	}
	refused := func(node string, v any) {
		t.Helper()
		p.fails("opcua.write", object{"node": node, "value": v}, tea.ValidationError, "none")
	}
	for name, values := range bad {
		for _, v := range append(values, []any{uaLimits[name][0]}, []any{}) {
			refused(name, v)
		}
		refused(name+"-list", uaLimits[name][0]) // the server would accept it
		refused(name+"-list", []any{uaLimits[name][0], values[0]})
	}
	refused("short", []any{1, 2, 3})
	p.must("opcua.write", object{"node": "short", "value": []any{1, 2}})
}

func guardsWritesAndCalls(t *testing.T, s uaServer) {
	p := s.with(t, s.url, nil, object{
		"speed": node("Double", object{"write": object{"min": 0, "max": 50, "max_step": 10}}), "list": node("Int32-list", object{"write": object{"max": 5}}),
		"text": node("String", object{"write": object{"max": 5}}), "read": node("Int32", nil), "dry": node("Int32", object{"write": object{"dry_run": true}}),
	}, object{
		"add": method("add", object{"inputs": []any{object{"type": "double", "min": 0, "max": 10}, object{"type": "double"}}, "per_minute": 1}),
		"dry": method("count", object{"dry_run": true}),
	})
	for name, v := range map[string]any{"speed": 50.5, "list": []any{1, 6}, "text": "4", "read": 1} {
		p.fails("opcua.write", object{"node": name, "value": v}, tea.PermissionDenied, "none")
	}
	p.fails("opcua.write", object{"node": "speed", "value": 40}, tea.PermissionDenied, "none") // far from the current value
	p.fails("opcua.write", object{"node": "ns=2;s=Double", "value": 1}, tea.NotFound, "none")
	p.fails("opcua.write", object{"node": "", "value": 1}, tea.NotFound, "none")
	p.fails("opcua.call", object{"method": "ns=2;s=count"}, tea.NotFound, "none")
	for _, inputs := range [][]any{{}, {1}, {1, 2, 3}, {"1", 1}, {1, nil}, {[]any{1}, 1}} {
		p.fails("opcua.call", object{"method": "add", "inputs": inputs}, tea.ValidationError, "none")
	}
	for _, inputs := range [][]any{{11, 1}, {-1, 1}} {
		p.fails("opcua.call", object{"method": "add", "inputs": inputs}, tea.PermissionDenied, "none")
	}
	if got := p.must("opcua.call", object{"method": "add", "inputs": []any{1.5, -2}})["outputs"]; !cmp.Equal(got, []any{-0.5}) {
		t.Errorf("1.5 - 2: %v", got)
	}
	p.fails("opcua.call", object{"method": "add", "inputs": []any{1, 2}}, tea.RateLimited, "none")
	before := p.must("opcua.read", object{"node": "dry"})["value"]
	if got := p.must("opcua.write", object{"node": "dry", "value": 77}); got["dry_run"] != true || p.must("opcua.read", object{"node": "dry"})["value"] != before {
		t.Errorf("dry run: %v", got)
	}
	if got := p.must("opcua.call", object{"method": "dry"}); got["dry_run"] != true {
		t.Errorf("dry run: %v", got)
	}
}

func callsOnce(t *testing.T, s uaServer) {
	p := s.with(t, s.url, nil, nil, object{"fail": method("fail", nil), "slow": method("slow", nil), "none": method("nothing", nil), "wrong": method("add", object{"inputs": []any{object{"type": "string"}}})})
	p.fails("opcua.call", object{"method": "fail"}, tea.QueryError, "unknown") // it may have done half of its work
	if e := p.fails("opcua.call", object{"method": "wrong", "inputs": []any{"x"}}, tea.QueryError, "unknown"); e.Retryable {
		t.Error(e)
	}
	if _, err := p.call("opcua.call", object{"method": "none"}); tea.AsError(err).Details["effect"] != "refused" {
		t.Errorf("a method that does not exist: %v, %v", err, tea.AsError(err).Details)
	}
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	_, err := p.callIn(ctx, "opcua.call", object{"method": "slow"})
	if e := tea.AsError(err); e == nil || e.Type != tea.Timeout || e.Details["effect"] != "unknown" || e.Retryable {
		t.Errorf("a call that ended before the answer: %v", err)
	}
}

func browses(t *testing.T, s uaServer) {
	p := s.with(t, s.url, nil, nil, nil)
	names := map[any]any{}
	for _, n := range p.must("opcua.browse", object{})["nodes"].([]any) {
		names[n.(object)["name"]] = n.(object)["class"]
	}
	if names["machine"] != "object" || names["Server"] != "object" {
		t.Errorf("objects: %v", names)
	}
	got := p.must("opcua.browse", object{"id": "ns=2;s=machine"})["nodes"].([]any)
	if diff := cmp.Diff(object{"id": "ns=2;s=Boolean", "name": "Boolean", "class": "variable"}, got[0]); diff != "" {
		t.Error(diff)
	}
	many := p.must("opcua.browse", object{"id": "ns=2;s=many"})
	if list := many["nodes"].([]any); len(list) != 1000 || many["truncated"] != true {
		t.Errorf("%d nodes, truncated %v", len(list), many["truncated"])
	}
	p.fails("opcua.browse", object{"id": "ns=2;s=missing"}, tea.QueryError, nil)
}

func provesIdentity(t *testing.T, s uaServer) {
	read := object{"id": "ns=2;s=nan"}
	for _, c := range [][2]string{{"Basic256Sha256", "sign"}, {"Basic256Sha256", "sign_and_encrypt"}, {"Aes128Sha256RsaOaep", "sign_and_encrypt"}, {"Aes256Sha256RsaPss", "sign_and_encrypt"}} {
		p := s.with(t, s.url, s.secure(c[0], c[1]), nil, object{"add": method("add", object{"inputs": []any{object{"type": "double"}, object{"type": "double"}}})})
		p.must("opcua.read", read)
		p.must("opcua.call", object{"method": "add", "inputs": []any{1, 2}})
	}
	wrong := s.secure("Basic256Sha256", "sign_and_encrypt")
	wrong["password"] = "guess"
	if e := s.with(t, s.url, wrong, nil, nil).fails("opcua.read", read, tea.PermissionDenied, nil); strings.Contains(e.Error(), "guess") || e.Retryable {
		t.Errorf("a wrong password: %v", e)
	}
	identified := func(user string) *plant {
		settings := s.secure("Basic256Sha256", "sign_and_encrypt")
		if delete(settings, "username"); user != "" {
			delete(settings, "password")
			settings["user_cert_file"], settings["user_key_file"] = filepath.Join(s.dir, user+".pem"), filepath.Join(s.dir, user+".key.pem")
		}
		return s.with(t, s.url, settings, object{"fixed": node("fixed", object{"write": object{}})}, nil)
	}
	write := object{"node": "fixed", "value": 1.5}
	identified("").fails("opcua.write", write, tea.PermissionDenied, "refused")
	identified("user").must("opcua.write", write)
	identified("other").fails("opcua.write", write, tea.PermissionDenied, "none")
	other := s.secure("Basic256Sha256", "sign_and_encrypt")
	other["server_cert_file"] = filepath.Join(s.dir, "other.pem")
	if e := s.with(t, s.url, other, nil, nil).fails("opcua.read", read, tea.PermissionDenied, nil); !strings.Contains(e.Message, "is not the one in server_cert_file") {
		t.Error(e)
	}
	s.with(t, s.url, s.secure("Aes128Sha256RsaOaep", "sign"), nil, nil).fails("opcua.read", read, tea.ValidationError, nil) // not offered
	for want, more := range map[string]object{
		"cert_file and key_file": {"security_policy": "Basic256Sha256"}, "because security_policy is None": {"cert_file": "/x"}, "opc.tcp://HOST": {"url": "http://plc"}, "username and password": {"url": "opc.tcp://a:b@plc"},
	} {
		if e := s.with(t, s.url, more, nil, nil).fails("opcua.read", read, tea.ValidationError, nil); !strings.Contains(e.Message, want) {
			t.Errorf("got %v, want %q", e, want)
		}
	}
	for want, settings := range map[string][2]object{
		"such as ns=2;s=Pump.Speed": {{"a": object{"id": "pump"}}}, "is not in servers": {{"a": node("a", object{"server": "x"})}}, "at most max": {{"a": node("a", object{"write": object{"min": 2, "max": 1}})}},
		"unknown key": {nil, {"m": method("m", object{"max": 1})}},
	} {
		if e := s.with(t, s.url, nil, settings[0], settings[1]).fails("opcua.read", read, tea.ValidationError, nil); !strings.Contains(e.Message, want) {
			t.Errorf("got %v, want %q", e, want)
		}
	}
}

// cutter passes on a connection with a server, and closes it after a number of bytes from
// the server. total returns the number that have passed.
func cutter(t *testing.T, to string, after func() int64) (address string, total func() int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	count := new(atomic.Int64)
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", u.Host)
			if err != nil {
				_ = near.Close()
				continue
			}
			go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
			go func() {
				defer near.Close()
				defer far.Close()
				one := make([]byte, 1)
				for in := bufio.NewReader(far); ; {
					if limit := after(); limit >= 0 && count.Load() >= limit {
						return
					}
					if _, err := io.ReadFull(in, one); err != nil {
						return
					}
					count.Add(1)
					if _, err := near.Write(one); err != nil {
						return
					}
				}
			}()
		}
	}()
	return "opc.tcp://" + l.Addr().String() + "/tea", count.Load
}

func brokenCalls(t *testing.T, s uaServer) {
	direct := s.with(t, s.url, nil, nil, object{"count": method("count", nil)})
	count := func() int64 {
		return direct.must("opcua.call", object{"method": "count"})["outputs"].([]any)[0].(int64)
	}
	never := func() int64 { return -1 }
	address, total := cutter(t, s.url, never)
	p := s.with(t, address, nil, nil, object{"count": method("count", nil)})
	p.must("opcua.read", object{"id": "ns=2;s=nan"})
	opened := total()
	p.must("opcua.call", object{"method": "count"})
	called := total()
	for cut := int64(0); cut <= called; cut++ {
		if cut < opened-2 && cut%499 != 0 || cut > opened && cut < called-1 && cut%11 != 0 {
			continue // not each byte: the server is slow
		}
		address, _ := cutter(t, s.url, func() int64 { return cut })
		p := s.with(t, address, nil, nil, object{"count": method("count", nil)})
		_, _ = p.call("opcua.read", object{"id": "ns=2;s=nan"})
		before := count()
		_, err := p.call("opcua.call", object{"method": "count"})
		ran := count() - before - 1
		if err == nil {
			if cut < called {
				t.Errorf("cut after %d of %d bytes: no error", cut, called)
			}
			continue
		}
		switch effect := tea.AsError(err).Details["effect"]; {
		case cut < opened && effect != "none" || cut > opened && effect != "unknown" || effect == "none" && ran > 0 || ran > 1:
			t.Errorf("cut after %d of %d bytes, %d before the call: %v, %v, and the method ran %d times", cut, called, opened, err, effect, ran)
		}
	}
	// The session was closed for lack of use: a write opens another one.
	limit := new(atomic.Int64)
	limit.Store(-1)
	address, total = cutter(t, s.url, limit.Load)
	p = s.with(t, address, nil, nil, object{"count": method("count", nil)})
	p.must("opcua.read", object{"id": "ns=2;s=nan"})
	limit.Store(total())
	_, _ = p.call("opcua.read", object{"id": "ns=2;s=nan"}) // is cut off
	limit.Store(-1)
	before := count()
	p.must("opcua.call", object{"method": "count"})
	if after := count(); after != before+2 {
		t.Errorf("the method ran %d times, want once", after-before-1)
	}
}

func watches(t *testing.T, s uaServer) {
	limit := new(atomic.Int64)
	limit.Store(-1)
	address, total := cutter(t, s.url, limit.Load)
	p := s.with(t, address, nil, object{"level": node("UInt16", object{"write": object{}})}, nil)
	direct := s.with(t, s.url, nil, object{"level": node("watched", object{"write": object{}})}, nil)
	p.fails("opcua.watch", object{"id": "ns=2;s=missing"}, tea.QueryError, nil)
	p.fails("opcua.watch", object{"node": "level", "id": "i=1"}, tea.ValidationError, nil)
	changes, ended := p.watch("opcua.watch", object{"id": "ns=2;s=watched", "interval_seconds": 0.05})
	first := <-changes
	if first["value"] != int64(0) || first["type"] != "int32" || first["status"] != "Good" {
		t.Errorf("the current value: %v", first)
	}
	for i := range 3 {
		direct.must("opcua.write", object{"node": "level", "value": i + 1})
		if got := <-changes; got["value"] != int64(i+1) {
			t.Errorf("got %v, want %d", got, i+1)
		}
	}
	limit.Store(total())
	direct.must("opcua.write", object{"node": "level", "value": 9}) // its message is cut off
	if e := tea.AsError(<-ended); e == nil || e.Type != tea.ConnectionError || !e.Retryable {
		t.Errorf("the session ended: %v", e)
	}
}

func explains(t *testing.T, s uaServer) {
	p := s.with(t, s.url, nil, object{"object": object{"id": "i=85", "write": object{}}}, nil)
	if e := p.fails("opcua.read", object{"id": "ns=2;s=broken"}, tea.QueryError, nil); e.Details["status"] != "BadSensorFailure" {
		t.Errorf("%v, %v", e, e.Details)
	}
	if e := p.fails("opcua.read", object{"id": "ns=2;s=argument"}, tea.QueryError, nil); !strings.Contains(e.Message, "structure") {
		t.Error(e)
	}
	for _, at := range []string{"pump", "nsu=urn:other;s=a", "ns=70000;i=1"} {
		p.fails("opcua.read", object{"id": at}, tea.ValidationError, nil)
	}
	p.fails("opcua.write", object{"node": "object", "value": 1}, tea.QueryError, "none")
	closed := s.with(t, "opc.tcp://127.0.0.1:1", nil, object{"a": node("a", object{"write": object{}})}, nil)
	if e := closed.fails("opcua.write", object{"node": "a", "value": 1}, tea.ConnectionError, "none"); !e.Retryable {
		t.Error(e)
	}
}

// The servers do not speak the protocol, or stop in the middle.
func TestOPCUASilentAndWrongServers(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"closes":         "",
		"text":           "HTTP/1.1 400 Bad Request\r\n\r\n",
		"a huge length":  "ACKF\xff\xff\xff\xff",
		"an error":       "ERRF\x18\x00\x00\x00\x00\x00\x0d\x80\x08\x00\x00\x00go away!",
		"half an answer": "ACKF\x1c\x00\x00\x00\x00\x00",
		"a large buffer": "ACKF\x1c\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00",
	} {
		url, _ := double(t, func(c net.Conn, _ []byte) { _, _ = io.WriteString(c, answer); _ = c.Close() })
		p := newPlant(t, object{"opcua": object{"servers": object{"plc": object{"url": strings.Replace(url, "tcp", "opc.tcp", 1), "timeout_seconds": 20}}}})
		_, err := p.call("opcua.read", object{"id": "i=85"})
		if err == nil || name == "a large buffer" && !strings.Contains(err.Error(), "announces a buffer of 16777217 bytes") {
			t.Errorf("%s: %v", name, err)
		}
	}
	url, _ := double(t, func(net.Conn, []byte) {})
	p := newPlant(t, object{"opcua": object{"servers": object{"plc": object{"url": strings.Replace(url, "tcp", "opc.tcp", 1), "timeout_seconds": 0.2}}}})
	p.fails("opcua.read", object{"id": "i=85"}, tea.Timeout, nil)
}
