package postgres

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// SQLSTATE codes.
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	tooManyConnections   = "53300"
	diskFull             = "53100"
	cannotConnectNow     = "57P03"
	databaseDropped      = "57P04"
	readOnlyTransaction  = "25006"
	queryCanceled        = "57014"
	protocolViolation    = "08P01"
	insufficientRight    = "42501"
	noDatabase           = "3D000"
	noSchema             = "3F000"
)

// isRetryable reports whether a call can be repeated.
func isRetryable(err error, attempt int) bool {
	var typed *tea.Error
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &typed):
		return false
	case !errors.As(err, &refused):
		return (isConnectionLost(err) || errors.As(err, new(noConnectionError))) && !isPermanent(err)
	}
	switch refused.Code {
	case serializationFailure, deadlockDetected:
		return attempt < maxConflicts
	case tooManyConnections, cannotConnectNow, readOnlyTransaction:
		return true
	}
	return isShutdown(refused.Code)
}

// isShutdown reports whether the server is shutting down.
func isShutdown(code string) bool {
	return code != databaseDropped && code != protocolViolation && (strings.HasPrefix(code, "57P") || strings.HasPrefix(code, "08"))
}

// isConnectionLost reports whether an error means that the connection was lost.
func isConnectionLost(err error) bool {
	return isNetworkError(err) || errors.As(err, new(*pgconn.ConnectError))
}

// isNetworkError reports whether an error is a network error.
func isNetworkError(err error) bool {
	return errors.As(err, new(net.Error)) || errors.Is(err, pgconn.ErrConnClosed) || pgconn.Timeout(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// wrongServerError reports a server that does not match target_session_attrs. It may match later.
type wrongServerError struct{ error }

func (e wrongServerError) Unwrap() error { return e.error }

// isPermanent reports whether an error of a new connection persists until the settings or the server are changed: a
// refused certificate, missing TLS, another authentication method, or an unknown host.
func isPermanent(err error) bool {
	var host *net.DNSError
	if isCertificateError(err) || errors.As(err, &host) && host.IsNotFound {
		return true
	}
	return errors.As(err, new(*pgconn.ConnectError)) && !isNetworkError(err) && !errors.As(err, new(wrongServerError))
}

func isCertificateError(err error) bool {
	return errors.As(err, new(x509.CertificateInvalidError)) || errors.As(err, new(x509.UnknownAuthorityError)) || errors.As(err, new(x509.HostnameError))
}

// typed converts an error of the driver to a *tea.Error. Errors of the context and typed errors are returned unchanged.
func (d *database) typed(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && !errors.As(err, new(*tea.Error)) {
		return ctx.Err()
	}
	var typed *tea.Error
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &typed), errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrConflict):
		return err
	case errors.As(err, &refused):
		return fromServer(refused)
	case isCertificateError(err):
		return tea.Errorf(tea.PermissionDenied, "PostgreSQL: the server's certificate is refused; check the host in settings.%s, its sslrootcert and this device's clock: %w", urlSetting, err)
	case isPermanent(err):
		e := tea.Errorf(tea.ConnectionError, "PostgreSQL: check the host and the sslmode in settings.%s: %w", urlSetting, err)
		e.Retryable = false
		return e
	case isConnectionLost(err), errors.As(err, new(noConnectionError)):
		return retryable(tea.Errorf(tea.ConnectionError, "PostgreSQL cannot be reached: %w", err))
	}
	return tea.Errorf(tea.QueryError, "PostgreSQL: %w", err)
}

// noResponse returns the error of a call that ended without a response. first is the error of its first attempt.
func (d *database) noResponse(first error) error {
	before := ""
	if !errors.Is(first, context.DeadlineExceeded) {
		before = "; before: " + first.Error()
	}
	return tea.Errorf(tea.Timeout, "PostgreSQL: %w within settings.memory.timeout (%s)%s", errNoResponse, d.timeout, before)
}

func fromServer(e *pgconn.PgError) error {
	problem := func(t tea.ErrorType, remedy string) *tea.Error {
		if remedy != "" {
			remedy = "; " + remedy
		}
		return tea.Errorf(t, "PostgreSQL: %s (SQLSTATE %s)%s", e.Message, e.Code, remedy)
	}
	switch class := e.Code[:2]; {
	case e.Code == queryCanceled:
		return retryable(problem(tea.Timeout, "settings.memory.timeout bounds a statement"))
	case e.Code == readOnlyTransaction:
		return problem(tea.PermissionDenied, "the server is a standby or read-only: name all hosts in settings."+urlSetting+" and add target_session_attrs=read-write")
	case e.Code == insufficientRight:
		return problem(tea.PermissionDenied, "grant the user the rights that the memory's page lists")
	case e.Code == noSchema:
		return problem(tea.PermissionDenied, "grant the user the right to create in the schema public, or name another one in settings.memory.options.schema")
	case class == "28":
		return problem(tea.PermissionDenied, "check the user in settings."+urlSetting+" and settings.memory.token; the password may have expired")
	case e.Code == noDatabase, e.Code == databaseDropped:
		return problem(tea.NotFound, "create the database or correct settings."+urlSetting)
	case e.Code == diskFull:
		return problem(tea.ResourceExhausted, "free space on the server or delete entries")
	case e.Code == tooManyConnections:
		return retryable(problem(tea.ResourceExhausted, "lower settings.memory.connections or raise the server's max_connections"))
	case class == "54": // the server's limits of a row, a value or an index
		return tea.Errorf(tea.ResourceExhausted, "PostgreSQL: %w: %s (SQLSTATE %s)", store.ErrTooLarge, e.Message, e.Code)
	case class == "53":
		return problem(tea.ResourceExhausted, "")
	case isShutdown(e.Code):
		return retryable(problem(tea.ConnectionError, ""))
	case class == "40":
		return retryable(problem(tea.QueryError, ""))
	}
	return problem(tea.QueryError, "")
}

func retryable(e *tea.Error) error {
	e.Retryable = true
	return e
}
