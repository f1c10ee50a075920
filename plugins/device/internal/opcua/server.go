package opcua

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	lib "github.com/gopcua/opcua"
	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/ua"
	"github.com/gopcua/opcua/uacp"

	"github.com/the-edge-agent/tea/plugins/device/internal/guard"
	tea "github.com/the-edge-agent/tea/sdk"
)

const (
	// maxBuffer bounds the buffer of a server, in bytes. Servers announce 64 KiB to 1 MiB.
	maxBuffer = 16 << 20
	// idleLimit is the time without a request after which a session is checked before a
	// write: with one that has ended, it would be unknown what the write did.
	idleLimit = 2 * time.Second
	// closeTimeout bounds how long a session is closed.
	closeTimeout = 2 * time.Second
)

// server has the session with a server, which is opened when it is needed. It is safe for
// concurrent use.
type server struct {
	name   string
	config Server
	// slot is held by who uses the fields below.
	slot   chan struct{}
	client *lib.Client
	used   time.Time
}

func newServer(name string, config Server) *server {
	return &server{name: name, config: config, slot: make(chan struct{}, 1)}
}

func (s *server) String() string { return fmt.Sprintf("%q (%s)", s.name, s.config.URL) }

// session returns the open session, or a new one.
func (s *server) session(ctx context.Context) (c *lib.Client, reused bool, err error) {
	select {
	case s.slot <- struct{}{}:
	case <-ctx.Done():
		return nil, false, s.fault(ctx, ctx.Err())
	}
	defer func() { <-s.slot }()
	s.used = time.Now()
	if s.client != nil && s.client.State() == lib.Connected {
		return s.client, true, nil
	}
	s.disconnect()
	s.client, err = s.connect(ctx)
	return s.client, false, err
}

// drop closes a session that is broken.
func (s *server) drop(c *lib.Client) {
	s.slot <- struct{}{}
	defer func() { <-s.slot }()
	if s.client == c {
		s.disconnect()
	}
}

// disconnect closes the session, if there is one. The caller holds the slot.
func (s *server) disconnect() {
	if s.client != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		_ = s.client.Close(ctx)
		s.client = nil
	}
}

// Close closes the session.
func (s *server) Close() {
	s.slot <- struct{}{}
	defer func() { <-s.slot }()
	s.disconnect()
}

// connect opens a session.
func (s *server) connect(ctx context.Context) (c *lib.Client, err error) {
	defer func() {
		if r := recover(); r != nil { // the library does not check all that a server sends
			err = tea.Errorf(tea.ConnectionError, "cannot connect to the OPC UA server %s: its answer is not valid: %v", s, r)
		}
	}()
	if err := s.checkBuffer(ctx); err != nil {
		return nil, s.fault(ctx, fmt.Errorf("cannot connect: %w", err))
	}
	endpoints, err := lib.GetEndpoints(ctx, s.config.URL, lib.DialTimeout(s.config.timeout()), lib.RequestTimeout(s.config.timeout()))
	if err != nil {
		return nil, s.fault(ctx, fmt.Errorf("cannot connect: %w", err))
	}
	options, err := s.options(endpoints)
	if err != nil {
		return nil, err
	}
	if c, err = lib.NewClient(s.config.URL, options...); err != nil {
		return nil, tea.Errorf(tea.ValidationError, "the settings of the OPC UA server %s: %w", s, err)
	}
	if err := c.Connect(ctx); err != nil {
		return nil, s.fault(ctx, fmt.Errorf("cannot open a session: %w", err))
	}
	return c, nil
}

// checkBuffer refuses a server that announces a large buffer: the library allocates one of
// that size for each message.
func (s *server) checkBuffer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.timeout())
	defer cancel()
	conn, err := uacp.Dial(ctx, s.config.URL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if size := conn.ReceiveBufSize(); size > maxBuffer {
		return fmt.Errorf("the server announces a buffer of %d bytes; at most %d are accepted", size, maxBuffer)
	}
	return nil
}

// options returns the options for a session at one of the endpoints. The library opens
// the channel with the key of the certificate that it is given, so only its owner can
// answer.
func (s *server) options(endpoints []*ua.EndpointDescription) ([]lib.Option, error) {
	mode := ua.MessageSecurityModeNone
	if s.config.secure() {
		mode = ua.MessageSecurityModeSignAndEncrypt
		if s.config.SecurityMode == "sign" {
			mode = ua.MessageSecurityModeSign
		}
	}
	policy := s.config.SecurityPolicy
	if policy == "" {
		policy = "None"
	}
	endpoint, err := lib.SelectEndpoint(endpoints, policy, mode)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "the OPC UA server %s does not offer the security policy %s with the mode %s", s, policy, strings.ToLower(strings.TrimPrefix(mode.String(), "MessageSecurityMode")))
	}
	options := []lib.Option{lib.AutoReconnect(false), lib.DialTimeout(s.config.timeout()), lib.RequestTimeout(s.config.timeout()), lib.ApplicationName("tea"), lib.SessionName("tea")}
	if s.config.secure() {
		cert, key, err := s.pair("cert_file and key_file", s.config.CertFile, s.config.KeyFile)
		if err != nil {
			return nil, err
		}
		if endpoint.ServerCertificate, err = s.trusted(endpoint.ServerCertificate); err != nil {
			return nil, err
		}
		options = append(options, lib.Certificate(cert), lib.PrivateKey(key))
	}
	switch {
	case s.config.UserCertFile != "":
		cert, key, err := s.pair("user_cert_file and user_key_file", s.config.UserCertFile, s.config.UserKeyFile)
		if err == nil {
			_, err = s.takes(endpoint, ua.UserTokenTypeCertificate, "user certificate")
		}
		return append(options, lib.AuthCertificate(cert), lib.AuthPrivateKey(key), lib.SecurityFromEndpoint(endpoint, ua.UserTokenTypeCertificate)), err
	case s.config.Username == "":
		return append(options, lib.SecurityFromEndpoint(endpoint, ua.UserTokenTypeAnonymous)), nil
	}
	token, err := s.takes(endpoint, ua.UserTokenTypeUserName, "user name")
	if err == nil && mode == ua.MessageSecurityModeSign && token.SecurityPolicyURI == ua.SecurityPolicyURINone { // the password would be sent in plain text
		err = tea.Errorf(tea.PermissionDenied, "the OPC UA server %s accepts the password only in plain text: use security_mode: sign_and_encrypt", s)
	}
	if err != nil {
		return nil, err
	}
	return append(options, lib.AuthUsername(s.config.Username, s.config.Password), lib.SecurityFromEndpoint(endpoint, ua.UserTokenTypeUserName)), nil
}

// pair loads a certificate and its key. names are the names of the settings.
func (s *server) pair(names, certFile, keyFile string) ([]byte, *rsa.PrivateKey, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	key, isRSA := pair.PrivateKey.(*rsa.PrivateKey)
	if err == nil && !isRSA {
		err = errors.New("the key is not an RSA key")
	}
	if err != nil {
		return nil, nil, tea.Errorf(tea.ValidationError, "%s of the OPC UA server %s: %w", names, s, err)
	}
	return pair.Certificate[0], key, nil
}

// trusted returns the first of the server's certificates if it is the one in the
// settings.
func (s *server) trusted(sent []byte) ([]byte, error) {
	data, err := os.ReadFile(s.config.ServerCertFile)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "server_cert_file of the OPC UA server %s: %w", s, err)
	}
	if block, _ := pem.Decode(data); block != nil {
		data = block.Bytes
	}
	chain, err := x509.ParseCertificates(sent)
	if err != nil || len(chain) == 0 || !bytes.Equal(chain[0].Raw, data) {
		return nil, tea.Errorf(tea.PermissionDenied, "the certificate of the OPC UA server %s (SHA-256 %x) is not the one in server_cert_file", s, sha256.Sum256(sent))
	}
	return chain[0].Raw, nil
}

// takes returns the policy of an endpoint for a kind of user identity.
func (s *server) takes(endpoint *ua.EndpointDescription, kind ua.UserTokenType, what string) (*ua.UserTokenPolicy, error) {
	for _, t := range endpoint.UserIdentityTokens {
		if t.TokenType == kind {
			return t, nil
		}
	}
	return nil, tea.Errorf(tea.PermissionDenied, "the OPC UA server %s does not accept a %s at this endpoint", s, what)
}

// read makes a request that changes nothing. It is repeated once if the session was broken
// before.
func (s *server) read(ctx context.Context, request func(ctx context.Context, c *lib.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.timeout())
	defer cancel()
	for {
		c, reused, err := s.session(ctx)
		if err != nil {
			return err
		}
		if err = request(ctx, c); err == nil {
			return nil
		}
		if !isBroken(err) {
			return s.fault(ctx, err)
		}
		s.drop(c)
		if !reused || ctx.Err() != nil {
			return s.fault(ctx, err)
		}
	}
}

// write makes a request that changes something, once. result returns the outcome of the
// only operation.
func (s *server) write(ctx context.Context, request func(ctx context.Context, c *lib.Client) (ua.StatusCode, error)) error {
	if time.Since(s.lastUse()) > idleLimit {
		if err := s.check(ctx); err != nil {
			return guard.NotSent(err)
		}
	}
	limited, cancel := context.WithTimeout(ctx, s.config.timeout())
	defer cancel()
	c, _, err := s.session(limited)
	if err != nil {
		return guard.NotSent(err)
	}
	status, err := request(limited, c)
	var code ua.StatusCode
	var own *tea.Error
	switch {
	case err == nil && !isBad(status):
		return nil
	case errors.As(err, &own):
		return guard.NotSent(own)
	case err == nil:
		err, code = fmt.Errorf("it refused the request: %w", status), status
	case errors.As(err, &code):
	}
	failure := s.fault(limited, err)
	if isBroken(err) {
		s.drop(c)
	}
	if isRefusal(code) {
		return guard.Refused(failure)
	}
	return guard.Unknown(failure)
}

func (s *server) lastUse() time.Time {
	s.slot <- struct{}{}
	defer func() { <-s.slot }()
	return s.used
}

// check makes sure that the session is alive.
func (s *server) check(ctx context.Context) error {
	return s.read(ctx, func(ctx context.Context, c *lib.Client) error {
		_, err := readAttributes(ctx, c, ua.NewNumericNodeID(0, id.Server_ServerStatus_State), ua.AttributeIDValue)
		return err
	})
}

// readAttributes reads attributes of a node. Their status is for the caller.
func readAttributes(ctx context.Context, c *lib.Client, node *ua.NodeID, attributes ...ua.AttributeID) ([]*ua.DataValue, error) {
	req := &ua.ReadRequest{TimestampsToReturn: ua.TimestampsToReturnBoth}
	for _, a := range attributes {
		req.NodesToRead = append(req.NodesToRead, &ua.ReadValueID{NodeID: node, AttributeID: a})
	}
	resp, err := c.Read(ctx, req)
	if err == nil && len(resp.Results) != len(attributes) {
		err = errAnswer
	}
	if err != nil {
		return nil, err
	}
	return resp.Results, nil
}

// errAnswer means that an answer lacks what was asked for.
var errAnswer = errors.New("the answer is not complete")

// isBad reports whether a status is a failure.
func isBad(code ua.StatusCode) bool { return code>>30 > 1 }

// isBroken reports whether an error means that the session cannot be used any more.
func isBroken(err error) bool {
	var own *tea.Error
	if errors.As(err, &own) || errors.Is(err, errAnswer) || errors.Is(err, context.Canceled) {
		return false
	}
	var code ua.StatusCode
	if !errors.As(err, &code) {
		return true
	}
	switch code {
	case ua.StatusBadSessionIDInvalid, ua.StatusBadSessionClosed, ua.StatusBadSessionNotActivated, ua.StatusBadSecureChannelClosed, ua.StatusBadSecureChannelIDInvalid,
		ua.StatusBadServerNotConnected, ua.StatusBadConnectionClosed, ua.StatusBadTimeout, ua.StatusBadSecurityChecksFailed:
		return true
	}
	return false
}

// isRefusal reports whether a status means that a request was not carried out. Other
// failures, such as a failed device, leave this open.
func isRefusal(code ua.StatusCode) bool {
	switch code {
	case ua.StatusBadNodeIDUnknown, ua.StatusBadNodeIDInvalid, ua.StatusBadAttributeIDInvalid, ua.StatusBadUserAccessDenied, ua.StatusBadNotWritable, ua.StatusBadWriteNotSupported,
		ua.StatusBadTypeMismatch, ua.StatusBadOutOfRange, ua.StatusBadIndexRangeInvalid, ua.StatusBadIndexRangeNoData, ua.StatusBadMethodInvalid, ua.StatusBadNotExecutable,
		ua.StatusBadArgumentsMissing, ua.StatusBadTooManyArguments, ua.StatusBadInvalidArgument, ua.StatusBadNotSupported, ua.StatusBadNotImplemented, ua.StatusBadServiceUnsupported,
		ua.StatusBadSessionIDInvalid, ua.StatusBadSessionNotActivated, ua.StatusBadTooManyOperations, ua.StatusBadLocked, ua.StatusBadInvalidState:
		return true
	}
	return false
}

// fault returns the error of an action for an error of the library.
func (s *server) fault(ctx context.Context, err error) error {
	var own *tea.Error
	var code ua.StatusCode
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(ctx.Err(), context.Canceled):
		return tea.Errorf(tea.Canceled, "the OPC UA server %s did not answer before the call ended", s)
	case ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded):
		return tea.Errorf(tea.Timeout, "the OPC UA server %s did not answer within %s", s, s.config.timeout())
	case !errors.As(err, &code):
		return tea.Errorf(tea.ConnectionError, "the OPC UA server %s: %w", s, err)
	}
	kind := tea.QueryError
	switch code {
	case ua.StatusBadTimeout:
		kind = tea.Timeout
	case ua.StatusBadUserAccessDenied, ua.StatusBadNotWritable, ua.StatusBadNotReadable, ua.StatusBadIdentityTokenRejected, ua.StatusBadIdentityTokenInvalid, ua.StatusBadCertificateUntrusted,
		ua.StatusBadSecurityChecksFailed:
		kind = tea.PermissionDenied
	case ua.StatusBadServerHalted, ua.StatusBadShutdown, ua.StatusBadTooManySessions, ua.StatusBadServerNotConnected, ua.StatusBadSecureChannelClosed, ua.StatusBadConnectionClosed,
		ua.StatusBadSessionIDInvalid, ua.StatusBadSessionClosed, ua.StatusBadCommunicationError, ua.StatusBadNoCommunication:
		kind = tea.ConnectionError
	}
	e := tea.Errorf(kind, "the OPC UA server %s: %w", s, err)
	e.Details = map[string]any{"status": statusName(code)}
	return e
}

// statusName returns the name of a status, such as BadNodeIDUnknown.
func statusName(code ua.StatusCode) string {
	known, ok := ua.StatusCodes[code]
	if !ok {
		known, ok = ua.StatusCodes[code&0xffff0000] // without flags
	}
	if !ok {
		return fmt.Sprintf("0x%08X", uint32(code))
	}
	return strings.TrimPrefix(known.Name, "Status")
}
