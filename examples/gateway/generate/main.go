// Command generate writes the day that the example reads: a gateway's log and
// the readings of its devices. It draws the same numbers every time.
//
//	go run ./examples/gateway/generate examples/gateway/data
package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

var midnight = time.Date(2026, 3, 14, 0, 0, 0, 0, time.UTC)

// every is the time between two readings of a device.
const every = 10 * time.Minute

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate DIR")
		os.Exit(2)
	}
	d := &day{rand: rand.New(rand.NewPCG(2026, 314))}
	d.readings()
	d.routine()
	d.incidents()
	for name, text := range map[string]string{"sensors.csv": d.csv.String(), "gateway.log": d.log()} {
		if err := os.WriteFile(filepath.Join(os.Args[1], name), []byte(text), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "generate:", err)
			os.Exit(1)
		}
	}
}

// day collects what happened.
type day struct {
	rand  *rand.Rand
	csv   strings.Builder
	lines []line
}

type line struct {
	at   time.Time
	text string
}

// device is one sensor; value returns its reading at an hour of the day, nan
// for none, from noise around 0 with deviation 1.
type device struct {
	name, metric, unit string
	value              func(hour, noise float64) float64
}

var devices = []device{
	{"pump-1", "vibration", "mm/s", func(h, noise float64) float64 {
		// A bearing that wears out from the early afternoon on.
		return 2.1 + 0.12*noise + max(0, h-13.3)*0.42
	}},
	{"pump-2", "vibration", "mm/s", func(_, noise float64) float64 { return 1.9 + 0.11*noise }},
	{"chiller-1", "temperature", "°C", func(h, noise float64) float64 {
		v := 4.4 + 0.25*noise + 0.4*math.Sin((h-9)/24*2*math.Pi)
		if h >= 15 && h < 16.6 { // the compressor has tripped
			v += 6.5 * math.Sin((h-15)/1.6*math.Pi)
		}
		return v
	}},
	{"tank-1", "level", "%", func(h, noise float64) float64 {
		if h >= 2.6 && h < 4.4 { // no answer on the bus
			return math.NaN()
		}
		return 88 - math.Mod(h+3, 8)*6.5 + 0.6*noise
	}},
	{"fan-1", "current", "A", func(h, noise float64) float64 {
		if h >= 6.5 && h < 10.2 { // the sensor repeats itself
			return 3.27
		}
		return 3.2 + 0.09*noise
	}},
	{"meter-1", "power", "kW", func(h, noise float64) float64 {
		v := 14 + 5*math.Sin((h-8)/24*2*math.Pi) + 0.5*noise
		if h > 18.1 && h < 18.2 {
			v += 41
		}
		return v
	}},
	{"line-1", "pressure", "bar", func(_, noise float64) float64 { return 6.1 + 0.06*noise }},
}

func (d *day) readings() {
	d.csv.WriteString("time,device,metric,value,unit\n")
	for at := midnight; at.Before(midnight.AddDate(0, 0, 1)); at = at.Add(every) {
		for _, dev := range devices {
			v := dev.value(at.Sub(midnight).Hours(), d.rand.NormFloat64())
			if !math.IsNaN(v) {
				fmt.Fprintf(&d.csv, "%s,%s,%s,%.2f,%s\n", at.Format(time.RFC3339), dev.name, dev.metric, v, dev.unit)
			}
		}
	}
}

func (d *day) say(hour, minute, second int, level, format string, args ...any) {
	at := midnight.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second)
	d.lines = append(d.lines, line{at, fmt.Sprintf("%s %-5s %s", at.Format(time.RFC3339), level, fmt.Sprintf(format, args...))})
}

// routine generates the usual messages of a healthy gateway.
func (d *day) routine() {
	for minute := range 24 * 60 {
		h, m, s := minute/60, minute%60, d.rand.IntN(60)
		switch {
		case m%10 == 0:
			d.say(h, m, 2, "INFO", "collector[412]: read %d devices in %d ms", len(devices), 180+d.rand.IntN(90))
		case m%10 == 1:
			d.say(h, m, s, "INFO", "uplink[533]: sent %d values, %d bytes", len(devices), 700+d.rand.IntN(60))
		case m == 33:
			d.say(h, m, s, "INFO", "clock[201]: offset %+.1f ms", d.rand.NormFloat64())
		default:
			dev := devices[d.rand.IntN(len(devices))]
			d.say(h, m, s, "DEBUG", "modbus[418]: %s answered in %d ms", dev.name, 12+d.rand.IntN(30))
		}
	}
	for range 6 { // an occasional lost packet is not an incident
		dev := devices[1+d.rand.IntN(2)]
		d.say(d.rand.IntN(24), d.rand.IntN(60), d.rand.IntN(60), "WARN", "modbus[418]: %s answered late (%d ms)", dev.name, 800+d.rand.IntN(300))
	}
	d.say(11, 4, 41, "ERROR", "modbus[418]: line-1 checksum wrong, asked again")
}

// incidents are the events that the example must find.
func (d *day) incidents() {
	for m := 158; m < 264; m += 4 {
		d.say(m/60, m%60, d.rand.IntN(60), "ERROR", "modbus[418]: tank-1 no answer after 3 tries (timeout 2000 ms)")
	}
	d.say(4, 24, 8, "INFO", "modbus[418]: tank-1 is back")
	for s := 0; s < 240; s += 15 {
		d.say(9, 12+s/60, s%60, "ERROR", "uplink[533]: connection to broker lost: network is unreachable")
	}
	d.say(9, 16, 20, "INFO", "uplink[533]: connected, 14 values sent from the buffer")
	d.say(14, 58, 17, "ERROR", "modbus[418]: chiller-1 status 0x21: compressor overload, tripped")
	d.say(15, 3, 17, "ERROR", "modbus[418]: chiller-1 status 0x21: compressor overload, tripped")
	d.say(15, 48, 2, "WARN", "modbus[418]: chiller-1 status 0x02: restarted by hand")
	d.say(18, 9, 50, "WARN", "collector[412]: meter-1 value 55 kW is far from the last one")
	for _, h := range []int{17, 19, 21} {
		d.say(h, 20, 11, "WARN", "modbus[418]: pump-1 status 0x04: vibration above the warning level")
	}
}

func (d *day) log() string {
	slices.SortStableFunc(d.lines, func(a, b line) int { return a.at.Compare(b.at) })
	var text strings.Builder
	for _, l := range d.lines {
		text.WriteString(l.text + "\n")
	}
	return text.String()
}
