package bucket

import (
	"context"
	"time"

	"github.com/the-edge-agent/tea/objstore"
	"github.com/the-edge-agent/tea/objstore/azure"
	"github.com/the-edge-agent/tea/objstore/gcs"
	"github.com/the-edge-agent/tea/objstore/s3"
	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/objects"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Name is the value of settings.memory.engine.
const Name = "bucket"

// Option adds the backend to the memory's bundle.
func Option() memory.Option { return memory.WithBackend(Backend()) }

// Backend returns the backend.
func Backend() store.Backend {
	return store.Backend{Name: Name, Env: objects.Env(schemes()), Open: func(ctx context.Context, c store.Config) (*store.Stores, error) {
		s, err := open(ctx, c)
		if err != nil {
			return nil, err
		}
		return s.stores(), nil
	}}
}

func schemes() []objstore.Scheme {
	return []objstore.Scheme{s3.Scheme(), gcs.Scheme(), azure.Scheme()}
}

// options are settings.memory.options.
type options struct {
	objstore.Settings

	Acknowledge  string  `json:"acknowledge,omitempty" enum:"remote,local" doc:"when a write is acknowledged: remote (default), when it is in the bucket; local, when it is on the disk of this device"`
	DelaySeconds float64 `json:"delay_seconds,omitempty" minimum:"0.001" maximum:"3600" doc:"acknowledge: local: seconds for which changes are collected before they are uploaded; default 1"`
	LeaseSeconds float64 `json:"lease_seconds,omitempty" minimum:"0.1" maximum:"3600" doc:"seconds without a sign of life after which another device takes over; default 20"`
	IdleSeconds  float64 `json:"idle_seconds,omitempty" minimum:"0.05" maximum:"3600" doc:"seconds without a call after which the device lets others use the memory; default 5"`
	WaitSeconds  float64 `json:"wait_seconds,omitempty" minimum:"0.1" maximum:"3600" doc:"seconds that a call waits for another device; default 60"`
}

func seconds(value, without float64) time.Duration {
	if value == 0 {
		value = without
	}
	return time.Duration(value * float64(time.Second))
}

func (o options) remote() bool         { return o.Acknowledge != "local" }
func (o options) delay() time.Duration { return seconds(o.DelaySeconds, 1) }
func (o options) lease() time.Duration { return seconds(o.LeaseSeconds, 20) }
func (o options) idle() time.Duration  { return seconds(o.IdleSeconds, 5) }
func (o options) wait() time.Duration  { return seconds(o.WaitSeconds, 60) }
