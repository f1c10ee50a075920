//go:build !minimal || opcua

package device

import (
	"github.com/the-edge-agent/tea/plugins/device/internal/opcua"
	"github.com/the-edge-agent/tea/plugins/device/internal/part"
)

func (build) OPCUA() part.Part { return opcua.Part() }
