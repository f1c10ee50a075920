package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/sdk/x/backoff"
)

const (
	defaultAddress   = "localhost:7233"
	defaultNamespace = "default"
	defaultQueue     = "tea"
)

// dialTimeout bounds the wait for the server.
const dialTimeout = 30 * time.Second

// connection is a connection to a namespace of a Temporal server.
type connection struct {
	client             client.Client
	address, namespace string
	data               converter.DataConverter
	failures           converter.FailureConverter
	// store holds values above 64 KB, or is nil. storeID identifies it.
	store   store
	storeID string
}

// close ends the connection.
func (c *connection) close() {
	c.client.Close()
	if c.store != nil {
		_ = c.store.close() // nothing is written
	}
}

// describe returns the description of an execution of a run; "" is the current one.
// Errors of the server are returned unchanged.
func (c *connection) describe(ctx context.Context, run, execution string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	about, err := c.client.DescribeWorkflow(ctx, run, execution)
	if err != nil {
		return nil, err
	}
	return about.RawResponse, nil
}

// converters returns the converters for the flags: with keys they encrypt.
func converters(f teacmd.TemporalFlags) (converter.DataConverter, converter.FailureConverter, error) {
	codec, err := newCodec(f.Keys)
	if err != nil {
		return nil, nil, err
	}
	data := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), codec)
	return data, temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
		DataConverter: data, EncodeCommonAttributes: codec.first != "",
	}), nil
}

// unreachableError reports that the server cannot be reached now.
type unreachableError struct{ error }

func (e unreachableError) Unwrap() error { return e.error }

// waits is the backoff of a worker that connects.
var waits = backoff.Policy{Base: 250 * time.Millisecond, Max: 30 * time.Second, Multiplier: 2, Jitter: 0.2}

// await is like dial, for a worker, which may start before the server or the network.
// It returns nil when ctx is done.
func await(ctx context.Context, f teacmd.TemporalFlags, logger *slog.Logger) (*connection, error) {
	for attempt := 1; ; attempt++ {
		c, err := dial(ctx, f, logger)
		if !errors.As(err, new(unreachableError)) {
			return c, err
		}
		if ctx.Err() == nil {
			logger.Warn("the server is not reachable", "error", err)
		}
		if backoff.Sleep(ctx, waits.Wait(attempt)) != nil {
			return nil, nil
		}
	}
}

// dial connects to the server of the flags, which override the environment variables
// and the configuration file of Temporal's tools.
func dial(ctx context.Context, f teacmd.TemporalFlags, logger *slog.Logger) (*connection, error) {
	o, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return nil, fmt.Errorf("read the configuration of Temporal: %w", err)
	}
	o.HostPort = cmp.Or(f.Temporal, o.HostPort, defaultAddress)
	o.Namespace = cmp.Or(f.Namespace, o.Namespace, defaultNamespace)
	// Messages are small: compression costs more time than it saves.
	o.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	o.Logger = log.NewStructuredLogger(logger)
	if o.DataConverter, o.FailureConverter, err = converters(f); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c := &connection{address: o.HostPort, namespace: o.Namespace, data: o.DataConverter, failures: o.FailureConverter}
	if f.Blobs != "" {
		if c.store, c.storeID, err = openStore(ctx, f.Blobs); err != nil {
			return nil, err
		}
		o.ExternalStorage = storage(c.store)
	}
	if c.client, err = client.DialContext(ctx, o); err != nil {
		if c.store != nil {
			_ = c.store.close() // the first error is reported
		}
		return nil, unreachableError{fmt.Errorf("connect to the Temporal server at %s: %w", o.HostPort, err)}
	}
	return c, nil
}

func executionOf(run, execution string) *commonpb.WorkflowExecution {
	return &commonpb.WorkflowExecution{WorkflowId: run, RunId: execution}
}
