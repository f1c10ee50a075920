//go:build !minimal || command

package device

import (
	"github.com/the-edge-agent/tea/plugins/device/internal/command"
	"github.com/the-edge-agent/tea/plugins/device/internal/part"
)

func (build) Command() part.Part { return command.Part() }
