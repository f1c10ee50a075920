package system

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/load"
	"github.com/shirou/gopsutil/v4/mem"
	"github.com/shirou/gopsutil/v4/net"
	"github.com/shirou/gopsutil/v4/sensors"

	tea "github.com/the-edge-agent/tea/sdk"
)

// InfoResult is the result of system.info.
type InfoResult struct {
	Success       bool              `json:"success" doc:"always true"`
	Hostname      string            `json:"hostname"`
	OS            string            `json:"os" doc:"such as linux"`
	Platform      string            `json:"platform" doc:"distribution and its version"`
	Kernel        string            `json:"kernel" doc:"version of the kernel"`
	UptimeSeconds uint64            `json:"uptime_seconds"`
	Cores         int               `json:"cores" doc:"number of logical cores"`
	CPUPercent    *float64          `json:"cpu_percent" doc:"use of all cores during 0.2 seconds, from 0 to 100"`
	Load          []float64         `json:"load" doc:"average number of processes that run or wait, over 1, 5 and 15 minutes"`
	Memory        *Space            `json:"memory" doc:"free is what programs can get without swapping"`
	Swap          *Space            `json:"swap"`
	Disks         []Disk            `json:"disks" doc:"the root directory and the mounted disks"`
	Temperatures  []Temperature     `json:"temperatures" doc:"empty where the device has no sensors"`
	Network       []Interface       `json:"network" doc:"the network interfaces except loopback"`
	Unavailable   map[string]string `json:"unavailable" doc:"why a part is missing or incomplete; keys: system, cpu, load, memory, disks, temperatures, network"`
}

// Space is how much of a memory or disk is used.
type Space struct {
	TotalBytes  uint64  `json:"total_bytes"`
	FreeBytes   uint64  `json:"free_bytes"`
	UsedPercent float64 `json:"used_percent"`
}

// Disk is a mounted file system.
type Disk struct {
	Path string `json:"path" doc:"where it is mounted"`
	Type string `json:"type" doc:"file system, such as ext4"`
	Space
}

// Temperature is the value of a sensor.
type Temperature struct {
	Sensor  string  `json:"sensor"`
	Celsius float64 `json:"celsius"`
}

// Interface is a network interface.
type Interface struct {
	Name          string   `json:"name"`
	Up            bool     `json:"up"`
	Addresses     []string `json:"addresses" doc:"with the length of the prefix, such as 192.0.2.7/24"`
	ReceivedBytes uint64   `json:"received_bytes" doc:"since the interface exists"`
	SentBytes     uint64   `json:"sent_bytes"`
	Errors        uint64   `json:"errors" doc:"packets that were received or sent with errors"`
}

// sample is the time during which the use of the processors is measured.
const sample = 200 * time.Millisecond

// Info implements system.info.
func (c *Client) Info(ctx context.Context, _ *tea.Request, _ struct{}) (*InfoResult, error) {
	r := &InfoResult{Success: true, Cores: runtime.NumCPU(), Load: []float64{}, Disks: []Disk{}, Temperatures: []Temperature{}, Network: []Interface{}, Unavailable: map[string]string{}}
	for key, read := range map[string]func(context.Context) error{"system": r.system, "cpu": r.cpu, "load": r.load, "memory": r.memory, "disks": r.disks, "temperatures": r.temperatures, "network": r.network} {
		if err := read(ctx); err != nil {
			r.Unavailable[key] = err.Error()
		}
	}
	return r, ctx.Err()
}

func (r *InfoResult) system(ctx context.Context) error {
	s, err := host.InfoWithContext(ctx)
	if err == nil {
		r.Hostname, r.OS, r.Platform, r.Kernel, r.UptimeSeconds = s.Hostname, s.OS, s.Platform+" "+s.PlatformVersion, s.KernelVersion, s.Uptime
	}
	return err
}

func (r *InfoResult) cpu(ctx context.Context) error {
	percent, err := cpu.PercentWithContext(ctx, sample, false)
	if err == nil && len(percent) == 1 {
		r.CPUPercent = &percent[0]
	}
	return err
}

func (r *InfoResult) load(ctx context.Context) error {
	l, err := load.AvgWithContext(ctx)
	if err == nil {
		r.Load = []float64{l.Load1, l.Load5, l.Load15}
	}
	return err
}

func (r *InfoResult) memory(ctx context.Context) error {
	m, err := mem.VirtualMemoryWithContext(ctx)
	if err == nil {
		r.Memory = &Space{m.Total, m.Available, m.UsedPercent}
	}
	swap, err2 := mem.SwapMemoryWithContext(ctx)
	if err2 == nil {
		r.Swap = &Space{swap.Total, swap.Free, swap.UsedPercent}
	}
	return errors.Join(err, err2)
}

// disks reads each file system of a disk once. The root directory can be an overlay or
// in flash memory, which the library does not list.
func (r *InfoResult) disks(ctx context.Context) error {
	mounted, err := disk.PartitionsWithContext(ctx, false)
	if runtime.GOOS != "windows" {
		mounted = append(mounted, disk.PartitionStat{Mountpoint: "/"})
	}
	slices.SortStableFunc(mounted, func(a, b disk.PartitionStat) int { return cmp.Compare(a.Mountpoint, b.Mountpoint) })
	seen := map[string]bool{}
	for _, m := range mounted {
		if seen[m.Mountpoint] || m.Device != "" && seen[m.Device] { // a bind mount
			continue
		}
		seen[m.Mountpoint], seen[m.Device] = true, true
		u, failed := disk.UsageWithContext(ctx, m.Mountpoint)
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		r.Disks = append(r.Disks, Disk{m.Mountpoint, cmp.Or(m.Fstype, u.Fstype), Space{u.Total, u.Free, u.UsedPercent}})
	}
	return err
}

func (r *InfoResult) temperatures(ctx context.Context) error {
	list, err := sensors.TemperaturesWithContext(ctx)
	for _, t := range list {
		r.Temperatures = append(r.Temperatures, Temperature{t.SensorKey, t.Temperature})
	}
	return err
}

func (r *InfoResult) network(ctx context.Context) error {
	list, err := net.InterfacesWithContext(ctx)
	counters, err2 := net.IOCountersWithContext(ctx, true)
	for _, i := range list {
		if slices.Contains(i.Flags, "loopback") {
			continue
		}
		next := Interface{Name: i.Name, Up: slices.Contains(i.Flags, "up"), Addresses: []string{}}
		for _, a := range i.Addrs {
			next.Addresses = append(next.Addresses, a.Addr)
		}
		for _, c := range counters {
			if c.Name == i.Name {
				next.ReceivedBytes, next.SentBytes, next.Errors = c.BytesRecv, c.BytesSent, c.Errin+c.Errout
			}
		}
		r.Network = append(r.Network, next)
	}
	return errors.Join(err, err2)
}
