package driver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/the-edge-agent/tea/sdk/x/backoff"
)

// maxInline is the size above which a value is stored outside of Temporal.
const maxInline = 64 << 10

// storage stores large values in s; nil stores all values in Temporal.
func storage(s store) converter.ExternalStorage {
	if s == nil {
		return converter.ExternalStorage{}
	}
	return converter.ExternalStorage{Drivers: []converter.StorageDriver{blobs{s}}, PayloadSizeThreshold: maxInline}
}

// blobs is a store with a directory per run, below that of its namespace. Values are
// named by their digest, so a run stores equal values once.
type blobs struct{ store store }

// The keys of a claim: the digest of the value, and the directory of the run.
const (
	digestClaim = "sha256"
	runClaim    = "run"
)

func (blobs) Name() string { return "tea" }

func (blobs) Type() string { return "tea.directory" }

// Store writes payloads that are not stored yet.
func (b blobs) Store(c converter.StorageDriverStoreContext, payloads []*commonpb.Payload) ([]converter.StorageDriverClaim, error) {
	run, ok := c.Target.(converter.StorageDriverWorkflowInfo)
	if !ok {
		return nil, errors.New("store a value: it does not belong to a run")
	}
	place := runPlace(run.Namespace, run.WorkflowID)
	claims := make([]converter.StorageDriverClaim, len(payloads))
	for i, p := range payloads {
		err := c.GetLimiter().Permit(c.Context, p, func() error {
			name, err := b.write(c.Context, place, p)
			claims[i] = converter.StorageDriverClaim{ClaimData: map[string]string{digestClaim: name, runClaim: place}}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("store a value: %w", err)
		}
	}
	return claims, nil
}

func (b blobs) write(ctx context.Context, place string, p *commonpb.Payload) (name string, err error) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	name = hex.EncodeToString(sum[:])
	// A value of another size is damaged, and written again.
	if size, err := b.store.size(ctx, place+"/"+name); size == int64(len(raw)) || err != nil {
		return name, err
	}
	return name, b.store.write(ctx, place+"/"+name, raw)
}

// keep stores a large answer of a call before the call ends. If that fails, it waits
// until the store works again; otherwise Temporal would repeat the call.
func (k *worker) keep(ctx context.Context, h *remoteHost, out answer) error {
	if k.store == nil || out.size() < maxInline/2 {
		return nil
	}
	p, err := k.data.ToPayload(out)
	if err != nil || proto.Size(p) < maxInline {
		return err
	}
	place := runPlace(k.namespace, h.info.WorkflowExecution.ID)
	for attempt := 1; ; attempt++ {
		if _, err = (blobs{k.store}).write(ctx, place, p); err == nil {
			return nil
		}
		h.waits(fmt.Sprintf("its result cannot be stored in --blobs: %v", err))
		if backoff.Sleep(ctx, waits.Wait(attempt)) != nil {
			return fmt.Errorf("store the result: %w", err)
		}
	}
}

// Retrieve reads the payloads and checks their digests.
func (b blobs) Retrieve(c converter.StorageDriverRetrieveContext, claims []converter.StorageDriverClaim) ([]*commonpb.Payload, error) {
	payloads := make([]*commonpb.Payload, len(claims))
	for i, claim := range claims {
		err := c.GetLimiter().Permit(c.Context, claim, func() (err error) {
			payloads[i], err = b.read(c.Context, claim.ClaimData[runClaim], claim.ClaimData[digestClaim])
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read a value: %w", err)
		}
	}
	return payloads, nil
}

func (b blobs) read(ctx context.Context, place, name string) (*commonpb.Payload, error) {
	if len(name) != 2*sha256.Size || strings.Trim(name, "0123456789abcdef") != "" {
		return nil, fmt.Errorf("%q is not a digest", name)
	}
	if !filepath.IsLocal(place) {
		return nil, fmt.Errorf("%q is not the directory of a run", place)
	}
	raw, err := b.store.read(ctx, filepath.ToSlash(place)+"/"+name)
	if err != nil {
		return nil, fmt.Errorf("%w; is --blobs the same for all workers and clients?", err)
	}
	if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != name {
		return nil, fmt.Errorf("%s/%s is damaged", place, name)
	}
	p := new(commonpb.Payload)
	if err := proto.Unmarshal(raw, p); err != nil {
		return nil, fmt.Errorf("%s/%s: %w", place, name, err)
	}
	return p, nil
}

func runPlace(namespace, run string) string {
	return url.PathEscape(namespace) + "/run-" + url.PathEscape(run)
}

// minBlobAge is the age below which values may belong to a run that is about to
// start.
const minBlobAge = time.Hour

// prune removes the values of a namespace's runs that gone reports.
func (b blobs) prune(ctx context.Context, namespace string, before time.Time, gone func(run string) (bool, error)) error {
	place := url.PathEscape(namespace)
	entries, err := b.store.below(ctx, place)
	faults := []error{err}
	for entry, written := range entries {
		name, ok := strings.CutPrefix(entry, "run-")
		run, bad := url.PathUnescape(name)
		if !ok || bad != nil || !written.Before(before) {
			continue
		}
		ended, err := gone(run)
		if err == nil && ended {
			err = b.store.remove(ctx, place+"/"+entry)
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// digest is a short digest of texts.
func digest(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:12])
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
