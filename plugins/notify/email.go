package notify

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// Email is e-mail over SMTP.
type Email struct {
	Server   string   `json:"server" pattern:"^([^\\]\\[/@: ]+|\\[[^\\]\\[/@ ]+\\]):[0-9]{1,5}$" doc:"address of the mail server: HOST:PORT"`
	TLS      string   `json:"tls,omitempty" enum:"starttls,tls,none" default:"starttls" doc:"encryption: by STARTTLS (usually port 587), from the beginning (465), or none"`
	Username string   `json:"username,omitempty" doc:"user name at the mail server"`
	Password string   `json:"password,omitempty" secret:"true" doc:"its password"`
	From     string   `json:"from" doc:"sender, such as Pump 7 <pump7@example.com>"`
	To       []string `json:"to" minItems:"1" doc:"recipients"`
}

// mailer sends e-mail.
type mailer struct {
	*Email
	options []mail.Option
	host    string
	timeout time.Duration
}

func (e *Email) open(caFile string, timeout time.Duration) (service, error) {
	host, port, err := net.SplitHostPort(e.Server)
	number, numberErr := strconv.Atoi(port)
	if err != nil || numberErr != nil || host == "" {
		return nil, tea.Errorf(tea.ValidationError, "email.server: expected HOST:PORT, such as mail.example.com:587")
	}
	if len(e.To) == 0 {
		return nil, tea.Errorf(tea.ValidationError, "email.to is missing")
	}
	if (e.Username == "") != (e.Password == "") {
		return nil, tea.Errorf(tea.ValidationError, "set both email.username and email.password, or neither")
	}
	config := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if caFile != "" {
		if config.RootCAs, err = httpapi.Certificates(caFile); err != nil {
			return nil, err
		}
	}
	m := &mailer{Email: e, host: host, timeout: timeout}
	m.options = []mail.Option{mail.WithPort(number), mail.WithTimeout(timeout), mail.WithTLSConfig(config), mail.WithoutNoop(), mail.WithoutRset()}
	switch e.TLS {
	case "tls":
		m.options = append(m.options, mail.WithSSL())
	case "none":
		m.options = append(m.options, mail.WithTLSPolicy(mail.NoTLS))
	default:
		m.options = append(m.options, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if e.Username != "" {
		m.options = append(m.options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(e.Username), mail.WithPassword(e.Password))
	}
	_, err = m.compose(&message{ID: "check"})
	return m, err
}

// compose returns a message as e-mail.
func (e *mailer) compose(m *message) (*mail.Msg, error) {
	msg := mail.NewMsg()
	if err := msg.From(e.From); err != nil {
		return nil, tea.Errorf(tea.ValidationError, "email.from: %w", err)
	}
	if err := msg.To(e.To...); err != nil {
		return nil, tea.Errorf(tea.ValidationError, "email.to: %w", err)
	}
	sender := msg.GetFrom()[0].Address
	msg.SetMessageIDWithValue(m.ID + sender[strings.LastIndex(sender, "@"):])
	msg.SetDate()
	msg.SetUserAgent("tea")
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	switch {
	case rank(m.Priority) > 3:
		msg.SetImportance(mail.ImportanceHigh)
	case rank(m.Priority) < 3:
		msg.SetImportance(mail.ImportanceLow)
	}
	msg.Subject(m.Title)
	msg.SetBodyString(mail.TypeTextPlain, m.lines())
	return msg, nil
}

func (e *mailer) send(ctx context.Context, m *message) error {
	msg, err := e.compose(m)
	if err != nil {
		return err
	}
	client, err := mail.NewClient(e.host, e.options...)
	if err != nil {
		return tea.Errorf(tea.ValidationError, "email: %w", err)
	}
	if err := client.DialWithContext(ctx); err != nil {
		return e.failure(err).NotSent()
	}
	err = client.Send(msg)
	_ = client.Close() // the message was taken or not, whatever the server answers now
	if err == nil || msg.IsDelivered() {
		return nil
	}
	var sent *mail.SendError
	if errors.As(err, &sent) && sent.Reason == mail.ErrSMTPDataClose && sent.ErrorCode() == 0 {
		return unknown(e.failure(err)) // the message is complete, the answer is missing
	}
	return e.failure(err).NotSent()
}

// failure classifies an error.
func (e *mailer) failure(err error) *tea.Error {
	failure := tea.Errorf(tea.ConnectionError, "%s", hide(err.Error(), e.Password))
	failure.Source = e.Server
	var answer *textproto.Error
	var certificate *tls.CertificateVerificationError
	var sent *mail.SendError
	code := 0
	if errors.As(err, &answer) {
		code = answer.Code
	} else if errors.As(err, &sent) {
		code = sent.ErrorCode()
	}
	switch {
	case errors.As(err, &certificate):
		failure.Retryable = false
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		failure.Type = tea.AsError(err).Type
	case code == 530 || code == 534 || code == 535:
		failure.Type, failure.Retryable = tea.PermissionDenied, false
	case code >= 500:
		failure.Type, failure.Retryable = tea.ValidationError, false
	}
	return failure
}

// hide masks a secret.
func hide(text, secret string) string {
	if secret == "" {
		return text
	}
	return strings.ReplaceAll(text, secret, "***")
}
