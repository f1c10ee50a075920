//go:build !minimal || system

package device

import (
	"github.com/the-edge-agent/tea/plugins/device/internal/part"
	"github.com/the-edge-agent/tea/plugins/device/internal/system"
)

func (build) System() part.Part { return system.Part() }
